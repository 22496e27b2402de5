// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The grouping and the order of Nodes and Pods when the board is arranged. */

import type { Cluster, ClusterNode } from '../data/cluster';
import { State } from '../data/state';

export type PodOrder = 'namespace' | 'owner' | 'name' | 'age' | 'state';

/** By name; or first those with the largest requests relative to their capacity, the most failing Pods or NotReady, or the oldest. */
export const NODE_ORDERS = ['name', 'pods', 'cpu', 'memory', 'failing', 'age'] as const;
export type NodeOrder = (typeof NODE_ORDERS)[number];

export interface Arrangement {
  /** What the tiles are. */
  places: 'nodes' | 'workloads';
  /** How Nodes are grouped: empty for no groups, `zone`, `pool`, or the key of a label. */
  group: string;
  /** The order of Nodes in a group, and of Pods in a Node. */
  nodes: NodeOrder;
  order: PodOrder;
}

const collator = new Intl.Collator('en', { numeric: true });
/** Compares names with numbers in numeric order: node-2 before node-10. */
export const compareNames = (a: string, b: string): number => collator.compare(a, b);

/** The label keys for node pools that common providers use. */
const POOLS = [
  'eks.amazonaws.com/nodegroup', 'cloud.google.com/gke-nodepool', 'kubernetes.azure.com/agentpool', 'agentpool',
  'karpenter.sh/nodepool', 'doks.digitalocean.com/node-pool', 'node.kubernetes.io/pool', 'pool',
];
const ZONES = ['topology.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/zone', 'zone'];

/** The group of a Node. */
export function groupLabel(node: ClusterNode | undefined, group: string): string {
  if (!group) return '';
  const labels = node?.row?.labels ?? {};
  const keys = group === 'zone' ? ZONES : group === 'pool' ? POOLS : [group];
  const key = keys.find((k) => labels[k]);
  return key ? labels[key] : `no ${group}`;
}

/** Label keys that are useful for grouping: more than one value, and fewer values than Nodes. */
export function groupings(nodes: Iterable<ClusterNode>): string[] {
  const values = new Map<string, Set<string>>();
  let n = 0;
  for (const node of nodes) {
    n++;
    for (const [key, value] of Object.entries(node.row?.labels ?? {})) {
      (values.get(key) ?? values.set(key, new Set()).get(key)!).add(value);
    }
  }
  return [...values].filter(([, set]) => set.size < n || n === 1).map(([key]) => key).sort();
}

/** The names of Nodes in order. */
export function nodeOrder(cluster: Cluster, order: NodeOrder): (a: string, b: string) => number {
  if (order === 'name') return compareNames;
  const failing = new Map<string, number>();
  for (let row = 0; order === 'failing' && row < cluster.length; row++) {
    const name = cluster.nodeName(row);
    if (cluster.shown(row) === State.failing) failing.set(name, (failing.get(name) ?? 0) + 1);
  }
  const first = (name: string): number => {
    const node = cluster.nodes.get(name);
    const row = node?.row;
    if (!node) return 0;
    if (order === 'failing') return (failing.get(name) ?? 0) + (row && row.ready !== 'True' ? 1e6 : 0);
    if (order === 'age') return row?.created ? -row.created : -Infinity;
    return node[order] / ((row && row[order]) || Infinity);
  };
  const rank = new Map([...cluster.nodes.keys()].map((name) => [name, first(name)]));
  return (a, b) => Number(rank.get(b)! > rank.get(a)!) - Number(rank.get(b)! < rank.get(a)!) || compareNames(a, b);
}

/** The order of Pods in a tile. */
export function podOrder(cluster: Cluster, order: PodOrder): (a: number, b: number) => number {
  const byName = (a: number, b: number): number => (cluster.names[a] < cluster.names[b] ? -1 : cluster.names[a] > cluster.names[b] ? 1 : a - b);
  const text = (column: Int32Array) => {
    const rank = ranks(cluster.strings);
    return (a: number, b: number): number => rank[column[a]] - rank[column[b]];
  };
  const namespace = text(cluster.namespace);
  const owner = text(cluster.owner);
  switch (order) {
    case 'name':
      return byName;
    case 'owner':
      return (a, b) => owner(a, b) || namespace(a, b) || byName(a, b);
    case 'age':
      return (a, b) => cluster.created[a] - cluster.created[b] || byName(a, b);
    case 'state':
      return (a, b) => cluster.shown(a) - cluster.shown(b) || namespace(a, b) || byName(a, b);
    default:
      return (a, b) => namespace(a, b) || owner(a, b) || byName(a, b);
  }
}

/** The rank of each string: comparing numbers costs a tenth of comparing strings. */
function ranks(strings: string[]): Int32Array {
  const order = strings.map((_, i) => i).sort((a, b) => (strings[a] < strings[b] ? -1 : strings[a] > strings[b] ? 1 : 0));
  const rank = new Int32Array(strings.length);
  order.forEach((id, i) => (rank[id] = i));
  return rank;
}
