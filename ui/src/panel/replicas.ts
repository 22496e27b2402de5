// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The Pods of a workload in words. */

import type { Cluster } from '../data/cluster';
import { State, type StateName } from '../data/state';

/** How many Pods of a workload fail by the page's rule: one that keeps crashing is ready between two crashes. */
export function failingPods(cluster: Cluster, kind: string, namespace: string, name: string): number {
  let n = 0;
  for (let row = 0; row < cluster.length; row++) {
    if (!cluster.has(row) || cluster.shown(row) !== State.failing || cluster.strings[cluster.namespace[row]] !== namespace) continue;
    // The Pods of a Deployment's ReplicaSet have the Deployment as their owner, and the ReplicaSet's name.
    if (cluster.strings[cluster.owner[row]] === `${kind}/${name}` || (kind === 'ReplicaSet' && cluster.names[row].startsWith(`${name}-`))) n++;
  }
  return n;
}

/** `1 of 1 ready, 1 failing`, and the state whose colour it has. */
export function replicaWords(ready: number, wanted: number, failing: number, deleted: boolean): { words: string; state: StateName } {
  const words = `${ready} of ${wanted} ${deleted ? 'were ready' : 'ready'}${failing ? `, ${failing} failing` : ''}`;
  return { words, state: deleted ? 'terminating' : failing ? 'failing' : ready >= wanted ? 'ready' : 'unready' };
}
