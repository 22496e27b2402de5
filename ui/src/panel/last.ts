// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The last recorded state of an object that no longer exists at a moment. */

import { useEffect, useState } from 'preact/hooks';
import { history, type Change } from '../time/history';
import { nextVersion } from '../time/playback';
import { when, zoned, type When } from '../time/words';

/** What the history knows of an object that does not exist at a moment. */
export interface Last<T> {
  /** Its last state before the moment, and its deletion; null if none is recorded. */
  was: { object: T; deletion: Change } | null;
  /** When it was created after the moment; null if that is not recorded. */
  created: When | null;
}

/** Asks the history about an object that is `missing` at a moment; undefined until it answers. */
export function useLast<T>(path: string, at: string, missing: boolean): Last<T> | undefined {
  const [state, set] = useState<{ path: string; at: string; last: Last<T> } | null>(null);
  useEffect(() => {
    if (!missing) {
      set(null);
      return;
    }
    const stop = new AbortController();
    lookBack<T>(path, at, stop.signal).then(
      (last) => set({ path, at, last }),
      () => stop.signal.aborted || set({ path, at, last: { was: null, created: null } }),
    );
    return () => stop.abort();
  }, [path, at, missing]);
  return state?.path === path && state.at === at ? state.last : undefined;
}

async function lookBack<T>(path: string, at: string, signal: AbortSignal): Promise<Last<T>> {
  const change = await history.last(path, at, signal);
  const object = (change?.before ?? change?.object) as T | undefined;
  if (change?.type === 'DELETED' && object) return { was: { object, deletion: change }, created: null };
  const next = at ? await nextVersion(history, path, at, 1, signal) : undefined;
  return { was: null, created: next?.type === 'ADDED' ? next : null };
}

/** Says what is known of an object that was not found. `last` is undefined while its history loads; `known` is whether a version of it is shown. */
export function gone(last: Last<unknown> | undefined, known: boolean, past: boolean): string {
  if (known) return 'Deleted. This is its last known version.';
  if (!last) return 'Not found: looking for its last recorded state.';
  if (last.created) return `It did not exist yet at this moment: it was created at ${when(last.created, zoned)}.`;
  return past ? 'It did not exist at this moment, and nothing of it is recorded before.' : 'Not found, and nothing of it is recorded: check the name.';
}
