// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { useLayoutEffect, useRef } from 'preact/hooks';
import { refresh, cluster, scope } from '../app/state';
import type { Layout } from '../board/layout';
import { stateName } from '../board/palette';
import { age, count, cpuText, memoryText } from '../data/quantity';
import { clock } from '../data/clock';
import { WorkloadTip } from './places';
import { Shape } from './shape';
import { unread } from './words';

export type Pointed = { x: number; y: number } & ({ row: number; node?: undefined } | { node: string; row?: undefined; workloads: boolean });

/** Describes the Pod, Node or workload under the pointer. */
export function Tooltip({ pointed, layout }: { pointed: Pointed; layout: Layout }) {
  const element = useRef<HTMLDivElement>(null);
  void refresh.value;
  // Keep it inside the board, and away from the pointer.
  useLayoutEffect(() => {
    const tip = element.current!;
    const room = tip.parentElement!;
    const right = pointed.x + 16 + tip.offsetWidth > room.clientWidth;
    const below = pointed.y + 16 + tip.offsetHeight > room.clientHeight;
    tip.style.transform = `translate(${Math.round(right ? pointed.x - tip.offsetWidth - 12 : pointed.x + 16)}px, ${Math.round(below ? pointed.y - tip.offsetHeight - 12 : pointed.y + 16)}px)`;
  });
  return (
    <div class="tooltip" ref={element} role="status">
      {pointed.node === undefined ? <PodTip row={pointed.row} /> : pointed.workloads ? <WorkloadTip name={pointed.node} layout={layout} /> : <NodeTip name={pointed.node} />}
    </div>
  );
}

function PodTip({ row }: { row: number }) {
  const state = stateName(cluster.shown(row));
  const { containers, ready, restarts } = cluster.readiness(row);
  const now = clock.now();
  const owner = cluster.strings[cluster.owner[row]];
  return (
    <>
      <b class="mono">{cluster.names[row]}</b>
      <span class={`words ${state}`}><Shape state={state} /> {cluster.strings[cluster.text[row]]} for {age(now - cluster.since[row])}</span>
      <span class="muted">{cluster.strings[cluster.namespace[row]]}{owner && ` · ${owner}`}</span>
      <span class="muted">{ready} of {count(containers, 'container')} ready{restarts > 0 && ` · ${count(restarts, 'restart')}`}{state === 'failing' && cluster.strings[cluster.crash[row]] && ` · last ${cluster.strings[cluster.crash[row]]}`}</span>
      <span class="muted">{cluster.nodeName(row) || 'not scheduled'} · {cpuText(cluster.cpu[row])} · {memoryText(cluster.memory[row])}</span>
    </>
  );
}

function NodeTip({ name }: { name: string }) {
  void refresh.value;
  const node = cluster.nodes.get(name);
  const row = node?.row;
  if (!node) return <b class="mono">{name}</b>;
  return (
    <>
      <b class="mono">{name}</b>
      {row ? (
        <span class={row.ready === 'True' ? 'muted' : 'words failing'}>
          {row.ready === 'True' ? 'Ready' : `NotReady for ${age(clock.now() - row.since)}`}{row.unschedulable && ' · cordoned'}{row.version && ` · ${row.version}`}
        </span>
      ) : <span class="muted">{unread(scope.value) || 'deleted'}</span>}
      <span class="muted">{count(node.pods, 'pod')}{row && row.pods > 0 && ` of ${row.pods}`}</span>
      {row && <span class="muted">requested {cpuText(node.cpu)} of {cpuText(row.cpu)} cpu · {memoryText(node.memory)} of {memoryText(row.memory)}</span>}
    </>
  );
}
