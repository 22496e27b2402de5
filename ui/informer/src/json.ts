// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * JSON whose integers keep all their digits: one that a number cannot hold is a bigint.
 * JSON.parse with source text is too new for it. So such an integer is a string while
 * JSON.parse reads it, and while JSON.stringify writes it, with a mark that nobody knows.
 */

const mark = 'integer ' + Math.random().toString(36).slice(2) + ' ';
/** The fewest digits of an integer that a number cannot hold. */
const minDigits = 16;

const isDigit = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
};

/** Yields where integers of so many digits begin and end; some are within strings. */
function* candidates(text: string): Generator<[start: number, end: number]> {
  // One of them has a digit at a multiple of minDigits, so the others are not looked at.
  for (let at = 0; at < text.length; at += minDigits) {
    if (!isDigit(text, at)) continue;
    let start = at;
    let end = at + 1;
    while (isDigit(text, start - 1)) start--;
    while (isDigit(text, end)) end++;
    if (text[start - 1] === '-') start--;
    // Not a fraction, an exponent, or a part of a word.
    if (end - start >= minDigits && !/[.\w]/.test(text[end] ?? '') && !/[.+\w"]/.test(text[start - 1] ?? '')) yield [start, end];
    at = end - (end % minDigits);
  }
}

/** The index after the string that begins at an index. */
function afterString(text: string, at: number): number {
  for (let quote = at; ;) {
    quote = text.indexOf('"', quote + 1);
    if (quote < 0) return text.length;
    let before = quote;
    while (text[before - 1] === '\\') before--;
    if ((quote - before) % 2 === 0) return quote + 1;
  }
}

/** Reads JSON as JSON.parse does, but an integer that a number cannot hold becomes a bigint. */
export function parse(text: string): any {
  let marked = '';
  let copied = 0;
  let outside = 0; // the end of the last string
  let quote = 0; // where the next one begins; -1 if there is none
  for (const [start, end] of candidates(text)) {
    const digits = text.slice(start, end);
    if (Number.isSafeInteger(Number(digits)) || /^-?0/.test(digits)) continue;
    while (quote >= 0 && quote < start) {
      quote = text.indexOf('"', outside);
      if (quote >= 0 && quote < start) outside = afterString(text, quote);
    }
    if (outside > start) continue;
    marked += `${text.slice(copied, start)}"${mark}${digits}"`;
    copied = end;
  }
  if (!marked) return JSON.parse(text);
  return JSON.parse(marked + text.slice(copied), (_, value) => (typeof value === 'string' && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value));
}

const written = new RegExp(`"${mark}(-?\\d+)"`, 'g');

/** Writes JSON as JSON.stringify does, but a bigint as an integer. */
export const stringify = (value: unknown): string =>
  JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? mark + one : one)).replace(written, '$1');
