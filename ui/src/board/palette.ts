// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The colours, for the board's canvases and, as CSS variables, for the rest of
 * the page. Those of states come from the Okabe–Ito set, with the lightness
 * changed for a contrast of 3:1 with the tiles. test/palette.test.ts checks that,
 * and that they are distinct with deuteranopia and protanopia.
 */

import { State, type StateName } from '../data/state';

/** Red, green and blue from 0 to 255. */
export type Colour = readonly [number, number, number];

export interface Theme {
  name: 'dark' | 'light';
  /** The background, the tiles, their edges, and floating panels. */
  board: Colour;
  tile: Colour;
  edge: Colour;
  float: Colour;
  /** Text, and secondary text. */
  text: Colour;
  muted: Colour;
  /** Selection and focus. */
  accent: Colour;
  /** The colour that the shades of ready blocks approach. */
  shade: Colour;
  /** The highlight of a change. */
  glow: Colour;
  state: Record<StateName, Colour>;
}

const hex = (text: string): Colour => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16)) as unknown as Colour;

export const DARK: Theme = {
  name: 'dark',
  board: hex('#090d12'),
  tile: hex('#111820'),
  edge: hex('#1e2934'),
  float: hex('#141c25'),
  text: hex('#dbe4ec'),
  muted: hex('#8797a7'),
  accent: hex('#7cc4f5'),
  shade: hex('#111820'),
  glow: hex('#effff9'),
  state: {
    ready: hex('#10a37f'),
    unready: hex('#e8a92c'),
    pending: hex('#d8cf6b'),
    failing: hex('#f2622c'),
    succeeded: hex('#6f8fae'),
    terminating: hex('#cc79a7'),
    unknown: hex('#8e99a6'),
  },
};

export const LIGHT: Theme = {
  name: 'light',
  board: hex('#e9edf0'),
  tile: hex('#fbfcfd'),
  edge: hex('#d5dde3'),
  float: hex('#ffffff'),
  text: hex('#17222c'),
  muted: hex('#566573'),
  accent: hex('#0b67a3'),
  shade: hex('#0d4f5e'),
  glow: hex('#5fe3bf'),
  state: {
    ready: hex('#0a8f6e'),
    unready: hex('#b87400'),
    pending: hex('#8d7d10'),
    failing: hex('#d1430f'),
    succeeded: hex('#54738f'),
    terminating: hex('#b0558a'),
    unknown: hex('#6f7a85'),
  },
};

export const css = (c: Colour, alpha = 1): string =>
  alpha === 1 ? `rgb(${c[0]} ${c[1]} ${c[2]})` : `rgb(${c[0]} ${c[1]} ${c[2]} / ${alpha})`;

/** Mixes two colours, with `t` from 0 to 1. */
export const mix = (a: Colour, b: Colour, t: number): Colour =>
  [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t];

const NAMES: Record<number, StateName> = Object.fromEntries(
  Object.entries(State).filter(([name]) => name !== 'none' && name !== 'gone').map(([name, value]) => [value, name as StateName]),
);

/** The name of a state that a Pod can be in. */
export const stateName = (state: number): StateName => NAMES[state] ?? 'unknown';

/** The colours, indexed by state. */
export const stateColours = (theme: Theme): Colour[] =>
  Array.from({ length: 9 }, (_, i) => (i === State.none ? theme.tile : i === State.gone ? theme.muted : theme.state[stateName(i)]));

/** The number of shades of ready blocks, which distinguish neighbours of different owners. */
export const SHADES = 3;

/** The colour of a block; only ready blocks have shades. */
export const shaded = (colour: Colour, state: number, flags: number, theme: Theme): Colour =>
  state === State.ready ? mix(colour, theme.shade, 0.13 * (flags >> 1)) : colour;

const linear = (v: number): number => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]: Colour): number => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);

/** The WCAG contrast ratio of two colours, from 1 to 21. */
export function contrast(a: Colour, b: Colour): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/** The text colour of a state: that of its shape, with more contrast if text needs it. */
export function worded(theme: Theme, name: StateName): Colour {
  for (let t = 0; t < 1; t += 0.05) {
    const colour = mix(theme.state[name], theme.text, t).map(Math.round) as unknown as Colour;
    if ([theme.board, theme.tile, theme.float].every((ground) => contrast(colour, ground) >= 4.55)) return colour;
  }
  return theme.text;
}

/** Sets the CSS variables. */
export function applyTheme(theme: Theme): void {
  const { style, dataset } = document.documentElement;
  dataset.theme = theme.name;
  style.colorScheme = theme.name;
  for (const name of ['board', 'tile', 'edge', 'float', 'text', 'muted', 'accent'] as const) {
    style.setProperty(`--${name}`, css(theme[name]));
  }
  for (const name of Object.keys(theme.state) as StateName[]) {
    style.setProperty(`--${name}`, css(theme.state[name]));
    style.setProperty(`--${name}-words`, css(worded(theme, name)));
  }
}
