// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { effect, signal } from '@preact/signals';
import { beat, cluster, status } from '../app/state';
import { count } from '../data/quantity';
import { State } from '../data/state';

/** No more often than this are the counts said, in milliseconds. */
const PACE = 10_000;

const said = signal('');
let at = 0;
effect(() => {
  void beat.value;
  const words = `${status.value.phase}: ${count(cluster.nodes.size, 'node')}, ${count(cluster.pods, 'pod')}, ${cluster.counts[State.failing]} failing, ${cluster.counts[State.pending]} pending`;
  if (words === said.peek() || Date.now() - at < PACE) return;
  at = Date.now();
  said.value = words;
});

/** For those who do not see the board: how many of what, politely. */
export const LiveRegion = () => <div class="unseen" aria-live="polite">{said.value}</div>;
