// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Names of cells, what is typed into them, and ranges. Rows and columns count from 1, as in formulas. */

import { stringify } from '@watchkeeper/informer/json';

/** The size of a tab. Excel has as many columns; rows are limited by what a page can hold. */
export const maxColumns = 256;
export const maxRows = 100_000;

/** `C` of 3, `AA` of 27. */
export function letters(column: number): string {
  let text = '';
  for (let n = column; n > 0; n = Math.floor((n - 1) / 26)) text = String.fromCharCode(65 + ((n - 1) % 26)) + text;
  return text;
}

/** `C2` of row 2 and column 3. */
export const nameOf = (row: number, column: number): string => `${letters(column)}${row}`;

/** Row and column of a name such as `C2`; null if it is none. */
export function parseName(name: string): [number, number] | null {
  const match = /^\$?([A-Z]{1,3})\$?([1-9]\d{0,6})$/i.exec(name.trim());
  if (!match) return null;
  const column = [...match[1].toUpperCase()].reduce((n, letter) => 26 * n + letter.charCodeAt(0) - 64, 0);
  const row = Number(match[2]);
  return column <= maxColumns && row <= maxRows ? [row, column] : null;
}

/** A cell as a key of a Map. */
export const keyOf = (row: number, column: number): number => row * 1024 + column;
export const cellOf = (key: number): [number, number] => [Math.floor(key / 1024), key % 1024];

/** How whole rows or columns come and go. */
export type Reshaping = 'insertColumns' | 'deleteColumns' | 'deleteRows';

/** Where a cell is after `count` rows or columns from `at` on came or went, as a key; 0 if it went with them. */
export function movedKey(key: number, what: Reshaping, at: number, count: number): number {
  const [row, column] = cellOf(key);
  const position = what === 'deleteRows' ? row : column;
  const moved = position < at ? position : what === 'insertColumns' ? position + count : position < at + count ? 0 : position - count;
  return !moved ? 0 : what === 'deleteRows' ? keyOf(moved, column) : keyOf(row, moved);
}

/** A range of cells, both ends included. */
export interface Range {
  top: number;
  left: number;
  bottom: number;
  right: number;
}

export const rangeOf = ([row, column]: [number, number], [row2, column2]: [number, number]): Range => ({
  top: Math.min(row, row2), left: Math.min(column, column2), bottom: Math.max(row, row2), right: Math.max(column, column2),
});

export const inRange = ({ top, left, bottom, right }: Range, row: number, column: number): boolean => row >= top && row <= bottom && column >= left && column <= right;

/** Whether what was typed is a formula. */
export const isFormula = (input: string): boolean => input.length > 1 && input.startsWith('=');

/** A text as it has to be typed to remain a text: never a formula, a number or a date. */
export const quoted = (text: string): string => `'${text}`;

/** A value of the cluster as what is typed for the same. A text is always typed as a text. */
export function inputOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number') return String(value);
  // A formula would round it: as a text it is right, or the formula fails.
  if (typeof value === 'boolean') return value ? 'TRUE' : 'FALSE';
  return quoted(textOf(value));
}

/** A value of the cluster as it is shown. */
export const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : typeof value === 'boolean' ? (value ? 'TRUE' : 'FALSE') : typeof value === 'object' ? stringify(value) : String(value);

/** Whether a text would be a formula, or could be one, in a spreadsheet. */
export const dangerous = (text: string): boolean => /^[=+\-@\t\r\n＝＋－＠]/.test(text);

/**
 * The value that what was typed, or the result of a formula, becomes in an object
 * where the old value is: numbers stay numbers, texts stay texts. Undefined removes
 * it. Throws if it cannot become one.
 */
export function valueFrom(typed: string | number | boolean, old: unknown, text: boolean): unknown {
  if (typed === '') return undefined;
  if (typeof old === 'object' && old !== null) throw new Error('The cell is a whole object or array: add columns for what is in it.');
  if (typeof old === 'string' || text) return typeof typed === 'boolean' ? String(typed) : plain(String(typed));
  const numeric = typeof old === 'number' || typeof old === 'bigint';
  const word = (numeric ? plain(String(typed)) : String(typed)).trim();
  if (numeric || (old === undefined && typeof typed !== 'boolean' && isNumber(word))) {
    if (!isNumber(word)) throw new Error(`It was a number, and “${word}” is no number.`);
    return numberOf(word);
  }
  const truth = /^(true|false)$/i.exec(word);
  if (truth) return truth[1].toLowerCase() === 'true';
  if (typeof old === 'boolean') throw new Error(`It was true or false, and “${word}” is neither.`);
  return plain(String(typed));
}

/** A number that was typed; an integer with all its digits. */
export function numberOf(word: string): number | bigint {
  const number = Number(word);
  return Number.isSafeInteger(number) || !/^-?\d+$/.test(word) ? number : BigInt(word);
}

const isNumber = (word: string): boolean => word !== '' && Number.isFinite(Number(word)) && !/^0[xob]/i.test(word);

/** What was typed without the apostrophe that makes it a text. */
const plain = (typed: string): string => (typed.startsWith("'") ? typed.slice(1) : typed);
