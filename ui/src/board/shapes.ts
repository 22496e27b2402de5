// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The shapes of the states as signed distance functions, where a block reaches
 * from -1 to 1. The CPU renderer rasterises them; gl-shaders.ts has the same in
 * GLSL.
 */

import { State } from '../data/state';

const box = (x: number, y: number, half: number, radius: number): number => {
  const dx = Math.abs(x) - half + radius;
  const dy = Math.abs(y) - half + radius;
  return Math.min(Math.max(dx, dy), 0) + Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) - radius;
};

/** The corner radius of a block. */
const R = 0.34;

const DISTANCE: Record<number, (x: number, y: number, line: number) => number> = {
  [State.none]: () => 9,
  [State.ready]: (x, y) => box(x, y, 1, R),
  // An outline with a filled lower left half.
  [State.unready]: (x, y, line) => {
    const edge = box(x, y, 1, R);
    return Math.min(Math.max(edge, -edge - line), Math.max(edge, (x - y) * Math.SQRT1_2));
  },
  [State.pending]: (x, y, line) => Math.abs(Math.hypot(x, y) - 0.92 + line / 2) - line / 2,
  [State.failing]: (x, y) => Math.max((Math.abs(x) * 2 - y - 0.86) / 2.236, y - 0.8) - 0.08,
  [State.succeeded]: (x, y) => Math.hypot(x, y) - 0.8,
  [State.terminating]: (x, y, line) =>
    Math.max(Math.min(Math.abs(x - y), Math.abs(x + y)) * Math.SQRT1_2 - line * 0.62, box(x, y, 0.86, 0.1)),
  // Stripes.
  [State.unknown]: (x, y) => {
    const phase = (x + y + 4) / 0.8;
    return Math.max(box(x, y, 1, R), (Math.abs(phase - Math.floor(phase) - 0.5) - 0.27) * 0.56);
  },
  [State.gone]: (x, y, line) => {
    const edge = box(x, y, 0.9, R);
    return Math.max(edge, -edge - line * 0.4);
  },
};

/** The width of a line in units, for blocks of `size` pixels: at least one and a half pixels. */
export const lineWidth = (size: number): number => Math.max(size > 40 ? 0.2 : 0.3, 3 / size);

/** The distance of a point from the shape, for blocks of `size` pixels. */
export function distance(state: number, x: number, y: number, size: number): number {
  // Below five pixels shapes are not visible, and those with gaps would become dots.
  const shape = size < 5 && state !== State.none ? (state === State.pending || state === State.gone ? State.succeeded : State.ready) : state;
  return (DISTANCE[shape] ?? DISTANCE[State.unknown])(x, y, lineWidth(size));
}

/** The coverage of a pixel whose centre has this distance, from 0 to 1. */
export const coverage = (outside: number, size: number): number => Math.min(1, Math.max(0, 0.5 - (outside * size) / 2));
