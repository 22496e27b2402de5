// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Loads whole objects when they are shown, and again when the board receives a change of them. */

import { useEffect, useState } from 'preact/hooks';
import { ApiError, getJSON } from '../app/api';
import { gapEnd } from '../time/refusals';

/** Changes within this time cause one request, in milliseconds. */
const reloadDelay = 700;

export interface Fetched<T> {
  /** The last answer; null before the first one. */
  value: T | null;
  error: string;
  /** The object does not exist. */
  missing: boolean;
  /** Nothing was observed of it at the moment: the end of that time; empty otherwise. */
  gap: string;
  /** The value is that of another moment, while the current one loads. */
  outdated: boolean;
}

/** Loads the object at an API path, at a moment of the past if given, and again when `version` changes. A list may have a field selector. */
export function useObject<T>(of: string, at: string, version: unknown, fieldSelector = ''): Fetched<T> {
  const [state, set] = useState<{ path: string; at: string; value: T | null; error: string; missing: boolean; gap: string }>({ path: '', at: '', value: null, error: '', missing: false, gap: '' });
  const path = `${of}${fieldSelector && ` ${fieldSelector}`}`;
  const current = state.path === path && state.at === at;
  useEffect(() => {
    if (!of) return;
    const stop = new AbortController();
    const load = (): void => {
      getJSON<T>(of, at, stop.signal, { query: fieldSelector ? { fieldSelector } : {} }).then(
        (value) => set({ path, at, value, error: '', missing: false, gap: '' }),
        (error: Error) => stop.signal.aborted || set((old) => ({ path, at, value: old.path === path && old.at === at ? old.value : null, error: error.message, missing: error instanceof ApiError && error.code === 404, gap: error instanceof ApiError ? gapEnd(error.details) : '' })),
      );
    };
    const timer = setTimeout(load, current ? reloadDelay : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, at, version]);
  // While another moment loads, keep the elements of the last one, and with them the focus and the scroll position.
  return state.path === path
    ? { value: state.value, error: current ? state.error : '', missing: current && state.missing, gap: current ? state.gap : '', outdated: !current }
    : { value: null, error: '', missing: false, gap: '', outdated: false };
}

/** The API path of an object of a core kind or of a workload. */
export function pathOf(kind: string, apiVersion: string, namespace: string, name: string): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = `${kind.toLowerCase()}s`;
  return kind === 'Node' ? `${base}/${plural}/${name}` : `${base}/namespaces/${namespace}/${plural}/${name}`;
}
