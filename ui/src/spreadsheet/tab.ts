// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * A tab of the workbook. Row 1 has the names of the columns: namespace, name, and
 * the paths. An object has its row for as long as the workbook is open: new ones
 * are appended, deleted ones stay, marked, until they are removed. Everything
 * else is free.
 */

import { same } from '../write/patch';
import type { Source } from '../kinds/source';
import { cellOf, inputOf, isFormula, keyOf, textOf } from './cells';
import type { Input, Result } from './formulas';
import type { Column } from './path';
import { follow, listAt, type Item, type Selected } from './reading';

/** An object and its row. */
export interface Entry {
  key: string;
  namespace: string;
  name: string;
  uid: string;
  rv: string;
  /** By column. */
  values: unknown[];
  /** It does not exist at the shown moment. */
  gone: boolean;
}

/** The objects begin in this row, and the paths in this column. */
export const firstRow = 2;
export const firstColumn = 3;

/** How often a column of the past is read again, in milliseconds: the moment may be relative to now. */
const pastInterval = 20_000;

/** What a tab tells its workbook. */
export interface Told {
  /** Cells changed that formulas may use. */
  typed(inputs: Input[]): void;
  changed(tab: Tab): void;
  /** Nothing was typed in any tab, so nothing refers to a row. */
  untouched(): boolean;
}

export class Tab {
  readonly entries: Entry[] = [];
  /** The index of each entry, by key. */
  readonly #index = new Map<string, number>();
  /** What the user has typed, by cell: free cells, and values or formulas over those of the cluster. */
  readonly inputs = new Map<number, string>();
  /** The value that a cell showed when another one was typed over it. */
  readonly bases = new Map<number, unknown>();
  readonly results = new Map<number, Result>();
  /** Why a change of a cell was not made. */
  readonly failures = new Map<number, string>();
  #source: Source<Item> | null = null;
  #loading: Source<Item> | null = null;
  #past: Source<Item>[] = [];
  #timer: ReturnType<typeof setInterval> | undefined;
  #pastProblem = '';
  #at = '';
  /** Keys of the objects of a stored workbook, in the order of their rows. */
  #stored: Pick<Entry, 'namespace' | 'name' | 'uid'>[] = [];

  constructor(public index: number, public name: string, public readonly selected: Selected | null, public columns: Column[], readonly told: Told) {}

  /** The last column of values of the cluster; 0 if the tab has none. */
  get lastBound(): number {
    return this.selected ? firstColumn - 1 + this.columns.length : 0;
  }

  /** The last row with an object. */
  get lastRow(): number {
    return firstRow - 1 + this.entries.length;
  }

