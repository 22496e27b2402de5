// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What fails and is not on the board: rollouts, quotas, autoscalers, Jobs, claims, what is stuck in its deletion. */

import { batch, signal } from '@preact/signals';
import { extensionURL, request } from './api';
import type { Finding } from './attention';
import { lost } from './contact';

/** The time between two questions while the page is live, in milliseconds, and how many times as long as an answer it is at least: one reads all objects. */
const period = 10_000;
const times = 20;
/** How long a moment of the past is looked at before its findings are read, in milliseconds: the moments that somebody only passes would have to wait for each other. */
const settled = 1000;
/** In how many namespaces findings are asked for if the reader may not see all. */
const maxNamespaces = 10;

/** The last answer; null before the first one, and if the gateway gives none. */
export const findings = signal<Finding[] | null>(null);
/** Whether the findings have all Jobs that failed: in each namespace they are recorded, and may be listed. */
export const jobsFound = signal(false);

interface Answer {
  items: Finding[];
  denied?: string[];
  notRecorded?: string[];
}

/** Requests the findings at a moment as /at takes it, or now if that is empty. */
async function loadFindings(at: string, namespaces: string[] | null, signal: AbortSignal): Promise<void> {
  let all: Finding[] | null = [];
  let jobs = !namespaces || namespaces.length <= maxNamespaces;
  for (const namespace of namespaces?.slice(0, maxNamespaces) ?? ['']) {
    try {
      const response = await request(extensionURL('findings', { ...(at && { at }), ...(namespace && { namespace }) }), { signal });
      const answer = response.ok ? ((await response.json()) as Answer) : null;
      all = answer && [...(all ?? []), ...answer.items];
      jobs &&= ![...(answer?.denied ?? []), ...(answer?.notRecorded ?? [])].includes('jobs.batch');
    } catch {
      all = null; // nothing is recorded, or there is no contact: the list has what the board shows
    }
    if (!all) break;
  }
  if (namespaces && namespaces.length > maxNamespaces && all?.length === 0) all = null; // not all were checked
  // Without contact, the last ones are as good as the board.
  if (signal.aborted || (!all && lost.peek())) return;
  batch(() => {
    findings.value = all;
    jobsFound.value = all !== null && jobs;
  });
}

/** Requests the findings, of a moment once it is looked at, and now again and again, until the returned function is called. */
export function followFindings(at: string, namespaces: string[] | null): () => void {
  const stop = new AbortController();
  let timer = 0;
  const ask = async (): Promise<void> => {
    const began = performance.now();
    if (!document.hidden) await loadFindings(at, namespaces, stop.signal);
    if (!at && !stop.signal.aborted) timer = window.setTimeout(() => void ask(), Math.max(period, times * (performance.now() - began)));
  };
  if (at) timer = window.setTimeout(() => void ask(), settled);
  else void ask();
  return () => {
    stop.abort();
    clearTimeout(timer);
  };
}
