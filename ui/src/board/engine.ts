// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Connects the data with the renderer: applies batches to the cluster, assigns
 * positions to new Pods, keeps the state and flags of each row as painted, and
 * passes changed rows to the renderer.
 */

import { compileFilter } from '../app/filter';
import { clock } from '../data/clock';
import type { Cluster } from '../data/cluster';
import type { Batch } from '../data/protocol';
import { State } from '../data/state';
import { RECENT } from './far';
import { Layout, type Tile } from './layout';
import type { Arrangement } from './order';
import { DARK, SHADES, type Colour, type Theme } from './palette';
import { FADED, type Renderer, type Scene } from './renderer';

export class Engine implements Scene {
  readonly layout = new Layout();
  look = new Uint8Array(0);
  flags = new Uint8Array(0);
  theme: Theme = DARK;
  reducedMotion = false;
  renderer: Renderer | null = null;
  /** The size of the view in pixels; the tiles are arranged for it. */
  viewWidth = 1200;
  viewHeight = 800;
  arrangement: Arrangement = { places: 'nodes', group: '', nodes: 'name', order: 'namespace' };
  /** Whether a row matches the filter; null without a filter. */
  matches: ((row: number) => boolean) | null = null;
  #filter = '';
  /** The number of Pods and of Nodes or workloads when the board was last arranged, and the number of slots for Pods. */
  #arranged = 0;
  #slots = 0;
  #arrangedPlaces = 0;
  #leaving: number[] = [];
  /** When Pods of a tile were deleted, in seconds since 1970, by its name. */
  readonly #deleted = new Map<string, number[]>();
  /** Whether a deletion happens when it is applied; in the past it may be a step to another moment. */
  live: () => boolean = () => true;
  /** Whether the user has panned or zoomed. */
  steered: () => boolean = () => false;
  /** Called after the board was arranged, and after blocks moved in a tile. */
  onArranged: () => void = () => {};
  onSettled: () => void = () => {};

  constructor(readonly cluster: Cluster) {}

  get length(): number {
    return this.cluster.length;
  }
  get change(): Uint8Array {
    return this.cluster.change;
  }
  get changed(): Float64Array {
    return this.cluster.changed;
  }

  get since(): Int32Array {
    return this.cluster.since;
  }
  get created(): Int32Array {
    return this.cluster.created;
  }
  get seconds(): number {
    return clock.now();
  }

  deleted(tile: Tile): readonly number[] {
    const times = this.#deleted.get(tile.name);
    if (!times) return [];
    const from = clock.now() - RECENT;
    while (times.length && times[0] <= from) times.shift();
    if (!times.length) this.#deleted.delete(tile.name);
    return times;
  }

  tile(tile: Tile): { edge: Colour | null; faded: boolean } {
    const node = this.cluster.nodes.get(tile.name);
    const lost = node?.row && node.row.ready !== 'True';
    return { edge: lost ? this.theme.state.failing : null, faded: false };
  }

