// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import type { StateName } from '../data/state';

/** What the states mean. */
export const WORDS: Record<StateName, string> = {
  failing: 'a container cannot start, or keeps ending',
  unknown: 'on a Node that nobody hears from',
  unready: 'running and not ready',
  pending: 'waiting for a Node or to start',
  terminating: 'being deleted',
  ready: 'running and ready',
  succeeded: 'done',
};
