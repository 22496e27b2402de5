// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Lists of what belongs to an object, live or at a moment: bounded, cancelled when they are no longer needed, and with the reason if one could not be read. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, getJSON } from '../app/api';
import { lost } from '../app/contact';
import type { List, Meta, Thing } from './objects';
import { collectionOf, type Place } from './places';

/** A page of a list, and how many pages are read. */
const pageSize = 500;
const maxPages = 4;
/** How often a live list is read again, in milliseconds; less often if that takes long. */
const pause = 5000;
/** After a change of the object it is read again this soon. */
const minPause = 1000;

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/** Which objects of a collection are wanted. */
export interface Wanted {
  path: string;
  labels?: string;
  /** A field selector. */
  where?: string;
  /** Only these fields, if the gateway can leave out the others. */
  fields?: string;
}

export interface Listed<T = Thing> {
  items: T[];
  /** Why it could not be read, in the API server's words; empty if it was. */
  error: string;
  /** There are more than were read. */
  more: boolean;
}

/** The gateway has answered that it has no projections for this reader. */
let whole = false;

/** Reads a collection. An error is part of the result, except that of a cancelled request. */
export async function list<T extends Thing>(wanted: Wanted, at: string, signal: AbortSignal): Promise<Listed<T>> {
  const items: T[] = [];
  let next = '';
  try {
    for (let page = 0; page < maxPages; page++) {
      const found = await readPage<T>(wanted, next, at, signal);
      const kind = (found.kind ?? '').replace(/List$/, '');
      for (const item of found.items ?? []) items.push({ apiVersion: found.apiVersion, kind, ...item });
      next = found.metadata?.continue ?? '';
      if (!next) break;
    }
  } catch (error) {
    if (signal.aborted) throw error;
    return { items, error: (error as Error).message, more: false };
  }
  return { items, error: '', more: next !== '' };
}

async function readPage<T>({ path, labels, where, fields }: Wanted, next: string, at: string, signal: AbortSignal): Promise<List<T>> {
  const ask = (projected: boolean): Promise<List<T>> => {
    const query = {
      limit: String(pageSize), ...(labels && { labelSelector: labels }), ...(where && { fieldSelector: where }), ...(next && { continue: next }), ...(projected && { fields: fields! }),
    };
    return getJSON<List<T>>(path, at, signal, { query });
  };
  if (!fields || whole) return ask(false);
  try {
    return await ask(true);
  } catch (error) {
    // Such as for callers with credentials of their own.
    if (!(error instanceof ApiError) || error.code === 404 || error.code === 429) throw error;
    whole ||= error.code === 400;
    return ask(false);
  }
}

/** A Table of the API server: its columns, and rows with the metadata of their objects. */
export interface Table {
  columnDefinitions: { name: string; priority: number; type?: string }[] | null;
  rows: { cells: unknown[]; object?: { metadata: Meta } }[] | null;
  metadata?: { continue?: string };
}

/** The Table of an object or of a collection: its first page. */
export const table = (path: string, at: string, signal: AbortSignal): Promise<Table> => getJSON<Table>(path, at, signal, { accept: TABLE, query: { includeObject: 'Metadata', limit: String(pageSize) } });

/** The collection of a resource in a namespace, or the object's own scope. */
export const within = (place: Place, namespace = '', more: Omit<Wanted, 'path'> = {}): Wanted => ({ path: collectionOf(place, place.namespaced ? namespace : ''), ...more });

export interface Polled<T> {
  value: T | null;
  /** The value is that of what is asked for now. */
  current: boolean;
}

/** What is loaded of an object. */
export interface Asking {
  at: string;
  /** When this changes, a live value is loaded again soon. */
  version: unknown;
  /** The least pause between two loads, in milliseconds. */
  every?: number;
}

/** Loads something, and if it is live, again and again while the page is visible. `key` names it. */
export function usePolled<T>(key: string, load: (signal: AbortSignal) => Promise<T>, { at, version, every = pause }: Asking): Polled<T> {
  const [state, set] = useState<{ key: string; value: T } | null>(null);
  const changed = useRef(false);
  const name = `${key} ${at}`;
  useEffect(() => {
    changed.current = true;
  }, [version]);
  useEffect(() => {
    if (!key) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const run = async (): Promise<void> => {
      changed.current = false;
      const began = performance.now();
      try {
        const value = await load(stop.signal);
        if (!stop.signal.aborted) set({ key: name, value });
      } catch {
        // It was cancelled, or it is asked for again below.
      }
      if (at || stop.signal.aborted) return;
      const answered = performance.now();
      const look = (): void => {
        const since = performance.now() - answered;
        const due = since >= Math.max(every, 10 * (answered - began)) || (changed.current && since >= minPause);
        if (due && !document.hidden) void run();
        else timer = setTimeout(look, 500);
      };
      look();
    };
    void run();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [name, lost.value > 0]);
  return { value: key ? (state?.value ?? null) : null, current: state?.key === name };
}

/** Loads several lists, by name. Those that are not wanted are absent. */
export function useLists<T extends Thing = Thing>(wanted: Record<string, Wanted | undefined>, asking: Asking): Record<string, Listed<T> | undefined> {
  const names = Object.keys(wanted).filter((name) => wanted[name]);
  const key = names.length ? JSON.stringify(names.map((name) => [name, wanted[name]])) : '';
  const { value } = usePolled(key, async (signal) => {
    const all = await Promise.all(names.map(async (name) => [name, await list<T>(wanted[name]!, asking.at, signal)] as const));
    return Object.fromEntries(all);
  }, asking);
  return value ?? {};
}
