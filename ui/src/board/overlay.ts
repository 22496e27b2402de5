// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The text and the marks over the blocks: headings, the names of Nodes or workloads, rings around selected Pods, and, zoomed in, a card for each Pod. Only
 * what is in view is drawn.
 */

import type { Cluster } from '../data/cluster';
import { clock } from '../data/clock';
import { age, count } from '../data/quantity';
import { State } from '../data/state';
import type { Camera } from './camera';
import { drawCard } from './card';
import { FAR, farCalm } from './far';
import { BLOCK, PITCH, UNSCHEDULED, type Layout, type Tile } from './layout';
import { css, mix, type Theme } from './palette';
import { glow } from './renderer';
import { clip, MONO, rounded, SANS } from './text';
import { drawWorkload, namespaceSums } from './workload-head';

/** Blocks of at least this many pixels are drawn as cards. */
export const NEAR = 44;

export interface Marks {
  /** Rows, or -1: under the pointer, reached with the keys, shown in the panel. */
  hover: number;
  focus: number;
  selected: number;
  /** The Nodes or workloads under the pointer and in the panel, by the names of their tiles. */
  hoverTile: string | null;
  selectedTile: string | null;
  /** The rows with the same owner as the one under the pointer. */
  siblings: number[];
  /** Whether a row matches the filter; null without a filter. */
  matches: ((row: number) => boolean) | null;
  /** The number of matching Pods per tile; null without a filter. */
  matching: Map<string, number> | null;
  reducedMotion: boolean;
  /** The states and flags of rows as painted. */
  look: Uint8Array;
  flags: Uint8Array;
}

export function drawOverlay(
  context: CanvasRenderingContext2D, ratio: number, layout: Layout, cluster: Cluster, camera: Camera, theme: Theme, marks: Marks, now: number,
): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, camera.width, camera.height);
  context.textBaseline = 'middle';
  const sums = layout.headings.length ? (layout.tiles[0]?.bands ? namespaceSums : groupSums)(layout, cluster) : null;
  for (const heading of layout.headings) {
    const y = camera.toScreenY(heading.y + layout.heading / 2);
    const x = camera.toScreenX(heading.x);
    if (y < -20 || y > camera.height + 20 || layout.heading * camera.scale < 8) continue;
    context.font = `600 ${layout.heading * camera.scale < 18 ? 11 : 13}px ${SANS}`;
    context.fillStyle = css(theme.text);
    const room = heading.w * camera.scale;
    const text = clip(context, heading.text, room);
    context.fillText(text, x + 2, y);
    const after = context.measureText(text).width + 12;
    context.font = `11px ${SANS}`;
    context.fillStyle = css(theme.muted);
    const words = sums?.get(heading.text) ?? '';
    if (after + context.measureText(words).width < room) context.fillText(words, x + after, y + 0.5);
  }
  const near = BLOCK * camera.scale >= NEAR;
  const far = PITCH * camera.scale * ratio < FAR;
  for (const tile of layout.tiles) {
    const x = camera.toScreenX(tile.x);
    const y = camera.toScreenY(tile.y);
    const w = tile.w * camera.scale;
    if (x > camera.width || y > camera.height || x + w < 0 || y + tile.h * camera.scale < 0) continue;
    if (near && tile.pitch * camera.scale >= NEAR) {
      for (const row of tile.slots) {
        if (row < 0 || cluster.state[row] === State.none) continue;
        const size = 2 * layout.half[row] * camera.scale;
        const left = camera.toScreenX(layout.x[row] - layout.half[row]);
        const top = camera.toScreenY(layout.y[row] - layout.half[row]);
        if (left > camera.width || top > camera.height || left + size < 0 || top + size < 0) continue;
        drawCard(context, cluster, row, left, top, size, theme, marks.matches !== null && !marks.matches(row), cluster.change[row] && !marks.reducedMotion ? glow(now - cluster.changed[row]) : 0);
      }
    }
    if (far) drawCount(context, theme, tile, x + w / 2, y + (tile.h * camera.scale) / 2, w, tile.h * camera.scale, marks);
    else if (tile.bands) drawWorkload(context, layout, cluster, camera, theme, tile, x, y, w, marks.matching ? (marks.matching.get(tile.name) ?? 0) : -1);
    else drawHead(context, layout, cluster, camera, theme, tile, x, y, w, marks);
    if (tile.name === marks.selectedTile || tile.name === marks.hoverTile) {
      context.strokeStyle = css(tile.name === marks.selectedTile ? theme.accent : mix(theme.edge, theme.text, 0.45));
      context.lineWidth = tile.name === marks.selectedTile ? 2 : 1;
      rounded(context, x, y, w, tile.h * camera.scale, Math.min(8, 4 * camera.scale));
      context.stroke();
    }
  }
  for (const row of marks.siblings) ring(context, layout, camera, row, css(theme.text, 0.5), 1);
  ring(context, layout, camera, marks.hover, css(theme.text), 1.5);
  ring(context, layout, camera, marks.selected, css(theme.accent), 2);
  if (marks.focus !== marks.selected) ring(context, layout, camera, marks.focus, css(theme.accent), 2);
}

