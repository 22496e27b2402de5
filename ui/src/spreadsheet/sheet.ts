// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The spreadsheet that the page shows: the workbook, which cells are selected, and what is edited. */

import { batch, signal } from '@preact/signals';
import { messageOf } from '../app/api';
import { mode, sheet as address } from '../app/state';
import { utc } from '../app/zone';
import { Applier } from './apply';
import { Automatic } from './automatic';
import { Book } from './book';
import { cellOf, maxColumns, rangeOf, type Range } from './cells';
import { changesOf, type Change } from './changes';
import { startEngine } from './engine';
import { toAddress } from './stored';
import { usualColumns } from './columns';
import type { Tab } from './tab';

/** The address has what was typed this long after it, in milliseconds. */
const addressDelay = 300;

export class Sheet {
  readonly book = new Book((on) => startEngine(utc.peek() ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone, on));
  readonly applier = new Applier(this.book);
  readonly automatic = new Automatic(this.applier, () => this.changes());
  readonly tab = signal(0);
  /** The selected cell, in which typing begins, and the other end of the selected range. */
  readonly cell = signal<[number, number]>([2, 3]);
  readonly end = signal<[number, number]>([2, 3]);
  /** What is being typed; null while nothing is. */
  readonly editing = signal<string | null>(null);
  /** What could not be done; empty if nothing was refused since the last key. */
  readonly refusal = signal('');
  readonly review = signal(false);
  /** The address cannot have the workbook: it is too long. */
  readonly tooLong = signal(false);
  /** The address that the workbook has, or that it was read from. */
  addressed = '';
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.book.changed = () => {
      this.#drop();
      void this.automatic.run();
      // In a busy cluster there is no pause between changes.
      this.#timer ??= setTimeout(() => void this.#keepAddress().finally(() => (this.#timer = undefined)), addressDelay);
    };
  }

  close(): void {
    clearTimeout(this.#timer);
    this.automatic.close();
    this.book.close();
  }

  get active(): Tab | undefined {
    return this.book.tabs[this.tab.value];
  }

  /** The selected cells. */
  get range(): Range {
    return rangeOf(this.cell.value, this.end.value);
  }

  /** The last row and column that can be reached. */
  get last(): [number, number] {
    const tab = this.active!;
    let [row, column] = [tab.lastRow, tab.lastBound];
    for (const key of tab.inputs.keys()) {
      const [r, c] = cellOf(key);
      row = Math.max(row, r);
      column = Math.max(column, c);
    }
    return [row + 50, Math.min(maxColumns, Math.max(26, column + 5))];
  }

  changes(): Change[] {
    return this.book.tabs.flatMap(changesOf);
  }

  select(row: number, column: number, extend = false): void {
    const [rows, columns] = this.last;
    const at: [number, number] = [Math.min(rows, Math.max(1, row)), Math.min(columns, Math.max(1, column))];
    batch(() => {
      this.end.value = at;
      if (!extend) this.cell.value = at;
      this.refusal.value = '';
    });
  }

  selectRange({ top, left, bottom, right }: Range): void {
    this.select(top, left);
    this.select(bottom, right, true);
  }

  show(index: number): void {
    batch(() => {
      this.tab.value = Math.max(0, Math.min(index, this.book.tabs.length - 1));
      this.editing.value = null;
      this.select(2, this.active?.selected ? 3 : 1);
    });
  }

  /** Begins to edit the selected cell: with what is in it, or with what was typed. */
  edit(text?: string): void {
    const [row, column] = this.cell.value;
    const fixed = mode.value ? 'The past cannot be changed.' : this.active!.fixed(row, column);
    if (fixed) this.refusal.value = fixed;
    else this.editing.value = text ?? this.active!.inputAt(row, column);
  }

  /** Takes what was typed; false if it is refused. */
  commit(): boolean {
    const text = this.editing.value;
    if (text === null) return true;
    const [row, column] = this.cell.value;
    if (!this.type([[row, column, text]])) return false;
    this.editing.value = null;
    return true;
  }

  /** Types into cells; false if one is refused. */
  type(inputs: [number, number, string][]): boolean {
    return this.try(() => this.book.type(this.active!, inputs));
  }

  try(act: () => void): boolean {
    try {
      act();
      this.refusal.value = '';
      return true;
    } catch (error) {
      this.refusal.value = (error as Error).message;
      return false;
    }
  }

  async attempt(act: () => Promise<void>): Promise<void> {
    try {
      await act();
      this.refusal.value = '';
    } catch (error) {
      this.refusal.value = messageOf(error);
    }
  }

  /** What was typed over a value that is the same now is done. */
  #drop(): void {
    for (const tab of this.book.tabs) {
      if (tab.at || !tab.complete) continue;
      const pending = new Set(changesOf(tab).map(({ key }) => key));
      const done = [...tab.bases.keys()].filter((key) => !pending.has(key) && !tab.inputs.get(key)?.startsWith('=') && tab.entryAt(cellOf(key)[0])?.gone === false);
      if (done.length > 0) this.book.settle(tab, done);
    }
  }

  async #keepAddress(): Promise<void> {
    const text = plain(this.book) ? '' : await toAddress(this.book);
    this.tooLong.value = text === '' && !plain(this.book);
    this.addressed = text;
    if (current.peek() === this) address.value = text;
  }
}

/** Whether the kind in the address says all about a workbook. */
function plain({ tabs }: Book): boolean {
  const [{ selected, columns, inputs }] = tabs;
  return tabs.length === 1 && selected !== null && inputs.size === 0 && selected.namespace === '' && selected.selector === '' && columns.map(({ text }) => text).join() === usualColumns(selected.resource.kind).join();
}

/** The open workbook; it stays when another view is shown. */
export const current = signal<Sheet | null>(null);
// For benchmarks.
Object.assign(window, { spreadsheet: current });
