// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** A workbook: its tabs, what is typed into them, and the formulas' results. */

import { signal } from '@preact/signals';
import { inFrame } from '../app/frame';
import { cellOf, inRange, isFormula, keyOf, movedKey, type Range, type Reshaping } from './cells';
import type { Engine } from './engine';
import type { Input, Result } from './formulas';
import { unsupported } from './functions';
import { columnOf } from './path';
import type { Selected } from './reading';
import { firstColumn, Tab } from './tab';

/** What was in a cell before an edit, for undo. */
interface Before {
  tab: Tab;
  key: number;
  input: string | undefined;
  base: unknown;
  based: boolean;
}

/** How many edits can be undone. */
const maxUndo = 100;
/** Deleted objects keep their rows, up to this many in a tab. */
const maxGone = 500;

export class Book {
  readonly tabs: Tab[] = [];
  /** Incremented when it should be rendered, at most once per frame. */
  readonly version = signal(0);
  /** Why formulas are not evaluated; empty if they are. */
  readonly broken = signal('');
  /** Told after each change: of a tab's values, inputs or results. */
  changed: () => void = () => undefined;
  /** For benchmarks: how long the last changes took to be painted, in milliseconds. */
  readonly painted: number[] = [];
  readonly #engine: Engine;
  readonly #undo: Before[][] = [];
  #due = false;
  #at = '';

