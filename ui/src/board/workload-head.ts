// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The head of a workload's tile, and the labels of the ReplicaSets in it. */

import type { Cluster } from '../data/cluster';
import { count } from '../data/quantity';
import { State } from '../data/state';
import type { Camera } from './camera';
import type { Layout } from './layout';
import { css, type Theme } from './palette';
import { rowsOf, type Tile } from './positions';
import { clip, MONO, SANS } from './text';
import { workloadNamed } from './workloads';

/** How many Pods a workload has, and how many of them need nothing more. */
export function sumOf(rows: Iterable<number>, cluster: Cluster): { pods: number; well: number } {
  let pods = 0;
  let well = 0;
  for (const row of rows) {
    if (row < 0 || !cluster.has(row)) continue;
    pods++;
    const state = cluster.shown(row);
    if (state === State.ready || state === State.succeeded) well++;
  }
  return { pods, well };
}

/** `matching`: how many of its Pods match the filter, or -1 without a filter. */
export function drawWorkload(
  context: CanvasRenderingContext2D, layout: Layout, cluster: Cluster, camera: Camera, theme: Theme, tile: Tile, x: number, y: number, w: number, matching: number,
): void {
  const head = layout.head * camera.scale;
  const pad = Math.max(2, Math.min(20, layout.pad * camera.scale)); // as the blocks have it
  context.globalAlpha = matching === 0 ? 0.35 : 1;
  if (head >= 9 && w >= 40) {
    const { kind, name } = workloadNamed(tile.name);
    const { pods, well } = sumOf(tile.slots, cluster);
    const middle = y + Math.min(head, 34) / 2 + (head > 22 ? 1 : 0);
    context.font = `600 ${head < 22 ? 11 : 13}px ${MONO}`;
    context.fillStyle = css(tile.gone ? theme.muted : theme.text);
    const title = clip(context, name || 'no owner', w - 2 * pad);
    context.fillText(title, x + pad, middle);
    const after = x + pad + context.measureText(title).width + 8;
    context.font = `11px ${SANS}`;
    context.fillStyle = css(theme.muted);
    const number = matching >= 0 ? `${matching} of ${pods}` : well < pods ? `${well} of ${pods} ready` : String(pods);
    const words = [`${kind} · ${number}`, number].find((text) => after + context.measureText(text).width <= x + w - pad);
    if (words) context.fillText(kind ? words : number, after, middle + 0.5);
  }
  if (layout.label * camera.scale >= 9) {
    for (const band of tile.bands ?? []) {
      if (!band.name) continue;
      const { pods, well } = sumOf(rowsOf(tile, band), cluster);
      const middle = camera.toScreenY(tile.y + band.top - layout.label / 2);
      context.font = `11px ${MONO}`;
      context.fillStyle = css(theme.muted);
      const number = ` · ${well < pods ? `${well} of ${pods}` : pods}`;
      context.fillText(clip(context, band.name, w - 2 * pad - context.measureText(number).width) + number, x + pad, middle);
    }
  }
  context.globalAlpha = 1;
}

/** The summary of each namespace. */
export function namespaceSums(layout: Layout, cluster: Cluster): Map<string, string> {
  const sums = new Map<string, [workloads: number, pods: number]>();
  for (const tile of layout.tiles) {
    const sum = sums.get(tile.group) ?? [0, 0];
    sums.set(tile.group, [sum[0] + (tile.used && workloadNamed(tile.name).kind ? 1 : 0), sum[1] + sumOf(tile.slots, cluster).pods]);
  }
  return new Map([...sums].map(([group, [workloads, pods]]) => [group, `${count(workloads, 'workload')} · ${count(pods, 'pod')}`]));
}