/** The summary of each group of Nodes. */
function groupSums(layout: Layout, cluster: Cluster): Map<string, string> {
  const sums = new Map<string, [nodes: number, pods: number, lost: number]>();
  for (const tile of layout.tiles) {
    const node = cluster.nodes.get(tile.name);
    if (tile.name === UNSCHEDULED || !node?.row) continue;
    const sum = sums.get(tile.group) ?? [0, 0, 0];
    sums.set(tile.group, [sum[0] + 1, sum[1] + node.pods, sum[2] + (node.row.ready === 'True' ? 0 : 1)]);
  }
  return new Map([...sums].map(([group, [nodes, pods, lost]]) => [group, `${count(nodes, 'node')} · ${count(pods, 'pod')}${lost ? ` · ${lost} NotReady` : ''}`]));
}

/** Draws the number of Pods on a field without a sign, if it fits. */
function drawCount(context: CanvasRenderingContext2D, theme: Theme, tile: Tile, x: number, y: number, w: number, h: number, marks: Marks): void {
  if (w < 18 || h < 20 || tile.name === UNSCHEDULED) return;
  const pods = farCalm(tile, marks.look, marks.flags);
  if (!pods) return;
  context.font = `11px ${SANS}`;
  context.fillStyle = css(theme.text, 0.85);
  context.textAlign = 'center';
  if (context.measureText(String(pods)).width < w - 2) context.fillText(String(pods), x, y + 0.5);
  context.textAlign = 'left';
}

