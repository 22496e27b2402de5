// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The Events in the time range of the strip. Only new ones are requested. */

import type { History, ObjectChange } from './history';

export interface EventMark {
  /** In milliseconds since 1970. */
  time: number;
  warning: boolean;
  /** The object that the Event is about, and its reason and message. */
  about: string;
  words: string;
}

/** How many Events to request at once: the newest. */
const maxEvents = 500;

export class EventMarks {
  #items: EventMark[] = [];
  /** The range that has been requested. */
  #from = 0;
  #to = 0;

  constructor(readonly history: History) {}

  /** The Events of a range, the oldest first. */
  async load(from: number, to: number, signal: AbortSignal): Promise<EventMark[]> {
    const onward = from >= this.#from && from <= this.#to && to >= this.#to;
    if (onward && to === this.#to) return this.#items;
    const page = await this.history.changes(onward ? this.#to : from, to, maxEvents, signal, ['events']);
    const fresh = page.items.map(eventMark).filter((e) => e !== null).reverse();
    this.#items = [...(onward ? this.#items.filter((e) => e.time >= from) : []), ...fresh];
    if (!onward) this.#from = from;
    this.#to = to;
    return this.#items;
  }
}

/** The mark for a change of an Event; null for a deletion and the like. */
export function eventMark(change: ObjectChange): EventMark | null {
  const [words] = change.summary ?? [];
  if (change.type === 'DELETED' || change.type === 'INITIAL' || !words) return null;
  // The name of an Event is that of its object, a dot, and a hexadecimal number.
  const about = change.name.replace(/\.[0-9a-f]+$/, '');
  return { time: Date.parse(change.time), warning: words.startsWith('Warning '), about, words: words.replace(/^(Normal|Warning) /, '') };
}
