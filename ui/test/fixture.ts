// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { Cluster } from '../src/data/cluster';
import type { NodeRow } from '../src/data/protocol';
import { Rows, type PodRow } from '../src/data/rows';
import { State } from '../src/data/state';

export const podOf = (name: string, more: Partial<PodRow> = {}): PodRow => ({
  name, namespace: 'shop', node: 'node-0', owner: 'Deployment/web', labels: 'app=web,tier=front', created: 1000, cpu: 100, memory: 1024,
  state: State.ready, text: 'Running', containers: 1, ready: 1, restarts: 0, since: 1000, cells: 1, failingUntil: 0, latest: 0, crash: '', ...more,
});

export const nodeOf = (name: string, more: Partial<NodeRow> = {}): NodeRow => ({
  name, labels: {}, ready: 'True', since: 0, created: 0, pressure: [], unschedulable: false, pods: 110, cpu: 4000, memory: 8 * 2 ** 20, version: 'v1', ...more,
});

/** A cluster, and the worker's rows that feed it. */
export class Fixture {
  readonly rows = new Rows();
  readonly cluster = new Cluster();
  now = 1000;

  /** Applies the changes. */
  apply(): ReturnType<Cluster['apply']> {
    return this.cluster.apply(structuredClone(this.rows.take(this.now, this.now)), this.now);
  }

  row(name: string): number {
    return this.cluster.names.findIndex((n, row) => n === name && this.cluster.state[row] !== State.none && this.cluster.state[row] !== State.gone);
  }

  set(...pods: PodRow[]): this {
    for (const pod of pods) this.rows.setPod(pod, this.now);
    return this;
  }
}

/** A synced cluster of Nodes with Pods. */
export function filled(nodes: number, pods: number): Fixture {
  const f = new Fixture();
  for (let n = 0; n < nodes; n++) {
    f.rows.setNode(nodeOf(`node-${n}`, { labels: { zone: `z${n % 3}` } }));
    for (let p = 0; p < pods; p++) f.set(podOf(`web-${n}-${p}`, { node: `node-${n}` }));
  }
  f.rows.sync();
  f.apply();
  return f;
}
