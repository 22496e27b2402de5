// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Deployments, StatefulSets, DaemonSets and ReplicaSets: how far the rollout is, ReplicaSets, and Pods. */

import { count } from '../data/quantity';
import { useLists, within } from './load';
import { selectorText, type Pod } from './objects';
import { asking, Facts, Lack, ObjectLink, POD_FIELDS, podRows, Rows, Section, since, type Props } from './parts';
import { builtIn, collectionOf } from './places';
import { bar, imagesOf, numbers, owns, revisionOf, rolloutOf, waitsFor, type Workload } from './rollout';

/** The bar of a rollout: above the Pods by their state, below the part of them that is updated. */
function Bar({ workload }: { workload: Workload }) {
  const rollout = rolloutOf(workload);
  const { wanted, exist, updated = 0 } = rollout;
  const all = Math.max(1, wanted, exist);
  const words = numbers(rollout);
  const waits = waitsFor(workload);
  return (
    <Section title={rollout.updated === undefined ? 'Replicas' : 'Rollout'}>
      <svg class="rollout" viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label={words}>
        {bar(rollout).map(({ name, from, width }) => <rect key={name} class={name} x={100 * from} y="0" width={100 * width} height="8" />)}
        <rect class="updated" x="0" y="10" width={(100 * Math.min(updated, all)) / all} height="2" />
      </svg>
      <p class="small">{words}</p>
      {rollout.updated !== undefined && <p class="muted small">{waits ? `Rollout: ${waits}.` : 'The rollout is complete.'}</p>}
    </Section>
  );
}

/** The lists of Pods, and of other resources, with the labels that a workload selects. */
function useSelected({ object, at, now }: Props<Workload>, ...ids: string[]) {
  const labels = object.spec?.selector && selectorText(object.spec.selector);
  const wanted = ids.map((id) => [id, labels ? within(builtIn(id), object.metadata.namespace, { labels, ...(id === 'Pod' && { fields: POD_FIELDS }) }) : undefined]);
  return useLists(Object.fromEntries(wanted), asking({ object, at, now }));
}

export function Deployment(props: Props<Workload>) {
  const { object, now } = props;
  const { Pod: pods, 'ReplicaSet.apps': sets } = useSelected(props, 'Pod', 'ReplicaSet.apps');
  const own = (sets?.items ?? []).filter((set) => owns(object, set)).sort((a, b) => revisionOf(b) - revisionOf(a)) as Workload[];
  const uids = new Set(own.map(({ metadata }) => metadata.uid));
  const shown = own.filter((set, i) => i === 0 || set.spec?.replicas || set.status?.replicas);
  const old = own.filter((set) => !shown.includes(set));
  const { strategy } = object.spec ?? {};
  const rolling = strategy?.rollingUpdate;
  return (
    <>
      <Bar workload={object} />
      <Facts facts={[['Strategy', strategy?.type && `${strategy.type}${rolling ? `, surge ${rolling.maxSurge}, unavailable ${rolling.maxUnavailable}` : ''}`], ['Images', imagesOf(object).join(', ')]]} />
      <Section title="ReplicaSets">
        <Sets sets={shown} now={now} />
        {old.length > 0 && <details class="fold"><summary>{count(old.length, 'older ReplicaSet')} without Pods</summary><Sets sets={old} now={now} /></details>}
        <Lack of={sets} noun="ReplicaSets" />
      </Section>
      <Pods pods={pods && { ...pods, items: pods.items.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uids.has(uid))) as Pod[] }} now={now} />
    </>
  );
}

function Sets({ sets, now }: { sets: Workload[]; now: number }) {
  return (
    <ul class="sets" aria-label="ReplicaSets">
      {sets.map((set) => {
        const { ready, wanted } = rolloutOf(set);
        return (
          <li key={set.metadata.uid}>
            <ObjectLink path={`${collectionOf(builtIn('ReplicaSet.apps'), set.metadata.namespace)}/${set.metadata.name}`} kind="ReplicaSet">{set.metadata.name}</ObjectLink>
            <p class="muted small">revision {revisionOf(set)} · {ready} of {wanted} ready · {since(set.metadata, now)}</p>
            <p class="muted mono small">{imagesOf(set).join(', ')}</p>
          </li>
        );
      })}
    </ul>
  );
}

export function Pods({ pods, now, title = 'Pods' }: { pods: { items: Pod[]; error: string; more: boolean } | undefined; now: number; title?: string }) {
  return (
    <Section title={pods?.items.length ? count(pods.items.length, 'Pod') : title}>
      <Rows label={title} rows={podRows(pods?.items ?? [], now)} />
      <Lack of={pods} noun="Pods" />
    </Section>
  );
}

/** A ReplicaSet, StatefulSet or DaemonSet: it owns its Pods itself. */
export function PodOwner(props: Props<Workload>) {
  const { object, now } = props;
  const { spec = {}, status = {} } = object;
  const { Pod: pods } = useSelected(props, 'Pod');
  const revisions = status.updateRevision && status.currentRevision !== status.updateRevision ? `${status.currentRevision} → ${status.updateRevision}` : status.currentRevision;
  return (
    <>
      <Bar workload={object} />
      <Facts facts={[
        ['Images', imagesOf(object).join(', ')],
        ['Revision', revisionOf(object) || revisions],
        ['Update', spec.updateStrategy?.type],
        ['Service', spec.serviceName && <ObjectLink path={`${collectionOf(builtIn('Service'), object.metadata.namespace)}/${spec.serviceName}`} kind="Service">{spec.serviceName}</ObjectLink>],
        ['Claims', spec.volumeClaimTemplates?.map(({ metadata }) => metadata?.name).join(', ')],
        ['Misplaced', status.numberMisscheduled],
      ]} />
      <Pods pods={pods && { ...pods, items: pods.items.filter((pod) => owns(object, pod)) as Pod[] }} now={now} />
    </>
  );
}
