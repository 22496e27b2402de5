// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import type { StateName } from '../data/state';

/** Describes the states. */
export const WORDS: Record<StateName, string> = {
  failing: 'a container cannot start or keeps exiting',
  unknown: 'NotReady Node: kubelet stopped posting node status',
  unready: 'running, not ready',
  pending: 'waiting to be scheduled or to start',
  terminating: 'being deleted',
  ready: 'running and ready',
  succeeded: 'completed',
};
