// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The shown moment, and how it moves: steps, jumps and playback. */

import { computed, signal } from '@preact/signals';
import { now } from '../app/now';
import { marks, mode, range } from '../app/state';
import type { Counts, History } from './history';

export const SPEEDS = [1, 10, 60, 600] as const;

/** The playback speed. */
export const speed = signal<number>(60);
/** When playback started, in milliseconds since 1970. */
const began = signal(0);
/** Incremented during playback. */
export const tick = signal(0);
/** Whether the gateway has a history. */
export const recorded = signal(false);
/** The length of the strip's time range, in milliseconds. */
export const span = signal(3600_000);
/** The counts that the strip shows; null before they are loaded. */
export const shownCounts = signal<Counts | null>(null);

/** The shown moment, in milliseconds since 1970; 0 for now. */
export const playhead = computed(() => {
  void tick.value;
  const at = mode.value;
  if (!at) return 0;
  return at.speed ? at.time + (Date.now() - began.value) * at.speed : at.time;
});

/** A moment closer to now than this counts as now, in milliseconds. */
const minAge = 500;

/** Shows a moment. A moment in the future is now. */
export function goTo(time: number): void {
  if (time >= now() - minAge) {
    toLive();
    return;
  }
  mode.value = { at: new Date(time).toISOString(), time, speed: 0 };
}

export function toLive(): void {
  mode.value = null;
  range.value = null;
}

/** Starts or pauses playback at the shown moment. In the live view it starts at the left end of the strip. */
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

/** The first recorded moment in the strip's range. */
function beginning(): number {
  const counts = shownCounts.value;
  const spans = counts?.resources.filter((r) => r.resource === 'pods').flatMap((r) => r.spans.map((s) => Date.parse(s.from))) ?? [];
  // A second later, when all resources of the board are recorded.
  return Math.max(now() - span.value, spans.length ? Math.min(...spans) + 1000 : 0);
}

/** Changes the playback speed. */
export function setSpeed(to: number): void {
  speed.value = to;
  if (!mode.value?.speed) return;
  const time = playhead.value;
  began.value = Date.now();
  mode.value = { at: new Date(time).toISOString(), time, speed: to };
}

/** Advances playback. When it reaches now, the view becomes live. */
export function advance(): void {
  if (!mode.value?.speed) return;
  if (playhead.value >= now() - minAge) toLive();
  else tick.value++;
}

/** Marks the shown moment, or removes its mark. */
export function toggleMark(): void {
  const at = Math.round(playhead.value || now());
  const near = marks.value.find((m) => Math.abs(m - at) < 500);
  marks.value = near ? marks.value.filter((m) => m !== near) : [...marks.value, at].sort((a, b) => a - b);
}

/** Goes to the previous or the next change; after the last change, to now. Returns whether there was a change. */
export async function step(history: History, direction: -1 | 1): Promise<boolean> {
  const counts = shownCounts.value;
  if (!counts || (direction > 0 && !mode.value)) return false;
  const at = await nextChange(history, counts, playhead.value || now() - minAge, direction, new AbortController().signal);
  if (at) goTo(at);
  else if (direction > 0) toLive();
  return at > 0;
}

/** The number of changes in a bin. */
export const total = (counts: Counts, bin: number): number =>
  counts.resources.reduce((n, r) => n + r.added[bin] + r.modified[bin] + r.deleted[bin], 0);

/** The resources of the board. Steps go to their changes. */
export const ON_BOARD = ['pods', 'nodes'] as const;

/** The time of the previous (-1) or the next (1) change in the strip's range, or after its counts were loaded; 0 if there is none. */
export async function nextChange(history: History, counts: Counts, from: number, direction: -1 | 1, abort: AbortSignal): Promise<number> {
  const start = Date.parse(counts.from);
  const end = Date.parse(counts.to);
  const size = counts.binSeconds * 1000;
  const search = async (since: number, until: number): Promise<number> => {
    const lower = direction > 0 ? Math.max(since, from + 1) : since;
    const upper = direction < 0 ? Math.min(until, from) : until;
    return lower < upper ? first(history, lower, upper, direction, abort) : 0;
  };
  if (direction < 0) {
    const at = await search(end, from);
    if (at) return at;
  }
  const binOf = Math.floor((from - start) / size);
  for (let bin = Math.min(Math.max(binOf, 0), counts.bins - 1); bin >= 0 && bin < counts.bins; bin += direction) {
    if (total(counts, bin) === 0) continue;
    const at = await search(start + bin * size, start + (bin + 1) * size);
    if (at) return at;
  }
  return direction > 0 ? search(end, now()) : 0;
}

/** The time of the first (1) or the last (-1) change in a range; 0 if there is none. */
async function first(history: History, from: number, to: number, direction: -1 | 1, abort: AbortSignal): Promise<number> {
  let found = 0;
  let more = '';
  do {
    // The API lists the newest first: the oldest is on the last page.
    const page = await history.changes(from, to, direction < 0 ? 1 : 1000, abort, ON_BOARD, more);
    const times = page.items.map((c) => Date.parse(c.time)).filter((t) => t >= from && t < to);
    if (times.length) found = direction > 0 ? Math.min(...times) : Math.max(...times);
    more = page.more;
  } while (more && (direction > 0 || !found));
  return found;
}
