// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Reads moments as people type them: all forms that the page and the commands print, and those of /at. */

import { ahead, utc } from '../app/zone';

export interface Moment {
  /** As /at takes it. */
  at: string;
  /** In milliseconds since 1970; 0 for a resourceVersion. */
  time: number;
}

/** The forms, for messages. */
export const FORMS = 'a time (14:02:09 or 2026-01-31 14:02:09), an age (10m) or a resourceVersion (rv:812)';

const SECONDS: Record<string, number> = { y: 365 * 86_400, d: 86_400, h: 3600, m: 60, s: 1 };
const day = 86_400_000;

/** The length of an age such as `10m`, `1h30m` or `2d`, in milliseconds; null for other texts. */
export function ageOf(text: string): number | null {
  const match = /^((?:\d+(?:\.\d+)?[ydhms])+)(?: ago)?$/.exec(text.trim());
  if (!match) return null;
  return [...match[1].matchAll(/([\d.]+)([ydhms])/g)].reduce((sum, [, n, unit]) => sum + Number(n) * SECONDS[unit] * 1000, 0);
}

/** Reads a moment. An age counts back from `now`. A time without a date is the last such time; without a zone it is in the page's. */
export function parseMoment(text: string, now: number): Moment | null {
  const rv = /^(?:rv:)?(\d+)$/.exec(text.trim());
  if (rv) return Number(rv[1]) > 0 ? { at: `rv:${rv[1]}`, time: 0 } : null;
  const age = ageOf(text);
  const time = age === null ? parseTime(text, now) : now - age;
  return time > 0 ? { at: new Date(time).toISOString(), time } : null;
}

/** Reads a time, in milliseconds since 1970; 0 for other texts. */
export function parseTime(text: string, now: number): number {
  const match = /^(?:(\d{4}-\d\d-\d\d)(?:[T ]+|(?=[Z+U-]|$)))?(?:(\d\d?):(\d\d)(?::(\d\d(?:\.\d+)?))?)?\s*(Z|(?:UTC)?[+-]\d\d?(?::?\d\d)?|UTC)?$/i.exec(text.trim());
  if (!match || (!match[1] && !match[2])) return 0;
  const [, date, h = '0', m = '0', s = '0', zone] = match;
  if (Number(h) > 23 || Number(m) > 59 || Number(s) >= 60) return 0;
  const shift = (at: number): number => (zone ? offset(zone) : ahead(at, utc.peek()));
  const today = new Date(now + shift(now)).toISOString().slice(0, 10);
  const wall = Date.parse(date ?? today) + (Number(h) * 3600 + Number(m) * 60 + Number(s)) * 1000;
  if (!(wall > 0)) return 0;
  // The offset of the wall's time: exact, except in the hour of a change of the offset.
  const at = Math.round(wall - shift(wall - shift(wall)));
  return date || at <= now ? at : at - day;
}

/** The offset that a zone such as `UTC+1`, `+05:30` or `Z` means, in milliseconds. */
function offset(zone: string): number {
  const match = /([+-])(\d\d?):?(\d\d)?/.exec(zone);
  return match ? (match[1] === '-' ? -1 : 1) * (Number(match[2]) * 60 + Number(match[3] ?? 0)) * 60_000 : 0;
}
