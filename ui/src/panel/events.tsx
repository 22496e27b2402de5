// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { mode } from '../app/state';
import { age, count } from '../data/quantity';
import { seconds } from '../data/state';
import { useObject } from './resource';

interface Event {
  metadata: { uid: string; creationTimestamp?: string };
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
  lastTimestamp?: string;
  eventTime?: string;
  series?: { count?: number; lastObservedTime?: string };
}

const when = (e: Event): number => seconds(e.series?.lastObservedTime || e.lastTimestamp || e.eventTime || e.metadata.creationTimestamp);

/** The Events of an object, the newest first. */
export function Events({ namespace, uid, at, now, version }: { namespace: string; uid: string; at: string; now: number; version: unknown }) {
  // Events may be in another store: the RV of another resource is no moment of theirs.
  const moment = at.startsWith('rv:') && mode.value?.time ? new Date(mode.value.time).toISOString() : at;
  const selector = encodeURIComponent(`involvedObject.uid=${uid}`);
  const { value, error } = useObject<{ items: Event[] | null }>(uid ? `/api/v1/${namespace ? `namespaces/${namespace}/` : ''}events?fieldSelector=${selector}` : '', moment, version);
  const events = [...(value?.items ?? [])].sort((a, b) => when(b) - when(a));
  return (
    <section>
      <h3>Events</h3>
      {error && <p class="muted">{error}</p>}
      {value && events.length === 0 && <p class="muted">No Events are retained.</p>}
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
