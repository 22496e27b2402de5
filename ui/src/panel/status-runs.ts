// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Folds the versions of an object in which only its status changed. */

import { count } from '../data/quantity';
import { when } from '../time/words';
import type { Change } from '../time/history';

/** Consecutive status updates, and what is folded between them. The newest first. */
export interface StatusRun {
  updates: Change[];
  from: string;
  to: string;
}

/** Whether only the status changed, as controllers write it. */
export const isStatusUpdate = ({ type, changes }: Change): boolean =>
  type === 'MODIFIED' && !!changes?.length && changes.every(({ path }) => path === '/status' || path.startsWith('/status/'));

/** The versions, with each run of status updates as one item. `keep` are the RVs that stay apart. */
export function foldStatus(items: readonly Change[], keep: (item: Change) => boolean): (Change | StatusRun)[] {
  const out: (Change | StatusRun)[] = [];
  let run: StatusRun | null = null;
  for (const item of items) {
    if (keep(item) || !(isStatusUpdate(item) || (run && item.type === 'FOLDED'))) {
      run = null;
      out.push(item);
    } else if (item.type === 'FOLDED') continue;
    else if (run) {
      run.updates.push(item);
      run.from = item.time;
    } else out.push((run = { updates: [item], from: item.time, to: item.time }));
  }
  return out;
}

/** A run in words: `37 status updates, 14:02:09 – 14:10:00`. */
export const runWords = ({ updates }: StatusRun): string => {
  const [first, last] = [when(updates.at(-1)!), when(updates[0])];
  return `${count(updates.length, 'status update')}, ${first === last ? first : `${first} – ${last}`}`;
};
