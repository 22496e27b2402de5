// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The responses of /watchkeeper/v1/history, with the fields that the page uses. */

import { askJSON, extensionURL, getJSON, type Query } from '../app/api';
import { scope } from '../app/state';
import { warningMarks, type EventMark, type Warning } from './events';
import { namespaced } from './namespaced';
import type { When } from './words';

export interface TimeSpan {
  from: string;
  to: string;
}

/** Changes per bin; `from` is the start of the first bin. */
export interface Counts {
  from: string;
  to: string;
  binSeconds: number;
  bins: number;
  resources: {
    resource: string;
    added: number[];
    modified: number[];
    deleted: number[];
    /** The retained parts of the range, and the gaps in them that were not observed. */
    spans: TimeSpan[];
    gaps: TimeSpan[];
  }[];
  /** What is recorded and left out, since the reader may not list it. */
  denied?: string[];
}

export interface Change {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'INITIAL' | 'FOLDED';
  resourceVersion: string;
  time: string;
  inferred?: boolean;
  /** The start of the time without observation that ends at `time`, if the change was made in it. */
  notBefore?: string;
  summary: string[] | null;
  /** A JSON Patch from the previous version. */
  changes?: Operation[];
  by?: { manager: string; operation?: string; subresource?: string }[];
  folded?: { count: number; noise?: Record<string, number>; oldest: { resourceVersion: string; time: string } };
  /** The kinds of insignificant changes that the patch leaves out. */
  noise?: string[];
  /** This version and the previous one, if requested. */
  object?: unknown;
  before?: unknown;
}

/** One operation of a JSON Patch (RFC 6902). */
export interface Operation {
  op: 'add' | 'remove' | 'replace';
  path: string;
  value?: unknown;
}

/** A page of a list, and the token for the next one; empty on the last page. */
export interface Page<T> {
  items: T[];
  more: string;
  /** Of versions, on the first page. */
  unobserved?: Unobserved[];
}

/** A time in which changes of a resource may have been missed, or came later. */
export interface Unobserved extends TimeSpan {
  resource: string;
  reason: string;
}

/** Names a version in a list. A group of folded versions grows at its newer end, so its oldest one names it. */
export const versionKey = ({ type, resourceVersion, folded }: Change): string => `${type} ${folded?.oldest.resourceVersion ?? resourceVersion}`;

/**
 * A list whose first page was read again: the pages that were already read
 * after it stay. `key` names an item.
 */
export function refreshed<T extends Change>(old: Page<T> | null, first: Page<T>, key: (item: T) => string): Page<T> {
  const last = first.items.at(-1);
  if (!old || !last || !first.more) return first;
  const at = old.items.findIndex((item) => key(item) === key(last));
  return at < 0 || at === old.items.length - 1 ? first : { ...first, items: [...first.items, ...old.items.slice(at + 1)], more: old.more };
}

/** What differs between two moments of an object. */
export interface ObjectDifference {
  from: When;
  to: When;
  /** None if the versions are equal, or differ only in noise. `from` and `to` are their RVs: absent if the object does not exist. */
  items: { type: 'ADDED' | 'MODIFIED' | 'DELETED'; from?: string; to?: string; changes?: Operation[]; before?: unknown; object?: unknown }[] | null;
}

export interface ObjectChange extends Change {
  resource: string;
  path: string;
  kind: string;
  namespace?: string;
  name: string;
}

/** Selects changes of a list. */
export interface Selected {
  /** Terms of the page's filter that apply to all objects, as it has them: `web -ns:kube`. */
  filter: string;
  /** Also changes of the status only. They are never left out of counts. */
  status: boolean;
  /** Only deletions. */
  deleted: boolean;
  /** Only changes of these types. */
  types?: readonly Change['type'][];
  /** Each change has its objects. */
  objects?: true;
}

/** The source of the strip's data; benchmarks have their own. */
export interface History {
  /** Changes per bin, of the given resources or of all. */
  counts(from: number, to: number, signal: AbortSignal, resources?: readonly string[], selected?: Selected): Promise<Counts>;
  /** Changes of the given resources or of all, the newest first. */
  changes(from: number, to: number, limit: number, signal: AbortSignal, resources?: readonly string[], more?: string, selected?: Selected): Promise<Page<ObjectChange>>;
  /** The Warnings that are retained at a time. */
  warnings?(at: number, signal: AbortSignal): Promise<EventMark[]>;
  /** The versions of an object, the newest first; `since` and `until` are moments as /at takes them. With `objects`, each has its object. */
  versions(path: string, more: string, signal: AbortSignal, within?: { since?: string; until?: string; objects?: 'true' }): Promise<Page<Change>>;
  /** The last version of an object at a moment, now if that is empty, and the previous one, as whole objects. */
  last(path: string, at: string, signal: AbortSignal): Promise<Change | undefined>;
  /** One version of an object and the previous one, as whole objects. */
  version(path: string, resourceVersion: string, signal: AbortSignal): Promise<Change | undefined>;
  /** Compares the object at two moments. */
  difference(path: string, from: string, to: string, signal: AbortSignal): Promise<ObjectDifference>;
  /**
   * Whether there is a history, and if not, why. `first` is its start; `end` is that of a served recording, 0 while recording continues.
   * `resources` are all that a served recording has, `only` is what it is limited to.
   */
  state(signal: AbortSignal): Promise<{ on: boolean; reason: string; first: number; end: number; resources?: string[]; only?: string }>;
}

