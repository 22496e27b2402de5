// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Since when Pods fail, from the history: a Pod's own status begins again with each restart. */

import { signal } from '@preact/signals';
import { askJSON, extensionURL } from './api';
import type { Termination } from '../data/crash';

/** The answer of /watchkeeper/v1/history/failing. */
export interface Failing {
  failing: boolean;
  /** The Pod terminates, and failed until its deletion was requested: `since` is of that. */
  failedBefore?: boolean;
  since?: string;
  /** Absent if it failed before the recording starts; `since` is then the start. */
  sinceKnown?: boolean;
  /** The begin of the time without observation that ends at `since`, if there is one. */
  notBefore?: string;
  restarts?: number;
  containers?: (Termination & { name: string; restarts?: number; state?: string; waiting?: string })[] | null;
  node?: string;
  phase?: string;
  reason?: string;
  message?: string;
  unschedulable?: PodCondition;
  disruption?: PodCondition;
  /** What is found of a Pod that does not fail: of one that terminates, since its deletion was first requested. */
  finding?: { title: string; since?: string };
}

/** Why a condition of a Pod has its status, and since when. */
interface PodCondition {
  since?: string;
  reason?: string;
  message?: string;
}

/** Whether `since` is when it began, and not only the first time when it was observed. */
export const exactly = ({ sinceKnown, notBefore }: Pick<Failing, 'sinceKnown' | 'notBefore'>): boolean => sinceKnown === true && !notBefore;

/** Discards the answers: they were for another reader. */
export function forgetFailing(): void {
  asked.clear();
  known.value = new Map();
}

/** Requests it for the Pod at an API path, at a moment as /at takes it, or now if that is empty. */
export const loadFailing = async (path: string, at: string, signal?: AbortSignal): Promise<Failing> => askJSON(extensionURL(`history/failing${path}`, at ? { at } : {}), signal);

/** How many requests for lists run at a time, and how many answers are kept. */
const maxRunning = 2;
const maxKept = 500;

const known = signal(new Map<string, Failing>());
/** The version of each Pod for which the answer was requested last. */
const asked = new Map<string, string>();
const waiting: (() => Promise<void>)[] = [];
let running = 0;

/**
 * The last answer for a Pod at a moment, for lists; undefined before the first one, or
 * without a history. It is requested again when `version` changes. A component that reads
 * it renders again when there is an answer.
 */
export function failingOf(path: string, at: string, version: string): Failing | undefined {
  const key = `${at} ${path}`;
  if (asked.get(key) !== version) {
    if (asked.size >= maxKept) {
      asked.clear();
      known.value = new Map();
    }
    asked.set(key, version);
    waiting.push(async () => {
      try {
        const answer = await loadFailing(path, at);
        known.value = new Map(known.peek()).set(key, answer);
      } catch {
        // Not recorded: the list shows what the Pod's status says.
      }
    });
    next();
  }
  return known.value.get(key);
}

function next(): void {
  while (running < maxRunning && waiting.length) {
    running++;
    void waiting.shift()!().then(() => {
      running--;
      next();
    });
  }
}
