// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * A tile zoomed out: a field in the colour of ready Pods, stronger the fuller the
 * Node is. If Pods need attention, a dark plate in the middle has the shape of
 * the most urgent state, larger the more Pods are in it.
 */

import { State } from '../data/state';
import { UNSCHEDULED, type Tile } from './layout';
import { mix, stateColours, type Colour, type Theme } from './palette';
import { FADED } from './renderer';
import { pixel } from './sprites';
import { coverage, distance } from './shapes';

/** Below this many device pixels per block and gap, tiles are painted as fields. */
export const FAR = 2.9;
/**
 * The gap between fields in whole pixels. It is the same everywhere and a field
 * takes the rest: if both edges of a field were rounded, uneven gaps would form
 * a visible pattern.
 */
export const farGap = (gap: number, scale: number): number => Math.max(1, Math.round(gap * scale));
/** Levels of how full a tile is. */
export const LEVELS = 8;

/** The states that a plate shows, the most urgent first. Terminating Pods are not shown. */
const PRESSING = [State.failing, State.unknown, State.unready, State.pending];

export interface FarLook {
  /** How full it is, from 0 to LEVELS; with a filter, only matching Pods count. */
  level: number;
  /** The most urgent state, or none. */
  state: number;
  /** The number of Pods, and of those in that state. */
  pods: number;
  urgent: number;
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
  return { level: pods ? Math.max(1, Math.round((LEVELS * pods) / tile.slots.length)) : 0, state, pods, urgent: counts[state] };
}

/** The colour of a field. */
export const farColour = (theme: Theme, level: number): Colour => (level ? mix(theme.tile, theme.state.ready, 0.16 + (0.62 * level) / LEVELS) : theme.tile);

/** The centre and half the side of a tile's plate, in the layout's units; null without a plate. */
export function farPlate(tile: Tile, { state, pods, urgent }: FarLook): { x: number; y: number; half: number } | null {
  if (state === State.none || tile.name === UNSCHEDULED) return null;
  const share = urgent / pods;
  const side = share < 0.08 ? 0.7 : share < 0.35 ? 0.8 : 0.9;
  return { x: tile.x + tile.w / 2, y: tile.y + tile.h / 2, half: (Math.min(tile.w, tile.h) * side) / 2 };
}

/** The part of the plate that its shape fills. */
export const SIGN = 0.68;

/** Plates, each painted once on the colour of its field. */
export class Plates {
  readonly #made = new Map<number, Uint32Array>();
  readonly #colours: Colour[];
  constructor(readonly theme: Theme) {
    this.#colours = stateColours(theme);
  }

  /** The pixels of a plate of this size, row by row. */
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
