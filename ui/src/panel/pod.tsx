// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The overview of a Pod. */

import { filter, selection } from '../app/state';
import { stateName } from '../board/palette';
import { age, count } from '../data/quantity';
import { containerState, describe, seconds, type Condition, type ContainerStatus, type Pod } from '../data/state';
import { Shape } from '../shell/shape';
import { Events } from './events';
import { PodState } from './failing';

type Container = NonNullable<NonNullable<Pod['spec']>['containers']>[number];

export function PodOverview({ pod, at, now }: { pod: Pod; at: string; now: number }) {
  const { metadata, spec = {}, status = {} } = pod;
  const described = describe(pod);
  return (
    <>
      <PodState pod={pod} described={described} at={at} now={now} />
      <dl class="facts">
        <dt>Namespace</dt><dd><button class="link" onClick={() => (filter.value = `ns:${metadata.namespace}`)}>{metadata.namespace}</button></dd>
        <dt>Node</dt><dd>{spec.nodeName ? <button class="link mono" onClick={() => (selection.value = { kind: 'node', name: spec.nodeName! })}>{spec.nodeName}</button> : 'not scheduled'}</dd>
        <dt>Created</dt><dd>{age(now - seconds(metadata.creationTimestamp))} ago</dd>
        {described.restarts > 0 && <><dt>Restarts</dt><dd>{described.restarts}{described.crash && <span class="muted"> · last {described.crash}</span>}</dd></>}
      </dl>
      <section>
        <h3>Containers</h3>
        <ul class="containers">
          {(spec.initContainers ?? []).map((c) => <ContainerRow key={c.name} container={c} status={status.initContainerStatuses?.find((s) => s.name === c.name)} init now={now} />)}
          {(spec.containers ?? []).map((c) => <ContainerRow key={c.name} container={c} status={status.containerStatuses?.find((s) => s.name === c.name)} now={now} />)}
        </ul>
      </section>
      <Conditions conditions={status.conditions} good={(c) => c.status === 'True'} now={now} />
      <Labels labels={metadata.labels} />
      <Events namespace={metadata.namespace ?? ''} uid={metadata.uid ?? ''} at={at} now={now} version={metadata.resourceVersion} />
    </>
  );
}

function ContainerRow({ container, status, init, now }: { container: Container; status?: ContainerStatus; init?: boolean; now: number }) {
  const state = stateName(containerState(status ?? {}));
  const { running, waiting, terminated } = status?.state ?? {};
  const words = running ? `running for ${age(now - seconds(running.startedAt))}` : waiting ? (waiting.reason ?? 'waiting')
    : terminated ? `${terminated.reason ?? 'terminated'}, code ${terminated.exitCode ?? 0}, ${age(now - seconds(terminated.finishedAt))} ago` : 'not started';
  const requests = Object.entries(container.resources?.requests ?? {}).map(([name, value]) => `${name} ${value}`).join(', ');
  return (
    <li>
      <Shape state={state} size={14} />
      <b class="mono">{container.name}</b>{init && <span class="muted"> init</span>}
      <p class="muted"><span class={`words ${state}`}>{words}</span>{status?.restartCount ? ` · ${count(status.restartCount, 'restart')}` : ''}</p>
      {container.image && <p class="muted mono small">{container.image}</p>}
      {requests && <p class="muted small">{requests}</p>}
    </li>
  );
}

export function Conditions({ conditions, good, now }: { conditions?: Condition[]; good: (c: Condition) => boolean; now: number }) {
  if (!conditions?.length) return null;
  return (
    <section>
      <h3>Conditions</h3>
      <ul class="conditions">
        {conditions.map((c) => (
          <li key={c.type} class={good(c) ? '' : 'bad'}>
            <b>{c.type}</b> <span>{c.status}</span>
            <time class="muted">{age(now - seconds(c.lastTransitionTime))}</time>
            {!good(c) && (c.reason || c.message) && <p class="muted">{[c.reason, c.message].filter(Boolean).join(': ')}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Labels({ labels }: { labels?: Record<string, string> }) {
  const all = Object.entries(labels ?? {});
  if (!all.length) return null;
  return (
    <section>
      <h3>Labels</h3>
      <p class="labels">
        {all.map(([key, value]) => <button key={key} class="label mono" title="Filter by this label" onClick={() => (filter.value = `${key}=${value}`)}>{key}=<b>{value}</b></button>)}
      </p>
    </section>
  );
}
