// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Where everything is. Lengths are in units; a block with the gap after it
 * takes PITCH of them. A tile keeps its place and a block its slot in the tile
 * until `arrange` is called, which happens only when the reader asks for it,
 * at the end of the first list, and when the window changes: whatever else
 * comes takes a place that is free, or one at the end.
 */

import type { Cluster } from '../data/cluster';
import { State } from '../data/state';
import { compareNames, groupLabel, podOrder, type Arrangement } from './order';

export const PITCH = 10;
/** The side of a block. */
export const BLOCK = 8;
/** Pixels per unit at the most, when all is shown. */
export const LARGEST = 11;
/** Pods without a Node take no more than so many pixels each, however much room there is. */
const LOOSE = 55;
/** The name of the tile for Pods that no Node has. */
export const UNSCHEDULED = '';

export interface Tile {
  /** The Node; UNSCHEDULED for the Pods without one. */
  name: string;
  x: number;
  y: number;
  w: number;
  h: number;
  /** Slots in a row, each `pitch` wide: a tile that is too full has smaller blocks. */
  columns: number;
  pitch: number;
  /** The row of the Pod in each slot, -1 for none. */
  slots: Int32Array;
  used: number;
  /** The Node is gone; its place stays. */
  gone: boolean;
  /** The group that it is in. */
  group: string;
}

export interface Heading {
  text: string;
  x: number;
  y: number;
  w: number;
}

export class Layout {
  tiles: Tile[] = [];
  headings: Heading[] = [];
  readonly byName = new Map<string, Tile>();
  width = 100;
  height = 100;
  /** The height of a tile's head, what is left free inside of its edges, and between tiles. */
  head = 12;
  pad = 4;
  gap = 6;
  /** Where each row is: the middle of its block, and half of its side. */
  x = new Float32Array(0);
  y = new Float32Array(0);
  half = new Float32Array(0);
  /** Tiles whose blocks have got another size since somebody looked here last. */
  readonly resized = new Set<Tile>();
  /** Device pixels per CSS pixel. */
  ratio = 1;
  /** Counts up whenever tiles have moved, come or gone. */
  version = 0;

  #slot = new Int32Array(0);
  #tileOf: (Tile | null)[] = [];
  #w = 0;
  #h = 0;
  #columns = 1;
  #loosePitch = PITCH;
  #cells = { columns: 1, rows: 1 };
  /** The free place after the last tile, of each group. */
  #ends = new Map<string, { x: number; y: number; right: number }>();
  #arrangement: Arrangement = { group: '', order: 'namespace' };

