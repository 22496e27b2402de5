// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Selects and sorts the rows of the table, and finds those in view. */

import { compareNames } from '../board/order';
import type { Cluster } from '../data/cluster';

export type Column = 'state' | 'name' | 'namespace' | 'node' | 'ready' | 'restarts' | 'age';

/** The rank of each state in a sorted column: the most urgent first. */
const RANK = [9, 5, 2, 3, 0, 6, 4, 1, 8];

/** The matching rows, sorted. */
export function tableRows(cluster: Cluster, matches: ((row: number) => boolean) | null, by: Column, down: boolean): number[] {
  const rows: number[] = [];
  for (let row = 0; row < cluster.length; row++) {
    if (cluster.has(row) && (!matches || matches(row))) rows.push(row);
  }
  const name = (a: number, b: number): number => (cluster.names[a] < cluster.names[b] ? -1 : cluster.names[a] > cluster.names[b] ? 1 : a - b);
  const strings = (column: Int32Array) => {
    const ids = [...new Set(rows.map((row) => column[row]))].sort((a, b) => compareNames(cluster.strings[a], cluster.strings[b]));
    const rank = new Map(ids.map((id, i) => [id, i]));
    return (a: number, b: number): number => rank.get(column[a])! - rank.get(column[b])!;
  };
  const orders: Record<Column, () => (a: number, b: number) => number> = {
    state: () => (a, b) => RANK[cluster.shown(a)] - RANK[cluster.shown(b)],
    name: () => name,
    namespace: () => strings(cluster.namespace),
    node: () => strings(cluster.node),
    ready: () => (a, b) => share(cluster, a) - share(cluster, b),
    restarts: () => (a, b) => cluster.readiness(b).restarts - cluster.readiness(a).restarts,
    age: () => (a, b) => cluster.created[b] - cluster.created[a],
  };
  const order = orders[by]();
  const sign = down ? -1 : 1;
  return rows.sort((a, b) => sign * order(a, b) || name(a, b));
}

function share(cluster: Cluster, row: number): number {
  const { ready, containers } = cluster.readiness(row);
  return ready / Math.max(1, containers);
}

/** The part of a list to render: the rows in view, and some on both sides. */
export function windowOf(length: number, scrollTop: number, height: number, rowHeight: number, spare = 8): { from: number; to: number } {
  const from = Math.min(length, Math.max(0, Math.floor(scrollTop / rowHeight) - spare));
  return { from, to: Math.min(length, Math.max(from, Math.ceil((scrollTop + height) / rowHeight) + spare)) };
}

/**
 * The indexes of a part of a list in the order in which a document has their rows. Rows that scroll out
 * are used again for those that scroll in: an index has the slot `index % slots`, and while
 * slots keep their order no element is moved, which takes longer than changing it.
 */
export function bySlots(from: number, to: number, slots: number): number[] {
  const all = Array.from({ length: to - from }, (_, i) => from + i);
  const first = (slots - (from % slots)) % slots; // the one in the first slot
  return [...all.slice(first), ...all.slice(0, first)];
}
