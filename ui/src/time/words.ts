// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { now } from '../app/now';

/** Formats times in the local time zone. */

const two = (n: number): string => String(n).padStart(2, '0');

/** `14:02:09`, with the date if that is not today. */
export function clock(ms: number, today = now()): string {
  const at = new Date(ms);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return at.toDateString() === new Date(today).toDateString() ? time : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}
