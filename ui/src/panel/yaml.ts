// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Writes objects as YAML, formatted as kubectl does. It is read back as the same object by
 * YAML 1.1, which kubectl has, and by YAML 1.2: what is not a string to one of them is quoted.
 */

import { UNSAFE } from '../data/plain';
import { escaped } from '../write/escape';

/** A part of a line: a key, a string, another value, or punctuation. */
export interface Piece {
  kind: 'key' | 'text' | 'value' | 'mark';
  text: string;
}
export type Line = Piece[];

const PLAIN = /^[A-Za-z_/][\w ./:@%+=,()<>-]*$/;
const WORDS = /^(true|false|null|yes|no|on|off|y|n)$/i;
/** What JSON does not escape, and YAML does not print or takes for the end of a line, or a reader cannot see. */
const UNPRINTABLE = new RegExp(`[\\u2028\\u2029\\ufeff\\ufffe\\uffff]|${UNSAFE.source}`, 'g');

/** A string as YAML: plain if it is still read as a string, else quoted. */
export function scalar(text: string): string {
  const bare = PLAIN.test(text) && !WORDS.test(text) && !/: |\s$|:$| #/.test(text);
  return bare ? text : escaped(JSON.stringify(text), UNPRINTABLE);
}

/** Whether a string is written as its lines. The first one shows how far all are indented. */
const isBlock = (text: string): boolean =>
  /[^\n]\n|\n[^\n]/.test(text) && !/^\n*[ \t]/.test(text) && !/[\x00-\x08\x0b-\x1f]/.test(text) && text.search(UNPRINTABLE) < 0;

/** The lines of an object. `skip` lists the paths to leave out, such as metadata.managedFields. */
export function toYAML(value: unknown, skip: ReadonlySet<string> = new Set()): Line[] {
  const lines: Line[] = [];
  write(value, 0, '', skip, lines, []);
  return lines;
}

/** The text of lines. */
export const textOf = (line: Line): string => line.map((piece) => piece.text).join('');

const indent = (depth: number): Piece => ({ kind: 'mark', text: '  '.repeat(depth) });
const isFilled = (value: unknown): value is object => typeof value === 'object' && value !== null && Object.keys(value).length > 0;

/** Writes a filled object or array; its first line continues `lead`. */
function write(value: unknown, depth: number, path: string, skip: ReadonlySet<string>, lines: Line[], lead: Line): void {
  let begin = lead.length ? lead : [indent(depth)];
  if (Array.isArray(value)) {
    for (const item of value) {
      const dash: Line = [...begin, { kind: 'mark', text: '- ' }];
      if (isFilled(item)) write(item, depth + 1, path, skip, lines, dash);
      else writeLeaf(item, depth + 1, lines, dash);
      begin = [indent(depth)];
    }
    return;
  }
  for (const [key, item] of Object.entries(value as Record<string, unknown>)) {
    const here = path ? `${path}.${key}` : key;
    if (skip.has(here) || item === undefined) continue;
    const line: Line = [...begin, { kind: 'key', text: scalar(key) }, { kind: 'mark', text: ':' }];
    begin = [indent(depth)];
    if (isFilled(item)) {
      lines.push(line);
      write(item, Array.isArray(item) ? depth : depth + 1, here, skip, lines, []);
    } else writeLeaf(item, depth + 1, lines, [...line, { kind: 'mark', text: ' ' }]);
  }
}

/** Writes another value; the lines of a string are at a depth. */
function writeLeaf(value: unknown, depth: number, lines: Line[], line: Line): void {
  if (typeof value !== 'string' || !isBlock(value)) return void lines.push([...line, leaf(value)]);
  const last = /\n*$/.exec(value)![0].length;
  lines.push([...line, { kind: 'mark', text: last === 0 ? '|-' : last === 1 ? '|' : '|+' }]);
  for (const part of value.replace(/\n$/, '').split('\n')) lines.push(part ? [indent(depth), { kind: 'text', text: part }] : []);
}

function leaf(value: unknown): Piece {
  if (typeof value === 'string') return { kind: 'text', text: scalar(value) };
  if (Array.isArray(value)) return { kind: 'mark', text: '[]' };
  if (value !== null && typeof value === 'object') return { kind: 'mark', text: '{}' };
  return { kind: 'value', text: String(value) };
}
