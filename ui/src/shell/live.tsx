// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { effect, signal } from '@preact/signals';
import { absent } from '../app/contact';
import { refresh, cluster, status } from '../app/state';
import { count } from '../data/quantity';
import { State } from '../data/state';

/** The minimum time between two announcements, in milliseconds. */
const minInterval = 10_000;

const announced = signal('');
let at = 0;
effect(() => {
  void refresh.value;
  if (!absent.value && !cluster.synced) return;
  const words = absent.value || `${status.value.phase}: ${count(cluster.nodes.size, 'node')}, ${count(cluster.pods, 'pod')}, ${cluster.counts[State.failing]} failing, ${cluster.counts[State.pending]} pending`;
  if (words === announced.peek() || Date.now() - at < minInterval) return;
  at = Date.now();
  announced.value = words;
});

/** Announces the counts to screen readers. */
export const LiveRegion = () => <div class="visually-hidden" aria-live="polite">{announced.value}</div>;
