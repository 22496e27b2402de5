// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The switch between the Pods in their Nodes and in their workloads, and what the board says about a workload. */

import { refresh, cluster, places } from '../app/state';
import type { Layout } from '../board/layout';
import { rowsOf } from '../board/positions';
import { sumOf } from '../board/workload-head';
import { workloadNamed } from '../board/workloads';
import { count } from '../data/quantity';

export const Places = () => (
  <div class="segments" role="group" aria-label="Pods in">
    <button aria-pressed={places.value === 'nodes'} title="Pods in Nodes (W)" onClick={() => (places.value = 'nodes')}>Nodes</button>
    <button aria-pressed={places.value === 'workloads'} title="Pods in workloads (W)" onClick={() => (places.value = 'workloads')}>Workloads</button>
  </div>
);

/** Describes the workload under the pointer. */
export function WorkloadTip({ name, layout }: { name: string; layout: Layout }) {
  void refresh.value;
  const { namespace, kind, name: own } = workloadNamed(name);
  const tile = layout.byName.get(name);
  const { pods, well } = sumOf(tile?.slots ?? [], cluster);
  return (
    <>
      <b class="mono">{own || 'Pods without an owner'}</b>
      <span class="muted">{kind && `${kind} · `}{namespace}</span>
      <span class={well < pods ? 'words unready' : 'muted'}>{well < pods ? `${well} of ${count(pods, 'pod')} ready` : count(pods, 'pod')}</span>
      {tile?.bands?.filter((band) => band.name).map((band) => <span key={band.name} class="muted">ReplicaSet {band.name}: {count(sumOf(rowsOf(tile, band), cluster).pods, 'pod')}</span>)}
    </>
  );
}
