// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Blocks of one size in pixels, each painted once on the colour of a tile and then copied. */

import { State } from '../data/state';
import { mix, shaded, stateColours, type Colour, type Theme } from './palette';
import { FADED } from './renderer';
import { coverage, distance } from './shapes';

/** The levels of the highlight, and of a shrinking ghost. */
export const LEVELS = 6;

/** A pixel of ImageData: red is the lowest byte. */
export const pixel = (c: Colour): number => (0xff000000 | (c[2] << 16) | (c[1] << 8) | c[0]) >>> 0;

export class Sprites {
  readonly #made = new Map<number, Uint32Array>();
  readonly #colours: Colour[];

  /** For blocks of `block` pixels in a square of `size` pixels; the margin shows the highlight. */
  constructor(readonly size: number, readonly block: number, readonly theme: Theme) {
    this.#colours = stateColours(theme);
  }

  /** The pixels of a block, row by row. `level` is that of the highlight, 0 for none; for a ghost, how far it has shrunk. */
  get(state: number, flags: number, level: number): Uint32Array {
    const key = state * 128 + flags * 8 + level;
    let sprite = this.#made.get(key);
    if (!sprite) this.#made.set(key, (sprite = this.#make(state, flags, level)));
    return sprite;
  }

  #make(state: number, flags: number, level: number): Uint32Array {
    const { size, block, theme } = this;
    const out = new Uint32Array(size * size);
    const tile = theme.tile;
    const light = level / LEVELS;
    const faded = (flags & FADED) !== 0;
    let colour = shaded(this.#colours[state], state, flags, theme);
    if (state === State.terminating) colour = mix(tile, colour, 0.8);
    if (state !== State.gone) colour = mix(colour, theme.glow, light * 0.75);
    else colour = mix(colour, tile, 0.35 + 0.65 * light);
    if (faded) colour = mix(tile, colour, 0.2);
    const shrink = state === State.gone ? 1 - light * 0.5 : 1;
    const middle = size / 2;
    const half = block / 2;
    // The highlight reaches to that of the next block.
    const reach = (size - block) / block || 0.2;
    for (let py = 0; py < size; py++) {
      for (let px = 0; px < size; px++) {
        const x = (px + 0.5 - middle) / half / shrink;
        const y = (py + 0.5 - middle) / half / shrink;
        const outside = distance(state, x, y, block * shrink);
        const cover = coverage(outside, block * shrink);
        let c = cover > 0 ? mix(tile, colour, cover) : tile;
        if (state !== State.gone && light > 0 && !faded && cover < 1) {
          const near = Math.max(0, 1 - Math.max(0, outside) / reach);
          c = mix(c, mix(this.#colours[state], theme.glow, 0.35), near * near * light * 0.7 * (1 - cover));
        }
        out[py * size + px] = pixel(c);
      }
    }
    return out;
  }
}
