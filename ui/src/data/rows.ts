// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The worker's side of the data: assigns a row to each Pod, tracks which rows
 * changed, and packs them into a batch when the page is ready for one. A row is
 * sent once per batch, however often its Pod changed.
 */

import { plain } from './plain';
import { FIELD, STRIDE, packContainers, type Batch, type NodeRow } from './protocol';
import type { Described } from './state';

/** The data of a Pod that a row holds. */
export interface PodRow extends Described {
  name: string;
  namespace: string;
  /** Empty while it is not scheduled. */
  node: string;
  /** `Deployment/web`; empty for a Pod without an owner. */
  owner: string;
  /** `a=b,c=d`, sorted. */
  labels: string;
  created: number;
  /** Requested: thousandths of a core, KiB. */
  cpu: number;
  memory: number;
}

/** How long a row is not reused after the page has received its deletion, since the page shows its ghost; in milliseconds. */
const reuseDelay = 5000;

export class Rows {
  readonly #index = new Map<string, number>();
  readonly #free: { row: number; from: number }[] = [];
  #length = 0;
  #data = new Int32Array(STRIDE * 1024);
  /** The number of the restatement that last set each row. */
  #restated = new Int32Array(1024);
  #restatement = 0;
  #restating = false;
  readonly #next = new Int32Array(STRIDE);

  readonly #strings = new Map<string, number>();
  #newStrings: string[] = [];
  /** The last string of each field, and its id. */
  readonly #lastText: (string | null)[] = Array(STRIDE).fill(null);
  readonly #lastId: number[] = Array(STRIDE).fill(0);
  #dirty = new Set<number>();
  #names = new Map<number, string>();
  #gone: number[] = [];
  /** The deleted rows of the last batch. */
  #goneSent: number[] = [];
  #nodes = new Map<string, NodeRow>();
  #nodesGone = new Set<string>();
  #known = new Set<string>();
  #confirmedNodes: Set<string> | null = null;
  #reset = true;
  #synced = false;
  #syncedSent = false;

  /** How many Pods there are. */
  get size(): number {
    return this.#index.size;
  }

  /** Whether the first list is complete. */
  get synced(): boolean {
    return this.#synced;
  }

  /** Whether there is something to send. */
  get pending(): boolean {
    return this.#reset || this.#dirty.size + this.#gone.length + this.#nodes.size + this.#nodesGone.size > 0 || this.#synced !== this.#syncedSent;
  }

  /** Discards everything, here and on the page. */
  reset(): void {
    this.#index.clear();
    this.#free.length = this.#length = 0;
    this.#strings.clear();
    this.#newStrings = [];
    this.#lastText.fill(null);
    this.#dirty.clear();
    this.#names.clear();
    this.#gone = [];
    this.#goneSent = [];
    this.#nodes.clear();
    this.#nodesGone.clear();
    this.#known.clear();
    this.#restating = false;
    this.#confirmedNodes = null;
    this.#reset = true;
    this.#synced = this.#syncedSent = false;
  }

  /** Records that the first list is complete. */
  sync(): void {
    this.#synced = true;
  }

  /**
   * Starts a full update: every object is set again, and `settle` then deletes
   * those that were not. Unlike after a reset, Pods keep their rows. With `nodes`
   * false, only Pods are set again.
   */
  restate(nodes = true): void {
    this.#restating = true;
    this.#restatement++;
    if (nodes) this.#confirmedNodes = new Set();
  }

