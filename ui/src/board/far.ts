// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * A tile seen from afar: a field of the calm colour, the stronger the fuller
 * it is, and where something presses, the sign of that on a dark plate in its
 * middle, the larger the more of its Pods are in that state.
 */

import { State } from '../data/state';
import { UNSCHEDULED, type Tile } from './layout';
import { mix, stateColours, type Colour, type Theme } from './palette';
import { FADED } from './renderer';
import { pixel } from './sprites';
import { coverage, distance } from './shapes';

/** Below this many device pixels for a block and its gap, tiles are painted whole. */
export const FAR = 2.9;
/**
 * Between tiles from afar there are so many pixels, everywhere: a tile is what is
 * left of its place and the gap behind it. If both of its sides were rounded, the
 * eye would see a pattern in the gaps that is not there.
 */
export const farGap = (gap: number, scale: number): number => Math.max(1, Math.round(gap * scale));
/** Steps of how full a tile is. */
export const LEVELS = 8;

/** What presses, the most pressing first. Of what ends as it should, nothing is to be seen from afar. */
const PRESSING = [State.failing, State.unknown, State.unready, State.pending];

export interface FarLook {
  /** How full it is, from 0 to LEVELS; with a filter, of what matches. */
  level: number;
  /** What presses most; none if nothing does. */
  state: number;
  /** How many Pods there are, and how many are in that state. */
  pods: number;
  pressing: number;
}

export function farLook(tile: Tile, look: Uint8Array, flags: Uint8Array): FarLook {
  const counts = new Int32Array(9);
  let pods = 0;
  for (const row of tile.slots) {
    if (row < 0 || look[row] === State.none || look[row] === State.gone || flags[row] & FADED) continue;
    counts[look[row]]++;
    pods++;
  }
  const state = PRESSING.find((s) => counts[s]) ?? State.none;
  return { level: pods ? Math.max(1, Math.round((LEVELS * pods) / tile.slots.length)) : 0, state, pods, pressing: counts[state] };
}

/** The colour of a field. */
export const farColour = (theme: Theme, level: number): Colour => (level ? mix(theme.tile, theme.state.ready, 0.16 + (0.62 * level) / LEVELS) : theme.tile);

/** Where a tile's sign is, in the layout's units: its middle, and half a side of the plate; null if there is none. */
export function farPlate(tile: Tile, { state, pods, pressing }: FarLook): { x: number; y: number; half: number } | null {
  if (state === State.none || tile.name === UNSCHEDULED) return null;
  const share = pressing / pods;
  const side = share < 0.08 ? 0.7 : share < 0.35 ? 0.8 : 0.9;
  return { x: tile.x + tile.w / 2, y: tile.y + tile.h / 2, half: (Math.min(tile.w, tile.h) * side) / 2 };
}

/** How much of its plate a sign fills. */
export const SIGN = 0.68;

/** Signs on their plates, each painted once on the colour of its field. */
export class Plates {
  readonly #made = new Map<number, Uint32Array>();
  readonly #colours: Colour[];
  constructor(readonly theme: Theme) {
    this.#colours = stateColours(theme);
  }

  /** The pixels of a plate of so many pixels, row by row. */
  get(state: number, size: number, level: number): Uint32Array {
    const key = (size * 16 + state) * 16 + level;
    let plate = this.#made.get(key);
    if (!plate) this.#made.set(key, (plate = this.#make(state, size, level)));
    return plate;
  }

  #make(state: number, size: number, level: number): Uint32Array {
    const out = new Uint32Array(size * size);
    const field = farColour(this.theme, level);
    const sign = size * SIGN;
    for (let py = 0; py < size; py++) {
      for (let px = 0; px < size; px++) {
        const x = px + 0.5 - size / 2;
        const y = py + 0.5 - size / 2;
        const plate = coverage(distance(State.ready, (2 * x) / size, (2 * y) / size, size), size);
        const cover = coverage(distance(state, (2 * x) / sign, (2 * y) / sign, sign), sign);
        out[py * size + px] = pixel(mix(mix(field, this.theme.tile, plate), this.#colours[state], cover));
      }
    }
    return out;
  }
}
