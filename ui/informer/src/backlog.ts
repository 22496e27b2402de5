// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import type { InformerEvent, ObjectEvent } from './events.js';

/**
 * The events that a subscriber has not taken yet. Above the limit, the events
 * of each object are merged, so it holds at most two events per object.
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
 * Merges the events of each object into one, or into two if the object was
 * deleted and another one has its name. A merged event has the position of the
 * first one. Of the events without an object, only the last of each type stays.
 */
export function coalesce<T>(events: InformerEvent<T>[]): InformerEvent<T>[] {
  const out: (InformerEvent<T> | undefined)[] = [];
  const open = new Map<string, { deletion?: number; change?: number }>(); // by key: indexes in out
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
    if (at.change === undefined) {
      at[event.type === 'delete' ? 'deletion' : 'change'] = out.push(event) - 1;
      continue;
    }
    const merged = merge(out[at.change] as ObjectEvent<T>, event);
    out[at.change] = merged;
    if (merged?.type === 'delete') at.deletion = at.change;
    if (merged?.type !== 'add' && merged?.type !== 'update') at.change = undefined;
  }
  return out.filter((event) => event !== undefined);
}

/** Merges an addition or update with the next event; undefined if the object was added and deleted. */
function merge<T>(first: ObjectEvent<T>, next: ObjectEvent<T>): ObjectEvent<T> | undefined {
  if (first.type === 'add') return next.type === 'delete' ? undefined : { ...first, object: next.object, coalesced: true };
  if (first.type === 'update' && next.type === 'update') return { ...next, old: first.old, coalesced: true };
  return { ...next, coalesced: true };
}
