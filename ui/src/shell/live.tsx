// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { effect, signal } from '@preact/signals';
import { absent } from '../app/contact';
import { refresh, cluster, scope, status } from '../app/state';
import type { Cluster } from '../data/cluster';
import { State } from '../data/state';
import { sizeOf } from './words';

/** The minimum time between two announcements, in milliseconds. */
const minInterval = 10_000;

/** What is announced: the counts once they are known, or why they are not. Empty before that. */
export const announcement = (of: Cluster, phase: string, missing: string, seen = scope.peek()): string =>
  missing || (of.synced ? [`${phase}: ${sizeOf(of, seen).join(', ')}`, ...(seen.pods && !of.pods ? [] : [`${of.counts[State.failing]} failing`, `${of.counts[State.pending]} pending`])].join(', ') : '');

const announced = signal('');
let at = 0;
effect(() => {
  void refresh.value;
  const words = announcement(cluster, status.value.phase, absent.value, scope.value);
  if (words === announced.peek() || Date.now() - at < minInterval) return;
  at = Date.now();
  announced.value = words;
});

/** Announces the counts to screen readers. */
export const LiveRegion = () => <div class="visually-hidden" aria-live="polite">{announced.value}</div>;
