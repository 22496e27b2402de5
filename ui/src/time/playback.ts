// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Where in time the page is, and how it gets from there to elsewhere. */

import { computed, signal } from '@preact/signals';
import { now } from '../app/now';
import { mode } from '../app/state';
import type { Counts, History } from './history';

export const SPEEDS = [1, 10, 60, 600] as const;

/** How fast it plays when it plays. */
export const speed = signal<number>(60);
/** When it began to play, by the page's clock. */
const began = signal(0);
/** Counts up while it plays. */
export const tick = signal(0);
/** What was marked, in milliseconds since 1970. */
export const marks = signal<number[]>([]);
/** A range that was chosen. */
export const range = signal<{ from: number; to: number } | null>(null);

/** The moment that is shown, in milliseconds since 1970; 0 for now. */
export const playhead = computed(() => {
  void tick.value;
  const at = mode.value;
  if (!at) return 0;
  return at.speed ? at.time + (Date.now() - began.value) * at.speed : at.time;
});

/** Shows a moment. What lies ahead is now. */
export function goTo(time: number): void {
  if (time >= now() - 500) {
    toLive();
    return;
  }
  mode.value = { at: new Date(time).toISOString(), time, speed: 0 };
}

export function toLive(): void {
  mode.value = null;
  range.value = null;
}

/** Plays on from the moment that is shown, or stops there. */
export function togglePlay(): void {
  const at = mode.value;
  if (!at) return;
  if (at.speed) {
    goTo(playhead.value);
    return;
  }
  began.value = Date.now();
  mode.value = { ...at, speed: speed.value };
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
  if (playhead.value >= now() - 500) toLive();
  else tick.value++;
}

/** Marks the moment that is shown, or takes the mark away. */
export function toggleMark(): void {
  const at = playhead.value;
  if (!at) return;
  const near = marks.value.find((m) => Math.abs(m - at) < 500);
  marks.value = near ? marks.value.filter((m) => m !== near) : [...marks.value, at].sort((a, b) => a - b);
}

/** Changes in a bin, of all kinds. */
export const total = (counts: Counts, bin: number): number =>
  counts.resources.reduce((n, r) => n + r.added[bin] + r.modified[bin] + r.deleted[bin], 0);

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
    // The API has the newest first.
    const changes = await history.changes(lower, upper, way < 0 ? 1 : 1000, abort);
    const times = changes.map((c) => Date.parse(c.time)).filter((t) => (way > 0 ? t > from : t < from));
    if (times.length) return way > 0 ? Math.min(...times) : Math.max(...times);
  }
  return 0;
}
