// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Which time the story of an object is told of, and its requests. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, askJSON, extensionURL } from '../app/api';
import type { Story } from './story';

/** How long before its end a story can begin, in seconds. */
export const LENGTHS = [600, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600] as const;

/** How long the story of a deleted object goes on, in milliseconds: to what its deletion caused. */
const maxTrail = 60_000;

/** A story is asked for at most this often, in milliseconds, and so that writing it takes at most a tenth of the time. */
export const minPause = 5000;
/** What belongs to an object may change without it: a live story is told again after this time, in milliseconds. */
export const maxPause = 30_000;

/** What decides about the time of a story. Times are in milliseconds since 1970. */
export interface Window {
  range: { from: number; to: number } | null;
  /** The shown moment, and as /at takes it; 0 and empty for now. That of a resourceVersion may have no time. */
  moment: number;
  at: string;
  /** When the object was deleted before that; 0 if it was not. */
  deleted: number;
  /** How long before its end it begins, in seconds. */
  length: number;
}

/** The parameters of a story: of the selected range, or up to the shown moment. */
export function storyQuery({ range, moment, at, deleted, length }: Window): Record<string, string> {
  const iso = (ms: number): string => new Date(ms).toISOString();
  if (range) return { since: iso(Math.floor(range.from)), until: iso(Math.ceil(range.to)) };
  const end = deleted ? Math.min(moment || Infinity, deleted + maxTrail) : moment;
  if (end) return { since: iso(end - 1000 * length), until: iso(end) };
  return at ? { until: at } : { since: `${length}s` };
}

/** How long to wait after an answer that took some time, in milliseconds. */
export const pauseAfter = (took: number): number => Math.max(minPause, 10 * took);

/** Why there is no story, in words. */
export function refusal(error: Error): string {
  const message = error.message.charAt(0).toUpperCase() + error.message.slice(1);
  if (!(error instanceof ApiError)) return message;
  if (error.code === 410 || error.message.startsWith('Nothing is recorded of it')) return message;
  if (error.code === 403) return `You may not read this story: ${error.message}`;
  if (error.code === 404) return `There is no story: ${error.message}`;
  return error.code >= 500 ? `The story cannot be told now: ${error.message}` : message;
}

const loadStory = async (path: string, query: Record<string, string>, signal: AbortSignal): Promise<Story> => askJSON(extensionURL(`story${path}`, query), signal);

export interface Loaded {
  /** The last answer; null before the first one. */
  story: Story | null;
  error: string;
  /** The story is that of another time, while the current one loads. */
  outdated: boolean;
}

/**
 * Loads the story of an object, and again when `key` changes, which names the time that `query`
 * asks about. If that time moves, it is loaded again when `version` changes, and at the latest
 * after `within` milliseconds; 0 if it does not move. After an error, it is in any case.
 */
export function useStory(path: string, key: string, query: () => Record<string, string>, within: number, version: unknown): Loaded {
  const [state, set] = useState<{ key: string; story: Story | null; error: string }>({ key: '', story: null, error: '' });
  const changed = useRef(false);
  useEffect(() => {
    changed.current = true;
  }, [version]);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const load = async (): Promise<void> => {
      changed.current = false;
      const began = performance.now();
      let failed = false;
      try {
        const story = await loadStory(path, query(), stop.signal);
        set({ key, story, error: '' });
      } catch (error) {
        if (stop.signal.aborted) return;
        failed = true;
        set((old) => ({ key, story: old.key === key ? old.story : null, error: refusal(error as Error) }));
      }
      const answered = performance.now();
      const look = (): void => {
        const due = changed.current || performance.now() - answered >= (within || maxPause);
        if (due && !document.hidden) void load();
        else timer = setTimeout(look, 1000);
      };
      if (within || failed) timer = setTimeout(look, pauseAfter(answered - began));
    };
    void load();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, key]);
  return { story: state.story, error: state.key === key ? state.error : '', outdated: state.key !== '' && state.key !== key };
}
