// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * A tile zoomed out: a stack of bands, one for each state, as high as the state's
 * share of the tile's slots. The most urgent states are on top, with patterns as
 * far as a few pixels allow, and a sign next to them has the shape of the most
 * urgent one. A line at the lower edge is as long as the portion of the Pods that
 * changed within the last minute, and fades as these changes age.
 *
 * All sizes are whole pixels, computed with integers: gl-shaders.ts has the same
 * in GLSL.
 */

import { State } from '../data/state';
import { UNSCHEDULED, type Tile } from './positions';
import { FADED } from './renderer';

/** Below this many device pixels per block and gap, tiles are painted as fields. */
export const FAR = 2.9;
/**
 * The gap between fields in whole pixels. It is the same everywhere and a field
 * takes the rest: if both edges of a field were rounded, uneven gaps would form
 * a visible pattern.
 */
export const farGap = (gap: number, scale: number): number => Math.max(1, Math.round(gap * scale));

/** The bands from the top: the most urgent first. */
export const BANDS = [State.failing, State.unknown, State.unready, State.pending, State.terminating, State.succeeded, State.ready] as const;
/** How many of them are pressing: they have a sign and at least two pixels. */
export const PRESSING = 4;
/** A change is recent for this many seconds, and its line has this many levels. */
export const RECENT = 60;
export const FRESH = 6;
/** A share is from 0 to WHOLE. */
const WHOLE = 255;

/** What of the Pods a field shows. Arrays are indexed by row, times are in seconds since 1970. */
export interface FarScene {
  look: Uint8Array;
  flags: Uint8Array;
  since: Int32Array;
  created: Int32Array;
  /** The current time. */
  seconds: number;
  /** When Pods of a tile were deleted within the last minute. */
  deleted(tile: Tile): readonly number[];
}

export interface FarLook {
  /** The share of each band in the tile's slots. With a filter, only matching Pods count. */
  parts: Uint8Array;
  /** The share of all of them, and their number. */
  total: number;
  pods: number;
  /** The most urgent state, or none. */
  state: number;
  /** The portion of the Pods that changed recently, and how recently: from 1 to FRESH, 0 for none. */
  recent: number;
  fresh: number;
}

const bandOf = new Uint8Array(16).fill(BANDS.length);
BANDS.forEach((state, band) => (bandOf[state] = band));

const scratch = new Int32Array(BANDS.length + 1);

/** How many Pods are in each band; the array is that of the last call. */
function count(tile: Tile, look: Uint8Array, flags: Uint8Array): Int32Array {
  scratch.fill(0);
  for (const row of tile.slots) if (row >= 0 && !(flags[row] & FADED)) scratch[bandOf[look[row]]]++;
  return scratch;
}

/** The number of Pods if none is in a pressing state, else 0. */
export function farCalm(tile: Tile, look: Uint8Array, flags: Uint8Array): number {
  const counts = count(tile, look, flags);
  let pods = 0;
  for (let band = 0; band < BANDS.length; band++) {
    if (band < PRESSING && counts[band]) return 0;
    pods += counts[band];
  }
  return pods;
}

export function farLook(tile: Tile, scene: FarScene): FarLook {
  const { look, flags, since, created, seconds } = scene;
  const counts = count(tile, look, flags);
  let changes = 0;
  let ages = 0;
  const changed = (at: number): void => {
    const age = seconds - at;
    if (age >= RECENT) return;
    changes++;
    ages += Math.max(0, age);
  };
  for (const row of tile.slots) {
    if (row >= 0 && bandOf[look[row]] < BANDS.length && !(flags[row] & FADED)) changed(Math.max(since[row], created[row]));
  }
  const deleted = scene.deleted(tile);
  for (const at of deleted) changed(at);
  let pods = 0;
  let state: number = State.none;
  const parts = new Uint8Array(BANDS.length);
  const slots = Math.max(1, tile.slots.length);
  for (let band = 0; band < BANDS.length; band++) {
    if (!counts[band]) continue;
    if (band < PRESSING && state === State.none) state = BANDS[band];
    pods += counts[band];
    parts[band] = Math.max(1, Math.round((WHOLE * counts[band]) / slots));
  }
  return {
    parts, total: Math.min(WHOLE, Math.round((WHOLE * pods) / slots)), pods, state: tile.name === UNSCHEDULED ? State.none : state,
    recent: changes ? Math.max(1, Math.round((WHOLE * changes) / (pods + deleted.length))) : 0,
    fresh: changes ? Math.max(1, Math.ceil(FRESH * (1 - ages / changes / RECENT))) : 0,
  };
}

/** The height of the strip with the line of recent changes, in a field of this height. Its first pixel is a gap. */
export const stripHeight = (height: number): number => (height < 6 ? 0 : height < 12 ? 2 : Math.max(3, Math.floor((height * 16) / 100)));

/** How many of some pixels a share is. */
export const share = (part: number, of: number): number => Math.floor((2 * part * of + WHOLE) / (2 * WHOLE));

/** The heights of the bands in a field of this height without its strip, and of the empty space above them. */
export function bandHeights(parts: Uint8Array, height: number): { above: number; bands: number[] } {
  const bands: number[] = [];
  let used = 0;
  let total = 0;
  const ready = BANDS.length - 1;
  for (let band = 0; band < ready; band++) {
    const high = parts[band] ? Math.max(band < PRESSING ? 2 : 1, share(parts[band], height)) : 0;
    bands.push(high);
    used += high;
    total += parts[band];
  }
  const rest = parts[ready] ? Math.max(1, share(total + parts[ready], height) - used) : 0;
  bands.push(rest);
  return { above: Math.max(0, height - used - rest), bands };
}

/** Whether a pixel of a band has the colour of its state; else it has that of the tile. Coordinates are those in the field. */
export function patterned(band: number, x: number, y: number): boolean {
  switch (BANDS[band]) {
    case State.unready:
      return (x & 3) < 2;
    case State.pending:
      return (x & 1) === 0;
    case State.unknown:
      return ((x + y) & 3) < 2;
    case State.terminating:
      return ((x + y) & 1) === 0;
    default:
      return true;
  }
}

/** The square of a field's sign, left of the bands and in the middle of their height, in pixels. 0 if it is too small to show a shape. */
export function signOf(width: number, body: number): { y: number; size: number } {
  const size = Math.min(width >> 1, Math.floor((body * 80) / 100));
  return { y: (body - size) >> 1, size: size < 5 ? 0 : size };
}

/** The part of the square that the shape fills. */
export const SIGN = 0.85;

/** How much of the ready colour the band of ready Pods has, and how bright the line of recent changes is. */
export const CALM = 0.66;
export const lineAlpha = (fresh: number): number => 0.25 + (0.75 * fresh) / FRESH;
