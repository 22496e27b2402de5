// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The nearest moments at which the state of some resources is known. */

interface Point {
  resourceVersion: string;
  time: string;
}

/** What is recorded, as /watchkeeper/v1/history says it. */
export interface Index {
  /** The present, or the end of a finished recording. */
  now: string;
  recording: { state: string };
  /** Absent in a finished recording. */
  upstream?: { answers: boolean };
  resources: Recorded[];
}

export interface Recorded {
  resource: string;
  /** The newest gaps of each epoch, and how many older ones there are. */
  epochs: { span: { from: Point; to: Point }; gaps: { from: Point; to: Point }[]; moreGaps?: number }[];
}

interface Span {
  from: number;
  to: number;
}

/** When the state of a resource is known, the oldest first. */
export function knownSpans({ epochs }: Recorded, { now, recording, upstream }: Omit<Index, 'resources'>): Span[] {
  const followed = recording.state === 'ended' || (recording.state === 'on' && upstream?.answers === true);
  const newest = Math.max(...epochs.map(({ span }) => Date.parse(span.to.time)));
  const spans = epochs.flatMap(({ span, gaps, moreGaps = 0 }) => {
    const end = Date.parse(span.to.time);
    const sorted = gaps.map(({ from, to }) => ({ from: Date.parse(from.time), to: Date.parse(to.time) })).sort((a, b) => a.from - b.from);
    const out: Span[] = [];
    let from = moreGaps && sorted.length ? sorted[0].from : Date.parse(span.from.time);
    for (const gap of sorted) {
      if (gap.from >= from) out.push({ from, to: gap.from });
      from = Math.max(from, gap.to);
    }
    return [...out, { from, to: end === newest && followed ? Date.parse(now) : Math.max(from, end) }];
  });
  return spans.sort((a, b) => a.from - b.from);
}

/** A time in the gap that a resourceVersion is in; 0 before the record of the resources, Infinity after it. */
export function timeOf(rv: bigint, resources: Recorded[]): number {
  const epochs = resources.flatMap((one) => one.epochs);
  const gap = epochs.flatMap(({ gaps }) => gaps).find(({ from, to }) => BigInt(from.resourceVersion) < rv && rv < BigInt(to.resourceVersion));
  if (gap) return (Date.parse(gap.from.time) + Date.parse(gap.to.time)) / 2;
  return epochs.some(({ span }) => rv < BigInt(span.from.resourceVersion)) ? 0 : Infinity;
}

/** The last moment before a time and the first after it at which all resources are known: one, two, or none. */
export function nearestKnown(time: number, all: Span[][]): number[] {
  const before = agree(time, all.map((spans) => (t: number) => Math.max(-Infinity, ...spans.map(({ from, to }) => (from <= t ? Math.min(t, to) : -Infinity)))));
  const after = agree(time, all.map((spans) => (t: number) => Math.min(Infinity, ...spans.map(({ from, to }) => (to >= t ? Math.max(t, from) : Infinity)))));
  return [...new Set([before, after])].filter(Number.isFinite);
}

/** Moves a time as each function does until none does. */
function agree(time: number, moves: ((t: number) => number)[]): number {
  for (;;) {
    const next = moves.reduce((t, move) => move(t), time);
    if (next === time || !Number.isFinite(next)) return next;
    time = next;
  }
}