/** Draws the head of a tile, as much as fits. */
function drawHead(
  context: CanvasRenderingContext2D, layout: Layout, cluster: Cluster, camera: Camera, theme: Theme, tile: Tile,
  x: number, y: number, w: number, marks: Marks,
): void {
  const head = layout.head * camera.scale;
  const node = cluster.nodes.get(tile.name);
  const matching = marks.matching?.get(tile.name) ?? 0;
  const faded = marks.matching !== null && matching === 0;
  const pad = Math.max(2, Math.min(12, layout.pad * camera.scale));
  context.globalAlpha = faded ? 0.35 : 1;
  if (tile.name === UNSCHEDULED) {
    if (head >= 8) {
      context.font = `500 ${head < 14 ? 11 : 13}px ${SANS}`;
      context.fillStyle = css(theme.muted);
      context.fillText(tile.used ? `Unscheduled · ${tile.used}` : 'Unscheduled · no Pods', x + pad, y + Math.min(head, 40) / 2);
    }
    context.globalAlpha = 1;
    return;
  }
  const middle = y + Math.min(head, 34) / 2 + (head > 22 ? 1 : 0);
  const lost = node?.row !== null && node?.row?.ready !== 'True';
  const bar = node?.row ? Math.min(64, Math.max(12, w * 0.16)) : 0;
  const wide = w > 310 && head >= 18;
  const bars = wide ? 2 * (bar + 40) : bar + 8;
  if (head >= 9 && w >= 64) {
    context.font = `600 ${head < 22 ? 11 : 13}px ${MONO}`;
    context.fillStyle = css(tile.gone ? theme.muted : theme.text);
    const name = clip(context, tile.name, w - 2 * pad - bars - 4);
    context.fillText(name, x + pad, middle);
    const after = x + pad + context.measureText(name).width + 8;
    context.font = `11px ${SANS}`;
    context.fillStyle = css(lost && !tile.gone ? theme.state.failing : theme.muted);
    const room = x + w - pad - bars - after;
    // The longest text that fits whole.
    const words = nodeWords(tile, cluster, marks.matching ? matching : -1).find((text) => context.measureText(text).width <= room);
    if (head >= 9 && words) context.fillText(words, after, middle + 0.5);
  }
  if (node?.row && w >= 30 && head >= 4) {
    const shares = [node.row.cpu ? node.cpu / node.row.cpu : 0, node.row.memory ? node.memory / node.row.memory : 0];
    if (wide) {
      shares.forEach((share, i) => {
        const at = x + w - pad - (2 - i) * (bar + 40) + 40 - 6 * (1 - i);
        context.font = `11px ${SANS}`;
        context.fillStyle = css(theme.muted);
        context.textAlign = 'right';
        context.fillText(i === 0 ? 'cpu' : 'mem', at - 6, middle + 0.5);
        context.textAlign = 'left';
        meter(context, theme, at, middle - 2, bar, 4, share);
      });
    } else {
      const thick = head >= 10 ? 3 : 1.5;
      const across = head >= 9 && w >= 64 ? bar : w - 2 * pad;
      shares.forEach((share, i) => meter(context, theme, x + w - pad - across, middle - thick - 0.5 + i * (thick + 1), across, thick, share));
    }
  }
  context.globalAlpha = 1;
}

/** The texts for a Node, from the longest to the shortest. */
function nodeWords(tile: Tile, cluster: Cluster, matching: number): string[] {
  const node = cluster.nodes.get(tile.name);
  const row = node?.row;
  if (tile.gone) return ['deleted'];
  // Only the Pods' nodeName is known: show their number.
  if (!row) return node ? [matching >= 0 ? `${matching} of ${node.pods}` : String(node.pods)] : [];
  const count = matching >= 0 ? `${matching} of ${node.pods}` : String(node.pods);
  const state: string[] = [];
  if (row.ready !== 'True') state.push('NotReady');
  if (row.unschedulable) state.push('cordoned');
  const since = row.ready !== 'True' && row.since ? ` ${age(clock.now() - row.since)}` : '';
  return [
    [...state.map((word) => (word === 'NotReady' ? word + since : word)), ...row.pressure, count],
    [...state, ...row.pressure], [...state, count], state, [count],
  ].map((words) => words.join(' · ')).filter(Boolean);
}

function meter(context: CanvasRenderingContext2D, theme: Theme, x: number, y: number, w: number, h: number, share: number): void {
  context.fillStyle = css(theme.edge);
  bar(context, x, y, w, h);
  if (share <= 0) return;
  context.fillStyle = css(share > 0.95 ? theme.state.failing : share > 0.8 ? theme.state.unready : h >= 3 ? mix(theme.muted, theme.text, 0.25) : mix(theme.edge, theme.muted, 0.6));
  bar(context, x, y, Math.max(h, Math.min(1, share) * w), h);
}

/** A bar with round ends, which are invisible on thin bars. */
function bar(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
  if (h < 3) {
    context.fillRect(x, y, w, h);
    return;
  }
  rounded(context, x, y, w, h, h / 2);
  context.fill();
}

function ring(context: CanvasRenderingContext2D, layout: Layout, camera: Camera, row: number, colour: string, width: number): void {
  if (row < 0 || !(layout.half[row] > 0)) return;
  const half = layout.half[row] * camera.scale;
  const out = Math.max(2, Math.min(3, half * 0.3));
  const x = camera.toScreenX(layout.x[row]);
  const y = camera.toScreenY(layout.y[row]);
  context.strokeStyle = colour;
  context.lineWidth = width;
  rounded(context, x - half - out, y - half - out, 2 * (half + out), 2 * (half + out), Math.min(10, half * 0.4 + out));
  context.stroke();
}
