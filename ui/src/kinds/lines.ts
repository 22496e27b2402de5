// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The lines of a table: which rows it shows, in which order, and how they are grouped. */

import type { ColumnDefinition, TableRow } from '@watchkeeper/informer';
import { stringify } from '@watchkeeper/informer/json';
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
  rank: Rank;
  /** By which it is grouped. */
  group: string;
}

type Rank = number | bigint | string;

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
  return { key: namespace ? `${namespace}/${name}` : name, namespace, name, labels, owner: own ? `${own.kind}/${own.name}` : '', created: seconds(creationTimestamp), cells, rank: '', group: '' };
}

/** Ages pass without an event. */
export const isAge = (column: ColumnDefinition): boolean => column.name === 'Age';

/** The text of a cell. */
export function cellText(line: Line, columns: ColumnDefinition[], i: number, now: number): string {
  if (isAge(columns[i]) && line.created) return age(now - line.created);
  const value = line.cells[i];
  return value === null || value === undefined || value === '' ? '' : typeof value === 'object' ? stringify(value) : String(value);
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, y: 365 * 86400 };

/** A cell as it is sorted: numbers, fractions such as 2/3, durations such as 4m10s, and percentages by their value. */
export function rankOf(value: unknown): Rank {
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  const text = String(value ?? '');
  const fraction = /^(\d+)\/(\d+)$/.exec(text);
  if (fraction) return Number(fraction[1]) / Math.max(1, Number(fraction[2]));
  if (/^(\d+[smhdy])+$/.test(text)) return [...text.matchAll(/(\d+)([smhdy])/g)].reduce((sum, [, n, unit]) => sum + Number(n) * UNITS[unit], 0);
  const number = /^-?\d+(\.\d+)?(?=%?$| )/.exec(text);
  return number ? Number(number[0]) : text.toLowerCase();
}

/** Compares ranks: numbers before texts. */
function compare(a: Rank, b: Rank): number {
  if ((typeof a === 'string') === (typeof b === 'string')) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === 'string' ? 1 : -1;
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
  /** The groups, with the index of the heading of each; null until they are needed. */
  #groups: (Heading & { at: number })[] | null = null;

  /** Arranges all lines anew. */
  arrange(all: Iterable<Line>, columns: ColumnDefinition[], sorting: Sorting, grouping: Grouping, filter: string): void {
    this.#columns = columns;
    this.#sorting = sorting;
    this.#grouping = grouping;
    this.#matches = matcher(filter);
    this.#groups = null;
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
      this.#groups = null;
      this.sorted = left.sort(this.#compare); // mostly sorted already, which is fast
      return;
    }
    for (const { old, line } of changes) {
      const now = line && (!this.#matches || this.#matches(line)) ? this.#ranked(line) : undefined;
      if (old) {
        const at = this.#find(old);
        if (this.sorted[at] === old) {
          if (now && this.#compare(old, now) === 0) {
            this.sorted[at] = now; // most changes leave an object where it is
            continue;
          }
          this.sorted.splice(at, 1);
          this.#groups = null;
        }
      }
      if (now) {
        this.sorted.splice(this.#find(now), 0, now);
        this.#groups = null;
      }
    }
  }

  /** The number of lines and headings. */
  get length(): number {
    return this.sorted.length + this.#grouped().length;
  }

  /** The line or the heading at an index. */
  at(index: number): Line | Heading {
    const groups = this.#grouped();
    const before = search(groups.length, (i) => groups[i].at <= index);
    if (!before) return this.sorted[index];
    return groups[before - 1].at === index ? groups[before - 1] : this.sorted[index - before];
  }

  /** The index of the line that is the n-th without headings. */
  indexOf(n: number): number {
    const groups = this.#grouped();
    return n + search(groups.length, (i) => groups[i].at - i <= n);
  }

  #grouped(): (Heading & { at: number })[] {
    if (this.#groups) return this.#groups;
    this.#groups = [];
    for (let start = 0; this.#grouping && start < this.sorted.length;) {
      const { group } = this.sorted[start];
      const end = search(this.sorted.length, (i) => compare(this.sorted[i].group, group) <= 0);
      this.#groups.push({ heading: group, count: end - start, at: start + this.#groups.length });
      start = end;
    }
    return this.#groups;
  }

  #ranked(line: Line): Line {
    const { by } = this.#sorting;
    const column = this.#columns[by];
    line.rank = column ? (isAge(column) ? -line.created : rankOf(line.cells[by])) : line.namespace;
    line.group = this.#grouping === 'namespace' ? line.namespace : this.#grouping === 'owner' && line.owner ? `${line.namespace}/${line.owner}` : '';
    return line;
  }

  #compare = (a: Line, b: Line): number => {
    return compare(a.group, b.group) || (this.#sorting.down ? -1 : 1) * compare(a.rank, b.rank) || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
  };

  /** The index at which a line is, or would be. */
  #find = (line: Line): number => search(this.sorted.length, (i) => this.#compare(this.sorted[i], line) < 0);
}

/** The first index below `length` for which `before` is false. It is true up to there. */
function search(length: number, before: (i: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
