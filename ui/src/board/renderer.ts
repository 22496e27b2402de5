// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * What paints tiles and blocks. There are two: WebGL2 where there is a GPU,
 * and pixels written by the CPU where there is none: there WebGL takes seconds
 * for a frame that those have in milliseconds.
 */

import type { Camera } from './camera';
import type { Layout, Tile } from './layout';
import type { Theme } from './palette';

/** What there is to paint. The columns are by row, and shared: they change between frames. */
export interface Scene {
  layout: Layout;
  /** How many rows there are. */
  length: number;
  /** The state of each row as shown. */
  look: Uint8Array;
  /** FADED, and the shade. */
  flags: Uint8Array;
  /** What last changed of it (`Change`) and when, in the page's milliseconds. */
  change: Uint8Array;
  changed: Float64Array;
  theme: Theme;
  /** No motion: changes are marked, and do not move. */
  still: boolean;
  /** What the tile of a Node is tinted by: a colour for its edge, and whether it is faded. */
  tile(tile: Tile): { edge: Colour3 | null; faded: boolean };
}

type Colour3 = readonly [number, number, number];

/** Flags: it does not match the filter, and steps back. Above it is the number of the shade. */
export const FADED = 1;

export interface Renderer {
  readonly kind: 'webgl' | 'canvas';
  /** The view in CSS pixels, and device pixels per CSS pixel. */
  resize(width: number, height: number, ratio: number): void;
  /** All may have changed: places, colours. */
  reset(scene: Scene): void;
  /** These rows have changed. */
  update(scene: Scene, rows: Iterable<number>): void;
  /** The blocks of a tile have other places. */
  updateTile(scene: Scene, tile: Tile): void;
  /** A block is about to leave its place, which will be empty. */
  vacate(scene: Scene, row: number): void;
  /** Paints. `moved` is whether the camera has moved since. Returns whether something is in motion. */
  frame(scene: Scene, camera: Camera, moved: boolean, now: number): boolean;
  dispose(): void;
}

/** How long the light of a change lasts, in milliseconds. */
export const GLOW = 900;

/** How bright the light of a change is after `age` milliseconds, from 1 to 0. */
export const glow = (age: number): number => (age < 0 || age >= GLOW ? 0 : (1 - age / GLOW) ** 2);