  constructor(start: (on: { results(results: Result[]): void; failed(error: string): void }) => Engine) {
    this.#engine = start({
      results: (results) => {
        for (const result of results) this.tabs[result.tab]?.results.set(keyOf(result.row, result.column), result);
        this.touch();
      },
      failed: (error) => (this.broken.value = error),
    });
  }

  close(): void {
    for (const tab of this.tabs) tab.close();
    this.#engine.close();
  }

  /** Adds a tab. Without objects it is free. `fill` may type into it before its objects are read. */
  add(name: string, selected: Selected | null, columns: string[], fill: (tab: Tab) => void = () => undefined): Tab {
    const tab = new Tab(this.tabs.length, this.#free(name), selected, columns.map(columnOf), {
      typed: (inputs) => this.#engine.set(inputs),
      changed: (of) => {
        void this.#trim(of);
        this.touch();
      },
      untouched: () => this.tabs.every(({ inputs }) => inputs.size === 0),
    });
    fill(tab);
    this.tabs.push(tab);
    this.#describe();
    this.#engine.set(tab.typed());
    tab.show(this.#at);
    this.touch();
    return tab;
  }

  remove(tab: Tab): void {
    tab.close();
    this.tabs.splice(tab.index, 1);
    this.#undo.length = 0;
    this.#restart();
  }

  /** Shows a moment, as /at takes it; empty for the live state. */
  show(at: string): void {
    if (at === this.#at) return;
    this.#at = at;
    for (const tab of this.tabs) tab.show(at);
  }

  /** The moment that is shown. */
  get at(): string {
    return this.#at;
  }

  wake(): void {
    for (const tab of this.tabs) tab.wake();
  }

  /** Types into cells; throws if one of them cannot be changed, and then changes none. Empty clears. */
  type(tab: Tab, inputs: [row: number, column: number, text: string][]): void {
    if (this.#at) throw new Error('The past cannot be changed.');
    for (const [row, column, text] of inputs) {
      const fixed = tab.fixed(row, column);
      if (fixed && text !== tab.inputAt(row, column)) throw new Error(fixed);
      const unknown = isFormula(text) && unsupported(text);
      if (unknown) throw new Error(`The function ${unknown} is not supported.`);
    }
    const edit: Before[] = [];
    for (const [row, column, text] of inputs) {
      if (text === tab.inputAt(row, column)) continue;
      const key = keyOf(row, column);
      edit.push(this.#before(tab, key));
      const bound = tab.isBound(row, column);
      tab.results.delete(key);
      tab.failures.delete(key);
      if (text === '' && !bound) tab.inputs.delete(key);
      else {
        tab.inputs.set(key, text);
        if (bound && !tab.bases.has(key)) tab.bases.set(key, tab.valueAt(row, column));
      }
      if (!tab.inputs.has(key)) tab.bases.delete(key);
    }
    if (edit.length === 0) return;
    this.#undo.push(edit);
    if (this.#undo.length > maxUndo) this.#undo.shift();
    this.#send(tab, edit.map(({ key }) => key));
  }

  /** Shows the values of the cluster again in cells of a range over which something was typed. */
  revert(tab: Tab, keys: number[]): void {
    const edit = keys.filter((key) => tab.inputs.has(key)).map((key) => this.#before(tab, key));
    for (const { key } of edit) this.#forget(tab, key);
    if (edit.length > 0) this.#undo.push(edit);
    this.#send(tab, keys);
  }

  /** What was typed is in the cluster: the cells show that. It cannot be undone here. */
  settle(tab: Tab, keys: number[]): void {
    for (const key of keys) this.#forget(tab, key);
    this.#send(tab, keys);
  }

  /** Undoes the last edit; false if there is none. */
  undo(): boolean {
    const edit = this.#undo.pop();
    if (!edit || this.#at) return false;
    for (const { tab, key, input, base, based } of edit) {
      this.#forget(tab, key);
      if (input !== undefined) tab.inputs.set(key, input);
      if (based) tab.bases.set(key, base);
    }
    for (const tab of new Set(edit.map((one) => one.tab))) this.#send(tab, edit.filter((one) => one.tab === tab).map(({ key }) => key));
    return true;
  }

  /** Fills cells next to a range from it: down or up to a row, or across to a column. */
  async fill(tab: Tab, range: Range, to: number, down: boolean): Promise<void> {
    this.#take(tab, await this.#engine.ask({ kind: 'fill', tab: tab.index, range, to, down }));
  }

  /** Copies a range within the workbook: formulas refer to what is next to their new place. */
  async copy(from: Tab, range: Range, tab: Tab, row: number, column: number): Promise<void> {
    this.#take(tab, await this.#engine.ask({ kind: 'copy', from: from.index, range, tab: tab.index, row, column }));
  }

  /** Adds a column of values of the cluster after the others; what is free moves to the right. */
  async addColumn(tab: Tab, text: string): Promise<void> {
    const column = columnOf(text);
    if (tab.columns.some((other) => other.text === column.text)) throw new Error(`There is a column ${column.text}.`);
    if (tab.columns.length === 60) throw new Error('There can be 60 columns.');
    await this.#reshape(tab, 'insertColumns', tab.lastBound + 1, 1);
    tab.columns = [...tab.columns, column];
    this.#columnsChanged(tab);
  }

  async removeColumn(tab: Tab, column: number): Promise<void> {
    await this.#reshape(tab, 'deleteColumns', column, 1);
    tab.columns = tab.columns.filter((_, i) => i !== column - firstColumn);
    for (const entry of tab.entries) entry.values = entry.values.filter((_, i) => i !== column - firstColumn);
    this.#columnsChanged(tab);
  }

  /** Removes the rows of deleted objects. */
  async removeGone(tab: Tab): Promise<void> {
    for (let row = tab.lastRow; row > 1; row--) {
      if (!tab.entryAt(row)?.gone) continue;
      let first = row;
      while (tab.entryAt(first - 1)?.gone) first--;
      const count = row - first + 1;
      await this.#reshape(tab, 'deleteRows', first, count, () => tab.removeRows(first, count));
      row = first;
    }
    this.touch();
  }

  /** All rows are in use by objects that do not exist any more. */
  async #trim(tab: Tab): Promise<void> {
    if (this.#trimming || tab.entries.reduce((sum, { gone }) => sum + (gone ? 1 : 0), 0) <= maxGone) return;
    this.#trimming = true;
    await this.removeGone(tab).finally(() => (this.#trimming = false));
  }

  #trimming = false;

  /** The cells of a range that have what was typed, or all of them. */
  keysIn(tab: Tab, range: Range): number[] {
    return [...tab.inputs.keys()].filter((key) => inRange(range, ...cellOf(key)));
  }

  #columnsChanged(tab: Tab): void {
    this.#describe();
    this.#engine.set(tab.typed());
    tab.show(this.#at);
    this.touch();
  }

  async #reshape(tab: Tab, what: Reshaping, at: number, count: number, then: () => void = () => undefined): Promise<void> {
    const asked = this.#engine.ask({ kind: 'reshape', tab: tab.index, what, at, count });
    // What the cluster changes from now on is typed after it.
    for (const cells of [tab.inputs, tab.bases, tab.results, tab.failures] as Map<number, unknown>[]) {
      const old = [...cells];
      cells.clear();
      for (const [key, value] of old) {
        const to = movedKey(key, what, at, count);
        if (to) cells.set(to, value);
      }
    }
    then();
    this.#undo.length = 0;
    for (const [i, row, column, text] of await asked) this.tabs[i].inputs.set(keyOf(row, column), text);
  }

  #take(tab: Tab, inputs: Input[]): void {
    // Cells that have not changed are left alone; a refusal changes none, in the worker, too.
    try {
      this.type(tab, inputs.map(([, row, column, text]) => [row, column, text]));
    } catch (error) {
      this.#engine.set(inputs.map(([i, row, column]): Input => [i, row, column, tab.typedAt(row, column)]));
      throw error;
    }
  }

  #before = (tab: Tab, key: number): Before => ({ tab, key, input: tab.inputs.get(key), base: tab.bases.get(key), based: tab.bases.has(key) });

  #forget(tab: Tab, key: number): void {
    tab.inputs.delete(key);
    tab.bases.delete(key);
    tab.results.delete(key);
    tab.failures.delete(key);
  }

  #send(tab: Tab, keys: number[]): void {
    this.#engine.set(keys.map((key): Input => {
      const [row, column] = cellOf(key);
      return [tab.index, row, column, tab.typedAt(row, column)];
    }));
    this.touch();
  }

  #free(name: string): string {
    // What Excel, LibreOffice and IronCalc do not take in the name of a tab.
    const clean = name.replace(/[[\]:*?/\\']/g, ' ').trim().slice(0, 31) || 'Sheet';
    for (let i = 1; ; i++) {
      const next = i === 1 ? clean : `${clean.slice(0, 31 - ` ${i}`.length)} ${i}`;
      if (!this.tabs.some((tab) => tab.name.toLowerCase() === next.toLowerCase())) return next;
    }
  }

  #describe(): void {
    this.#engine.tabs(this.tabs.map(({ name }) => name), this.tabs.map((tab) => ({ from: firstColumn - 1, to: tab.lastBound })));
  }

  /** The worker has the tabs by their index. */
  #restart(): void {
    this.#engine.tabs([], []);
    this.tabs.forEach((tab, i) => (tab.index = i));
    this.#describe();
    for (const tab of this.tabs) {
      tab.results.clear();
      this.#engine.set(tab.typed());
    }
    this.touch();
  }

  /** Renders again, with the next frame. */
  touch(): void {
    if (this.#due) return;
    this.#due = true;
    const began = performance.now();
    const render = (): void => {
      this.#due = false;
      this.version.value++;
      this.changed();
      // The next task is after the frame.
      setTimeout(() => {
        if (this.painted.push(performance.now() - began) > 10_000) this.painted.splice(0, 5000);
      });
    };
    if (typeof document === 'undefined' || document.hidden) setTimeout(render, 100);
    else inFrame(render);
  }
}
