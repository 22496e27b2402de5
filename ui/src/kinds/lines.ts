// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The lines of a table: which rows it shows, in which order, and how they are grouped. */

import type { ColumnDefinition, TableRow } from '@watchkeeper/informer';
import { parseFilter, type Term } from '../app/filter';
import { age } from '../data/quantity';
import { controllerOf, seconds } from '../data/state';

/** An object in the table. */
export interface Line {
  /** namespace/name. */
  key: string;
  namespace: string;
  name: string;
  labels: Record<string, string>;
  /** `Deployment/web`; empty without an owner. */
  owner: string;
  /** In seconds since 1970. */
  created: number;
  cells: unknown[];
  /** By which it is sorted. */
  rank: number | string;
}

/** A heading of a group, with the number of its lines. */
export interface Heading {
  heading: string;
  count: number;
}

export type Grouping = '' | 'namespace' | 'owner';

export interface Sorting {
  /** The index of a column; NAMESPACE for that of the namespace. */
  by: number;
  down: boolean;
}

export const NAMESPACE = -1;

export function lineOf({ cells, object: { metadata } }: TableRow): Line {
  const { namespace = '', name, labels = {}, ownerReferences, creationTimestamp } = metadata;
  const own = controllerOf(ownerReferences);
  return { key: namespace ? `${namespace}/${name}` : name, namespace, name, labels, owner: own ? `${own.kind}/${own.name}` : '', created: seconds(creationTimestamp), cells, rank: '' };
}

/** Ages pass without an event. */
export const isAge = (column: ColumnDefinition): boolean => column.name === 'Age';

/** The text of a cell. */
export function cellText(line: Line, columns: ColumnDefinition[], i: number, now: number): string {
  if (isAge(columns[i]) && line.created) return age(now - line.created);
  const value = line.cells[i];
  return value === null || value === undefined || value === '' ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, y: 365 * 86400 };

/** A cell as it is sorted: numbers, fractions such as 2/3, durations such as 4m10s, and percentages by their value. */
export function rankOf(value: unknown): number | string {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  const text = String(value ?? '');
  const fraction = /^(\d+)\/(\d+)$/.exec(text);
  if (fraction) return Number(fraction[1]) / Math.max(1, Number(fraction[2]));
  if (/^(\d+[smhdy])+$/.test(text)) return [...text.matchAll(/(\d+)([smhdy])/g)].reduce((sum, [, n, unit]) => sum + Number(n) * UNITS[unit], 0);
  const number = /^-?\d+(\.\d+)?(?=%?$| )/.exec(text);
  return number ? Number(number[0]) : text.toLowerCase();
}

/** Compares ranks: numbers before texts. */
function compare(a: number | string, b: number | string): number {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === 'number' ? -1 : 1;
}

/** Whether a line matches the filter of the page; null if all do. Terms about Pods only do not apply. */
export function matcher(text: string): ((line: Line) => boolean) | null {
  const tests = parseFilter(text).flatMap((term) => testOf(term) ?? []);
  return tests.length ? (line) => tests.every((test) => test(line)) : null;
}

/** The terms of a filter that do not apply to objects of every kind. */
export const inapplicable = (text: string): Term[] => parseFilter(text).filter((term) => term.value !== '' && !testOf(term));

function testOf({ kind, key, value, not }: Term): ((line: Line) => boolean) | null {
  if (value === '' && kind !== 'label') return null;
  const of = {
    name: (line: Line) => line.name.includes(value),
    ns: (line: Line) => line.namespace.includes(value),
    owner: (line: Line) => line.owner.toLowerCase().includes(value),
    label: (line: Line) => (value === '' ? key in line.labels : line.labels[key] === value),
    // What kubectl prints: the status of whatever it is.
    reason: (line: Line) => line.cells.some((cell) => typeof cell === 'string' && cell.toLowerCase().includes(value)),
  }[kind as string];
  return of ? (not ? (line) => !of(line) : of) : null;
}

/** More changes than this are sorted together. */
const maxInsertions = 32;

/** Keeps the matching lines in order while objects change. */
export class Lines {
  sorted: Line[] = [];
  #sorting: Sorting = { by: NAMESPACE, down: false };
  #columns: ColumnDefinition[] = [];
  #grouping: Grouping = '';
  #matches: ((line: Line) => boolean) | null = null;

  /** Arranges all lines anew. */
  arrange(all: Iterable<Line>, columns: ColumnDefinition[], sorting: Sorting, grouping: Grouping, filter: string): void {
    this.#columns = columns;
    this.#sorting = sorting;
    this.#grouping = grouping;
    this.#matches = matcher(filter);
    this.sorted = [];
    for (const line of all) if (!this.#matches || this.#matches(line)) this.sorted.push(this.#ranked(line));
    this.sorted.sort(this.#compare);
  }

  /** Replaces lines by their new versions: `old` is undefined for a new object, `line` for a deleted one. */
  change(changes: { old?: Line; line?: Line }[]): void {
    if (changes.length > maxInsertions) {
      const gone = new Set(changes.map(({ old }) => old));
      const left = this.sorted.filter((line) => !gone.has(line));
      // An object may have changed several times.
      for (const { line } of changes) if (line && !gone.has(line) && (!this.#matches || this.#matches(line))) left.push(this.#ranked(line));
      this.sorted = left.sort(this.#compare); // mostly sorted already, which is fast
      return;
    }
    for (const { old, line } of changes) {
      if (old) {
        const at = this.#find(old);
        if (this.sorted[at] === old) this.sorted.splice(at, 1);
      }
      if (line && (!this.#matches || this.#matches(line))) this.sorted.splice(this.#find(this.#ranked(line)), 0, line);
    }
  }

  /** The lines with the headings of their groups. */
  withHeadings(): (Line | Heading)[] {
    if (!this.#grouping) return this.sorted;
    const out: (Line | Heading)[] = [];
    let heading: Heading | null = null;
    for (const line of this.sorted) {
      const group = this.#groupOf(line);
      if (!heading || heading.heading !== group) {
        heading = { heading: group, count: 0 };
        out.push(heading);
      }
      heading.count++;
      out.push(line);
    }
    return out;
  }

  #ranked(line: Line): Line {
    const { by } = this.#sorting;
    const column = this.#columns[by];
    line.rank = column ? (isAge(column) ? -line.created : rankOf(line.cells[by])) : line.namespace;
    return line;
  }

  #groupOf = (line: Line): string => (this.#grouping === 'namespace' ? line.namespace : line.owner && `${line.namespace}/${line.owner}`);

  #compare = (a: Line, b: Line): number => {
    const group = this.#grouping ? compare(this.#groupOf(a), this.#groupOf(b)) : 0;
    return group || (this.#sorting.down ? -1 : 1) * compare(a.rank, b.rank) || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
  };

  /** The index at which a line is, or would be. */
  #find(line: Line): number {
    let [low, high] = [0, this.sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(this.sorted[middle], line) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
