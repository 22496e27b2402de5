// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Which time the list of changes covers, and what it says about it. */

import { ALL } from '../app/state';
import type { Selected } from './history';
import type { unknownParts } from './plot';
import { clock } from './words';

/** How far the list reaches around the shown moment, or back from now, in seconds. ALL: everything recorded. */
export const REACHES = [5, 30, 120, 600, 1800, 3600, 12 * 3600, 84 * 3600, ALL] as const;
const defaultReach = 30;
/** The reach that covers the last hour. */
export const hourReach = 1800;

/** The chosen reach. What was deleted may be long gone: without a choice, deletions are looked for in everything recorded. */
export const reachOf = (chosen: number | null, deleted: boolean): number => chosen ?? (deleted ? ALL : defaultReach);

/** What decides about the window. Times are in milliseconds since 1970. */
export interface Asked {
  range: { from: number; to: number } | null;
  /** The shown moment, 0 for now. */
  moment: number;
  reach: number;
  /** The start of the recording. */
  first: number;
}

/** The time that the list covers: the selected range, or one around the shown moment. */
export function listWindow({ range, moment, reach, first }: Asked, now: number): { from: number; to: number } {
  if (range) return { from: Math.floor(range.from), to: Math.ceil(range.to) };
  const ms = reach * 1000;
  if (reach === ALL) return { from: first > 0 && first < now ? Math.floor(first) : now - 2000 * hourReach, to: now };
  return moment ? { from: moment - ms, to: Math.min(now, moment + ms) } : { from: now - 2 * ms, to: now };
}

/** A number of seconds: `30 s`, `4 min`. */
export const spanWords = (s: number): string => (s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : s < 48 * 3600 ? `${s / 3600} h` : `${s / 86_400} d`);

/** The window in a sentence. */
export function windowWords({ range, moment, reach }: Asked): string {
  if (range) return `from ${clock(range.from)} to ${clock(range.to)}`;
  if (reach === ALL) return 'in all that is recorded';
  return moment ? `within ${spanWords(reach)} of ${clock(moment)}` : `in the last ${spanWords(2 * reach)}`;
}

/** Why the list is empty. */
export const none = ({ filter, status, deleted }: Selected, asked: Asked): string =>
  `No ${deleted ? 'deletions' : 'changes'}${filter ? ` match ${filter}` : ''} ${windowWords(asked)}.${deleted || status ? '' : ' Status updates are not listed.'}`;

/** What was not recorded in the window. `first` is the start of the recording. */
export function unknownWords(part: ReturnType<typeof unknownParts>[number], window: { from: number; to: number }, first: number): string {
  if (part.to === Infinity) return `Nothing is known since ${clock(part.from)}, the last contact with the cluster.`;
  if (part.gap) return `Nothing was observed from ${clock(part.from)} to ${clock(part.to)}: changes in that time are listed at its end.`;
  if (isAll(part, window)) return first >= window.to ? `Nothing was recorded before ${clock(first)}.` : `Nothing is recorded from ${clock(window.from)} to ${clock(window.to)}.`;
  return part.to < window.to ? `The recording starts at ${clock(part.to)}.` : `The recording ends at ${clock(part.from)}.`;
}

/** Whether nothing of a window was recorded. */
export const isAll = (part: { from: number; to: number }, window: { from: number; to: number }): boolean => part.from <= window.from && part.to >= window.to;

/** The number on the button of a resource: `41`, or `4 of 41` if the list leaves out the others. `listed` is null if it is not known. */
export const chipWords = (all: number, listed: number | null): string =>
  listed === null || listed >= all ? all.toLocaleString('en') : `${listed.toLocaleString('en')} of ${all.toLocaleString('en')}`;
