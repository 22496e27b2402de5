// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The interface of the two renderers: WebGL2 with a GPU, and pixels written by
 * the CPU without one, where software WebGL would take seconds per frame instead
 * of milliseconds.
 */

import type { Camera } from './camera';
import type { FarScene } from './far';
import type { Layout, Tile } from './layout';
import type { Theme } from './palette';

/** What to paint. The arrays are indexed by row and shared; they change between frames. */
export interface Scene extends FarScene {
  layout: Layout;
  /** The number of rows. */
  length: number;
  /** The shown state of each row; FADED and the shade. */
  look: Uint8Array;
  flags: Uint8Array;
  /** The last change of each row (`Change`), and when, as of performance.now(). */
  change: Uint8Array;
  changed: Float64Array;
  theme: Theme;
  /** Changes are marked without animation. */
  reducedMotion: boolean;
  /** The colour of a tile's edge, and whether it is faded. */
  tile(tile: Tile): { edge: Colour3 | null; faded: boolean };
}

type Colour3 = readonly [number, number, number];

/** A flag: the row does not match the filter. The higher bits are the shade. */
export const FADED = 1;

export interface Renderer {
  readonly kind: 'webgl' | 'canvas';
  /** Sets the size of the view in CSS pixels, and device pixels per CSS pixel. */
  resize(width: number, height: number, ratio: number): void;
  /** Everything may have changed: positions and colours. */
  reset(scene: Scene): void;
  /** These rows changed. */
  update(scene: Scene, rows: Iterable<number>): void;
  /** The blocks of a tile moved. */
  updateTile(scene: Scene, tile: Tile): void;
  /** The clock has moved: changes are older. Returns whether there is something to paint. */
  age(): boolean;
  /** A block is about to leave its slot. */
  vacate(scene: Scene, row: number): void;
  /** Paints a frame. `moved`: the camera has moved since the last one. Returns whether an animation is running. */
  frame(scene: Scene, camera: Camera, moved: boolean, now: number): boolean;
  dispose(): void;
}

/** How long the highlight of a change lasts, in milliseconds. */
export const GLOW = 900;

/** The brightness of the highlight after `age` milliseconds, from 1 to 0. */
export const glow = (age: number): number => (age < 0 || age >= GLOW ? 0 : (1 - age / GLOW) ** 2);
