// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What /watchkeeper/v1/history answers, as far as the page reads it. */

import { apiError, extension } from '../app/api';

export interface TimeSpan {
  from: string;
  to: string;
}

/** Changes per bin; `from` is the begin of the first bin. */
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
    /** What is retained inside of the range, and what of it was not observed. */
    spans: TimeSpan[];
    gaps: TimeSpan[];
  }[];
}

export interface Change {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'INITIAL' | 'FOLDED';
  resourceVersion: string;
  time: string;
  inferred?: boolean;
  summary: string[] | null;
  by?: { manager: string }[];
  folded?: { count: number; oldest: { resourceVersion: string; time: string } };
}

export interface Versions {
  items: Change[];
  continue?: string;
}

export interface ObjectChange extends Change {
  resource: string;
  path: string;
  kind: string;
  namespace?: string;
  name: string;
}

/** Where the strip has its data from; a test gives it another. */
export interface History {
  counts(from: number, to: number, signal: AbortSignal): Promise<Counts>;
  changes(from: number, to: number, limit: number, signal: AbortSignal): Promise<ObjectChange[]>;
  versions(path: string, more: string, signal: AbortSignal): Promise<Versions>;
  /** Whether anything is recorded; if not, why. `first` is since when, `end` until when, of a recording that stands still; 0 otherwise. */
  state(signal: AbortSignal): Promise<{ on: boolean; reason: string; first: number; end: number }>;
}

const time = (ms: number): string => new Date(ms).toISOString();

async function ask<T>(path: string, query: Record<string, string> | [string, string][], signal: AbortSignal): Promise<T> {
  const response = await fetch(new URL(`history${path}?${new URLSearchParams(query)}`, extension()), { signal });
  if (!response.ok) throw await apiError(response);
  return (await response.json()) as T;
}

/** The history as the gateway serves it. */
export const history: History = {
  counts: (from, to, signal) => ask('/counts', [['from', time(from)], ['to', time(to)], ['resource', 'pods'], ['resource', 'nodes']], signal),
  changes: async (from, to, limit, signal) =>
    (await ask<{ items: ObjectChange[] }>('/changes', [['from', time(from)], ['to', time(to)], ['limit', String(limit)]], signal)).items,
  versions: (path, more, signal) => ask(`/versions${path}`, more ? { continue: more } : {}, signal),
  async state(signal) {
    const index = await ask<{
      recording: { state: string; reason?: string };
      resources: { resource: string; epochs: { span: { from: { time?: string }; to: { time?: string } } }[] }[];
    }>('', {}, signal);
    const first = index.resources.filter((r) => r.resource === 'pods').flatMap((r) => r.epochs.map((e) => Date.parse(e.span.from.time ?? ''))).filter(Number.isFinite);
    const last = index.resources.flatMap((r) => r.epochs.map((e) => Date.parse(e.span.to.time ?? ''))).filter(Number.isFinite);
    const end = index.recording.state === 'ended' ? Math.max(0, ...last) : 0;
    return { on: index.recording.state === 'on' || first.length > 0, reason: index.recording.reason ?? '', first: Math.min(...first, Date.now()), end };
  },
};
