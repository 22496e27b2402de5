// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The page's side of the data: Pods as columns with one row each, and Nodes.
 * `apply` takes a batch and returns what it changed. A deleted Pod keeps its row
 * as a ghost until `expire`.
 */

import { FIELD, STRIDE, type Batch, type NodeRow } from './protocol';
import { clock } from './clock';
import { State, stateAt } from './state';

/** How long the ghost of a deleted Pod is shown, in milliseconds. */
export const GHOST = 2000;

/** The last change of a row, which the board highlights. */
export const Change = { none: 0, added: 1, modified: 2, gone: 3 } as const;

/** A Node, with the requests of its Pods. `row` is null if only the Pods' nodeName is known. */
export interface ClusterNode {
  name: string;
  row: NodeRow | null;
  pods: number;
  cpu: number;
  memory: number;
}

/** What a batch changed. */
export interface Applied {
  /** Everything changed: arrange the whole board. */
  all: boolean;
  /** Rows that are new or moved to another Node; rows with another change. */
  placed: number[];
  changed: number[];
  gone: number[];
  /** Names of Nodes that were added or changed, and of deleted ones. */
  nodes: string[];
  nodesGone: string[];
}

export class Cluster {
  /** The highest row plus one. */
  length = 0;
  strings: string[] = [''];
  names: string[] = [];
  /** As shown: a Pod that crashed is failing until it has recovered; `settled` is its state then. */
  state = new Uint8Array(0);
  settled = new Uint8Array(0);
  failingUntil = new Int32Array(0);
  /** How the container that crashed last ended. */
  crash = new Int32Array(0);
  node = new Int32Array(0);
  namespace = new Int32Array(0);
  owner = new Int32Array(0);
  text = new Int32Array(0);
  containers = new Int32Array(0);
  created = new Int32Array(0);
  since = new Int32Array(0);
  cpu = new Int32Array(0);
  memory = new Int32Array(0);
  labels = new Int32Array(0);
  cells = new Int32Array(0);
  /** The last change of the row, and when, as of performance.now(). */
  change = new Uint8Array(0);
  changed = new Float64Array(0);

  readonly nodes = new Map<string, ClusterNode>();
  /** How many Pods are in each state. */
  readonly counts = new Int32Array(9);
  synced = false;
  /** Incremented by each batch. */
  version = 0;
  readonly #shown = new Int32Array(9);
  #shownAt = -1;
  /** The string ids of the Nodes whose Ready condition is Unknown. */
  readonly #lost = new Set<number>();
  /** The rows of Pods that run after a crash. */
  readonly #crashed = new Map<number, { latest: number; ahead: number }>();
  #ghosts: { row: number; until: number }[] = [];

  /** How many Pods there are. */
  get pods(): number {
    let n = 0;
    for (let s = State.ready; s < State.gone; s++) n += this.counts[s];
    return n;
  }

  /** How many ghosts there are. */
  get ghosts(): number {
    return this.#ghosts.length;
  }

  nodeName(row: number): string {
    return this.strings[this.node[row]] ?? '';
  }

  /** Whether a row has a Pod, and not only the ghost of one. */
  has(row: number): boolean {
    return this.state[row] !== State.none && this.state[row] !== State.gone;
  }

  /** The namespace/name of a row's Pod or ghost. */
  keyOf(row: number): string {
    return `${this.strings[this.namespace[row]]}/${this.names[row]}`;
  }

  /** The row of a Pod, else that of its ghost, else -1. */
  rowOf(namespace: string, name: string): number {
    let ghost = -1;
    for (let row = 0; row < this.length; row++) {
      if (this.names[row] !== name || this.strings[this.namespace[row]] !== namespace) continue;
      if (this.has(row)) return row;
      if (this.state[row] === State.gone) ghost = row;
    }
    return ghost;
  }

  /** Containers, ready containers and restarts of a row. */
  readiness(row: number): { containers: number; ready: number; restarts: number } {
    const packed = this.containers[row];
    return { containers: packed & 255, ready: (packed >> 8) & 255, restarts: packed >>> 16 };
  }

