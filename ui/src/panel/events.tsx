// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from 'preact/hooks';
import { mode } from '../app/state';
import { age, count } from '../data/quantity';
import { seconds } from '../data/state';
import { history } from '../time/history';
import { useObject } from './resource';

interface Event {
  metadata: { uid: string; creationTimestamp?: string };
  involvedObject?: { uid?: string };
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
  lastTimestamp?: string;
  eventTime?: string;
  series?: { count?: number; lastObservedTime?: string };
}

const when = (e: Event): number => seconds(e.series?.lastObservedTime || e.lastTimestamp || e.eventTime || e.metadata.creationTimestamp);

/** The API server keeps Events for an hour, by default. */
const kept = 3600_000;

/** The Events of an object that were deleted before it, as with its namespace. `deleted` is when the object was, in milliseconds since 1970, or 0. */
function useDeleted(namespace: string, name: string, uid: string, deleted: number): Event[] | null {
  const [events, setEvents] = useState<Event[] | null>(deleted ? null : []);
  useEffect(() => {
    if (!deleted) return setEvents([]);
    const stop = new AbortController();
    history.changes(deleted - kept, deleted, 1000, stop.signal, ['events'], '', { filter: `${namespace && `ns:${namespace} `}${name}`, status: true, deleted: true, objects: true }).then(
      ({ items }) => setEvents(items.map(({ before, object }) => (before ?? object) as Event).filter((event) => event?.involvedObject?.uid === uid)),
      () => stop.signal.aborted || setEvents([]), // the list of those that remained says why
    );
    return () => stop.abort();
  }, [namespace, name, uid, deleted]);
  return events;
}

/**
 * The Events of an object, the newest first; of one that was deleted at a time in seconds since 1970, which is 0 for others, those that it had then.
 * The kubelet's Events of a Node have its name in place of its uid, as in kubectl describe.
 */
export function Events({ kind = '', namespace, name, uid, at, now, deleted, version }: { kind?: string; namespace: string; name: string; uid: string; at: string; now: number; deleted: number; version: unknown }) {
  const end = Math.round(1000 * deleted);
  // Events may be in another store: the RV of another resource is no moment of theirs.
  const moment = end ? new Date(end).toISOString() : at.startsWith('rv:') && mode.value?.time ? new Date(mode.value.time).toISOString() : at;
  const isNode = kind === 'Node';
  const selector = isNode ? `involvedObject.kind=Node,involvedObject.name=${name}` : `involvedObject.uid=${uid}`;
  const { value, error } = useObject<{ items: Event[] | null }>(uid ? `/api/v1/${namespace ? `namespaces/${namespace}/` : ''}events` : '', moment, version, selector);
  const before = useDeleted(namespace, name, uid, end);
  const own = (value?.items ?? []).filter(({ involvedObject: about }) => !isNode || about?.uid === uid || about?.uid === name);
  const events = [...own, ...(before ?? [])].sort((a, b) => when(b) - when(a));
  return (
    <section>
      <h3>Events</h3>
      {error && <p class="muted">{error}</p>}
      {value && before && events.length === 0 && <p class="muted">No Events are retained.</p>}
      <ul class="events">
        {events.slice(0, 50).map((e) => {
          const times = e.series?.count ?? e.count ?? 1;
          return (
            <li key={e.metadata.uid} class={e.type === 'Warning' ? 'warning' : ''}>
              <b>{e.reason}</b> <time class="muted">{times > 1 && `${count(times, 'time')}, last `}{age(now - when(e))} ago</time>
              <p class="muted">{e.message}</p>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