  /** Places all anew for a view of that size in pixels. */
  arrange(cluster: Cluster, arrangement: Arrangement, viewWidth: number, viewHeight: number): void {
    this.#arrangement = arrangement;
    this.#grow(cluster.length);
    const perTile = new Map<string, number[]>();
    for (const name of cluster.nodes.keys()) if (name !== UNSCHEDULED) perTile.set(name, []);
    const loose: number[] = [];
    for (let row = 0; row < cluster.length; row++) {
      if (cluster.state[row] === State.none) continue;
      const name = cluster.nodeName(row);
      if (name === UNSCHEDULED) loose.push(row);
      else (perTile.get(name) ?? perTile.set(name, []).get(name)!).push(row);
    }
    const groups = new Map<string, string[]>();
    for (const name of [...perTile.keys()].sort(compareNames)) {
      const group = groupLabel(cluster.nodes.get(name), arrangement.group);
      (groups.get(group) ?? groups.set(group, []).get(group)!).push(name);
    }
    const named = arrangement.group !== '';
    const sizes = [...groups].sort(([a], [b]) => compareNames(a, b));
    const full = [...perTile.values()].map((rows) => rows.length);
    const lengths = sizes.map(([, names]) => names.length);
    // Blocks are whole pixels: room for a few Pods less, and the blocks of all can be a pixel larger.
    const rooms = [...new Set(full.length > 50 ? [0.98, 0.93, 0.87, 0.8].map((part) => roomFor(full, part)) : [roomFor(full, 1)])];
    const pixels = rooms.map((room) => Math.floor(this.#proportion(room, lengths, named, viewWidth, viewHeight) * PITCH * this.ratio));
    const scale = this.#proportion(rooms[pixels.indexOf(Math.max(...pixels))], lengths, named, viewWidth, viewHeight);
    this.#stretch(scale, lengths, named, viewWidth, viewHeight);
    this.#loosePitch = PITCH * Math.min(1, Math.max(0.5, LOOSE / (PITCH * scale)));
    this.#flow(sizes, named);
    if (loose.length || perTile.size) this.#addUnscheduled(loose.length);

    const order = podOrder(cluster, arrangement.order);
    this.#tileOf = new Array(cluster.length).fill(null);
    for (const [name, rows] of perTile) this.#fill(this.byName.get(name)!, rows.sort(order));
    if (loose.length) this.#fill(this.byName.get(UNSCHEDULED)!, loose.sort(order));
    this.resized.clear();
    this.version++;
  }

  /** Gives a row that is new, or has moved, a place. The rest stays. */
  place(cluster: Cluster, row: number): void {
    this.#grow(cluster.length);
    const name = cluster.nodeName(row);
    if (name === UNSCHEDULED && !this.byName.has(name)) this.#addUnscheduled(1);
    const tile = this.byName.get(name) ?? this.addTile(cluster, name);
    if (this.#tileOf[row] === tile) return;
    this.remove(row);
    let slot = tile.slots.indexOf(-1);
    // Rather than to make the tile's blocks smaller, a ghost goes early.
    if (slot < 0) slot = tile.slots.findIndex((other) => cluster.state[other] === State.gone);
    if (slot >= 0 && tile.slots[slot] >= 0) this.remove(tile.slots[slot]);
    if (slot < 0) {
      slot = tile.slots.length;
      this.#widen(tile);
    }
    this.#put(tile, slot, row);
  }

  /** Takes a row away; its slot is free. */
  remove(row: number): void {
    const tile = this.#tileOf[row];
    if (!tile) return;
    tile.slots[this.#slot[row]] = -1;
    tile.used--;
    this.#tileOf[row] = null;
    this.half[row] = 0;
  }

  tileOf(row: number): Tile | null {
    return this.#tileOf[row] ?? null;
  }

  slotOf(row: number): number {
    return this.#slot[row];
  }

  /** What is at a point of the board: a tile, and the row of a Pod or -1. */
  pick(x: number, y: number): { tile: Tile; row: number } | null {
    for (const tile of this.tiles) {
      if (x < tile.x || y < tile.y || x >= tile.x + tile.w || y >= tile.y + tile.h) continue;
      const column = Math.floor((x - tile.x - this.pad) / tile.pitch);
      const line = Math.floor((y - tile.y - this.head) / tile.pitch);
      const slot = line * tile.columns + column;
      const inside = column >= 0 && column < tile.columns && line >= 0 && slot < tile.slots.length;
      return { tile, row: inside ? tile.slots[slot] : -1 };
    }
    return null;
  }

  /** The row that is next from a block in a direction, -1 if there is none. */
  next(row: number, dx: number, dy: number): number {
    let best = -1;
    let least = Infinity;
    for (let other = 0; other < this.x.length; other++) {
      if (this.half[other] === 0 || other === row) continue;
      const x = this.x[other] - this.x[row];
      const y = this.y[other] - this.y[row];
      const along = x * dx + y * dy;
      if (along < 0.5) continue;
      const cost = along + 4 * Math.abs(x * dy + y * dx);
      if (cost < least) [best, least] = [other, cost];
    }
    return best;
  }

  /** A tile for a Node that is new: where one has gone, or after the last of its group. */
  addTile(cluster: Cluster, name: string): Tile {
    const known = this.byName.get(name);
    if (known) {
      known.gone = false;
      return known;
    }
    const group = groupLabel(cluster.nodes.get(name), this.#arrangement.group);
    const free = this.tiles.find((t) => t.gone && t.used === 0 && t.group === group);
    if (free) {
      this.byName.delete(free.name);
      free.name = name;
      free.gone = false;
      this.byName.set(name, free);
      this.version++;
      return free;
    }
    let end = this.#ends.get(group);
    if (!end || end.x + this.#w > end.right) {
      const loose = this.byName.get(UNSCHEDULED);
      const bottom = Math.max(0, ...this.tiles.filter((t) => t !== loose).map((t) => t.y + t.h + this.gap));
      const named = this.#arrangement.group !== '';
      if (named) this.headings.push({ text: group, x: 0, y: bottom, w: this.width });
      end = { x: 0, y: bottom + (named ? this.head + 4 : 0), right: Math.max(this.#w, this.#columns * (this.#w + this.gap) - this.gap) };
      this.#ends.set(group, end);
      if (loose) this.#shift(loose, end.y + this.#h + this.gap - loose.y);
    }
    const tile = this.#tile(name, group, end.x, end.y);
    end.x += this.#w + this.gap;
    this.#measure();
    this.version++;
    return tile;
  }

  /** The Node is gone; its tile stays until what is next takes its place. */
  goneTile(name: string): void {
    const tile = this.byName.get(name);
    if (tile) tile.gone = true;
    this.version++;
  }

  #flow(groups: [string, string[]][], named: boolean): void {
    this.tiles = [];
    this.headings = [];
    this.byName.clear();
    this.#ends.clear();
    const flow = new Flow(this.#columns, this.#w + this.gap, this.#h + this.gap, named ? this.head + 4 : 0);
    for (const [text, names] of groups) {
      const at = flow.group(names.length);
      if (named) this.headings.push({ text, x: at.x, y: at.y - flow.heading, w: Math.min(names.length, this.#columns - at.column) * (this.#w + this.gap) - this.gap });
      names.forEach((name, i) => {
        const place = flow.tile(at, i);
        this.#tile(name, text, place.x, place.y);
      });
      const next = flow.tile(at, names.length);
      const last = flow.tile(at, names.length - 1);
      this.#ends.set(text, { x: last.x + this.#w + this.gap, y: last.y, right: next.y === last.y ? flow.right : last.x });
    }
    this.#measure();
  }

  /** The tile of Pods without a Node: as wide as the board, below all others. */
  #addUnscheduled(pods: number): void {
    const y = this.tiles.length ? this.height + this.gap : 0;
    const width = Math.max(this.width, this.#w * 2);
    let pitch = this.#loosePitch;
    let rows = Math.ceil(pods / Math.max(1, Math.floor((width - 2 * this.pad) / pitch)));
    while (rows * pitch > Math.max(3 * PITCH, this.height / 3)) {
      pitch /= 2;
      rows = Math.ceil(pods / Math.floor((width - 2 * this.pad) / pitch));
    }
    const across = Math.floor((width - 2 * this.pad) / pitch);
    const tile: Tile = {
      name: UNSCHEDULED, x: 0, y, w: width, h: rows ? this.head + rows * pitch + this.pad : this.head, columns: across, pitch,
      slots: new Int32Array(across * rows).fill(-1), used: 0, gone: false, group: '',
    };
    this.tiles.push(tile);
    this.byName.set(UNSCHEDULED, tile);
    this.#measure();
  }

  #tile(name: string, group: string, x: number, y: number): Tile {
    const { columns, rows } = this.#cells;
    const tile: Tile = { name, x, y, w: this.#w, h: this.#h, columns, pitch: PITCH, slots: new Int32Array(columns * rows).fill(-1), used: 0, gone: false, group };
    this.tiles.push(tile);
    this.byName.set(name, tile);
    return tile;
  }

  #fill(tile: Tile, rows: number[]): void {
    while (tile.slots.length < rows.length) this.#widen(tile);
    rows.forEach((row, slot) => this.#put(tile, slot, row));
  }

  #put(tile: Tile, slot: number, row: number): void {
    tile.slots[slot] = row;
    tile.used++;
    this.#tileOf[row] = tile;
    this.#slot[row] = slot;
    this.#locate(tile, row);
  }

  #locate(tile: Tile, row: number): void {
    const slot = this.#slot[row];
    const scale = tile.pitch / PITCH;
    this.x[row] = tile.x + this.pad + ((slot % tile.columns) * PITCH + BLOCK / 2) * scale;
    this.y[row] = tile.y + this.head + (Math.floor(slot / tile.columns) * PITCH + BLOCK / 2) * scale;
    this.half[row] = (BLOCK / 2) * scale;
  }

  /** Makes room in a tile that is full: the one without a Node grows, the others make their blocks smaller. */
  #widen(tile: Tile): void {
    const before = tile.slots;
    if (tile.name === UNSCHEDULED) {
      tile.slots = new Int32Array(before.length + tile.columns).fill(-1);
      tile.slots.set(before);
      tile.h += tile.pitch + (before.length ? 0 : this.pad);
      this.#measure();
      this.version++;
    } else {
      const wide = tile.w - 2 * this.pad + (PITCH - BLOCK);
      const high = tile.h - this.head - this.pad + (PITCH - BLOCK);
      let slots = 0;
      while (slots <= before.length) {
        tile.columns++;
        tile.pitch = wide / tile.columns;
        slots = tile.columns * Math.floor(high / tile.pitch + 1e-6);
      }
      tile.slots = new Int32Array(slots).fill(-1);
      tile.slots.set(before);
      for (const row of before) if (row >= 0) this.#locate(tile, row);
      this.resized.add(tile);
    }
  }

  #shift(tile: Tile, by: number): void {
    if (by <= 0) return;
    tile.y += by;
    for (const row of tile.slots) if (row >= 0) this.#locate(tile, row);
  }

  #measure(): void {
    this.width = Math.max(1, ...this.tiles.map((t) => t.x + t.w));
    this.height = Math.max(1, ...this.tiles.map((t) => t.y + t.h));
    // The first Pods that wait for a Node have room, too.
    const loose = this.byName.get(UNSCHEDULED);
    if (loose && !loose.slots.length) this.height += loose.pitch + this.pad;
  }

  /**
   * Chooses how many blocks are side by side in a tile, and how many tiles on
   * the board, so that blocks are largest in that view. What is around them is
   * so many pixels high and wide whatever the scale, so these depend on each
   * other: three rounds come close enough.
   */
  #proportion(room: number, groups: number[], named: boolean, width: number, height: number): number {
    const total = Math.max(1, groups.reduce((a, b) => a + b, 0));
    let scale = Math.sqrt((width * height) / (total * room)) / (PITCH * 1.3);
    for (let round = 0; round < 3; round++) {
      const pixels = scale * PITCH * Math.sqrt(room * 1.7);
      this.head = Math.min(24, (pixels < 76 ? 6 : pixels < 170 ? 19 : 30) / scale);
      this.pad = Math.min(5, Math.max(1.5, 9 / scale));
      this.gap = Math.min(6, Math.max(1.5, 10 / scale));
      let best = 0;
      for (let across = Math.ceil(Math.sqrt(room)); across <= Math.ceil(Math.sqrt(room * 4)); across++) {
        const rows = Math.max(2, Math.ceil(room / across));
        const w = across * PITCH - (PITCH - BLOCK) + 2 * this.pad;
        const h = this.head + rows * PITCH - (PITCH - BLOCK) + this.pad;
        for (let columns = 1; columns <= Math.min(total, 400); columns++) {
          const flow = new Flow(columns, w + this.gap, h + this.gap, named ? this.head + 4 : 0);
          for (const size of groups) flow.group(size);
          const fits = Math.min(width / (columns * (w + this.gap)), height / (flow.bottom + this.head + 2 * PITCH));
          if (fits <= best) continue;
          best = fits;
          this.#columns = columns;
          this.#cells = { columns: across, rows };
          this.#w = w;
          this.#h = h;
        }
      }
      scale = Math.min(best, LARGEST);
    }
    return scale;
  }

  /** Blocks are whole pixels, so the board is seen a little smaller than would fit: the rest goes between and around them. */
  #stretch(scale: number, groups: number[], named: boolean, width: number, height: number): void {
    const pixels = Math.floor(scale * PITCH * this.ratio) / this.ratio;
    if (pixels * this.ratio < 3) return;
    const flow = new Flow(this.#columns, this.#w + this.gap, this.#h + this.gap, named ? this.head + 4 : 0);
    for (const size of groups) flow.group(size);
    const lines = Math.max(1, Math.round(flow.bottom / (this.#h + this.gap)));
    const wide = ((width * PITCH) / pixels - flow.right) / this.#columns;
    const high = ((height * PITCH) / pixels - flow.bottom - this.head - 2 * PITCH) / lines;
    const more = Math.max(0, Math.min(wide, high, PITCH));
    this.gap += more * 0.4;
    this.pad += more * 0.3;
    this.#w += more * 0.6;
    this.#h += more * 0.3;
  }

  #grow(length: number): void {
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
    this.#slot = more(this.#slot, Int32Array);
  }
}

/** For how many Pods tiles have room, so that it is enough for a part of the tiles; with some to spare where there are few. */
export function roomFor(counts: number[], part: number): number {
  const sorted = [...counts].sort((a, b) => a - b);
  const most = sorted[Math.ceil((sorted.length - 1) * part)] ?? 0;
  return Math.max(8, counts.length > 50 ? most : Math.ceil(most * 1.1 + 3));
}

/** Lays groups of equal tiles in lines: a group that fits into the rest of a line goes on there, others begin a line. */
class Flow {
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
