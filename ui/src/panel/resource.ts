// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Whole objects, asked for when they are shown, and again when the board hears that they changed. */

import { useEffect, useState } from 'preact/hooks';
import { getJSON } from '../app/api';

/** Changes that come close together are one reason to ask again, not several. In milliseconds. */
const PACE = 700;

export interface Fetched<T> {
  /** The last answer; null before the first one. */
  value: T | null;
  error: string;
  /** The answer is of another moment: that of the current one is not there yet. */
  outdated: boolean;
}

/** What is at an API path, at a moment if there is one. `version` says when to ask again. */
export function useObject<T>(path: string, at: string, version: unknown): Fetched<T> {
  const [state, set] = useState<{ path: string; at: string; value: T | null; error: string }>({ path: '', at: '', value: null, error: '' });
  const current = state.path === path && state.at === at;
  useEffect(() => {
    if (!path) return;
    const stop = new AbortController();
    const ask = (): void => {
      getJSON<T>(path, at, stop.signal).then(
        (value) => set({ path, at, value, error: '' }),
        (error: Error) => stop.signal.aborted || set((old) => ({ path, at, value: old.path === path && old.at === at ? old.value : null, error: error.message })),
      );
    };
    const timer = setTimeout(ask, current ? PACE : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, at, version]);
  // While another moment loads, the elements of the last one stay, and with them the focus and the scroll position.
  return state.path === path ? { value: state.value, error: current ? state.error : '', outdated: !current } : { value: null, error: '', outdated: false };
}

/** Where an object of the core kinds and of those that own Pods is. */
export function pathOf(kind: string, apiVersion: string, namespace: string, name: string): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = `${kind.toLowerCase()}s`;
  return kind === 'Node' ? `${base}/${plural}/${name}` : `${base}/namespaces/${namespace}/${plural}/${name}`;
}
