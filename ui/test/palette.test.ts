// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contrast, DARK, LIGHT, shaded, SHADES, worded, type Colour, type Theme } from '../src/board/palette';
import { distance } from '../src/board/shapes';
import { PATHS } from '../src/board/paths';
import { State, STATES } from '../src/data/state';

const linear = (v: number): number => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);

/** Simulates protanopia or deuteranopia: Viénot, Brettel and Mollon 1999. */
const VISION: Record<string, number[][]> = {
  protanopia: [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
  deuteranopia: [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
};
const seen = (c: Colour, by: number[][]): number[] => by.map((row) => row.reduce((sum, k, i) => sum + k * linear(c[i]), 0));

/** The perceived distance of two colours, in CIE Lab. */
function difference(a: Colour, b: Colour, by: number[][]): number {
  const lab = (rgb: number[]): number[] => {
    const [r, g, bl] = rgb.map((v) => Math.max(0, v));
    const f = (t: number): number => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
    const x = f((0.4124 * r + 0.3576 * g + 0.1805 * bl) / 0.9505);
    const y = f(0.2126 * r + 0.7152 * g + 0.0722 * bl);
    const z = f((0.0193 * r + 0.1192 * g + 0.9505 * bl) / 1.089);
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
  };
  const [p, q] = [lab(seen(a, by)), lab(seen(b, by))];
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}
test('contrast is that of WCAG', () => {
  assert.equal(contrast([0, 0, 0], [255, 255, 255]), 21);
  assert.ok(Math.abs(contrast([0x77, 0x77, 0x77], [255, 255, 255]) - 4.48) < 0.01);
});

const NORMAL = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];

for (const theme of [DARK, LIGHT] satisfies Theme[]) {
  test(`${theme.name}: each state has a contrast of 3:1 with the tile and with the board`, () => {
    for (const name of STATES) {
      for (const ground of [theme.tile, theme.board]) {
        assert.ok(contrast(theme.state[name], ground) >= 3, `${name}: ${contrast(theme.state[name], ground).toFixed(2)}`);
      }
    }
    for (let shade = 0; shade < SHADES; shade++) {
      const colour = shaded(theme.state.ready, State.ready, shade << 1, theme);
      assert.ok(contrast(colour, theme.tile) >= 3, `shade ${shade}: ${contrast(colour, theme.tile).toFixed(2)}`);
    }
  });

  test(`${theme.name}: text has a contrast of 4.5:1`, () => {
    for (const ground of [theme.board, theme.tile, theme.float]) {
      for (const name of ['text', 'muted', 'accent'] as const) assert.ok(contrast(theme[name], ground) >= 4.5, `${name}: ${contrast(theme[name], ground).toFixed(2)}`);
      for (const name of STATES) assert.ok(contrast(worded(theme, name), ground) >= 4.5, `${name}: ${contrast(worded(theme, name), ground).toFixed(2)}`);
    }
  });

  for (const [vision, by] of Object.entries({ normal: NORMAL, ...VISION })) {
    test(`${theme.name}: failing and ready are distinct with ${vision} vision`, () => {
      for (const name of ['ready', 'succeeded', 'unknown'] as const) {
        assert.ok(difference(theme.state.failing, theme.state[name], by) >= 20, `failing, ${name}: ${difference(theme.state.failing, theme.state[name], by).toFixed(1)}`);
      }
      assert.ok(difference(theme.state.unready, theme.state.ready, by) >= 20);
    });
  }
}

test('no two states have the same shape', () => {
  assert.equal(new Set(Object.values(PATHS)).size, STATES.length);
  // On a grid of points, any two shapes differ in at least a tenth of the block.
  const size = 16;
  const inside = (state: number): boolean[] =>
    Array.from({ length: size * size }, (_, i) => distance(state, ((i % size) + 0.5) / 8 - 1, (Math.floor(i / size) + 0.5) / 8 - 1, size) < 0);
  const shapes = STATES.map((name) => [name, inside(State[name])] as const);
  for (const [a, of] of shapes) {
    for (const [b, other] of shapes) {
      if (a >= b) continue;
      const differing = of.filter((v, i) => v !== other[i]).length;
      assert.ok(differing > (size * size) / 10, `${a}, ${b}: ${differing}`);
    }
  }
});
