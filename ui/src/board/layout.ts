// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The positions of tiles and blocks. Lengths are in units; a block and its gap
 * take PITCH units. A tile keeps its position and a block its slot until
 * `arrange` is called: on request, after the first list, and when the window
 * changes its size. Until then a new Node or Pod takes a free position or one at
 * the end.
 */

import type { Cluster } from '../data/cluster';
import { groupsOf, layOut, slotFor } from './bands';
import { State } from '../data/state';
import { compareNames, groupLabel, nodeOrder, podOrder, type Arrangement } from './order';
import { BLOCK, Positions, PITCH, UNSCHEDULED, type Tile } from './positions';
import { shelve } from './shelves';
import { lasting, workloadNamed, workloadOrder, Workloads } from './workloads';
import { Flow, loosePitch, proportion, roomFor, stretch, type Proportions } from './proportions';

export { BLOCK, maxScale, PITCH, UNSCHEDULED, type Tile } from './positions';
export { roomFor } from './proportions';

export interface Heading {
  text: string;
  x: number;
  y: number;
  w: number;
}

export class Layout extends Positions {
  headings: Heading[] = [];
  readonly byName = new Map<string, Tile>();
  width = 100;
  height = 100;
  /** The gap between tiles, and the heights of a heading and of the label of a group in a tile. */
  gap = 6;
  heading = 16;
  label = 0;
  /** Tiles whose blocks changed their size or moved; the engine clears it. */
  readonly resized = new Set<Tile>();
  /** Device pixels per CSS pixel. */
  ratio = 1;
  /** Incremented when tiles move or are added or removed. */
  version = 0;

  #w = 0;
  #h = 0;
  #columns = 1;
  #loosePitch = PITCH;
  #cells = { columns: 1, rows: 1 };
  /** The free position after the last tile of each group. */
  #ends = new Map<string, { x: number; y: number; right: number }>();
  readonly #workloads = new Workloads();
  #arrangement: Arrangement = { places: 'nodes', group: '', nodes: 'name', order: 'namespace' };

  /** Arranges all tiles and blocks for a view of this size in pixels. */
  arrange(cluster: Cluster, arrangement: Arrangement, viewWidth: number, viewHeight: number): void {
    this.#arrangement = arrangement;
    this.grow(cluster.length);
    this.owner = new Array<Tile | null>(cluster.length).fill(null);
    if (arrangement.places === 'workloads') this.#arrangeWorkloads(cluster, arrangement, viewWidth, viewHeight);
    else this.#arrangeNodes(cluster, arrangement, viewWidth, viewHeight);
    this.resized.clear();
    this.unsettled.clear();
    this.version++;
  }

  #arrangeNodes(cluster: Cluster, arrangement: Arrangement, viewWidth: number, viewHeight: number): void {
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
    for (const name of [...perTile.keys()].sort(nodeOrder(cluster, arrangement.nodes))) {
      const group = groupLabel(cluster.nodes.get(name), arrangement.group);
      (groups.get(group) ?? groups.set(group, []).get(group)!).push(name);
    }
    const named = arrangement.group !== '';
    const sizes = [...groups].sort(([a], [b]) => compareNames(a, b));
    const full = [...perTile.values()].map((rows) => rows.length);
    const lengths = sizes.map(([, names]) => names.length);
    // Blocks are whole pixels: with slightly fewer slots, all blocks may be a pixel larger.
    const rooms = [...new Set(full.length > 50 ? [0.98, 0.93, 0.87, 0.8].map((part) => roomFor(full, part)) : [roomFor(full, 1)])];
    const all = rooms.map((room) => proportion(room, lengths, named, viewWidth, viewHeight));
    const pixels = all.map((p) => Math.floor(p.scale * PITCH * this.ratio));
    const best = all[pixels.indexOf(Math.max(...pixels))];
    stretch(best, lengths, named, viewWidth, viewHeight, this.ratio);
    this.#take(best);
    this.#flow(sizes, named);
    if (loose.length || perTile.size) this.#addUnscheduled(loose.length);

