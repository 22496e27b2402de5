// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The overview of a Node. */

import { refresh, cluster, filter, selectRow } from '../app/state';
import { stateName } from '../board/palette';
import { conditionSince, type ManagedField } from '../data/aligned';
import { age, count, cpuText, memoryText } from '../data/quantity';
import type { Condition } from '../data/state';
import { Allocations } from '../details/allocations';
import { Shape } from '../shell/shape';
import { clock } from '../data/clock';
import { Events } from './events';
import { Lifetime, type Deletion } from './lifetime';
import { Conditions, Labels } from './pod';

export interface NodeObject {
  metadata: { name: string; uid?: string; resourceVersion?: string; labels?: Record<string, string>; creationTimestamp?: string; managedFields?: ManagedField[] };
  spec?: { unschedulable?: boolean; taints?: { key: string; value?: string; effect: string }[] };
  status?: { conditions?: Condition[]; allocatable?: Record<string, string>; nodeInfo?: Record<string, string>; addresses?: { type: string; address: string }[] };
}

export function NodeOverview({ node, at, now, deleted = null }: { node: NodeObject; at: string; now: number; deleted?: Deletion | null }) {
  void refresh.value;
  const { metadata, spec = {}, status = {} } = node;
  const known = cluster.nodes.get(metadata.name);
  const ready = status.conditions?.find((c) => c.type === 'Ready');
  const isReady = ready?.status === 'True';
  return (
    <>
      {!deleted && <section class="state">
        <p class={`words ${isReady ? 'ready' : 'failing'}`}>
          <Shape state={isReady ? 'ready' : 'unknown'} size={16} /> <b>{isReady ? 'Ready' : 'NotReady'}</b> for {age(now - conditionSince(metadata, ready))}
          {spec.unschedulable && ', cordoned'}
        </p>
        {!isReady && <p>{ready?.message || (ready?.status === 'False' ? '' : 'Kubelet stopped posting node status.')}</p>}
      </section>}
      {known?.row && (
        <section>
          <h3>Requested</h3>
          <Share words="cpu" used={known.cpu} of={known.row.cpu} text={cpuText} />
          <Share words="memory" used={known.memory} of={known.row.memory} text={memoryText} />
          <Share words="pods" used={known.pods} of={known.row.pods} text={String} />
        </section>
      )}
      {status.allocatable && !deleted && <Allocations node={metadata.name} allocatable={status.allocatable} at={at} version={known?.pods} />}
      <dl class="facts">
        <Lifetime created={metadata.creationTimestamp} now={now} deleted={deleted} />
        {status.nodeInfo?.kubeletVersion && <><dt>Kubelet</dt><dd>{status.nodeInfo.kubeletVersion}</dd></>}
        {status.nodeInfo?.osImage && <><dt>System</dt><dd>{status.nodeInfo.osImage}</dd></>}
        {status.addresses?.map((a) => <><dt>{a.type}</dt><dd class="mono">{a.address}</dd></>)}
        {spec.taints?.map((t) => <><dt>Taint</dt><dd class="mono">{t.key}{t.value && `=${t.value}`}:{t.effect}</dd></>)}
      </dl>
      <Pods node={metadata.name} />
      <Conditions of={node} good={(c) => c.status === (c.type === 'Ready' ? 'True' : 'False')} now={now} />
      <Labels labels={metadata.labels} />
      <Events kind="Node" namespace="" name={metadata.name} uid={metadata.uid ?? ''} at={at} now={deleted ? clock.now() : now} deleted={deleted?.at ?? 0} version={metadata.resourceVersion} />
    </>
  );
}

function Share({ words, used, of, text }: { words: string; used: number; of: number; text: (n: number) => string }) {
  const part = of ? used / of : 0;
  return (
    <div class="share">
      <span>{words}</span>
      <meter min={0} max={1} high={0.8} value={Math.min(1, part)} aria-label={`${words} requested`} />
      <span class="muted">{text(used)} of {text(of)} · {Math.round(part * 100)} %</span>
    </div>
  );
}

/** The Pods of a Node, the most urgent states first. */
function Pods({ node }: { node: string }) {
  const rows: number[] = [];
  for (let row = 0; row < cluster.length; row++) {
    if (cluster.has(row) && cluster.nodeName(row) === node) rows.push(row);
  }
  const rank = [9, 6, 2, 3, 0, 5, 4, 1];
  rows.sort((a, b) => rank[cluster.shown(a)] - rank[cluster.shown(b)] || (cluster.names[a] < cluster.names[b] ? -1 : 1));
  return (
    <section>
      <h3>{count(rows.length, 'pod')} <button class="link" onClick={() => (filter.value = `node:${node}`)}>filter by this Node</button></h3>
      <ul class="pods">
        {rows.slice(0, 120).map((row) => (
          <li key={cluster.keyOf(row)}><button onClick={() => selectRow(row)}><Shape state={stateName(cluster.shown(row))} /> <span class="mono">{cluster.names[row]}</span></button></li>
        ))}
      </ul>
    </section>
  );
}