  /** The number of Nodes or workloads. */
  get #places(): number {
    return this.arrangement.places === 'nodes' ? this.cluster.nodes.size : this.layout.tiles.length;
  }

  /** Applies a batch. The next frame shows it. */
  apply(batch: Batch, now: number): void {
    const { cluster, layout } = this;
    const before = cluster.synced;
    const applied = cluster.apply(batch, now);
    this.#grow();
    if (batch.reset) {
      this.#arranged = 0;
      this.#deleted.clear();
      this.matches = compileFilter(this.#filter, cluster);
    }
    if (!before || applied.all) {
      // Until the first list is complete, positions are preliminary. Arranging all Pods is expensive, so it is done when they have become many more.
      if (cluster.synced || cluster.length > this.#arranged * 2.5 + 200) this.arrange();
      else for (const row of [...applied.placed, ...applied.changed, ...applied.gone]) this.#updateLook(row); // lists and counts have them
      return;
    }
    // Arrange again if the cluster has grown a lot, unless the user has panned or zoomed.
    const outgrown = cluster.pods > Math.min(2 * this.#arranged + 20, 1.25 * this.#slots + 10) || this.#places > 1.5 * this.#arrangedPlaces + 3;
    if (this.#arrangedPlaces === 0 ? this.#places > 0 : outgrown && !this.steered()) {
      this.arrange();
      return;
    }
    const version = layout.version;
    const inNodes = this.arrangement.places === 'nodes';
    for (const name of inNodes ? applied.nodes : []) {
      if (name && !layout.byName.get(name)) layout.addTile(cluster, name);
      else if (layout.byName.get(name)?.gone) layout.addTile(cluster, name);
    }
    for (const name of inNodes ? applied.nodesGone : []) layout.goneTile(name);
    for (const row of applied.changed) if (layout.misplaced(cluster, row)) applied.placed.push(row);
    for (const row of applied.placed) {
      this.renderer?.vacate(this, row);
      layout.place(cluster, row);
      this.#updateLook(row);
    }
    for (const row of applied.changed) this.#updateLook(row);
    for (const row of applied.gone) {
      this.look[row] = State.gone;
      const tile = layout.tileOf(row);
      if (!tile || !this.live()) continue;
      (this.#deleted.get(tile.name) ?? this.#deleted.set(tile.name, []).get(tile.name)!).push(clock.now());
    }
    if (layout.version !== version || applied.nodes.length) this.renderer?.reset(this);
    this.#settle();
    this.renderer?.update(this, applied.placed);
    this.renderer?.update(this, applied.changed);
    this.renderer?.update(this, applied.gone);
  }

  /** Shows the states at the clock's time: a Pod that crashed recovers without an event. Changes are older then. Returns whether there is something to paint. */
  reassess(now: number): boolean {
    const rows = this.cluster.reassess(now);
    for (const row of rows) this.#updateLook(row);
    this.renderer?.update(this, rows);
    const older = this.renderer?.age() ?? false;
    return rows.length > 0 || older;
  }

  /** Moves what has room further up in its tile. */
  #settle(): void {
    const { layout } = this;
    layout.settle();
    if (layout.resized.size) this.onSettled();
    for (const tile of layout.resized) this.renderer?.updateTile(this, tile);
    layout.resized.clear();
  }

  /** Removes ghosts that were shown long enough. Returns whether there were any. */
  expire(now: number): boolean {
    for (const row of this.#leaving) if (this.look[row] === State.none) this.layout.remove(row);
    this.#settle();
    this.#leaving = this.cluster.expire(now);
    for (const row of this.#leaving) {
      this.renderer?.vacate(this, row);
      this.look[row] = State.none;
      this.change[row] = 0;
    }
    this.renderer?.update(this, this.#leaving);
    return this.#leaving.length > 0;
  }

  /** Arranges the whole board in the selected grouping and order. */
  arrange(): void {
    this.layout.arrange(this.cluster, this.arrangement, this.viewWidth, this.viewHeight);
    this.#arranged = this.cluster.length;
    this.#arrangedPlaces = this.#places;
    this.#slots = this.layout.tiles.reduce((sum, tile) => sum + tile.slots.length, 0);
    this.#grow();
    for (let row = 0; row < this.cluster.length; row++) this.#updateLook(row);
    this.renderer?.reset(this);
    this.onArranged();
  }

  setFilter(text: string): void {
    this.#filter = text;
    this.matches = compileFilter(text, this.cluster);
    for (let row = 0; row < this.cluster.length; row++) this.#updateLook(row);
    this.renderer?.reset(this);
  }

  /** How many Pods match the filter. */
  matching(): number {
    let n = 0;
    for (let row = 0; row < this.cluster.length; row++) if (this.#matching(row)) n++;
    return n;
  }

  /** How many Pods match the filter, by the name of their tile. */
  matchingByTile(): Map<string, number> {
    const counts = new Map<string, number>();
    for (let row = 0; row < this.cluster.length; row++) {
      const tile = this.layout.tileOf(row);
      if (tile && this.#matching(row)) counts.set(tile.name, (counts.get(tile.name) ?? 0) + 1);
    }
    return counts;
  }

  /** Whether a row has a Pod that matches the filter. */
  #matching(row: number): boolean {
    return this.cluster.has(row) && !(this.flags[row] & FADED);
  }

  /** Repaints everything, after the colours or the canvas changed. */
  repaint(): void {
    this.renderer?.reset(this);
  }

  #updateLook(row: number): void {
    this.look[row] = this.cluster.shown(row);
    const shade = (Math.imul(this.cluster.owner[row], 0x9e3779b1) >>> 16) % SHADES;
    this.flags[row] = (this.matches && !this.matches(row) ? FADED : 0) | (shade << 1);
  }

  #grow(): void {
    if (this.cluster.state.length <= this.look.length) return;
    const look = new Uint8Array(this.cluster.state.length);
    look.set(this.look);
    this.look = look;
    const flags = new Uint8Array(this.cluster.state.length);
    flags.set(this.flags);
    this.flags = flags;
  }
}
