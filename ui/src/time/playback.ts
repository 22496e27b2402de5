// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Where in time the page is, and how it gets from there to elsewhere. */

import { computed, signal } from '@preact/signals';
import { now } from '../app/now';
import { marks, mode, range } from '../app/state';
import type { Counts, History } from './history';

export const SPEEDS = [1, 10, 60, 600] as const;

/** How fast it plays when it plays. */
export const speed = signal<number>(60);
/** When it began to play, by the page's clock. */
const began = signal(0);
/** Counts up while it plays. */
export const tick = signal(0);
/** Whether there is a history to go back in. */
export const recorded = signal(false);
/** How much time the strip shows, in milliseconds; the reader's wheel changes it. */
export const span = signal(3600_000);
/** What the strip knows of that time; null before it has asked. */
export const shownCounts = signal<Counts | null>(null);

/** The moment that is shown, in milliseconds since 1970; 0 for now. */
export const playhead = computed(() => {
  void tick.value;
  const at = mode.value;
  if (!at) return 0;
  return at.speed ? at.time + (Date.now() - began.value) * at.speed : at.time;
});

/** What is no longer ago than this, in milliseconds, is now. */
const NOW = 500;

/** Shows a moment. What lies ahead is now. */
export function goTo(time: number): void {
  if (time >= now() - NOW) {
    toLive();
    return;
  }
  mode.value = { at: new Date(time).toISOString(), time, speed: 0 };
}

export function toLive(): void {
  mode.value = null;
  range.value = null;
}

/** Plays on from the moment that is shown, or stops there; from now, what the strip shows is played from its begin. */
export function togglePlay(): void {
  const at = mode.value;
  if (!recorded.value) return;
  if (at?.speed) {
    goTo(playhead.value);
    return;
  }
  began.value = Date.now();
  const time = at?.time || beginning();
  mode.value = at?.time ? { ...at, speed: speed.value } : { at: new Date(time).toISOString(), time, speed: speed.value };
}

/** Where what is recorded begins, of what the strip shows. */
function beginning(): number {
  const counts = shownCounts.value;
  const spans = counts?.resources.filter((r) => r.resource === 'pods').flatMap((r) => r.spans.map((s) => Date.parse(s.from))) ?? [];
  // A little later, when all that is on the board has begun.
  return Math.max(now() - span.value, spans.length ? Math.min(...spans) + 1000 : 0);
}

/** Plays at another speed from now on. */
export function setSpeed(to: number): void {
  speed.value = to;
  if (!mode.value?.speed) return;
  const time = playhead.value;
  began.value = Date.now();
  mode.value = { at: new Date(time).toISOString(), time, speed: to };
}

/** Called now and then while it plays: what has caught up with now is live. */
export function advance(): void {
  if (!mode.value?.speed) return;
  if (playhead.value >= now() - NOW) toLive();
  else tick.value++;
}

/** Marks the moment that is shown, or takes the mark away. */
export function toggleMark(): void {
  const at = Math.round(playhead.value || now());
  const near = marks.value.find((m) => Math.abs(m - at) < 500);
  marks.value = near ? marks.value.filter((m) => m !== near) : [...marks.value, at].sort((a, b) => a - b);
}

/** Goes to the change before or after the moment that is shown; after the last one is now. Tells whether there was one. */
export async function step(history: History, way: -1 | 1): Promise<boolean> {
  const counts = shownCounts.value;
  if (!counts || (way > 0 && !mode.value)) return false;
  const at = await nextChange(history, counts, playhead.value || now() - NOW, way, new AbortController().signal);
  if (at) goTo(at);
  else if (way > 0) toLive();
  return at > 0;
}

/** Changes in a bin, of all kinds. */
export const total = (counts: Counts, bin: number): number =>
  counts.resources.reduce((n, r) => n + r.added[bin] + r.modified[bin] + r.deleted[bin], 0);

/** What is on the board, and so what there is to step by. */
export const ON_BOARD = ['pods', 'nodes'] as const;

/** When the change before (-1) or after (1) a moment was; 0 if there is none in what the strip shows. */
export async function nextChange(history: History, counts: Counts, from: number, way: -1 | 1, abort: AbortSignal): Promise<number> {
  const start = Date.parse(counts.from);
  const size = counts.binSeconds * 1000;
  const binOf = Math.floor((from - start) / size);
  for (let bin = Math.min(Math.max(binOf, 0), counts.bins - 1); bin >= 0 && bin < counts.bins; bin += way) {
    if (total(counts, bin) === 0) continue;
    const lower = way > 0 ? Math.max(from + 1, start + bin * size) : start + bin * size;
    const upper = way < 0 ? Math.min(from, start + (bin + 1) * size) : start + (bin + 1) * size;
    if (lower >= upper) continue;
    const at = await first(history, lower, upper, way, abort);
    if (at) return at;
  }
  return 0;
}

/** The first change in a range, seen from its begin (1) or its end (-1); 0 if there is none. */
async function first(history: History, from: number, to: number, way: -1 | 1, abort: AbortSignal): Promise<number> {
  let found = 0;
  let more = '';
  do {
    // The API has the newest first: the oldest is on the last page.
    const page = await history.changes(from, to, way < 0 ? 1 : 1000, abort, ON_BOARD, more);
    const times = page.items.map((c) => Date.parse(c.time)).filter((t) => t >= from && t < to);
    if (times.length) found = way > 0 ? Math.min(...times) : Math.max(...times);
    more = page.more;
  } while (more && (way > 0 || !found));
  return found;
}
