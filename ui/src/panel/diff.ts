// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Renders a JSON Patch for people: for each path the old and the new value as lines of YAML. */

import type { Operation } from '../time/history';
import { textOf, toYAML } from './yaml';

export interface DiffLine {
  sign: ' ' | '-' | '+';
  text: string;
}

/** The change at one path. */
export interface Hunk {
  /** For example `spec.containers[web].image`. */
  path: string;
  lines: DiffLine[];
}

type Tree = Record<string, unknown>;

/** The hunks of a patch, given the object that it applies to. Without the object they have only the new values. */
export function hunks(patch: readonly Operation[], before: unknown): Hunk[] {
  const object = structuredClone(before);
  return patch.map((operation) => {
    const keys = operation.path.split('/').slice(1).map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const fresh = operation.op === 'add' && Array.isArray(parent(object, keys));
    const path = pathText(object, keys, fresh ? operation.value : undefined);
    const old = fresh ? undefined : get(object, keys);
    apply(object, keys, operation);
    return { path, lines: diffLines(yamlLines(old), yamlLines(operation.value)) };
  });
}

/** A value as lines of YAML; none for undefined. */
export function yamlLines(value: unknown, skip: ReadonlySet<string> = new Set()): string[] {
  if (value === undefined) return [];
  if (value === null || typeof value !== 'object' || Object.keys(value).length === 0) return toYAML([value]).map((line, i) => textOf(line).slice(i ? 0 : 2));
  return toYAML(value, skip).map(textOf);
}

/** A line diff of two texts. */
export function diffLines(a: string[], b: string[]): DiffLine[] {
  // For longer texts the table takes too much memory: show all old lines, then all new lines.
  const table = a.length * b.length <= 250_000 ? commonLengths(a, b) : null;
  const out: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length && table) {
    if (a[i] === b[j]) {
      out.push({ sign: ' ', text: a[i++] });
      j++;
    } else if (table[i + 1][j] >= table[i][j + 1]) out.push({ sign: '-', text: a[i++] });
    else out.push({ sign: '+', text: b[j++] });
  }
  for (; i < a.length; i++) out.push({ sign: '-', text: a[i] });
  for (; j < b.length; j++) out.push({ sign: '+', text: b[j] });
  return out;
}

/** The lengths of the longest common subsequences of all suffixes. */
function commonLengths(a: string[], b: string[]): Uint16Array[] {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  }
  return table;
}

function get(object: unknown, keys: string[]): unknown {
  let at = object;
  for (const key of keys) {
    if (at === null || typeof at !== 'object') return undefined;
    at = (at as Tree)[key];
  }
  return at;
}

const parent = (object: unknown, keys: string[]): unknown => get(object, keys.slice(0, -1));

function apply(object: unknown, keys: string[], { op, value }: Operation): void {
  const into = parent(object, keys);
  const last = keys[keys.length - 1];
  if (Array.isArray(into)) {
    const index = last === '-' ? into.length : Number(last);
    into.splice(index, op === 'add' ? 0 : 1, ...(op === 'remove' ? [] : [structuredClone(value)]));
  } else if (into !== null && typeof into === 'object') {
    if (op === 'remove') delete (into as Tree)[last];
    else (into as Tree)[last] = structuredClone(value);
  }
}

/** Formats a path. Items of lists appear by their name or type if they have one. `last` is an item that is added to a list. */
function pathText(object: unknown, keys: string[], last?: unknown): string {
  let out = '';
  let at = object;
  for (const [i, key] of keys.entries()) {
    const next = last !== undefined && i === keys.length - 1 ? last : get(at, [key]);
    if (Array.isArray(at)) {
      const { name, type } = (next ?? {}) as { name?: string; type?: string };
      out += `[${name ?? type ?? key}]`;
    } else out += /^[\w-]+$/.test(key) ? `${out && '.'}${key}` : `[${key}]`;
    at = next;
  }
  return out;
}