/** What a served recording is limited to. */
interface RecordingScope {
  namespace?: string;
  /** A label selector chose the objects; which one is not known if names were replaced. */
  selected?: boolean;
  labelSelector?: string;
  resources?: string[];
}

/** Describes what a recording is limited to, as `watchkeeper open` does; empty for nothing. */
export const limitsOf = ({ namespace, selected, labelSelector, resources }: RecordingScope = {}): string =>
  [namespace && `namespace ${namespace}`, labelSelector ? `objects with ${labelSelector}` : selected && 'objects that a label selector chose', resources?.join(', ')].filter(Boolean).join('; ');

const time = (ms: number): string => new Date(ms).toISOString();

const ask = async <T>(path: string, query: Query, signal: AbortSignal): Promise<T> => askJSON<T>(extensionURL(`history${path}`, query), signal);

async function askPage<T>(path: string, query: [string, string][], more: string, signal: AbortSignal): Promise<Page<T>> {
  const { items, continue: next, unobserved } = await ask<{ items: T[] | null; continue?: string; unobserved?: Unobserved[] }>(path, more ? [...query, ['continue', more]] : query, signal);
  return { items: items ?? [], more: next ?? '', ...(unobserved && { unobserved }) };
}

const within = (from: number, to: number, resources: readonly string[], namespace = ''): [string, string][] =>
  [['from', time(from)], ['to', time(to)], ...(namespace ? [['namespace', namespace] as [string, string]] : []), ...resources.map((name): [string, string] => ['resource', name])];

const selecting = ({ filter, deleted, types = deleted ? ['DELETED'] : [], objects }: Selected = { filter: '', status: true, deleted: false }): [string, string][] =>
  [...(filter ? [['filter', filter] as [string, string]] : []), ...types.map((type): [string, string] => ['type', type]), ...(objects ? [['objects', 'true'] as [string, string]] : [])];

/** The URL of a recording of a range, of one namespace or of all. */
export function exportURL(from: number, to: number, namespace: string, pseudonyms: boolean): string {
  return extensionURL('history/export', [...within(from, to, [], namespace), ...(pseudonyms ? [['pseudonyms', 'true'] as [string, string]] : [])]);
}

/** The history that the gateway serves, of one namespace or, without one, of all. */
const historyOf = (namespace: string): History => ({
  counts: (from, to, signal, resources = [], selected) => ask('/counts', [...within(from, to, resources, namespace), ...selecting(selected)], signal),
  async changes(from, to, limit, signal, resources = [], more = '', selected) {
    const query: [string, string][] = [...within(from, to, resources, namespace), ...selecting(selected), ['limit', String(limit)]];
    if (selected && !selected.status) query.push(['spec', 'true']);
    // A page that took much work is empty.
    for (let next = more; ; ) {
      const page: Page<ObjectChange> = await askPage('/changes', query, next, signal);
      if (page.items.length || !page.more || !selected) return page;
      next = page.more;
    }
  },
  async warnings(at, signal) {
    const path = `/api/v1${namespace && `/namespaces/${namespace}`}/events`;
    const recent = Date.now() - at < 60_000;
    return warningMarks((await getJSON<{ items: Warning[] | null }>(path, recent ? '' : time(at), signal, { query: { fieldSelector: 'type=Warning', ...(recent && { resourceVersion: '0' }) } })).items ?? []);
  },
  versions: (path, more, signal, within = {}) => askPage(`/versions${path}`, Object.entries(within), more, signal),
  last: async (path, at, signal) =>
    (await askPage<Change>(`/versions${path}`, [...(at ? [['until', at] as [string, string]] : []), ['limit', '1'], ['objects', 'true']], '', signal)).items[0],
  version: (path, resourceVersion, signal) => history.last(path, `rv:${resourceVersion}`, signal),
  difference: (path, from, to, signal) => ask(`/diff${path}`, { from, to, objects: 'true' }, signal),
  async state(signal) {
    const index = await ask<{
      recording: { state: string; reason?: string; scope?: RecordingScope };
      resources: { resource: string; epochs: { span: { from: { time?: string }; to: { time?: string } } }[] }[];
    }>('', {}, signal);
    const first = index.resources.filter((r) => r.resource === 'pods').flatMap((r) => r.epochs.map((e) => Date.parse(e.span.from.time ?? ''))).filter(Number.isFinite);
    const last = index.resources.flatMap((r) => r.epochs.map((e) => Date.parse(e.span.to.time ?? ''))).filter(Number.isFinite);
    const end = index.recording.state === 'ended' ? Math.max(0, ...last) : 0;
    return { on: index.recording.state === 'on' || first.length > 0, reason: index.recording.reason ?? '', first: Math.min(...first, Date.now()), end, only: limitsOf(index.recording.scope), ...(end && { resources: index.resources.map((r) => r.resource) }) };
  },
});

/** The history of what the reader may see. */
export const history: History = namespaced(historyOf(''), historyOf, () => scope.peek());
