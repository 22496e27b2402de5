// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The Events of the time that the strip shows: what is new is asked for, the rest is kept. */

import type { History, ObjectChange } from './history';

export interface EventMark {
  /** In milliseconds since 1970. */
  time: number;
  warning: boolean;
  /** What it is about, and what it says. */
  about: string;
  words: string;
}

/** So many are asked for at once: the newest. */
const MOST = 500;

export class EventMarks {
  #items: EventMark[] = [];
  /** What has been asked for. */
  #from = 0;
  #to = 0;

  constructor(readonly history: History) {}

  /** The Events of a range, the oldest first. */
  async load(from: number, to: number, signal: AbortSignal): Promise<EventMark[]> {
    const onward = from >= this.#from && from <= this.#to && to >= this.#to;
    if (onward && to === this.#to) return this.#items;
    const page = await this.history.changes(onward ? this.#to : from, to, MOST, signal, ['events']);
    const fresh = page.items.map(eventMark).filter((e) => e !== null).reverse();
    this.#items = [...(onward ? this.#items.filter((e) => e.time >= from) : []), ...fresh];
    if (!onward) this.#from = from;
    this.#to = to;
    return this.#items;
  }
}

/** What a change of an Event has to say; null where that is nothing. */
export function eventMark(change: ObjectChange): EventMark | null {
  const [words] = change.summary ?? [];
  if (change.type === 'DELETED' || change.type === 'INITIAL' || !words) return null;
  // The name of an Event is that of its object, a point, and a number.
  const about = change.name.replace(/\.[0-9a-f]+$/, '');
  return { time: Date.parse(change.time), warning: words.startsWith('Warning '), about, words: words.replace(/^(Normal|Warning) /, '') };
}
