// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The widths of columns, from their texts. Their unit is `ch`: the width of a digit. */

/** How wide each ASCII character is in common fonts, at most. */
const ascii = Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  return /[mwMW@%]/.test(character) ? 1.9 : /[A-Z&+=<>#~|]/.test(character) ? 1.5 : 1.1;
});

/**
 * How wide a text is at most. Cells that are narrower than their column need no clip: a clip
 * for each cell takes half of the time of painting a table that is scrolled.
 */
export function maxTextWidth(text: string): number {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum += ascii[text.charCodeAt(i)] ?? 2;
  return sum;
}

const minWidth = 6;
const maxWidth = 50;

/** The width of a column: of its title, with an arrow, and of some of its texts, within limits. */
export function widthOf(title: string, texts: string[]): number {
  return Math.ceil(Math.min(maxWidth, Math.max(minWidth, title.length + 5, ...texts.map((text) => maxTextWidth(text) + 1))));
}

/** The columns of a grid. The last one takes the rest. */
export const template = (widths: number[]): string => widths.map((width, i) => (i === widths.length - 1 ? `minmax(${width}ch, 1fr)` : `${width}ch`)).join(' ');
