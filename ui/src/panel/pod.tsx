// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The overview of a Pod. */

import { absent, misplaced } from '../app/contact';
import { refresh, cluster, filter, selection } from '../app/state';
import { stateName } from '../board/palette';
import { aligned, conditionSince } from '../data/aligned';
import { clock } from '../data/clock';
import { age, count } from '../data/quantity';
import { containerState, describe, State, seconds, type Condition, type ContainerStatus, type Pod } from '../data/state';
import { Shape } from '../shell/shape';
import { Events } from './events';
import { messagesOf, PodState } from './failing';
import { lasted, Lifetime, type Deletion } from './lifetime';

type Container = NonNullable<NonNullable<Pod['spec']>['containers']>[number];

/** The last state of a Pod if it was deleted. */
export function PodOverview({ pod: read, at, now, deleted = null }: { pod: Pod; at: string; now: number; deleted?: Deletion | null }) {
  void refresh.value;
  const pod = aligned(read);
  const { metadata, spec = {}, status = {} } = pod;
  const described = describe(pod);
  const node = absent.value || misplaced.value ? undefined : cluster.nodes.get(spec.nodeName ?? '')?.row;
  return (
    <>
      {deleted ? <WasDeleted pod={pod} /> : <PodState pod={pod} described={described} at={at} now={now} lostNode={node?.ready === 'Unknown' ? node.since : 0} />}
      {!deleted && waitsFor(pod).length > 0 && <p class="finalizers">It is removed once its finalizers are: {waitsFor(pod).map((name) => <code key={name}>{name} </code>)}</p>}
      <dl class="facts">
        <dt>Namespace</dt><dd><button class="link" onClick={() => (filter.value = `ns:${metadata.namespace}`)}>{metadata.namespace}</button></dd>
        <dt>Node</dt><dd>{spec.nodeName ? <button class="link mono" onClick={() => (selection.value = { kind: 'node', name: spec.nodeName! })}>{spec.nodeName}</button> : 'not scheduled'}</dd>
        <Lifetime created={metadata.creationTimestamp} now={now} deleted={deleted} />
        {described.restarts > 0 && <><dt>Restarts</dt><dd>{described.restarts}{described.crash && <span class="muted"> · last {described.crash}</span>}</dd></>}
      </dl>
      <section>
        <h3>Containers</h3>
        <ul class="containers">
          {(spec.initContainers ?? []).map((c) => <ContainerRow key={c.name} container={c} status={status.initContainerStatuses?.find((s) => s.name === c.name)} kind={c.restartPolicy === 'Always' ? 'sidecar' : 'init'} now={now} deleted={deleted} />)}
          {(spec.containers ?? []).map((c) => <ContainerRow key={c.name} container={c} status={status.containerStatuses?.find((s) => s.name === c.name)} now={now} deleted={deleted} />)}
        </ul>
      </section>
      <Conditions of={pod} good={(c) => c.status === 'True'} now={now} />
      <Labels labels={metadata.labels} />
      <Events namespace={metadata.namespace ?? ''} name={metadata.name} uid={metadata.uid ?? ''} at={at} now={deleted ? clock.now() : now} deleted={deleted?.at ?? 0} version={metadata.resourceVersion} />
    </>
  );
}

/** The last status of a deleted Pod. Nothing of it runs. */
function WasDeleted({ pod }: { pod: Pod }) {
  const { text, ready, containers } = describe(pod);
  return (
    <section class="state">
      {text !== 'Terminating' && <p class="muted">Its last status was {text}, {ready} of {count(containers, 'container')} ready.</p>}
      {messagesOf(pod).map((message) => <p key={message} class="muted">{message}</p>)}
    </section>
  );
}

/** The finalizers that a Pod waits for that is being deleted. */
export const waitsFor = ({ metadata }: Pod): string[] => (metadata.deletionTimestamp ? (metadata.finalizers ?? []) : []);

/** The state of a container in words. One of a deleted Pod only ran. */
export function containerWords({ state = {} }: ContainerStatus, now: number, deleted: Deletion | null): string {
  const { running, waiting, terminated } = state;
  const since = (time: string | undefined): string => (deleted ? lasted(seconds(time), deleted) : age(now - seconds(time)));
  if (running) return `${deleted ? 'ran' : 'running'} for ${since(running.startedAt)}`;
  if (waiting) return waiting.reason ?? 'waiting';
  if (!terminated) return 'not started';
  return `${terminated.reason ?? 'terminated'}, code ${terminated.exitCode ?? 0}, ${since(terminated.finishedAt)} ${deleted ? 'before' : 'ago'}`;
}

function ContainerRow({ container, status = {}, kind, now, deleted }: { container: Container; status?: ContainerStatus; kind?: 'init' | 'sidecar'; now: number; deleted: Deletion | null }) {
  const is = containerState(status);
  // Nothing of a deleted Pod runs or waits.
  const state = deleted && is !== State.failing && is !== State.succeeded ? 'terminating' : stateName(is);
  const words = containerWords(status, now, deleted);
  const requests = Object.entries(container.resources?.requests ?? {}).map(([name, value]) => `${name} ${value}`).join(', ');
  return (
    <li>
      <Shape state={state} size={14} />
      <b class="mono">{container.name}</b>{kind && <span class="muted"> {kind}</span>}
      <p class="muted"><span class={`words ${state}`}>{words}</span>{status.restartCount ? ` · ${count(status.restartCount, 'restart')}` : ''}</p>
      {container.image && <p class="muted mono small">{container.image}</p>}
      {requests && <p class="muted small">{requests}</p>}
    </li>
  );
}

type WithConditions = { metadata: Parameters<typeof conditionSince>[0]; status?: { conditions?: Condition[] } };

export function Conditions({ of: { metadata, status }, good, now }: { of: WithConditions; good: (c: Condition) => boolean; now: number }) {
  const conditions = status?.conditions;
  if (!conditions?.length) return null;
  return (
    <section>
      <h3>Conditions</h3>
      <ul class="conditions">
        {conditions.map((c) => (
          <li key={c.type} class={good(c) ? '' : 'bad'}>
            <b>{c.type}</b> <span>{c.status}</span>
            <time class="muted">{age(now - conditionSince(metadata, c))}</time>
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