  settle(now: number): void {
    if (this.#restating) for (const [key, row] of this.#index) if (this.#restated[row] !== this.#restatement) this.deletePod(key, now);
    if (this.#confirmedNodes) for (const name of [...this.#known]) if (!this.#confirmedNodes.has(name)) this.deleteNode(name);
    this.#restating = false;
    this.#confirmedNodes = null;
  }

  /** Deletes the Pods of the namespaces that a function does not keep. */
  retain(keep: (namespace: string) => boolean, now: number): void {
    for (const key of [...this.#index.keys()]) if (!keep(key.slice(0, key.indexOf('/')))) this.deletePod(key, now);
  }

  /** Deletes all Nodes. */
  deleteNodes(): void {
    for (const name of [...this.#known]) this.deleteNode(name);
  }

  setNode(node: NodeRow): void {
    this.#nodes.set(node.name, node);
    this.#known.add(node.name);
    this.#confirmedNodes?.add(node.name);
    this.#nodesGone.delete(node.name);
  }

  deleteNode(name: string): void {
    this.#nodes.delete(name);
    this.#known.delete(name);
    this.#nodesGone.add(name);
  }

  /** Adds or changes a Pod. Another creation time means another Pod with the same name. The key is namespace/name. */
  setPod(pod: PodRow, now: number, key = `${pod.namespace}/${pod.name}`): void {
    let row = this.#index.get(key);
    if (row !== undefined && this.#data[row * STRIDE + FIELD.created] !== pod.created) {
      this.deletePod(key, now);
      row = undefined;
    }
    const isNew = row === undefined;
    if (row === undefined) {
      row = this.#unused(now);
      this.#index.set(key, row);
      this.#names.set(row, pod.name);
    }
    this.#restated[row] = this.#restatement;
    const next = this.#next;
    next[FIELD.row] = row;
    next[FIELD.state] = pod.state;
    next[FIELD.node] = this.#intern(pod.node, FIELD.node);
    next[FIELD.namespace] = this.#intern(pod.namespace, FIELD.namespace);
    next[FIELD.owner] = this.#intern(pod.owner, FIELD.owner);
    next[FIELD.text] = this.#intern(pod.text, FIELD.text);
    next[FIELD.containers] = packContainers(pod.containers, pod.ready, pod.restarts);
    next[FIELD.created] = pod.created;
    next[FIELD.since] = pod.since;
    next[FIELD.cpu] = pod.cpu;
    next[FIELD.memory] = pod.memory;
    next[FIELD.labels] = this.#intern(pod.labels, FIELD.labels);
    next[FIELD.cells] = pod.cells;
    next[FIELD.failingUntil] = pod.failingUntil;
    next[FIELD.latest] = pod.latest;
    next[FIELD.crash] = this.#intern(pod.crash, FIELD.crash);
    let changed = isNew;
    const data = this.#data;
    const at = row * STRIDE;
    for (let field = 0; field < STRIDE; field++) {
      if (data[at + field] === next[field]) continue;
      data[at + field] = next[field];
      changed = true;
    }
    if (changed) this.#dirty.add(row);
  }

  deletePod(key: string, now: number): void {
    const row = this.#index.get(key);
    if (row === undefined) return;
    this.#index.delete(key);
    this.#dirty.delete(row);
    if (this.#names.delete(row)) this.#free.push({ row, from: now }); // the page does not know it
    else this.#gone.push(row);
  }

  /** The id of a string. Neighbors in a list often have the same one in a field. */
  #intern(text: string, field = 0): number {
    if (this.#lastText[field] === text) return this.#lastId[field];
    let id = this.#strings.get(text);
    if (id === undefined) {
      id = this.#strings.size;
      this.#strings.set(text, id);
      this.#newStrings.push(plain(text));
    }
    this.#lastText[field] = text;
    return (this.#lastId[field] = id);
  }

  /** Packs what changed since the last batch, which the page has applied. */
  take(received: number, now: number): Batch {
    for (const row of this.#goneSent) this.#free.push({ row, from: now + reuseDelay });
    this.#goneSent = this.#gone;
    const rows = new Int32Array(this.#dirty.size * STRIDE);
    let at = 0;
    for (const row of this.#dirty) {
      rows.set(this.#data.subarray(row * STRIDE, row * STRIDE + STRIDE), at);
      at += STRIDE;
    }
    const nodes = [...this.#nodes.values()];
    const nodeIds = Int32Array.from(nodes, (node) => this.#intern(node.name));
    const batch: Batch = {
      kind: 'batch',
      reset: this.#reset,
      synced: this.#synced,
      strings: this.#newStrings,
      nodes,
      nodeIds,
      nodesGone: [...this.#nodesGone],
      rows,
      names: { rows: Int32Array.from(this.#names.keys()), names: [...this.#names.values()] },
      gone: Int32Array.from(this.#gone),
      received,
    };
    this.#reset = false;
    this.#syncedSent = this.#synced;
    this.#newStrings = [];
    this.#nodes.clear();
    this.#nodesGone.clear();
    this.#dirty.clear();
    this.#names.clear();
    this.#gone = [];
    return batch;
  }

  #unused(now: number): number {
    if (this.#free.length && this.#free[0].from <= now) return this.#free.shift()!.row;
    const row = this.#length++;
    if (this.#length * STRIDE > this.#data.length) {
      const grown = new Int32Array(this.#data.length * 2);
      grown.set(this.#data);
      this.#data = grown;
      const restated = new Int32Array(this.#restated.length * 2);
      restated.set(this.#restated);
      this.#restated = restated;
    }
    return row;
  }
}
