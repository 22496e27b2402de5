// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The story of an object in words: those that "watchkeeper story" prints. */

import { count } from '../data/quantity';
import type { Unobserved } from '../time/history';
import { BEFORE, unobservedWords } from '../time/unrecorded';
import { date, timeOfDay } from '../time/words';
import { pathOf } from './resource';

/** The answer of /watchkeeper/v1/story. */
export interface Story {
  resource: string;
  kind?: string;
  namespace?: string;
  name: string;
  from: string;
  to: string;
  episodes: Episode[] | null;
  objects: number;
  versions: number;
  notRecorded?: string[];
  denied?: string[];
  leftOut?: string[];
  unobserved?: Unobserved[];
}

/** A group of changes that belong together. */
export interface Episode {
  kind: string;
  severity: 'failed' | 'warning' | 'info';
  from: string;
  to: string;
  ongoing?: boolean;
  /** Set if it has begun before `from`: before the story, or before anything was recorded. */
  begunBefore?: 'story' | 'record';
  /** It began between `notBefore` and `from`, which was not observed. */
  notBefore?: string;
  /** It ended between `endNotBefore` and `to`, which was not observed. */
  endNotBefore?: string;
  /** The most important one of the story. */
  main?: boolean;
  title: string;
  causes?: Cause[];
  entries: Entry[];
}

/** What a field of an object, or an Event about it, says. */
export interface Cause {
  kind: string;
  namespace?: string;
  name: string;
  field: string;
  text: string;
  /** Of the version that says so; of an Event, the Event's. */
  path?: string;
  resourceVersion?: string;
  objects?: number;
}

/** A change of an object, or several that are alike. */
export interface Entry {
  time: string;
  until?: string;
  notBefore?: string;
  inferred?: boolean;
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'EVENT';
  resourceVersion: string;
  /** Of the object; of an Event, the Event's. */
  path: string;
  kind: string;
  namespace?: string;
  name: string;
  what: string[];
  by?: string[];
  count?: number;
  lastLog?: string;
}

/** Names an object, as an entry and a cause do. */
export type Named = Pick<Entry, 'kind' | 'namespace' | 'name'>;

/** An episode, and what names it in all answers about the same object. */
export interface Told extends Episode {
  key: string;
}

/** The words of one story. */
export class Teller {
  readonly episodes: Told[];
  readonly main: Told | undefined;
  /** All episodes are of one day, which the heading has. */
  readonly #oneDay: boolean;
  readonly #paths = new Map<string, string>();

  /** `path` is that of the object. */
  constructor(readonly story: Story, path: string) {
    const all = story.episodes ?? [];
    const seen = new Map<string, number>();
    this.episodes = all.map((episode) => {
      const name = `${episode.kind} ${episode.from}`;
      seen.set(name, (seen.get(name) ?? 0) + 1);
      return { ...episode, key: `${name} ${seen.get(name)}` };
    });
    this.main = this.episodes.find(({ main }) => main);
    this.#oneDay = new Set(all.flatMap(({ from, to }) => [date(Date.parse(from)), date(Date.parse(to))])).size < 2;
    for (const entry of all.flatMap(({ entries }) => entries)) if (entry.type !== 'EVENT') this.#paths.set(keyOf(entry), entry.path);
    this.#paths.set(keyOf({ kind: story.kind ?? '', namespace: story.namespace, name: story.name }), path);
  }

  /** A time of an episode. */
  clock(time: string): string {
    const ms = Date.parse(time);
    return this.#oneDay ? timeOfDay(ms) : `${date(ms)} ${timeOfDay(ms)}`;
  }

