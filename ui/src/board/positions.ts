// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The positions of rows: the tile and the slot, and from these the point on the board. */

export const PITCH = 10;
/** The side of a block. */
export const BLOCK = 8;
/** The most pixels per unit when the whole board is shown. */
export const maxScale = 16;
/** The name of the tile for unscheduled Pods. */
export const UNSCHEDULED = '';

/** The lines of a tile that belong to a ReplicaSet, whose label is above them. */
export interface Band {
  /** The pod-template-hash; empty in a tile without groups. */
  name: string;
  /** The first line of slots, and the number of lines. */
  line: number;
  lines: number;
  /** The upper edge of the first line below that of the tile. */
  top: number;
}

export interface Tile {
  /** The name of the Node or the workload, or UNSCHEDULED. */
  name: string;
  x: number;
  y: number;
  w: number;
  h: number;
  /** Slots side by side, each `pitch` wide: an overfull tile has smaller blocks. */
  columns: number;
  pitch: number;
  /** The row in each slot, or -1. */
  slots: Int32Array;
  used: number;
  /** The Node was deleted; the tile stays. */
  gone: boolean;
  /** The group of the Node, or the namespace of the workload. */
  group: string;
  /** The groups of a workload's Pods, from the top; null for a Node. */
  bands: Band[] | null;
}

export class Positions {
  tiles: Tile[] = [];
  /** The height of a tile's head, and the padding inside its edges. */
  head = 12;
  pad = 4;
  /** The centre of each row's block and half its side; 0 if the row has no position. */
  x = new Float32Array(0);
  y = new Float32Array(0);
  half = new Float32Array(0);
  /** Tiles that have lost a group above another one, until they are laid out again. */
  protected readonly unsettled = new Set<Tile>();
  protected slot = new Int32Array(0);
  protected owner: (Tile | null)[] = [];

  /** Removes a row and frees its slot. */
  remove(row: number): void {
    const tile = this.owner[row];
    if (!tile) return;
    tile.slots[this.slot[row]] = -1;
    tile.used--;
    this.owner[row] = null;
    this.half[row] = 0;
    if (tile.bands && closeBands(tile)) this.unsettled.add(tile);
  }

  tileOf(row: number): Tile | null {
    return this.owner[row] ?? null;
  }

  slotOf(row: number): number {
    return this.slot[row];
  }

  /** The tile at a point of the board, and the row there or -1. */
  pick(x: number, y: number): { tile: Tile; row: number } | null {
    for (const tile of this.tiles) {
      if (x < tile.x || y < tile.y || x >= tile.x + tile.w || y >= tile.y + tile.h) continue;
      const column = Math.floor((x - tile.x - this.pad) / tile.pitch);
      const line = this.#lineAt(tile, y - tile.y);
      const slot = line * tile.columns + column;
      const inside = column >= 0 && column < tile.columns && line >= 0 && slot < tile.slots.length;
      return { tile, row: inside ? tile.slots[slot] : -1 };
    }
    return null;
  }

  /** The row of a kind that is nearest to where another one is or was, or -1. */
  nearest(row: number, of: (other: number) => boolean): number {
    let best = -1;
    let least = Infinity;
    for (let other = 0; other < this.x.length; other++) {
      if (!(this.half[other] > 0) || other === row || !of(other)) continue;
      const distance = Math.hypot(this.x[other] - this.x[row], this.y[other] - this.y[row]);
      if (distance < least) [best, least] = [other, distance];
    }
    return best;
  }

  /** The nearest row in a direction, or -1. */
  next(row: number, dx: number, dy: number): number {
    let best = -1;
    let least = Infinity;
    for (let other = 0; other < this.x.length; other++) {
      if (!(this.half[other] > 0) || other === row) continue;
      const x = this.x[other] - this.x[row];
      const y = this.y[other] - this.y[row];
      const along = x * dx + y * dy;
      if (along < 0.5) continue;
      const cost = along + 4 * Math.abs(x * dy + y * dx);
      if (cost < least) [best, least] = [other, cost];
    }
    return best;
  }

  protected put(tile: Tile, slot: number, row: number): void {
    tile.slots[slot] = row;
    tile.used++;
    if (tile.bands) tile.gone = false;
    this.owner[row] = tile;
    this.slot[row] = slot;
    this.locate(tile, row);
  }

  protected locate(tile: Tile, row: number): void {
    const slot = this.slot[row];
    const scale = tile.pitch / PITCH;
    this.x[row] = tile.x + this.pad + ((slot % tile.columns) * PITCH + BLOCK / 2) * scale;
    this.y[row] = tile.y + this.#lineTop(tile, Math.floor(slot / tile.columns)) + (BLOCK / 2) * scale;
    this.half[row] = (BLOCK / 2) * scale;
  }

  /** The upper edge of a line of slots below that of the tile. */
  #lineTop(tile: Tile, line: number): number {
    const band = tile.bands?.findLast((b) => b.line <= line);
    return band ? band.top + (line - band.line) * tile.pitch : this.head + line * tile.pitch;
  }

  /** The line of slots at a distance from the tile's upper edge, or -1. */
  #lineAt(tile: Tile, y: number): number {
    if (!tile.bands) return Math.floor((y - this.head) / tile.pitch);
    const band = tile.bands.find((b) => y >= b.top && y < b.top + b.lines * tile.pitch);
    return band ? band.line + Math.floor((y - band.top) / tile.pitch) : -1;
  }

  protected grow(length: number): void {
    if (length <= this.x.length) return;
    const to = Math.max(1024, 2 ** Math.ceil(Math.log2(length)));
    const more = <T extends Float32Array | Int32Array>(old: T, kind: new (n: number) => T): T => {
      const grown = new kind(to);
      grown.set(old);
      return grown;
    };
    this.x = more(this.x, Float32Array);
    this.y = more(this.y, Float32Array);
    this.half = more(this.half, Float32Array);
    this.slot = more(this.slot, Int32Array);
  }
}

/** The Pods of a band, as rows. */
export function rowsOf(tile: Tile, band: Band): Int32Array {
  return tile.slots.subarray(band.line * tile.columns, (band.line + band.lines) * tile.columns).filter((row) => row >= 0);
}

/** Removes the bands without Pods; the others stay where they are. Whether one of these is below one that was removed. */
function closeBands(tile: Tile): boolean {
  const before = tile.bands!;
  tile.bands = before.filter((band) => rowsOf(tile, band).length > 0);
  tile.gone = tile.used === 0;
  return tile.bands.some((band, i) => band !== before[i]);
}
