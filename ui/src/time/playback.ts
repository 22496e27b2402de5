// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The shown moment, and how it moves: steps, jumps and playback. */

import { computed, signal } from '@preact/signals';
import { continuing } from '../app/address';
import { now } from '../app/now';
import { marks, mode, pathOf, range, selection } from '../app/state';
import type { Change, Counts, History } from './history';

export const SPEEDS = [1, 10, 60, 600] as const;

/** The playback speed. */
export const speed = signal<number>(60);
/** When playback started, in milliseconds since 1970. */
const began = signal(0);
/** Incremented during playback. */
export const tick = signal(0);
/** Whether the gateway has a history. */
export const recorded = signal(false);
/** When the recording starts, in milliseconds since 1970; 0 before that is known. */
export const recordedFrom = signal(0);
/** The length of the strip's time range, in milliseconds. */
export const span = signal(3600_000);
/** The right end of the strip, in milliseconds since 1970; 0 while it follows now. */
export const edge = signal(0);
/** The strip's time range. */
export const stripRange = (): { from: number; to: number } => {
  const to = edge.value || now();
  return { from: to - span.value, to };
};
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

/** Shows the state at a resourceVersion, at its time if that is known. */
export function showRV(at: string, time = 0): void {
  mode.value = { at, time, speed: 0 };
}

/** What says where a change is in time. */
type Placed = Pick<Change, 'resourceVersion' | 'time' | 'notBefore' | 'inferred'>;

/**
 * A change that was not observed has a resourceVersion inside the gap. That is no moment of the other resources, so it is shown at the
 * end of the gap.
 */
const isUnobserved = ({ notBefore, inferred }: Placed): boolean => notBefore !== undefined || inferred === true;

/** A change as a moment, as /at takes it. */
export const momentOf = (change: Placed): string => (isUnobserved(change) ? new Date(change.time).toISOString() : `rv:${change.resourceVersion}`);

/** When a change is shown, in milliseconds since 1970: after a gap, when the board is known again. */
async function settledAt(change: Placed): Promise<number> {
  const time = Date.parse(change.time);
  if (!isUnobserved(change)) return time;
  try {
    const { knownMoments } = await import('../kinds');
    return (await knownMoments({ at: '', time, speed: 0 })).find((known) => known >= time) ?? time;
  } catch {
    return time; // the page says why it cannot be shown
  }
}

/** Shows the state after a change. `around` makes it part of something. */
export async function showChange(change: Placed, around = (show: () => void): void => show()): Promise<void> {
  if (!isUnobserved(change)) return around(() => showRV(momentOf(change), Date.parse(change.time)));
  const time = await settledAt(change);
  around(() => goTo(time));
}

export function toLive(): void {
  mode.value = null;
  range.value = null;
  edge.value = 0;
}

/** Starts or pauses playback at the shown moment. In the live view it starts at the left end of the strip. */
export function togglePlay(): void {
  const at = mode.value;
  if (!recorded.value) return;
  if (at?.speed) {
    continuing(() => goTo(playhead.value));
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
  return Math.max(stripRange().from, spans.length ? Math.min(...spans) + 1000 : 0);
}

/** Changes the playback speed. */
export function setSpeed(to: number): void {
  speed.value = to;
  if (!mode.value?.speed) return;
  const time = playhead.value;
  began.value = Date.now();
  continuing(() => (mode.value = { at: new Date(time).toISOString(), time, speed: to }));
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

/** Why the last step went nowhere; empty after a while. */
export const stepMessage = signal('');

/**
 * Goes to the previous or the next change of the board, or of the `selected` object if
 * there is one; after the last change, to now.
 */
export async function step(history: History, direction: -1 | 1, selected = false): Promise<void> {
  const counts = shownCounts.value;
  if (!counts || (direction > 0 && !mode.value)) return;
  const from = playhead.value || now() - minAge;
  const abort = new AbortController().signal;
  const sel = selected ? selection.value : null;
  if (sel) {
    const rv = mode.value?.at.match(/^rv:(\d+)$/)?.[1];
    let change = await nextVersion(history, pathOf(sel), from, direction, abort, rv);
    // It may be shown no earlier than the shown moment.
    while (change && direction < 0 && isUnobserved(change) && (await settledAt(change)) >= from) change = await nextVersion(history, pathOf(sel), Date.parse(change.time), direction, abort);
    if (change) await showChange(change, continuing);
    else if (direction > 0) toLive();
    else say(`No earlier change of ${sel.name} is recorded`);
    return;
  }
  const at = await nextChange(history, counts, from, direction, abort);
  if (at) continuing(() => goTo(at));
  else if (direction > 0) toLive();
  else say('No earlier change in the time range of the strip');
}

function say(words: string): void {
  stepMessage.value = words;
  setTimeout(() => stepMessage.value === words && (stepMessage.value = ''), 2500);
}

/**
 * The previous (-1) or the next (1) change of an object, without minor ones; undefined if
 * there is none. Several changes may have one time: `rv` tells which of them is shown.
 */
export async function nextVersion(history: History, path: string, moment: number | string, direction: -1 | 1, abort: AbortSignal, rv = ''): Promise<Change | undefined> {
  // A moment as /at takes it may have no time.
  const text = typeof moment === 'string' ? moment : new Date(moment).toISOString();
  const from = typeof moment === 'string' ? Date.parse(moment) || 0 : moment;
  const within = direction < 0 ? { until: text } : { since: text };
  const after = (item: Change): number => Date.parse(item.time) - from || (rv ? Number(BigInt(item.resourceVersion) - BigInt(rv)) : 0);
  let found: Change | undefined;
  let more = '';
  do {
    // The newest first: the next one is the last that is after the moment.
    const page = await history.versions(path, more, abort, within);
    for (const item of page.items) {
      if (item.type === 'FOLDED' || direction * after(item) <= 0) continue;
      found = item;
      if (direction < 0) return found;
    }
    more = page.more;
  } while (more);
  return found;
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