  get complete(): boolean {
    return !this.selected || (this.#source?.complete ?? false);
  }

  /** Why the values are not those of the shown moment; empty if they are. */
  get problem(): string {
    return this.#loading?.problem || this.#source?.problem || this.#pastProblem;
  }

  /** Why nothing is known of the shown moment of the past; empty if it is. The entries are then those of another one. */
  get unknown(): string {
    return this.#at && !this.complete ? this.problem : '';
  }

  /** What there is to say about an entry that is gone. */
  get goneWords(): string {
    return this.#at ? 'The object does not exist at this moment.' : 'The object was deleted.';
  }

  get namespaces(): string[] | null {
    return this.#source?.namespaces ?? null;
  }

  /** The objects of a stored workbook keep their rows. */
  keepRows(rows: Pick<Entry, 'namespace' | 'name' | 'uid'>[]): void {
    this.#stored = rows;
  }

  /** Shows a moment, as /at takes it; empty for the live state. */
  show(at: string): void {
    if (!this.selected) return;
    this.#at = at;
    this.#loading?.close();
    const columns = this.columns.filter((column) => !column.at);
    const follower = { changed: (changes: { old?: Item; line?: Item }[]) => this.#changed(next, changes) };
    const next: Source<Item> = at || !this.selected.resource.watched ? listAt(this.selected, columns, at, follower) : follow(this.selected, columns, follower);
    this.#loading = next;
    if (!this.#source) this.#source = next;
    clearInterval(this.#timer);
    for (const source of this.#past.splice(0)) source.close();
    if (this.columns.some((column) => column.at)) {
      this.#readPast();
      this.#timer = setInterval(() => document.hidden || this.#readPast(), pastInterval);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.#source?.close();
    this.#loading?.close();
    for (const source of this.#past) source.close();
  }

  wake(): void {
    this.#source?.wake();
  }

  entryAt(row: number): Entry | undefined {
    return this.selected ? this.entries[row - firstRow] : undefined;
  }

  columnAt(column: number): Column | undefined {
    return this.selected ? this.columns[column - firstColumn] : undefined;
  }

  /** The value of the cluster in a cell; undefined if there is none. */
  valueAt(row: number, column: number): unknown {
    const entry = this.entryAt(row);
    if (!entry || entry.gone) return column < firstColumn && entry ? (column === 1 ? entry.namespace : entry.name) : undefined;
    return column === 1 ? entry.namespace : column === 2 ? entry.name : entry.values[column - firstColumn];
  }

  /** Whether a cell shows what is in the cluster, or the name of a column. */
  isBound(row: number, column: number): boolean {
    return column <= this.lastBound && (row === 1 || this.entryAt(row) !== undefined);
  }

  /** Why a cell cannot be changed; empty if it can. */
  fixed(row: number, column: number): string {
    if (!this.isBound(row, column)) return '';
    if (row === 1) return 'It is the name of a column.';
    if (column < firstColumn) return 'It is the name of an object.';
    const entry = this.entryAt(row)!;
    const of = this.columnAt(column)!;
    const value = entry.values[column - firstColumn];
    return of.fixed || (entry.gone ? this.goneWords : typeof value === 'object' && value !== null ? 'The cell is a whole object or array: add columns for what is in it.' : '');
  }

  /** The name of a column, in row 1. */
  headingAt(column: number): string {
    return column > this.lastBound ? '' : column === 1 ? 'namespace' : column === 2 ? 'name' : this.columns[column - firstColumn].text;
  }

  /** What a cell shows. */
  textAt(row: number, column: number): string {
    const key = keyOf(row, column);
    const input = this.inputs.get(key);
    if (input === undefined) return this.isBound(row, column) ? (row === 1 ? this.headingAt(column) : textOf(this.valueAt(row, column))) : '';
    if (isFormula(input)) return this.results.get(key)?.text ?? '…';
    return input.startsWith("'") ? input.slice(1) : input;
  }

  /** What a cell has in the editor. */
  inputAt(row: number, column: number): string {
    const input = this.inputs.get(keyOf(row, column));
    if (input !== undefined) return input;
    const value = this.valueAt(row, column);
    // A text is edited as it is, unless it would become something else when it is typed.
    return typeof value === 'string' && (isFormula(value) || value.startsWith("'")) ? inputOf(value) : textOf(value);
  }

  /** What is typed in the engine for a cell. */
  typedAt(row: number, column: number): string {
    const input = this.inputs.get(keyOf(row, column));
    if (input !== undefined) return input;
    return this.isBound(row, column) ? inputOf(row === 1 ? this.headingAt(column) : this.valueAt(row, column)) : '';
  }

  /** Everything in the tab, as typed. */
  typed(): Input[] {
    const inputs: Input[] = [];
    for (let column = 1; column <= this.lastBound; column++) {
      inputs.push([this.index, 1, column, inputOf(this.headingAt(column))]);
      for (let row = firstRow; row <= this.lastRow; row++) inputs.push([this.index, row, column, this.typedAt(row, column)]);
    }
    for (const [key, text] of this.inputs) {
      const [row, column] = cellOf(key);
      if (!this.isBound(row, column)) inputs.push([this.index, row, column, text]);
    }
    return inputs;
  }

  /** A write was answered with the object, before or after what followed was read. */
  wrote(entry: Entry, rv: string, values: unknown[]): void {
    if (older(rv, entry.rv)) return;
    this.#put({ ...entry, rv, values: values.map((value, i) => (this.columns[i].at ? entry.values[i] : value)) }, true);
  }

  #changed(source: Source<Item>, changes: { old?: Item; line?: Item }[]): void {
    const first = source === this.#loading && (source.complete || source.problem !== '');
    if (first) {
      if (this.#source !== source) this.#source?.close();
      this.#source = source;
      this.#loading = null;
      if (source.complete) this.#reconcile(source);
    } else if (source === this.#source && source.complete) {
      if (this.#whole === source) this.#apply(changes);
      else this.#reconcile(source);
    }
    this.told.changed(this);
  }

  /** The source whose whole state the entries have. */
  #whole: Source<Item> | null = null;

  #apply(changes: { old?: Item; line?: Item }[]): void {
    const inputs: Input[] = [];
    for (const { old, line } of changes) {
      if (line) inputs.push(...this.#put(this.#read(line)));
      else if (old) inputs.push(...this.#drop(old.key));
    }
    this.told.typed(inputs);
  }

  #reconcile(source: Source<Item>): void {
    const inputs: Input[] = [];
    // The objects of another moment need no rows.
    if (this.#whole && this.#whole !== source && this.told.untouched()) {
      for (let row = firstRow; row <= this.lastRow; row++) for (let column = 1; column <= this.lastBound; column++) inputs.push([this.index, row, column, '']);
      this.removeRows(firstRow, this.entries.length);
    }
    this.#whole = source;
    const items = [...source.lines.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
    for (const [i, { namespace, name, uid }] of this.#stored.splice(0).entries()) {
      // A row without an object keeps its place, too.
      const key = !name ? `row ${i}` : namespace ? `${namespace}/${name}` : name;
      if (!this.#index.has(key)) inputs.push(...this.#put({ key, namespace, name, uid, rv: '', values: [] }, true), ...(source.lines.has(key) ? [] : this.#drop(key)));
    }
    for (const { key } of this.entries) if (!source.lines.has(key)) inputs.push(...this.#drop(key));
    for (const item of items) inputs.push(...this.#put(this.#read(item), true));
    this.told.typed(inputs);
  }

  /** The values of an item by column: those of the past are read elsewhere. */
  #read(item: Item): Item {
    if (this.columns.every((column) => !column.at)) return item;
    const known = this.entries[this.#index.get(item.key) ?? -1]?.values ?? [];
    let i = 0;
    return { ...item, values: this.columns.map((column, at) => (column.at ? known[at] : item.values[i++])) };
  }

  #put(item: Item, whole = false): Input[] {
    const at = this.#index.get(item.key);
    let entry = at === undefined ? undefined : this.entries[at];
    if (!entry) {
      entry = { ...item, values: [], gone: true };
      this.#index.set(item.key, this.entries.length);
      this.entries.push(entry);
    }
    // What was read before a write was answered.
    if (!whole && entry.uid === item.uid && older(item.rv, entry.rv)) return [];
    const row = firstRow + this.#index.get(item.key)!;
    const inputs: Input[] = [];
    const fresh = entry.gone;
    const before = entry.values;
    entry.gone = false;
    entry.uid = item.uid;
    entry.rv = item.rv;
    entry.values = item.values;
    for (let column = fresh ? 1 : firstColumn; column <= this.lastBound; column++) {
      const i = column - firstColumn;
      if (!fresh && (i < 0 || same(before[i], item.values[i]))) continue;
      this.failures.delete(keyOf(row, column)); // it was about the value before
      if (!this.inputs.has(keyOf(row, column))) inputs.push([this.index, row, column, this.typedAt(row, column)]);
    }
    return inputs;
  }

  #drop(key: string): Input[] {
    const at = this.#index.get(key);
    const entry = at === undefined ? undefined : this.entries[at];
    if (!entry || entry.gone) return [];
    entry.gone = true;
    const row = firstRow + at!;
    return this.columns.map((_, i): Input => [this.index, row, firstColumn + i, '']).filter(([, , column]) => !this.inputs.has(keyOf(row, column)));
  }

  /** Removes rows of deleted objects, from `row` on; what is typed moves as the workbook says. */
  removeRows(row: number, count: number): void {
    this.entries.splice(row - firstRow, count);
    this.#index.clear();
    this.entries.forEach(({ key }, i) => this.#index.set(key, i));
  }

  #readPast(): void {
    for (const at of new Set(this.columns.map((column) => column.at).filter(Boolean))) {
      const columns = this.columns.filter((column) => column.at === at);
      const source = listAt(this.selected!, columns, at, {
        changed: () => {
          this.#pastProblem = source.problem && `${at}: ${source.problem}`;
          if (source.complete) this.#takePast(source, columns);
          this.told.changed(this);
        },
      });
      this.#past = [...this.#past.slice(-8), source];
    }
  }

  #takePast(source: Source<Item>, columns: Column[]): void {
    const inputs: Input[] = [];
    this.entries.forEach((entry, index) => {
      const values = source.lines.get(entry.key)?.values;
      columns.forEach((column, i) => {
        const at = this.columns.indexOf(column);
        if (at < 0 || same(entry.values[at], values?.[i])) return;
        entry.values = this.columns.map((_, c) => (c === at ? values?.[i] : entry.values[c]));
            inputs.push([this.index, firstRow + index, firstColumn + at, inputOf(values?.[i])]);
      });
    });
    this.told.typed(inputs);
  }

  /** The moment that is shown; empty for the live state. */
  get at(): string {
    return this.#at;
  }
}

/** Whether a resourceVersion is before another one; they are numbers of any length. */
const older = (a: string, b: string): boolean => a.length < b.length || (a.length === b.length && a < b);
