// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Whole objects, asked for when they are shown, and again when the board hears that they changed. */

import { useEffect, useState } from 'preact/hooks';
import { getJSON } from '../app/api';

/** Changes that come close together are one reason to ask again, not several. In milliseconds. */
const PACE = 700;

export interface Fetched<T> {
  /** What was answered last; null before the first answer. */
  value: T | null;
  error: string;
}

/** What is at an API path, at a moment if there is one. `version` says when to ask again. */
export function useObject<T>(path: string, at: string, version: unknown): Fetched<T> {
  const [state, set] = useState<Fetched<T> & { path: string }>({ path: '', value: null, error: '' });
  const key = `${at} ${path}`;
  useEffect(() => {
    if (!path) return;
    const stop = new AbortController();
    const ask = (): void => {
      getJSON<T>(path, at, stop.signal).then(
        (value) => set({ path: key, value, error: '' }),
        (error: Error) => stop.signal.aborted || set((old) => ({ path: key, value: old.path === key ? old.value : null, error: error.message })),
      );
    };
    const timer = setTimeout(ask, state.path === key ? PACE : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key, version]);
  return state.path === key ? state : { value: null, error: '' };
}

/** Where an object of the core kinds and of those that own Pods is. */
export function pathOf(kind: string, apiVersion: string, namespace: string, name: string): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = `${kind.toLowerCase()}s`;
  return kind === 'Node' ? `${base}/${plural}/${name}` : `${base}/namespaces/${namespace}/${plural}/${name}`;
}
