// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Writes objects as YAML, formatted as kubectl does. */

/** A part of a line: a key, a string, another value, or punctuation. */
export interface Piece {
  kind: 'key' | 'text' | 'value' | 'mark';
  text: string;
}
export type Line = Piece[];

const PLAIN = /^[A-Za-z_./][\w ./:@%+=,()<>-]*$/;
const WORDS = /^(true|false|null|yes|no|on|off|y|n|~|[-+.\d].*)$/i;

/** A string as YAML: plain if it is still read as a string, else quoted. */
export function scalar(text: string): string {
  const bare = PLAIN.test(text) && !WORDS.test(text) && !/: |\s$|:$| #/.test(text);
  return bare ? text : JSON.stringify(text);
}

/** The lines of an object. `skip` lists the paths to leave out, such as metadata.managedFields. */
export function toYAML(value: unknown, skip: ReadonlySet<string> = new Set()): Line[] {
  const lines: Line[] = [];
  write(value, 0, '', skip, lines, []);
  return lines;
}

function write(value: unknown, depth: number, path: string, skip: ReadonlySet<string>, lines: Line[], lead: Line): void {
  const indent = (extra: number): Piece => ({ kind: 'mark', text: '  '.repeat(depth + extra) });
  if (Array.isArray(value)) {
    value.forEach((item, i) => {
      const dash: Line = [...(i === 0 && lead.length ? lead : [indent(0)]), { kind: 'mark', text: '- ' }];
      if (item !== null && typeof item === 'object' && Object.keys(item).length) write(item, depth + 1, path, skip, lines, dash);
      else lines.push([...dash, leaf(item)]);
    });
    return;
  }
  let first = true;
  for (const [key, item] of Object.entries(value as Record<string, unknown>)) {
    const here = path ? `${path}.${key}` : key;
    if (skip.has(here) || item === undefined) continue;
    const line: Line = [...(first && lead.length ? lead : [indent(0)]), { kind: 'key', text: scalar(key) }, { kind: 'mark', text: ':' }];
    first = false;
    if (item !== null && typeof item === 'object' && Object.keys(item).length) {
      lines.push(line);
      write(item, Array.isArray(item) ? depth : depth + 1, here, skip, lines, []);
    } else if (typeof item === 'string' && item.includes('\n')) {
      lines.push([...line, { kind: 'mark', text: item.endsWith('\n') ? ' |' : ' |-' }]);
      for (const part of item.replace(/\n$/, '').split('\n')) lines.push([indent(1), { kind: 'text', text: part }]);
    } else lines.push([...line, { kind: 'mark', text: ' ' }, leaf(item)]);
  }
}

function leaf(value: unknown): Piece {
  if (typeof value === 'string') return { kind: 'text', text: scalar(value) };
  if (Array.isArray(value)) return { kind: 'mark', text: '[]' };
  if (value !== null && typeof value === 'object') return { kind: 'mark', text: '{}' };
  return { kind: 'value', text: String(value) };
}
