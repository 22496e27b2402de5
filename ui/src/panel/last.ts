// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The last recorded state of an object that no longer exists at a moment. */

import { useEffect, useState } from 'preact/hooks';
import { history } from '../time/history';

export interface Last<T> {
  object: T;
  /** When it was deleted, in milliseconds since 1970. */
  deleted: number;
}

/** Loads the last state of an object that is `missing` at a moment; undefined until it is known, null if none is recorded. */
export function useLast<T>(path: string, at: string, missing: boolean): Last<T> | null | undefined {
  const [state, set] = useState<{ path: string; at: string; last: Last<T> | null } | null>(null);
  useEffect(() => {
    if (!missing) {
      set(null);
      return;
    }
    const stop = new AbortController();
    history.last(path, at, stop.signal).then(
      (change) => {
        const object = (change?.before ?? change?.object) as T | undefined;
        set({ path, at, last: change?.type === 'DELETED' && object ? { object, deleted: Date.parse(change.time) } : null });
      },
      () => stop.signal.aborted || set({ path, at, last: null }),
    );
    return () => stop.abort();
  }, [path, at, missing]);
  return state?.path === path && state.at === at ? state.last : undefined;
}