    const order = podOrder(cluster, arrangement.order);
    for (const [name, rows] of perTile) this.#fill(this.byName.get(name)!, rows.sort(order));
    if (loose.length) this.#fill(this.byName.get(UNSCHEDULED)!, loose.sort(order));
  }

  /** One tile for each workload, below the heading of its namespace. In a tile, the groups are in the order of their oldest Pod. */
  #arrangeWorkloads(cluster: Cluster, { order }: Arrangement, viewWidth: number, viewHeight: number): void {
    const perTile = new Map<string, Map<string, number[]>>();
    for (let row = 0; row < cluster.length; row++) {
      if (cluster.state[row] === State.none) continue;
      const name = this.#workloads.tile(cluster, row);
      const group = this.#workloads.group(cluster, row);
      const groups = perTile.get(name) ?? perTile.set(name, new Map()).get(name)!;
      (groups.get(group) ?? groups.set(group, []).get(group)!).push(row);
    }
    const names = [...perTile.keys()].sort(workloadOrder(compareNames));
    const items = names.map((name) => {
      const { namespace, kind } = workloadNamed(name);
      return { name, group: namespace, pods: [...perTile.get(name)!.values()].reduce((sum, rows) => sum + rows.length, 0), rolls: kind === 'Deployment' };
    });
    const shelves = shelve(items, viewWidth, viewHeight, this.ratio);
    ({ head: this.head, pad: this.pad, gap: this.gap, label: this.label, heading: this.heading, headings: this.headings } = shelves);
    this.tiles = [];
    this.byName.clear();
    this.#ends.clear();
    const byOrder = podOrder(cluster, order);
    items.forEach(({ name, group }, i) => {
      const tile = this.#add({ ...shelves.placed[i], name, group, pitch: PITCH, slots: new Int32Array(0), used: 0, gone: false, bands: [] });
      const oldest = (rows: number[]): number => rows.reduce((least, row) => Math.min(least, cluster.created[row]), Infinity);
      const groups = [...perTile.get(name)!].map(([hash, rows]) => ({ name: hash, rows: rows.sort(byOrder), since: oldest(rows) }));
      layOut(tile, groups.sort((a, b) => a.since - b.since || compareNames(a.name, b.name)), this);
      this.#putAll(tile);
    });
    this.#w = Math.max(1, ...this.tiles.slice(0, 1).map((t) => t.w), 118 / shelves.scale);
    this.#h = Math.max(this.head + 2 * this.label + 2 * PITCH + this.pad, ...this.tiles.slice(0, 1).map((t) => t.h));
    this.#measure();
  }

  /** Puts the rows in a tile's slots at their positions. */
  #putAll(tile: Tile): void {
    tile.used = 0;
    tile.slots.forEach((row, slot) => {
      if (row >= 0) this.put(tile, slot, row);
    });
    this.resized.add(tile);
  }

  /** Moves groups up to where others were, such as that of the new ReplicaSet after a rollout. */
  settle(): void {
    for (const tile of this.unsettled) {
      layOut(tile, groupsOf(tile), this);
      this.#putAll(tile);
    }
    this.unsettled.clear();
  }

  /** Whether a row's Pod belongs to another workload, or another group of it, than when it was placed. */
  misplaced(cluster: Cluster, row: number): boolean {
    const tile = this.owner[row];
    if (!tile?.bands) return false;
    return tile.name !== this.#workloads.tile(cluster, row) || this.groupOf(row) !== this.#workloads.group(cluster, row);
  }

  /** The group of a row in the tile of its workload. */
  groupOf(row: number): string {
    const tile = this.owner[row];
    const line = tile ? Math.floor(this.slot[row] / tile.columns) : 0;
    return tile?.bands?.findLast((band) => band.line <= line)?.name ?? '';
  }

  #placeInWorkload(cluster: Cluster, row: number): void {
    if (this.owner[row] && !this.misplaced(cluster, row)) return;
    this.remove(row);
    const tile = this.addTile(cluster, this.#workloads.tile(cluster, row));
    const { slot, moved } = slotFor(tile, this.#workloads.group(cluster, row), this, (other) => cluster.state[other] === State.gone, (other) => this.remove(other));
    if (moved) this.#putAll(tile);
    else if (tile.slots[slot] >= 0) this.remove(tile.slots[slot]);
    this.put(tile, slot, row);
  }

  #take({ scale, head, pad, gap, w, h, across, cells }: Proportions): void {
    this.head = head;
    this.heading = head + 4;
    this.label = 0;
    this.pad = pad;
    this.gap = gap;
    this.#w = w;
    this.#h = h;
    this.#columns = across;
    this.#cells = cells;
    this.#loosePitch = loosePitch(scale);
  }

  /** Assigns a slot to a new or moved row. All other rows keep theirs. */
  place(cluster: Cluster, row: number): void {
    this.grow(cluster.length);
    if (this.#arrangement.places === 'workloads') {
      this.#placeInWorkload(cluster, row);
      return;
    }
    const name = cluster.nodeName(row);
    if (name === UNSCHEDULED && !this.byName.has(name)) this.#addUnscheduled(1);
    const tile = this.byName.get(name) ?? this.addTile(cluster, name);
    if (this.owner[row] === tile) return;
    this.remove(row);
    let slot = tile.slots.indexOf(-1);
    // Remove a ghost early rather than make the tile's blocks smaller.
    if (slot < 0) slot = tile.slots.findIndex((other) => cluster.state[other] === State.gone);
    if (slot >= 0 && tile.slots[slot] >= 0) this.remove(tile.slots[slot]);
    if (slot < 0) {
      slot = tile.slots.length;
      this.#widen(tile);
    }
    this.put(tile, slot, row);
  }

  /** Adds a tile for a new Node or workload: at the position of a deleted one, or after the last of its group. */
  addTile(cluster: Cluster, name: string): Tile {
    const known = this.byName.get(name);
    if (known) {
      known.gone = false;
      return known;
    }
    const inWorkloads = this.#arrangement.places === 'workloads';
    const group = inWorkloads ? workloadNamed(name).namespace : groupLabel(cluster.nodes.get(name), this.#arrangement.group);
    const free = this.tiles.find((t) => t.gone && t.used === 0 && t.group === group && !(inWorkloads && lasting(t.name)));
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
      const named = inWorkloads || this.#arrangement.group !== '';
      if (named) this.headings.push({ text: group, x: 0, y: bottom, w: this.width });
      end = { x: 0, y: bottom + (named ? this.heading : 0), right: Math.max(this.#w, this.#columns * (this.#w + this.gap) - this.gap) };
      if (inWorkloads) end.right = Math.max(end.right, this.width);
      this.#ends.set(group, end);
      if (loose) this.#shift(loose, end.y + this.#h + this.gap - loose.y);
    }
    const tile = inWorkloads ? this.#spare(name, group, end.x, end.y) : this.#tile(name, group, end.x, end.y);
    end.x += this.#w + this.gap;
    this.#measure();
    this.version++;
    return tile;
  }

  /** The Node was deleted; its tile stays until another Node takes its position. */
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

  /** The tile of unscheduled Pods: below all others, as wide as the board. */
  #addUnscheduled(pods: number): void {
    const y = this.tiles.length ? this.height + this.gap : 0;
    const width = this.tiles.length ? this.width : this.#w * 2;
    let pitch = this.#loosePitch;
    let rows = Math.ceil(pods / Math.max(1, Math.floor((width - 2 * this.pad) / pitch)));
    while (rows * pitch > Math.max(3 * PITCH, this.height / 3)) {
      pitch /= 2;
      rows = Math.ceil(pods / Math.floor((width - 2 * this.pad) / pitch));
    }
    const across = Math.floor((width - 2 * this.pad) / pitch);
    const tile: Tile = {
      name: UNSCHEDULED, x: 0, y, w: width, h: rows ? this.head + rows * pitch + this.pad : this.head, columns: across, pitch,
      slots: new Int32Array(across * rows).fill(-1), used: 0, gone: false, group: '', bands: null,
    };
    this.#add(tile);
    this.#measure();
  }

  #tile(name: string, group: string, x: number, y: number): Tile {
    const { columns, rows } = this.#cells;
    return this.#add({ name, x, y, w: this.#w, h: this.#h, columns, pitch: PITCH, slots: new Int32Array(columns * rows).fill(-1), used: 0, gone: false, group, bands: null });
  }

  /** An empty tile for a new workload. */
  #spare(name: string, group: string, x: number, y: number): Tile {
    const tile = this.#add({ name, x, y, w: this.#w, h: this.#h, columns: 1, pitch: PITCH, slots: new Int32Array(0), used: 0, gone: false, group, bands: [] });
    layOut(tile, [], this);
    return tile;
  }

  #add(tile: Tile): Tile {
    this.tiles.push(tile);
    this.byName.set(tile.name, tile);
    return tile;
  }

  #fill(tile: Tile, rows: number[]): void {
    while (tile.slots.length < rows.length) this.#widen(tile);
    rows.forEach((row, slot) => this.put(tile, slot, row));
  }

  /** Adds slots to a full tile: the unscheduled tile grows, others get smaller blocks. */
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
      for (const row of before) if (row >= 0) this.locate(tile, row);
      this.resized.add(tile);
    }
  }

  #shift(tile: Tile, by: number): void {
    if (by <= 0) return;
    tile.y += by;
    for (const row of tile.slots) if (row >= 0) this.locate(tile, row);
  }

  #measure(): void {
    this.width = Math.max(1, ...this.tiles.map((t) => t.x + t.w));
    this.height = Math.max(1, ...this.tiles.map((t) => t.y + t.h));
    // Reserve slots for the first unscheduled Pods.
    const loose = this.byName.get(UNSCHEDULED);
    if (loose && !loose.slots.length) this.height += loose.pitch + this.pad;
  }
}