  /** The state as shown: unknown for a Pod on a Node whose kubelet stopped posting its status. What failed or succeeded before that is known. */
  shown(row: number): number {
    const state = this.state[row];
    if (state === State.none || state === State.gone || state === State.succeeded || state === State.failing) return state;
    return this.#lost.size && this.#lost.has(this.node[row]) ? State.unknown : state;
  }

  /** How many Pods are shown in each state; computed once per version. */
  shownCounts(): Int32Array {
    if (this.#shownAt === this.version) return this.#shown;
    this.#shownAt = this.version;
    this.#shown.set(this.counts);
    if (this.#lost.size === 0) return this.#shown;
    for (let row = 0; row < this.length; row++) {
      const state = this.state[row];
      if (!this.has(row) || this.shown(row) === state) continue;
      this.#shown[state]--;
      this.#shown[State.unknown]++;
    }
    return this.#shown;
  }

  apply(batch: Batch, now: number): Applied {
    const applied: Applied = { all: batch.reset, placed: [], changed: [], gone: [], nodes: [], nodesGone: [] };
    if (batch.reset) this.#clear();
    for (const text of batch.strings) this.strings.push(text);
    for (const [i, row] of batch.nodes.entries()) {
      const node = this.#node(row.name);
      const id = batch.nodeIds[i];
      if (node.row && this.#lost.has(id) !== (row.ready === 'Unknown')) this.#rowsOf(id, applied.changed, now);
      if (row.ready === 'Unknown') this.#lost.add(id);
      else this.#lost.delete(id);
      node.row = row;
      applied.nodes.push(row.name);
    }
    for (const name of batch.nodesGone) {
      const node = this.nodes.get(name);
      if (!node) continue;
      node.row = null;
      this.#lost.delete(this.strings.indexOf(name));
      if (node.pods === 0) this.nodes.delete(name);
      applied.nodesGone.push(name);
    }
    const { rows, names } = batch.names;
    for (let i = 0; i < rows.length; i++) {
      this.#grow(rows[i] + 1);
      this.names[rows[i]] = names[i];
      this.state[rows[i]] = State.none;
    }
    const quiet = !this.synced;
    for (let at = 0; at < batch.rows.length; at += STRIDE) this.#set(batch.rows, at, quiet ? 0 : now, applied);
    for (const row of batch.gone) this.#delete(row, now, applied);
    if (batch.synced) this.synced = true;
    this.version++;
    return applied;
  }

  /** Removes the ghosts that were shown long enough, and returns their rows. */
  expire(now: number): number[] {
    const over: number[] = [];
    while (this.#ghosts.length && this.#ghosts[0].until <= now) {
      const { row } = this.#ghosts.shift()!;
      if (this.state[row] !== State.gone) continue;
      this.state[row] = State.none;
      over.push(row);
    }
    return over;
  }

  /** Shows the states at the clock's time, which the board is to paint at `now`. Returns the rows that it changed. */
  reassess(now: number): number[] {
    const changed: number[] = [];
    for (const row of this.#crashed.keys()) {
      const state = this.#stateOf(row);
      if (state === this.state[row]) continue;
      this.#count(row, -1);
      this.state[row] = state;
      this.#count(row, 1);
      this.change[row] = Change.modified;
      this.changed[row] = now;
      changed.push(row);
    }
    if (changed.length) this.version++;
    return changed;
  }

  #stateOf(row: number): number {
    return stateAt({ state: this.settled[row] as State, failingUntil: this.failingUntil[row] }, clock.now());
  }

  /** Until when a Pod is failing. Its Node's clock is ahead if a time that it wrote is later than when it was first seen. */
  #until(row: number, until: number, latest: number): number {
    if (!until) {
      this.#crashed.delete(row);
      return 0;
    }
    const before = this.#crashed.get(row);
    const ahead = Math.max(0, Math.ceil(latest - clock.received()), before?.latest === latest ? before.ahead : 0);
    this.#crashed.set(row, { latest, ahead });
    return until - ahead;
  }

  #set(from: Int32Array, at: number, now: number, applied: Applied): void {
    const row = from[at + FIELD.row];
    const before = this.state[row];
    const fresh = before === State.none || before === State.gone;
    const moved = !fresh && this.node[row] !== from[at + FIELD.node];
    if (!fresh) this.#count(row, -1);
    this.settled[row] = from[at + FIELD.state];
    this.crash[row] = from[at + FIELD.crash];
    this.failingUntil[row] = this.#until(row, from[at + FIELD.failingUntil], from[at + FIELD.latest]);
    this.state[row] = this.#stateOf(row);
    this.node[row] = from[at + FIELD.node];
    this.namespace[row] = from[at + FIELD.namespace];
    this.owner[row] = from[at + FIELD.owner];
    this.text[row] = from[at + FIELD.text];
    this.containers[row] = from[at + FIELD.containers];
    this.created[row] = from[at + FIELD.created];
    this.since[row] = Math.min(from[at + FIELD.since], clock.received());
    this.cpu[row] = from[at + FIELD.cpu];
    this.memory[row] = from[at + FIELD.memory];
    this.labels[row] = from[at + FIELD.labels];
    this.cells[row] = from[at + FIELD.cells];
    this.#count(row, 1);
    if (now > 0) {
      this.change[row] = fresh ? Change.added : Change.modified;
      this.changed[row] = now;
    } else this.change[row] = Change.none;
    (fresh || moved ? applied.placed : applied.changed).push(row);
  }

