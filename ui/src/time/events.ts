// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The Events in the time range of the strip. Only those that are not known yet are requested. */

import { count } from '../data/quantity';
import { doubt } from './words';
import type { History, ObjectChange, Page } from './history';

export interface EventMark {
  /** In milliseconds since 1970. */
  time: number;
  warning: boolean;
  /** The object that the Event is about, and its reason and message. */
  about: string;
  words: string;
}

/** How many Events are requested at once, and how many are kept: of more, the newest. */
const pageSize = 1000;
const maxEvents = 10_000;
/** How often the retained Warnings are requested if there are more Events, in milliseconds. */
const warningsInterval = 30_000;

/** Without deletions: the API server deletes each Event after an hour. */
const selected = { filter: '', status: true, deleted: false, types: ['ADDED', 'MODIFIED'] as const };

export class EventMarks {
  /** The oldest first. */
  #items: EventMark[] = [];
  /** The range that has been requested. */
  #from = 0;
  #to = 0;

  /** The retained Warnings, and when they were requested. */
  #warnings: EventMark[] = [];
  #warningsAt = 0;

  constructor(readonly history: History, readonly max = maxEvents) {}

  /** From when on all Events of the range are loaded; 0 if that is the whole range. */
  since = 0;

  /** Loads the Events of a range. `show` receives those that are known so far, the oldest first, after each page. */
  async load(from: number, to: number, signal: AbortSignal, show: (events: EventMark[]) => void): Promise<void> {
    if (from > this.#to || to < this.#from) {
      this.#items = [];
      this.#from = this.#to = to;
    }
    if (to > this.#to) {
      const fresh: EventMark[] = [];
      const oldest = await this.#pages(this.#to, to, signal, (page) => void fresh.unshift(...page));
      this.#items = oldest ? fresh : [...this.#items, ...fresh];
      if (oldest) this.#from = oldest;
      this.#to = to;
      show(this.#items);
    }
    if (from < this.#from && this.#items.length < this.max) {
      const until = this.#from;
      const oldest = await this.#pages(from, until, signal, (page) => {
        this.#items = [...page, ...this.#items];
        this.#from = page[0]?.time ?? this.#from;
        show(this.#items);
      });
      this.#from = oldest || from;
    }
    if (this.#items.length > this.max) {
      this.#items = this.#items.slice(-this.max);
      this.#from = this.#items[0].time;
    }
    this.since = this.#from > from ? this.#from : 0;
    const before = this.since ? await this.#retained(from, this.since, to, signal) : [];
    show([...before, ...this.#items]);
  }

  /** The Warnings of a range among the Events that are retained at a time: each has when it began and when it was last seen. */
  async #retained(from: number, until: number, at: number, signal: AbortSignal): Promise<EventMark[]> {
    if (at > this.#warningsAt + warningsInterval || at < this.#warningsAt) {
      this.#warnings = (await this.history.warnings?.(at, signal).catch(() => [])) ?? [];
      this.#warningsAt = at;
    }
    return this.#warnings.filter(({ time }) => time >= from && time < until);
  }

  /** Requests the pages of a range, the newest first. Returns the time of the oldest Event if there were too many, or else 0. */
  async #pages(from: number, to: number, signal: AbortSignal, take: (page: EventMark[]) => void): Promise<number> {
    let more = '';
    let oldest = 0;
    for (let n = 0; ; ) {
      const page: Page<ObjectChange> = await this.history.changes(from, to, pageSize, signal, ['events'], more, selected);
      const marks = page.items.map(eventMark).filter((e) => e !== null).reverse();
      take(marks);
      n += marks.length;
      oldest = marks[0]?.time ?? oldest;
      more = page.more;
      if (!more) return 0;
      if (n >= this.max) return oldest;
    }
  }
}

/** The marks for Warnings as the API has them, the oldest first. */
export const warningMarks = (events: readonly Warning[]): EventMark[] =>
  events.flatMap((e) => {
    const times = [e.firstTimestamp ?? e.eventTime, e.series?.lastObservedTime ?? e.lastTimestamp].map((time) => Date.parse(time ?? '')).filter((time) => time > 0);
    return [...new Set(times)].map((time) => ({ time, warning: true, about: e.involvedObject?.name ?? '', words: `${e.reason ?? ''}: ${e.message ?? ''}` }));
  }).sort((a, b) => a.time - b.time);

export interface Warning {
  reason?: string;
  message?: string;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  series?: { lastObservedTime?: string };
  involvedObject?: { name?: string };
}

/** Events within one bar of the strip: one diamond. */
export interface EventGroup {
  /** In the middle of the bar. */
  time: number;
  warnings: number;
  others: number;
}

/** Groups Events by bars of a length in milliseconds, so that a Warning is visible however many others there are. */
export function byBar(events: readonly EventMark[], bar: number): EventGroup[] {
  const groups = new Map<number, EventGroup>();
  for (const { time, warning } of events) {
    const at = Math.floor(time / bar);
    let group = groups.get(at);
    if (!group) groups.set(at, (group = { time: (at + 0.5) * bar, warnings: 0, others: 0 }));
    group[warning ? 'warnings' : 'others']++;
  }
  return [...groups.values()];
}

/** The number of Events in words: `3 Warnings and 12 other Events`. */
export function eventWords(events: readonly EventMark[]): string {
  const warnings = events.filter((e) => e.warning).length;
  const others = events.length - warnings;
  return [warnings && count(warnings, 'Warning'), others && count(others, warnings ? 'other Event' : 'Event')].filter(Boolean).join(' and ');
}

/** The mark for a change of an Event; null for a deletion and the like. */
export function eventMark(change: ObjectChange): EventMark | null {
  const [words] = change.summary ?? [];
  if (change.type === 'DELETED' || change.type === 'INITIAL' || !words) return null;
  // The name of an Event is that of its object, a dot, and a hexadecimal number.
  const about = change.name.replace(/\.[0-9a-f]+$/, '');
  return { time: Date.parse(change.time), warning: words.startsWith('Warning '), about, words: words.replace(/^(Normal|Warning) /, '') + doubt(change) };
}
