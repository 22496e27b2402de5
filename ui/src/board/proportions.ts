// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Computes the size and the arrangement of tiles that make blocks as large as possible in a view. */

import { BLOCK, maxScale, PITCH } from './positions';

export interface Proportions {
  /** Pixels per unit. */
  scale: number;
  /** The height of a tile's head, the padding inside its edges, and the gap between tiles. */
  head: number;
  pad: number;
  gap: number;
  /** The size of a tile, and the number of tiles side by side. */
  w: number;
  h: number;
  across: number;
  /** The columns and rows of blocks in a tile. */
  cells: { columns: number; rows: number };
}

/** The largest size of unscheduled Pods, in pixels. */
const LOOSE = 55;

/** Units per slot of the unscheduled tile. */
export const loosePitch = (scale: number): number => PITCH * Math.min(1, Math.max(0.5, LOOSE / (PITCH * scale)));

/** A tile of another shape than these, as width by height, is taken only if its blocks are larger by a tenth. */
const SHAPES = { from: 0.7, to: 4 };

/**
 * Chooses the number of blocks per row of a tile and of tiles per row of the
 * board that make blocks largest. Heads and gaps have a fixed size in pixels, so
 * they depend on the scale, which depends on them: three iterations are close
 * enough.
 */
export function proportion(room: number, groups: number[], named: boolean, width: number, height: number): Proportions {
  const total = Math.max(1, groups.reduce((a, b) => a + b, 0));
  const p: Proportions = { scale: 0, head: 12, pad: 4, gap: 6, w: 0, h: 0, across: 1, cells: { columns: 1, rows: 1 } };
  let scale = Math.sqrt((width * height) / (total * room)) / (PITCH * 1.3);
  for (let round = 0; round < 3; round++) {
    const pixels = scale * PITCH * Math.sqrt(room * 1.7);
    p.head = Math.min(24, (pixels < 76 ? 6 : pixels < 170 ? 19 : 30) / scale);
    p.pad = Math.min(5, Math.max(1.5, 9 / scale));
    p.gap = Math.min(6, Math.max(1.5, 10 / scale));
    let best = 0;
    let most = 0;
    // With few tiles all numbers of columns are tried.
    const narrow = total > 50;
    for (let across = narrow ? Math.ceil(Math.sqrt(room)) : 1; across <= (narrow ? Math.ceil(Math.sqrt(room * 4)) : room); across++) {
      const rows = Math.max(narrow ? 2 : 1, Math.ceil(room / across));
      const w = across * PITCH - (PITCH - BLOCK) + 2 * p.pad;
      const h = p.head + rows * PITCH - (PITCH - BLOCK) + p.pad;
      for (let columns = 1; columns <= Math.min(total, 400); columns++) {
        const flow = new Flow(columns, w + p.gap, h + p.gap, named ? p.head + 4 : 0);
        for (const size of groups) flow.group(size);
        const fits = Math.min(width / (columns * (w + p.gap)), height / (flow.bottom + p.head + loosePitch(scale) + p.pad));
        const value = w < SHAPES.from * h || w > SHAPES.to * h ? fits / 1.1 : fits;
        if (value <= most) continue;
        most = value;
        best = fits;
        p.across = columns;
        p.cells = { columns: across, rows };
        p.w = w;
        p.h = h;
      }
    }
    scale = Math.min(best, maxScale);
  }
  p.scale = scale;
  return p;
}

/**
 * Blocks are whole pixels, and have the same size in both directions: distributes
 * the rest of the view to gaps and padding, and then to the tiles, which get more
 * slots if there is enough.
 */
export function stretch(p: Proportions, groups: number[], named: boolean, width: number, height: number, ratio: number): void {
  const pixels = Math.floor(p.scale * PITCH * ratio) / ratio;
  if (pixels * ratio < 3) return;
  const flow = new Flow(p.across, p.w + p.gap, p.h + p.gap, named ? p.head + 4 : 0);
  for (const size of groups) flow.group(size);
  const lines = Math.max(1, Math.round(flow.bottom / (p.h + p.gap)));
  const wide = Math.max(0, ((width * PITCH) / pixels - flow.right) / p.across);
  const high = Math.max(0, ((height * PITCH) / pixels - flow.bottom - p.head - loosePitch(p.scale) - p.pad) / lines);
  const more = Math.min(wide, high, PITCH);
  // More than this next to the blocks would look like missing Pods.
  const pad = Math.max(0, Math.min(p.pad + more * 0.3, 14 / p.scale, PITCH / 2) - p.pad);
  const gap = Math.min(more * 0.4, 16 / p.scale);
  p.gap += gap;
  p.pad += pad;
  p.w += wide - gap;
  p.h += high - gap;
  p.cells.columns += Math.floor((wide - gap - 2 * pad) / PITCH + 1e-6);
  p.cells.rows += Math.floor((high - gap - pad) / PITCH + 1e-6);
}

/** The number of slots per tile that is enough for this part of the tiles, with spare slots in small clusters. */
export function roomFor(counts: number[], part: number): number {
  const sorted = [...counts].sort((a, b) => a - b);
  const quantile = sorted[Math.ceil((sorted.length - 1) * part)] ?? 0;
  return Math.max(4, counts.length > 50 ? quantile + (quantile < 10 ? 1 : 0) : quantile + Math.max(1, Math.floor(quantile / 10)));
}

/** Lays out groups of tiles in lines. A group that fits into the rest of a line continues there; others start a line. */
export class Flow {
  bottom = 0;
  #column = 0;
  #top = 0;
  constructor(readonly columns: number, readonly w: number, readonly h: number, readonly heading: number) {}

  group(size: number): { x: number; y: number; column: number } {
    if (this.#column > 0 && this.#column + size > this.columns) {
      this.#column = 0;
      this.#top = this.bottom;
    }
    const column = this.#column;
    const y = this.#top + this.heading;
    const lines = Math.max(1, Math.ceil((column + size) / this.columns));
    this.bottom = Math.max(this.bottom, y + lines * this.h);
    this.#column += size;
    if (lines > 1 || this.#column >= this.columns || !this.heading) {
      this.#column = lines > 1 || this.#column >= this.columns ? 0 : this.#column;
      if (this.#column === 0) this.#top = this.bottom;
    }
    return { x: column * this.w, y, column };
  }

  tile(group: { x: number; y: number; column: number }, i: number): { x: number; y: number } {
    const at = group.column + i;
    return { x: (at % this.columns) * this.w, y: group.y + Math.floor(at / this.columns) * this.h };
  }

  /** The end of the lines. */
  get right(): number {
    return this.columns * this.w;
  }
}
