// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The history of a reader who may not read all namespaces: each is asked about, since
 * the gateway answers a question about all of them with what may be read in all.
 */

import type { Scope } from '../data/protocol';
import type { Counts, History, ObjectChange, Page } from './history';

/** The history of how many namespaces is shown, and how many are asked about at a time. */
export const maxHistories = 20;
const maxRequests = 3;
/** How many lists can be continued. */
const maxKept = 50;

/** Resources without namespaces: they are the same in all answers. */
const CLUSTER = ['nodes', 'namespaces', 'persistentvolumes'];

/** The changes of a namespace that are not listed yet. */
interface Cursor {
  namespace: string;
  items: ObjectChange[];
  /** The token of the next page; null before the first one, empty after the last. */
  more: string | null;
}

/** Restricts a history to what the reader may see. `of` returns the history of a namespace. */
export function namespaced(history: History, of: (namespace: string) => History, seen: () => Scope): History {
  /** The namespaces that are asked about; null for all of them. Without any, the gateway says that the reader may list nothing. */
  const names = (): string[] | null => (seen().namespaces?.length ? seen().namespaces!.slice(0, maxHistories) : null);
  /** The resources of a served recording. */
  let recorded: string[] | undefined;
  // A question that names something that may not be read, or is not recorded, has no answer.
  const readable = (resources: readonly string[] = []): readonly string[] => resources.filter((name) => (name !== 'nodes' || !seen().nodes) && (recorded?.includes(name) ?? true));
  const lists = new Map<string, Cursor[]>();
  let number = 0;

  const keep = (cursors: Cursor[]): string => {
    if (cursors.every(({ items, more }) => items.length === 0 && more === '')) return '';
    const token = String(++number);
    lists.set(token, cursors);
    if (lists.size > maxKept) lists.delete(lists.keys().next().value!);
    return token;
  };

  return {
    ...history,
    async counts(from, to, signal, resources = [], selected) {
      const namespaces = names();
      if (resources.length && !readable(resources).length) return sum([], from, to);
      if (!namespaces) return history.counts(from, to, signal, readable(resources), selected);
      const inside = readable(resources).filter((name) => !CLUSTER.includes(name));
      const outside = readable(resources).filter((name) => CLUSTER.includes(name));
      const answers = resources.length && !inside.length ? [] : await each(namespaces, (name) => of(name).counts(from, to, signal, inside, selected));
      if (outside.length) answers.push(await history.counts(from, to, signal, outside, selected));
      return sum(answers, from, to);
    },
    async changes(from, to, limit, signal, resources = [], more = '', selected) {
      const namespaces = names();
      if (resources.length && !readable(resources).length) return { items: [], more: '' };
      if (!namespaces) return history.changes(from, to, limit, signal, readable(resources), more, selected);
      // A copy: the list may be continued again from the same token.
      const cursors: Cursor[] = (more ? (lists.get(more) ?? []) : namespaces.map((namespace) => ({ namespace, items: [], more: null }))).map((cursor) => ({ ...cursor, items: [...cursor.items] }));
      const page: Page<ObjectChange> = { items: [], more: '' };
      const listed = new Set<string>();
      while (page.items.length < limit) {
        const due = cursors.filter(({ items, more }) => items.length === 0 && more !== '');
        await each(due, async (cursor) => {
          const next = await of(cursor.namespace).changes(from, to, limit, signal, readable(resources), cursor.more ?? '', selected);
          cursor.items = next.items;
          cursor.more = next.more;
        });
        if (due.some(({ items, more }) => items.length === 0 && more !== '')) continue; // pages that took much work are empty
        const first = cursors.filter(({ items }) => items.length > 0).sort((a, b) => newer(a.items[0], b.items[0]))[0];
        if (!first) break;
        const item = first.items.shift()!;
        const key = `${item.path} ${item.resourceVersion}`;
        if (!listed.has(key)) page.items.push(item);
        listed.add(key);
      }
      page.more = keep(cursors);
      return page;
    },
    async warnings(at, signal) {
      const namespaces = names();
      if (!namespaces) return (await history.warnings?.(at, signal)) ?? [];
      return (await each(namespaces, async (name) => (await of(name).warnings?.(at, signal)) ?? [])).flat().sort((a, b) => a.time - b.time);
    },
    async state(signal) {
      const state = await history.state(signal);
      recorded = state.resources;
      const [name] = names() ?? [];
      if (!name || !state.on) return state;
      // What is recorded is known to readers of all namespaces only.
      const year = await of(name).counts(Date.now() - 365 * 24 * 3600_000, Date.now(), signal, ['pods']);
      return { ...state, first: Math.min(state.first, ...year.resources.flatMap(({ spans }) => spans.map((span) => Date.parse(span.from)))) };
    },
  };
}

/** The newer change first; of those at one time, as the gateway lists them. */
const newer = (a: ObjectChange, b: ObjectChange): number => Date.parse(b.time) - Date.parse(a.time) || Number(b.resourceVersion) - Number(a.resourceVersion);

/** Adds up the counts of namespaces. What is recorded of a resource is the same for all. */
function sum(answers: Counts[], from: number, to: number): Counts {
  const [first] = answers;
  if (!first) return { from: new Date(from).toISOString(), to: new Date(to).toISOString(), binSeconds: (to - from) / 1000, bins: 1, resources: [] };
  const resources = new Map<string, Counts['resources'][number]>();
  for (const one of answers.flatMap((answer) => answer.resources)) {
    const known = resources.get(one.resource);
    const add = (a: number[], b: number[]): number[] => a.map((n, i) => n + (b[i] ?? 0));
    resources.set(one.resource, known && !CLUSTER.includes(one.resource) ? { ...known, added: add(known.added, one.added), modified: add(known.modified, one.modified), deleted: add(known.deleted, one.deleted) } : one);
  }
  const denied = [...new Set(answers.flatMap((answer) => answer.denied ?? []))];
  return { ...first, resources: [...resources.values()], denied };
}

/** Calls a function for each of a few things at a time. */
async function each<T, R>(all: readonly T[], call: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < all.length) {
      const i = next++;
      results[i] = await call(all[i]);
    }
  };
  await Promise.all(Array.from({ length: maxRequests }, work));
  return results;
}
