// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The recorded states that an object can be rolled back to. */

import type { Change } from '../time/history';
import { same } from '../write/patch';
import { contentOf } from './object';

/** A state of an object that lasted for one version or several. */
export interface Earlier {
  /** Its oldest loaded version: its RV, and when and what was changed. */
  rv: string;
  change: Change;
  content: Record<string, unknown>;
  object: { spec?: { replicas?: number } };
}

/** The states of an object before its current one, the newest first. `versions` have their objects, the newest first. */
export function earlierStates(versions: readonly Change[], current: object): Earlier[] {
  const states: Earlier[] = [];
  let last: Record<string, unknown> = contentOf(current);
  for (const change of versions) {
    const { type, object, resourceVersion: rv } = change;
    if (type === 'DELETED' || type === 'FOLDED' || !object) continue;
    const content = contentOf(object);
    const state = { rv, change, content, object };
    if (!same(content, last)) states.push(state);
    else if (states.length && same(states.at(-1)!.content, content)) states[states.length - 1] = state;
    last = content;
  }
  return states.filter(({ content }) => !same(content, contentOf(current)));
}