  /** When an episode was: `since 14:02:09`, or `14:02:09–14:09:00`. */
  span({ from, to, ongoing, begunBefore, notBefore, endNotBefore }: Pick<Episode, 'from' | 'to' | 'ongoing' | 'begunBefore' | 'notBefore' | 'endNotBefore'>): string {
    const [first, last] = [`${begunBefore ? 'before ' : ''}${this.clock(from)}`, this.clock(to)];
    const limits = notBefore ? [`not before ${this.clock(notBefore)}`] : [];
    if (begunBefore === 'record') limits.push('the record begins there');
    let span = first;
    if (ongoing) {
      span = `since ${first}`;
      if (Date.parse(to) < Date.parse(this.story.to)) limits.push(`last observed ${last}`);
    } else if (first !== last) {
      span = `${first}–${date(Date.parse(from)) === date(Date.parse(to)) ? timeOfDay(Date.parse(to)) : last}`;
      if (endNotBefore) limits.push(`its end not before ${this.clock(endNotBefore)}`);
    }
    return limits.length ? `${span} (${limits.join(', ')})` : span;
  }

  /** How many episodes there are. */
  number(): string {
    if (this.episodes.length) return count(this.episodes.length, 'episode');
    const { resource, from, to, unobserved = [] } = this.story;
    const [first, last] = [Date.parse(from), Date.parse(to)];
    const missed = unobserved.map((span) => ({ ...span, from: Date.parse(span.from), to: Date.parse(span.to) })).filter((span) => (span.reason !== 'late' || span.to > last) && span.to > first && span.from < last);
    // The spans of a resource are the earliest first.
    const known = missed.reduce((until, span) => (span.resource === resource && span.from <= until ? Math.max(until, span.to) : until), first);
    if (known >= last) return 'nothing is known of that time';
    return missed.some(({ reason }) => reason !== BEFORE) ? 'nothing is known to have changed in that time' : 'nothing has changed in that time';
  }

  /** The name of an object; without the namespace if it is that of the story. */
  name({ namespace, name }: Named): string {
    return namespace && namespace !== this.story.namespace ? `${namespace}/${name}` : name;
  }

  /** The API path of an object; empty if it is not known. */
  path(object: Named): string {
    const known = this.#paths.get(keyOf(object));
    if (known) return known;
    const group = GROUPS[object.kind];
    return group && (object.namespace || object.kind === 'Node') ? pathOf(object.kind, group, object.namespace ?? '', object.name) : '';
  }

  /** What an entry says. */
  what({ what, lastLog, count = 1, until, notBefore, inferred }: Pick<Entry, 'what' | 'lastLog' | 'count' | 'until' | 'notBefore' | 'inferred'>): string {
    let text = what.join('; ');
    if (lastLog && !text.includes(lastLog)) text += `; last output: ${lastLog}`;
    if (count > 1) text += ` (${count} times${until ? `, until ${this.clock(until)}` : ''})`;
    return text + (notBefore ? ` (not before ${this.clock(notBefore)})` : inferred ? ' (inferred from a list)' : '');
  }

  /** What the story does not have. */
  notes(): string[] {
    const { notRecorded = [], denied = [], leftOut = [], unobserved = [] } = this.story;
    const lines = [
      ...(notRecorded.length ? [`not recorded, so not in the story: ${notRecorded.join(', ')}`] : []),
      ...(denied.length ? [`left out, because you may not list them now: ${denied.join(', ')}`] : []),
      ...leftOut,
    ];
    const spans = new Map<string, string[]>();
    for (const one of unobserved) spans.set(unobservedWords(one), [...(spans.get(unobservedWords(one)) ?? []), one.resource]);
    return [...lines, ...[...spans].map(([span, resources]) => `${span}: ${resources.join(', ')}`)];
  }
}

/** The number of further objects that say the same as the one that a cause names. */
export const others = ({ objects = 1 }: Cause): string => (objects > 1 ? ` and ${objects - 1} more` : '');

const keyOf = ({ kind, namespace = '', name }: Named): string => `${kind} ${namespace}/${name}`;

/** The API groups of kinds that a story may name without an entry of them. */
const GROUPS: Record<string, string> = {
  Pod: 'v1', Node: 'v1', ConfigMap: 'v1', PersistentVolumeClaim: 'v1', ResourceQuota: 'v1',
  Deployment: 'apps/v1', ReplicaSet: 'apps/v1', StatefulSet: 'apps/v1', DaemonSet: 'apps/v1',
  Job: 'batch/v1', CronJob: 'batch/v1', HorizontalPodAutoscaler: 'autoscaling/v2', PodDisruptionBudget: 'policy/v1',
};
