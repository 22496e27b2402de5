// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** A block zoomed in: a card with the Pod's name and containers, in the colour of its state. */

import type { Cluster } from '../data/cluster';
import { clock } from '../data/clock';
import { age } from '../data/quantity';
import { State } from '../data/state';
import { css, mix, stateName, type Theme } from './palette';
import { PATHS } from './paths';
import { clip, MONO, rounded, SANS } from './text';

const shapes = new Map<string, Path2D>();

/** Draws the shape of a state in a square. */
export function drawShape(context: CanvasRenderingContext2D, state: number, x: number, y: number, size: number, colour: string): void {
  const name = stateName(state);
  let path = shapes.get(name);
  if (!path) shapes.set(name, (path = new Path2D(PATHS[name])));
  context.save();
  context.translate(x, y);
  context.scale(size / 16, size / 16);
  context.fillStyle = colour;
  context.fill(path, 'evenodd');
  context.restore();
}

export function drawCard(
  context: CanvasRenderingContext2D, cluster: Cluster, row: number, x: number, y: number, size: number, theme: Theme, faded: boolean, light: number,
): void {
  const state = cluster.shown(row);
  if (state === State.gone) return;
  const colour = theme.state[stateName(state)];
  const pad = Math.max(5, size * 0.09);
  // Cover what the renderer painted here, including its highlight.
  const around = size * 0.124;
  context.fillStyle = css(theme.tile);
  context.fillRect(x - around, y - around, size + 2 * around, size + 2 * around);
  context.globalAlpha = faded ? 0.22 : 1;
  rounded(context, x + 0.75, y + 0.75, size - 1.5, size - 1.5, size * 0.12);
  context.fillStyle = css(mix(theme.tile, colour, 0.16 + 0.3 * light));
  context.shadowColor = css(colour);
  context.shadowBlur = light * 24;
  context.fill();
  context.shadowBlur = 0;
  context.strokeStyle = css(mix(mix(theme.tile, colour, 0.75), theme.glow, light * 0.8));
  context.lineWidth = 1.5;
  context.stroke();

  const icon = Math.min(18, size * 0.22);
  drawShape(context, state, x + pad, y + pad, icon, css(colour));
  const { containers, restarts } = cluster.readiness(row);
  if (size >= 84) {
    context.font = `11px ${SANS}`;
    context.fillStyle = css(mix(colour, theme.text, 0.35));
    const text = cluster.strings[cluster.text[row]];
    if (context.measureText(text).width <= size - 2 * pad - icon - 6) context.fillText(text, x + pad + icon + 6, y + pad + icon / 2 + 0.5);
  }
  const high = Math.max(5, size * 0.1);
  // As many lines as fit between the shape and the containers, and the line of the namespace.
  const line = size >= 104 ? 14 : size >= 58 ? 12 : 11;
  const room = Math.floor((size - 2 * pad - icon - high - (size >= 130 ? 22 : size >= 58 ? 4 : 2)) / line);
  context.font = `500 11px ${MONO}`;
  context.fillStyle = css(theme.text);
  lines(context, cluster.names[row], size - 2 * pad, Math.min(3, Math.max(1, room))).forEach((text, i) => context.fillText(text, x + pad, y + pad + icon + (size >= 58 ? 3 : 2) + (i + 0.5) * line));
  if (size >= 130) {
    context.font = `11px ${SANS}`;
    context.fillStyle = css(theme.muted);
    const words = [cluster.strings[cluster.namespace[row]], restarts ? `${restarts}↻` : '', age(clock.now() - cluster.created[row])];
    context.fillText(clip(context, words.filter(Boolean).join(' · '), size - 2 * pad), x + pad, y + size - pad - size * 0.1 - 14);
  }
  // The containers along the bottom.
  const cells = Math.min(7, Math.max(1, containers));
  const gap = 3;
  const wide = (size - 2 * pad - (cells - 1) * gap) / cells;
  for (let i = 0; i < cells; i++) {
    const cell = (cluster.cells[row] >> (4 * i)) & 15;
    context.fillStyle = css(cell ? theme.state[stateName(cell)] : theme.state.pending, cell ? 1 : 0.4);
    rounded(context, x + pad + i * (wide + gap), y + size - pad - high, wide, high, 2.5);
    context.fill();
  }
  if (size < 84 && restarts > 0) {
    context.font = `11px ${SANS}`;
    context.fillStyle = css(theme.muted);
    context.textAlign = 'right';
    context.fillText(`${restarts}↻`, x + size - pad, y + pad + icon / 2);
    context.textAlign = 'left';
  }
  context.globalAlpha = 1;
}

/** The beginning of a text, as much as fits. */
function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  return text.slice(0, Math.max(1, Math.floor(width / context.measureText('0').width)));
}

/** Breaks a name into lines, at dashes if possible. */
function lines(context: CanvasRenderingContext2D, name: string, width: number, maxLines: number): string[] {
  const out: string[] = [];
  let line = '';
  for (const part of name.split(/(?<=-)/)) {
    if (line && context.measureText(line + part).width > width) {
      out.push(line);
      line = part;
    } else line += part;
  }
  out.push(line);
  const last = out[out.length - 1];
  if (out.length > maxLines) out.splice(maxLines - 1, out.length, out.slice(maxLines - 1).join(''));
  // The end of a name distinguishes the Pods of a workload; a few letters around an ellipsis would not.
  return out.map((text, i) => (i > 0 && i === out.length - 1 && width < 66 && context.measureText(text).width > width ? cut(context, last, width) : width < 66 ? cut(context, text, width) : clip(context, text, width)));
}
