// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** How large tiles are, and how they are laid, so that blocks are as large as a view has room for. */

import { BLOCK, LARGEST, PITCH } from './places';

export interface Proportions {
  /** Pixels per unit. */
  scale: number;
  /** The height of a tile's head, what is left free inside of its edges, and between tiles. */
  head: number;
  pad: number;
  gap: number;
  /** The size of a tile, and how many are side by side. */
  w: number;
  h: number;
  across: number;
  /** Blocks in a tile, side by side and one below the other. */
  cells: { columns: number; rows: number };
}

/**
 * Chooses how many blocks are side by side in a tile, and how many tiles on
 * the board, so that blocks are largest in that view. What is around them is
 * so many pixels high and wide whatever the scale, so these depend on each
 * other: three rounds come close enough.
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
    for (let across = Math.ceil(Math.sqrt(room)); across <= Math.ceil(Math.sqrt(room * 4)); across++) {
      const rows = Math.max(2, Math.ceil(room / across));
      const w = across * PITCH - (PITCH - BLOCK) + 2 * p.pad;
      const h = p.head + rows * PITCH - (PITCH - BLOCK) + p.pad;
      for (let columns = 1; columns <= Math.min(total, 400); columns++) {
        const flow = new Flow(columns, w + p.gap, h + p.gap, named ? p.head + 4 : 0);
        for (const size of groups) flow.group(size);
        const fits = Math.min(width / (columns * (w + p.gap)), height / (flow.bottom + p.head + 2 * PITCH));
        if (fits <= best) continue;
        best = fits;
        p.across = columns;
        p.cells = { columns: across, rows };
        p.w = w;
        p.h = h;
      }
    }
    scale = Math.min(best, LARGEST);
  }
  p.scale = scale;
  return p;
}

/** Blocks are whole pixels, so the board is seen a little smaller than would fit: the rest goes between and around them. */
export function stretch(p: Proportions, groups: number[], named: boolean, width: number, height: number, ratio: number): void {
  const pixels = Math.floor(p.scale * PITCH * ratio) / ratio;
  if (pixels * ratio < 3) return;
  const flow = new Flow(p.across, p.w + p.gap, p.h + p.gap, named ? p.head + 4 : 0);
  for (const size of groups) flow.group(size);
  const lines = Math.max(1, Math.round(flow.bottom / (p.h + p.gap)));
  const wide = ((width * PITCH) / pixels - flow.right) / p.across;
  const high = ((height * PITCH) / pixels - flow.bottom - p.head - 2 * PITCH) / lines;
  const more = Math.max(0, Math.min(wide, high, PITCH));
  p.gap += more * 0.4;
  p.pad += more * 0.3;
  p.w += more * 0.6;
  p.h += more * 0.3;
}

/** For how many Pods tiles have room, so that it is enough for a part of the tiles; with some to spare where there are few. */
export function roomFor(counts: number[], part: number): number {
  const sorted = [...counts].sort((a, b) => a - b);
  const most = sorted[Math.ceil((sorted.length - 1) * part)] ?? 0;
  return Math.max(8, counts.length > 50 ? most : Math.ceil(most * 1.1 + 3));
}

/** Lays groups of equal tiles in lines: a group that fits into the rest of a line goes on there, others begin a line. */
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

  /** Where lines end. */
  get right(): number {
    return this.columns * this.w;
  }
}
