// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** A tile seen from afar: filled as far as it is used, in bands of its states, the pressing ones on top. */

import { State } from '../data/state';
import type { Tile } from './layout';

/** Below this many device pixels for a block and its gap, tiles are painted as bands. */
export const FAR = 2.2;

const ORDER = [State.failing, State.unknown, State.unready, State.pending, State.terminating, State.succeeded, State.ready];

export interface Band {
  state: number;
  /** From the top of the tile, 0, to its bottom, 1. */
  from: number;
  to: number;
}

export function bands(tile: Tile, look: Uint8Array): Band[] {
  const counts = new Int32Array(9);
  let n = 0;
  for (const row of tile.slots) {
    if (row < 0 || look[row] === State.none || look[row] === State.gone) continue;
    counts[look[row]]++;
    n++;
  }
  if (n === 0) return [];
  const full = Math.min(1, 0.25 + (0.75 * n) / tile.slots.length);
  // What is pressing is seen however little of it there is.
  const shares = ORDER.map((state) => (counts[state] ? Math.max(counts[state] / n, state === State.ready ? 0 : 0.06) : 0));
  const sum = shares.reduce((a, b) => a + b, 0);
  let from = 1 - full;
  return ORDER.flatMap((state, i) => {
    if (!shares[i]) return [];
    const band = { state, from, to: from + (full * shares[i]) / sum };
    from = band.to;
    return [band];
  });
}
