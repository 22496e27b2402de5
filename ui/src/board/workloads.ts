// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The workloads of Pods, and their groups within a workload: the ReplicaSets of a Deployment. */

import type { Cluster } from '../data/cluster';

export interface Workload {
  namespace: string;
  /** Both are empty for Pods without an owner. */
  kind: string;
  name: string;
}

/** The kinds in the order of their tiles in a namespace; other kinds follow, and then Pods without an owner. */
const KINDS = ['Deployment', 'StatefulSet', 'DaemonSet', 'CronJob', 'Job'];

/** The Job of a CronJob is named after it and the minute of its schedule since 1970. */
const SCHEDULED = /^(.+)-(\d{8,9})$/;

const HASH = /(?:^|,)pod-template-hash=([^,]*)/;

/** `namespace/kind/name` as one string, the name of the workload's tile. No part has a slash. */
export const tileName = ({ namespace, kind, name }: Workload): string => `${namespace}/${kind}/${name}`;

export function workloadNamed(tile: string): Workload {
  const [namespace, kind = '', name = ''] = tile.split('/');
  return { namespace, kind, name };
}

/** Finds the workload and the group of each row. What depends on strings only is computed once for each of them. */
export class Workloads {
  readonly #names = new Map<number, string>();
  readonly #groups = new Map<number, string>();
  #strings: string[] | null = null;

  /** The name of a row's tile. */
  tile(cluster: Cluster, row: number): string {
    this.#renew(cluster);
    // Ids are smaller than 2^26 each.
    const key = cluster.namespace[row] * 2 ** 26 + cluster.owner[row];
    let name = this.#names.get(key);
    if (name === undefined) {
      const [kind, owner = ''] = (cluster.strings[cluster.owner[row]] ?? '').split('/');
      const scheduled = kind === 'Job' ? SCHEDULED.exec(owner) : null;
      name = tileName({ namespace: cluster.strings[cluster.namespace[row]], kind: scheduled ? 'CronJob' : kind, name: scheduled ? scheduled[1] : owner });
      this.#names.set(key, name);
    }
    return name;
  }

  /** The group of a row in its tile: the pod-template-hash of a Deployment's ReplicaSet, or empty. */
  group(cluster: Cluster, row: number): string {
    this.#renew(cluster);
    if (!cluster.strings[cluster.owner[row]]?.startsWith('Deployment/')) return '';
    const id = cluster.labels[row];
    let group = this.#groups.get(id);
    if (group === undefined) this.#groups.set(id, (group = HASH.exec(cluster.strings[id] ?? '')?.[1] ?? ''));
    return group;
  }

  /** After a reset, the same ids are other strings. */
  #renew({ strings }: Cluster): void {
    if (this.#strings === strings) return;
    this.#strings = strings;
    this.#names.clear();
    this.#groups.clear();
  }
}

/** Workloads of these kinds may have Pods again: no other workload takes the place of an empty tile. */
const LASTING = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'CronJob', '']);
export const lasting = (tile: string): boolean => LASTING.has(workloadNamed(tile).kind);

const rank = ({ kind }: Workload): number => (kind === '' ? KINDS.length + 1 : KINDS.includes(kind) ? KINDS.indexOf(kind) : KINDS.length);

/** Orders tiles: by namespace, kind and name. */
export function workloadOrder(compare: (a: string, b: string) => number): (a: string, b: string) => number {
  const parsed = new Map<string, Workload>();
  const of = (tile: string): Workload => parsed.get(tile) ?? parsed.set(tile, workloadNamed(tile)).get(tile)!;
  return (a, b) => {
    const [p, q] = [of(a), of(b)];
    return compare(p.namespace, q.namespace) || rank(p) - rank(q) || compare(p.kind, q.kind) || compare(p.name, q.name);
  };
}

const APIS: Record<string, string> = {
  Deployment: '/apis/apps/v1', StatefulSet: '/apis/apps/v1', DaemonSet: '/apis/apps/v1', ReplicaSet: '/apis/apps/v1',
  Job: '/apis/batch/v1', CronJob: '/apis/batch/v1', ReplicationController: '/api/v1',
};

/** The API path of a workload; empty if its kind is of another API, whose version no row has. */
export function workloadPath({ namespace, kind, name }: Workload): string {
  if (kind === 'Node') return `/api/v1/nodes/${name}`;
  return APIS[kind] ? `${APIS[kind]}/namespaces/${namespace}/${kind.toLowerCase()}s/${name}` : '';
}
