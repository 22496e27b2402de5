// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import type { InformerEvent, ObjectEvent } from './events.js';

/**
 * The events that a subscriber has not taken yet. When they are more than the
 * limit, those of an object are made one, so that it holds no more than twice
 * as many as there are objects.
 */
export class Backlog<T> {
  private events: InformerEvent<T>[] = [];
  private bound: number;

  constructor(private readonly limit: number) {
    this.bound = limit;
  }

  get empty(): boolean {
    return this.events.length === 0;
  }

  push(event: InformerEvent<T>): void {
    this.events.push(event);
    if (this.events.length <= this.bound) return;
    this.events = coalesce(this.events);
    this.bound = Math.max(this.limit, 2 * this.events.length);
  }

  take(): InformerEvent<T>[] {
    const events = this.events;
    this.events = [];
    this.bound = this.limit;
    return events;
  }
}

/**
 * Makes the events of each object one, or two where one object was deleted and
 * another took its name. The place of an object's event is that of its first;
 * of what is no event of an object, the last of each type stays.
 */
export function coalesce<T>(events: InformerEvent<T>[]): InformerEvent<T>[] {
  const out: (InformerEvent<T> | undefined)[] = [];
  const open = new Map<string, { gone?: number; here?: number }>(); // by key, where in out
  const last = new Map<string, number>(); // by type
  for (const event of events) {
    if (!('key' in event)) {
      const earlier = last.get(event.type);
      if (earlier !== undefined) out[earlier] = undefined;
      last.set(event.type, out.push(event) - 1);
      continue;
    }
    let at = open.get(event.key);
    if (!at) open.set(event.key, (at = {}));
    if (at.here === undefined) {
      at[event.type === 'delete' ? 'gone' : 'here'] = out.push(event) - 1;
      continue;
    }
    const merged = merge(out[at.here] as ObjectEvent<T>, event);
    out[at.here] = merged;
    if (merged?.type === 'delete') at.gone = at.here;
    if (merged?.type !== 'add' && merged?.type !== 'update') at.here = undefined;
  }
  return out.filter((event) => event !== undefined);
}

/** What an addition or update and the event behind it are in one; nothing if the object came and went. */
function merge<T>(first: ObjectEvent<T>, then: ObjectEvent<T>): ObjectEvent<T> | undefined {
  if (first.type === 'add') return then.type === 'delete' ? undefined : { ...first, object: then.object, coalesced: true };
  if (first.type === 'update' && then.type === 'update') return { ...then, old: first.old, coalesced: true };
  return { ...then, coalesced: true };
}
