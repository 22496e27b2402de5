// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Describes the time under the pointer on the strip. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import { lost } from '../app/contact';
import { marks, range } from '../app/state';
import { eventWords, type EventMark } from './events';
import { shownCounts } from './playback';
import { unknownParts } from './plot';
import { holding } from './scrub';
import { clock, zoned } from './words';

export interface Pointed {
  /** The position on the strip in pixels, and its time in milliseconds since 1970. */
  x: number;
  time: number;
  /** Milliseconds per pixel. */
  perPixel: number;
  events: EventMark[];
  /** From when on all Events are loaded. */
  eventsSince: number;
}

/** Events within this many pixels of the pointer are described. */
const maxDistance = 5;

export function Hint({ pointed }: { pointed: Pointed }) {
  const element = useRef<HTMLDivElement>(null);
  const { x, time, perPixel, events, eventsSince } = pointed;
  useLayoutEffect(() => {
    const tip = element.current!;
    const strip = tip.parentElement!.getBoundingClientRect();
    const wide = tip.offsetWidth;
    let at = Math.min(Math.max(4, x - wide / 2), strip.width - wide - 4);
    // Next to the large moment, not over it.
    const moment = document.querySelector('.moment')?.getBoundingClientRect();
    if (moment && strip.left + at + wide > moment.left - 8 && strip.left + at < moment.right + 8) {
      at = (x < moment.left + moment.width / 2 - strip.left ? moment.left - 8 - wide : moment.right + 8) - strip.left;
    }
    tip.style.transform = `translateX(${Math.round(at)}px)`;
  });
  const near = events.filter((e) => Math.abs(e.time - time) < maxDistance * perPixel).sort((a, b) => Number(b.warning) - Number(a.warning));
  const mark = marks.value.find((m) => Math.abs(m - time) < maxDistance * perPixel);
  return (
    <div class="tooltip hint" ref={element}>
      <b>{zoned(mark ?? time)}{mark && ', marked'}</b>
      {holding.value ? <span role="status">{range.value ? 'release to list the changes of the range' : 'drag to select a range'}</span> : <span class="muted">{changesAt(time)}</span>}
      {near.slice(0, 3).map((e, i) => <span key={i} class="event"><i class={e.warning ? 'warning' : ''} aria-hidden="true" /> <span class="mono">{e.about}</span> <span class="muted">{e.words}</span></span>)}
      {near.length > 3 && <span class="muted">in all {eventWords(near)}</span>}
      {events.length > 0 && time < eventsSince && <span class="muted">of the Events before {clock(eventsSince)}, only retained Warnings are loaded</span>}
    </div>
  );
}

/** The number of changes at a time, or why it is unknown. */
function changesAt(time: number): string {
  const counts = shownCounts.value;
  if (lost.value && time >= lost.value) return `unknown: no contact since ${clock(lost.value)}`;
  if (!counts) return '';
  const unknown = unknownParts(counts).find((part) => time >= part.from && time < part.to);
  if (unknown) return unknown.gap ? `nothing recorded from ${clock(unknown.from)} to ${clock(unknown.to)}` : 'before the recording';
  const bin = Math.floor((time - Date.parse(counts.from)) / 1000 / counts.binSeconds);
  const sums = (['added', 'modified', 'deleted'] as const).map((what) => counts.resources.reduce((n, r) => n + (r[what][bin] ?? 0), 0));
  const words = ['created', 'changed', 'deleted'].map((word, i) => (sums[i] ? `${sums[i]} ${word}` : '')).filter(Boolean);
  return words.length ? words.join(', ') : 'no changes';
}
