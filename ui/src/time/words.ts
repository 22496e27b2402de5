// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Formats times in the time zone of the page. time/moment.ts reads all of these forms. */

import { now } from '../app/now';
import { age } from '../data/quantity';
import { ahead, zoneName } from '../app/zone';

/** `2026-01-31 14:02:09.125` in the time zone of the page. */
const stamp = (ms: number): string => new Date(ms + ahead(ms)).toISOString().replace('T', ' ').replace('Z', '');

/** `2026-01-31` and `14:02:09`. */
export const date = (ms: number): string => stamp(ms).slice(0, 10);
export const timeOfDay = (ms: number): string => stamp(ms).slice(11, 19);

/** `14:02:09`, with the date if that is not today. */
export const clock = (ms: number, today = now()): string => (date(ms) === date(today) ? timeOfDay(ms) : `${date(ms)} ${timeOfDay(ms)}`);

/** The same with the time zone: `14:02:09 UTC+1`. */
export const zoned = (ms: number): string => `${clock(ms)} ${zoneName(ms)}`;

/** A time in full: `2026-01-31 14:02:09.125 UTC+1`. */
export const full = (ms: number): string => `${stamp(ms)} ${zoneName(ms)}`;

/** When a change of the record happened: if there is a `notBefore`, between the two, which was not observed. */
export interface When {
  time: string;
  notBefore?: string;
}

/** When a change happened, in a form of this file: `14:02:09 (not before 14:00:44)`. Each time of a change is shown by this. */
export const when = ({ time, notBefore }: When, form: (ms: number) => string = clock): string =>
  form(Date.parse(time)) + doubt({ notBefore });

/** What is not known of that, behind the time. */
export const doubt = ({ notBefore }: Pick<When, 'notBefore'>): string => (notBefore ? ` (not before ${clock(Date.parse(notBefore))})` : '');

/** How far a moment is from now, or from the end of a recording. */
export const awayWords = (ms: number, now: number, ended: boolean): string =>
  ms > now + 1000 ? (ended ? 'after the end' : 'in the future') : `${age((now - ms) / 1000)} ${ended ? 'before the end' : 'ago'}`;