  #delete(row: number, now: number, applied: Applied): void {
    if (!this.has(row)) return;
    this.#count(row, -1);
    this.#crashed.delete(row);
    this.state[row] = State.gone;
    this.change[row] = Change.gone;
    this.changed[row] = now;
    this.#ghosts.push({ row, until: now + GHOST });
    applied.gone.push(row);
  }

  /** Adds a row to the counts and to its Node's requests, or subtracts it. */
  #count(row: number, sign: 1 | -1): void {
    this.counts[this.state[row]] += sign;
    const name = this.nodeName(row);
    if (!name) return;
    const node = this.#node(name);
    node.pods += sign;
    if (this.state[row] !== State.succeeded) {
      node.cpu += sign * this.cpu[row];
      node.memory += sign * this.memory[row];
    }
    if (node.pods === 0 && !node.row) this.nodes.delete(name);
  }

  #node(name: string): ClusterNode {
    let node = this.nodes.get(name);
    if (!node) this.nodes.set(name, (node = { name, row: null, pods: 0, cpu: 0, memory: 0 }));
    return node;
  }

  #rowsOf(id: number, into: number[], now: number): void {
    for (let row = 0; row < this.length; row++) {
      if (this.node[row] !== id || !this.has(row)) continue;
      this.change[row] = Change.modified;
      this.changed[row] = now;
      into.push(row);
    }
  }

  #clear(): void {
    this.length = 0;
    this.strings = [];
    this.names = [];
    this.state.fill(0);
    this.change.fill(0);
    this.counts.fill(0);
    this.nodes.clear();
    this.#lost.clear();
    this.#crashed.clear();
    this.#ghosts = [];
    this.synced = false;
  }

  #grow(length: number): void {
    this.length = Math.max(this.length, length);
    if (length <= this.state.length) return;
    const to = Math.max(1024, 2 ** Math.ceil(Math.log2(length)));
    const more = <T extends Uint8Array | Int32Array | Float64Array>(old: T): T => {
      const grown = new (old.constructor as new (n: number) => T)(to);
      grown.set(old as never);
      return grown;
    };
    this.state = more(this.state);
    this.settled = more(this.settled);
    this.failingUntil = more(this.failingUntil);
    this.crash = more(this.crash);
    this.node = more(this.node);
    this.namespace = more(this.namespace);
    this.owner = more(this.owner);
    this.text = more(this.text);
    this.containers = more(this.containers);
    this.created = more(this.created);
    this.since = more(this.since);
    this.cpu = more(this.cpu);
    this.memory = more(this.memory);
    this.labels = more(this.labels);
    this.cells = more(this.cells);
    this.change = more(this.change);
    this.changed = more(this.changed);
  }
}
