// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The time zone in which the page shows and reads times: that of the browser, or UTC. */

import { signal } from '@preact/signals';

const key = 'watchkeeper-utc';

/** Times are in UTC. */
export const utc = signal(stored());

/** Switches between the browser's time zone and UTC, and stores the choice. */
export function switchZone(): void {
  utc.value = !utc.value;
  try {
    localStorage.setItem(key, String(utc.value));
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}

function stored(): boolean {
  try {
    return localStorage.getItem(key) === 'true';
  } catch {
    return false;
  }
}

/** How much a time zone is ahead of UTC at a time, in milliseconds. */
export const ahead = (ms: number, inUTC = utc.value): number => (inUTC ? 0 : -new Date(ms).getTimezoneOffset() * 60_000);

/** The name of the zone at a time: `UTC`, `UTC+1`, `UTC-3:30`. */
export function zoneName(ms: number): string {
  const minutes = Math.round(ahead(ms) / 60_000);
  if (!minutes) return 'UTC';
  const rest = Math.abs(minutes) % 60;
  return `UTC${minutes < 0 ? '-' : '+'}${Math.floor(Math.abs(minutes) / 60)}${rest ? `:${String(rest).padStart(2, '0')}` : ''}`;
}
