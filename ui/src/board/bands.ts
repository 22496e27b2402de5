// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The groups of Pods in a workload's tile, from the top, the newest last. Groups
 * and their blocks keep their places while there is room below the last group;
 * then the tile is laid out again, with smaller blocks if needed.
 */

import { BLOCK, PITCH, rowsOf, type Band, type Tile } from './positions';

export interface Measures {
  head: number;
  pad: number;
  /** The height of a group's label. */
  label: number;
}

/** A group without a name has no label. */
const labelOf = (name: string, { label }: Measures): number => (name ? label : 0);

/** Where the last line may end, with its gap. */
const bottom = (tile: Tile, { pad }: Measures, pitch = tile.pitch): number => tile.h - pad + pitch * (1 - BLOCK / PITCH) + 1e-3;

/** A slot for a new Pod of a group, and whether the whole tile was laid out again. `ghost`: a slot's row may be removed, as `remove` does. */
export function slotFor(tile: Tile, name: string, measures: Measures, ghost: (row: number) => boolean, remove: (row: number) => void): { slot: number; moved: boolean } {
  const band = tile.bands!.find((b) => b.name === name) ?? open(tile, name, measures);
  if (band) {
    const slots = tile.slots.subarray(band.line * tile.columns, (band.line + band.lines) * tile.columns);
    let slot = slots.indexOf(-1);
    if (slot < 0) slot = slots.findIndex(ghost);
    if (slot >= 0) return { slot: band.line * tile.columns + slot, moved: false };
    if (band === tile.bands!.at(-1) && band.top + (band.lines + 1) * tile.pitch <= bottom(tile, measures)) {
      slot = (band.line + band.lines) * tile.columns;
      band.lines++;
      extend(tile);
      return { slot, moved: false };
    }
  }
  // Remove ghosts early rather than make the tile's blocks smaller.
  tile.slots.filter((row) => row >= 0 && ghost(row)).forEach(remove);
  const groups = groupsOf(tile);
  layOut(tile, groups.some((one) => one.name === name) ? groups : [...groups, { name, rows: [] }], measures, name);
  const again = tile.bands!.find((b) => b.name === name)!;
  const from = again.line * tile.columns;
  return { slot: from + tile.slots.subarray(from, from + again.lines * tile.columns).indexOf(-1), moved: true };
}

/** The groups of a tile with their rows. */
export const groupsOf = (tile: Tile): { name: string; rows: number[] }[] => tile.bands!.map((band) => ({ name: band.name, rows: [...rowsOf(tile, band)] }));

/** Adds a group below the last one, if it has room there. */
function open(tile: Tile, name: string, measures: Measures): Band | null {
  const last = tile.bands!.at(-1);
  const top = (last ? last.top + last.lines * tile.pitch : measures.head) + labelOf(name, measures);
  if (top + tile.pitch > bottom(tile, measures)) return null;
  const band = { name, line: last ? last.line + last.lines : 0, lines: 1, top };
  tile.bands!.push(band);
  extend(tile);
  return band;
}

/** Adds the slots of new lines. */
function extend(tile: Tile): void {
  const last = tile.bands!.at(-1)!;
  const slots = (last.line + last.lines) * tile.columns;
  if (slots <= tile.slots.length) return;
  const before = tile.slots;
  tile.slots = new Int32Array(slots).fill(-1);
  tile.slots.set(before);
}

/** Gives each group as many lines as its rows need, and one row more for the group `wanting`. The blocks are as large as fit. */
export function layOut(tile: Tile, groups: { name: string; rows: number[] }[], measures: Measures, wanting: string | null = null): void {
  const wide = tile.w - 2 * measures.pad;
  const kept = groups.filter(({ name, rows }) => rows.length || name === wanting);
  const least = Math.max(1, Math.floor((wide + PITCH - BLOCK) / PITCH + 1e-6));
  for (let columns = least; ; columns++) {
    const pitch = columns === least ? PITCH : wide / (columns - 1 + BLOCK / PITCH);
    const bands: Band[] = [];
    let line = 0;
    let top = measures.head;
    for (const { name, rows } of kept) {
      const lines = Math.ceil((rows.length + (name === wanting ? 1 : 0)) / columns);
      top += labelOf(name, measures);
      bands.push({ name, line, lines, top });
      line += lines;
      top += lines * pitch;
    }
    // Labels alone may need more than there is.
    if (top > bottom(tile, measures, pitch) && columns < 400) continue;
    const more = Math.max(0, Math.floor((bottom(tile, measures, pitch) - top) / pitch));
    Object.assign(tile, { columns, pitch, bands, slots: new Int32Array((line + more) * columns).fill(-1) });
    kept.forEach(({ rows }, i) => tile.slots.set(rows, bands[i].line * columns));
    return;
  }
}
