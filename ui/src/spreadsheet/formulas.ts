// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Formulas, evaluated by IronCalc, which runs in a worker. It has every cell of
 * the workbook as it would be typed; what a cell shows comes from here only if it
 * has a formula. IronCalc evaluates the whole workbook at once.
 */

import { Model } from '@ironcalc/wasm';
import { cellOf, isFormula, keyOf, movedKey, type Range, type Reshaping } from './cells';

/** What is typed into a cell of a tab; empty clears it. */
export type Input = [tab: number, row: number, column: number, text: string];

/** The result of a formula. */
export interface Result {
  tab: number;
  row: number;
  column: number;
  /** As it is shown: a date, a percentage. */
  text: string;
  /** The value; null for an error, such as #DIV/0!, which the text then is. */
  value: string | number | boolean | null;
}

/** IronCalc's types of values. */
const NUMBER = 1;
const LOGICAL = 4;
const ERROR = 16;
/** A number format that shows the whole number, for what is written to the cluster. */
const whole = '0.################';
/** IronCalc keeps what is needed to undo each input. After so many it begins anew. */
const maxInputs = 50_000;
/** Functions whose results change by themselves. */
const VOLATILE = /\b(NOW|TODAY|RAND|RANDBETWEEN)\s*\(/i;

export class Formulas {
  #model: Model;
  #inputs = 0;
  /** By tab: the user's cells, with their last results. */
  #cells: Map<number, Result | null>[] = [];
  #volatile = false;

  constructor(readonly zone: string) {
    this.#model = this.#empty();
  }

  #empty(): Model {
    const model = new Model('workbook', 'en', this.zone, 'en');
    model.pauseEvaluation();
    return model;
  }

  /** Whether there are formulas. */
  get any(): boolean {
    return this.#cells.some((cells) => cells.size > 0);
  }

  /** Whether results change with time. */
  get volatile(): boolean {
    return this.#volatile;
  }

  /** Has a tab for each name, in their order. A tab that is renamed keeps its cells; without tabs everything is forgotten. */
  tabs(names: string[]): void {
    if (names.length === 0) {
      this.#model.free();
      this.#model = this.#empty();
      this.#cells = [];
      return;
    }
    const model = this.#model;
    while (this.#cells.length < names.length) {
      if (this.#cells.length > 0) model.newSheet();
      this.#cells.push(new Map());
    }
    while (this.#cells.length > names.length) {
      this.#cells.pop();
      model.deleteSheet(this.#cells.length);
    }
    // Two may swap their names.
    names.forEach((_, i) => model.renameSheet(i, `watchkeeper ${i}`));
    names.forEach((name, i) => model.renameSheet(i, name));
  }

  /** Types into cells. `bound`: their formulas give values of the cluster, which need all digits. */
  set(inputs: Input[], bound: (tab: number, row: number, column: number) => boolean): void {
    let changed = false; // which formulas there are
    for (const [tab, row, column, text] of inputs) {
      const cells = this.#cells[tab];
      if (!cells) continue;
      const key = keyOf(row, column);
      const formula = isFormula(text);
      if (formula || cells.has(key)) {
        changed = true;
        // What a cell shows also depends on what was in it: it may still have the format of a date.
        this.#model.rangeClearAll(tab, row, column, row, column);
        cells.delete(key);
      }
      this.#model.setUserInput(tab, row, column, text);
      if (formula) {
        cells.set(key, null);
        if (bound(tab, row, column)) this.#model.updateRangeStyle({ sheet: tab, row, column, width: 1, height: 1 } as never, 'num_fmt', whole);
      }
    }
    this.#inputs += inputs.length;
    this.#renew();
    if (changed) this.#findVolatile();
  }

  /** Evaluates all formulas, and returns the results that differ from the last ones. */
  evaluate(): Result[] {
    if (!this.any) return [];
    this.#model.evaluate();
    const changed: Result[] = [];
    this.#cells.forEach((cells, tab) => {
      for (const [key, last] of cells) {
        const [row, column] = cellOf(key);
        const result = this.#result(tab, row, column);
        if (last && last.text === result.text && last.value === result.value) continue;
        cells.set(key, result);
        changed.push(result);
      }
    });
    return changed;
  }

  /** Fills cells below (or above) or next to a range from it, as the handle of a spreadsheet does; returns what is in them then. */
  fill(tab: number, { top, left, bottom, right }: Range, to: number, down: boolean): Input[] {
    const area = { sheet: tab, row: top, column: left, width: right - left + 1, height: bottom - top + 1 } as never;
    if (down) this.#model.autoFillRows(area, to);
    else this.#model.autoFillColumns(area, to);
    const range = down
      ? { top: Math.min(to, bottom + 1), bottom: Math.max(to, top - 1), left, right }
      : { left: Math.min(to, right + 1), right: Math.max(to, left - 1), top, bottom };
    return this.#contents(tab, range);
  }

  /** Copies a range to where it begins elsewhere, with its references moved; returns what is in the cells then. */
  copy(from: number, { top, left, bottom, right }: Range, tab: number, row: number, column: number): Input[] {
    const model = this.#model;
    model.setSelectedSheet(from);
    model.setSelectedCell(top, left);
    model.setSelectedRange(top, left, bottom, right);
    const clip = model.copyToClipboard();
    const range = { top: row, left: column, bottom: row + bottom - top, right: column + right - left };
    model.setSelectedSheet(tab);
    model.setSelectedCell(row, column);
    model.setSelectedRange(row, column, range.bottom, range.right);
    model.pasteFromClipboard(from, clip.range, clip.data, false);
    return this.#contents(tab, range);
  }

  /** Inserts or deletes columns or rows; formulas that refer to others follow. Returns all formulas. */
  reshape(tab: number, what: Reshaping, at: number, count = 1): Input[] {
    this.#model[what](tab, at, count);
    const cells = this.#cells[tab];
    const moved = new Map<number, Result | null>();
    for (const [key, last] of cells) {
      const to = movedKey(key, what, at, count);
      const [row, column] = cellOf(to);
      if (to) moved.set(to, last && { ...last, row, column });
    }
    this.#cells[tab] = moved;
    this.#inputs += count;
    this.#findVolatile();
    return this.#cells.flatMap((of, i) => [...of.keys()].map((key): Input => {
      const [row, column] = cellOf(key);
      return [i, row, column, this.#model.getCellContent(i, row, column)];
    }));
  }

  #contents(tab: number, { top, left, bottom, right }: Range): Input[] {
    const inputs: Input[] = [];
    for (let row = top; row <= bottom; row++) for (let column = left; column <= right; column++) inputs.push([tab, row, column, this.#model.getCellContent(tab, row, column)]);
    return inputs;
  }

  #result(tab: number, row: number, column: number): Result {
    const model = this.#model;
    const text = model.getFormattedCellValue(tab, row, column);
    const type = model.getCellType(tab, row, column);
    if (type === ERROR) return { tab, row, column, text, value: null };
    if (type === LOGICAL) return { tab, row, column, text, value: text === 'TRUE' };
    if (type !== NUMBER) return { tab, row, column, text, value: text };
    // The format of all digits ends in a dot, and its last digits are not exact, but those before the dot.
    const value = Number(Number(text).toPrecision(Math.min(15, Math.max(12, text.replace('-', '').indexOf('.')))));
    return /^-?\d*\.\d*$/.test(text) ? { tab, row, column, text: String(value), value } : { tab, row, column, text, value: Number.isNaN(value) ? text : value };
  }

  #renew(): void {
    if (this.#inputs < maxInputs) return;
    this.#inputs = 0;
    const old = this.#model;
    this.#model = Model.from_bytes(old.toBytes(), 'en');
    this.#model.pauseEvaluation();
    old.free();
  }

  #findVolatile(): void {
    this.#volatile = this.#cells.some((cells, tab) => [...cells.keys()].some((key) => VOLATILE.test(this.#model.getCellContent(tab, ...cellOf(key)))));
  }
}
