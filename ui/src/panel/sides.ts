// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The two sides of a comparison. */

import type { Change } from '../time/history';

/** One side of a comparison: a version, or the shown moment if `rv` is empty. */
export interface Side {
  rv: string;
  /** In milliseconds since 1970; 0 for now. */
  time: number;
  notBefore?: string;
}

/**
 * The two sides, the older first. `items` are the loaded versions; others are
 * older. `moment` is the shown one in milliseconds since 1970, 0 for now.
 */
export function sidesOf(picked: readonly string[], items: readonly Change[], moment: number): [Side, Side] | null {
  if (!picked.length) return null;
  const place = (rv: string): number => items.findIndex((item) => item.resourceVersion === rv);
  const sides = picked.map((rv): Side => (place(rv) < 0 ? { rv, time: 0 } : { rv, time: Date.parse(items[place(rv)].time), notBefore: items[place(rv)].notBefore }));
  if (sides.length === 1) {
    const [one] = sides;
    const shown = { rv: '', time: moment };
    return moment && one.time > moment ? [shown, one] : [one, shown];
  }
  // The newest is first in the list. Of two that are not loaded, the lower RV is older.
  const [a, b] = sides;
  const [at, bt] = [place(a.rv), place(b.rv)];
  const older = at >= 0 && bt >= 0 ? at > bt : at < 0 && bt < 0 ? BigInt(a.rv) < BigInt(b.rv) : at < 0;
  return older ? [a, b] : [b, a];
}
