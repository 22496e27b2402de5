// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Parts that the details of several kinds have. */

import { Fragment, type ComponentChildren } from 'preact';
import { selection, selectionOf } from '../app/state';
import { stateName } from '../board/palette';
import { age, count } from '../data/quantity';
import { describe, seconds, State, stateAt, type StateName } from '../data/state';
import { Shape } from '../shell/shape';
import type { Listed } from './load';
import type { Meta, Pod, Thing } from './objects';

/** What the overview of a kind gets. */
export interface Props<T extends Thing = Thing> {
  object: T;
  /** The moment of what belongs to it, as /at takes it; empty for now. */
  at: string;
  /** In seconds since 1970: the shown moment, or the deletion of the object. */
  now: number;
}

/** A live part of it is loaded again when this changes. */
export const asking = ({ object, at }: Props): { at: string; version: unknown } => ({ at, version: object.metadata.resourceVersion });

/** Shows an object in the panel. */
export const go = (path: string): void => void (selection.value = selectionOf(path));

/** A button that shows an object; only its text if its path is not known. */
export function ObjectLink({ path, children, kind }: { path: string; children: ComponentChildren; kind?: string }) {
  return path ? <button class="link mono" title={kind && `Show this ${kind}`} onClick={() => go(path)}>{children}</button> : <span class="mono">{children}</span>;
}

/** A list of objects, each a button with its state. */
export interface Row {
  key: string;
  path: string;
  name: string;
  state?: StateName;
  words: ComponentChildren;
}

/** How many rows are shown at first. */
const maxRows = 50;

export function Rows({ rows, label }: { rows: Row[]; label?: string }) {
  return (
    <>
      <ul class="pods rows" aria-label={label}>
        {rows.slice(0, maxRows).map(({ key, path, name, state, words }) => (
          <li key={key}>
            <button onClick={() => go(path)}>{state && <Shape state={state} />} <span class="mono name">{name}</span> <span class="muted small">{words}</span></button>
          </li>
        ))}
      </ul>
      {rows.length > maxRows && <p class="muted small">and {count(rows.length - maxRows, 'more', 'more')}</p>}
    </>
  );
}

export function Section({ title, children }: { title: ComponentChildren; children: ComponentChildren }) {
  return <section><h3>{title}</h3>{children}</section>;
}

/** Why a list is not there: it loads, could not be read, is empty, or not whole. */
export function Lack({ of, noun }: { of: Listed<Thing> | undefined; noun: string }) {
  if (!of) return <p class="muted small">loading</p>;
  if (of.error) return <p class="failure small">{noun} could not be read: {of.error}</p>;
  if (of.more) return <p class="muted small">There are more; the first {of.items.length.toLocaleString('en')} were read.</p>;
  return of.items.length ? null : <p class="muted small">none</p>;
}

/** Names and values; those without a value are left out. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  const shown = facts.filter(([, value]) => value !== undefined && value !== '' && value !== null && value !== false);
  return shown.length ? <dl class="facts">{shown.map(([name, value]) => <Fragment key={name}><dt>{name}</dt><dd>{value}</dd></Fragment>)}</dl> : null;
}

export const since = (meta: Meta, now: number): string => age(now - seconds(meta.creationTimestamp));

const URGENCY = [9, 6, 2, 3, 0, 5, 4, 1];

/** Pods as rows, the most urgent first. */
export function podRows(pods: Pod[], now: number): Row[] {
  const all = pods.map((pod) => {
    const described = describe(pod);
    return { pod, described, state: stateAt(described, now) };
  });
  all.sort((a, b) => URGENCY[a.state] - URGENCY[b.state] || (a.pod.metadata.name < b.pod.metadata.name ? -1 : 1));
  return all.map(({ pod: { metadata }, described, state }) => ({
    key: metadata.uid ?? metadata.name, path: `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`, name: metadata.name, state: stateName(state),
    words: `${described.text} ${described.ready}/${described.containers}${described.restarts ? `, ${count(described.restarts, 'restart')}` : ''}, ${since(metadata, now)}`,
  }));
}

/** The most urgent state of Pods. */
export const worst = (pods: Pod[], now: number): StateName =>
  stateName(pods.map((pod) => stateAt(describe(pod), now)).sort((a, b) => URGENCY[a] - URGENCY[b])[0] ?? State.unknown);

/** The fields of Pods that the details read. */
export const POD_FIELDS = [
  'metadata.labels', 'metadata.ownerReferences', 'metadata.creationTimestamp', 'metadata.deletionTimestamp',
  'spec.nodeName', 'spec.serviceAccountName', 'spec.imagePullSecrets', 'spec.volumes',
  ...['containers', 'initContainers'].flatMap((list) => ['name', 'env', 'envFrom', 'restartPolicy'].map((name) => `spec.${list}[*].${name}`)),
  'status.phase', 'status.reason', 'status.conditions', 'status.podIP', 'status.containerStatuses', 'status.initContainerStatuses',
].join();
