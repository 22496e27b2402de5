// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What differs between a tab and the cluster, because it was typed or is the result of a formula. */

import { same } from '../write/patch';
import { cellOf, isFormula, valueFrom } from './cells';
import { isText } from './path';
import { firstColumn, type Entry, type Tab } from './tab';

/** A value that is to be written. */
export interface Change {
  tab: Tab;
  key: number;
  row: number;
  column: number;
  entry: Entry;
  /** The value that the cell showed; undefined if the object does not have it. */
  old: unknown;
  /** Of a cell that cannot be one, what was typed or what the formula gives. */
  value: unknown;
  formula: boolean;
  /** False if no request could write it. */
  writable: boolean;
  /** Why it cannot be written; empty if it can. */
  problem: string;
}

/** Formulas round integers from here on. */
const inexact = 1e15;

/** The changes of a tab, in the order of its rows. */
export function changesOf(tab: Tab): Change[] {
  if (!tab.selected || tab.at) return [];
  const changes: Change[] = [];
  for (const [key, input] of tab.inputs) {
    const change = changeOf(tab, key, input);
    if (change) changes.push(change);
  }
  return changes.sort((a, b) => a.key - b.key);
}

/** The change of a cell; null if there is none. */
export function changeOf(tab: Tab, key: number, input: string): Change | null {
  const [row, column] = cellOf(key);
  const entry = tab.entryAt(row);
  const of = tab.columnAt(column);
  if (!entry || !of) return null;
  const now = entry.values[column - firstColumn];
  const formula = isFormula(input);
  const result = tab.results.get(key);
  if (formula && !result) return null; // not evaluated yet
  const old = formula || !tab.bases.has(key) ? now : tab.bases.get(key);
  const change: Change = { tab, key, row, column, entry, old, value: formula ? (result!.value ?? result!.text) : input, formula, writable: false, problem: '' };
  if (entry.gone) return { ...change, problem: 'The object was deleted.' };
  if (formula && typeof result!.value === 'number' && Math.abs(result!.value) >= inexact) return { ...change, problem: `The formula gives ${result!.text}, and formulas have only 15 digits: type the number.` };
  if (formula && result!.value === null) return { ...change, problem: `The formula gives ${result!.text}.` };
  try {
    change.value = valueFrom(formula ? result!.value! : input, now ?? old, isText(of.steps));
  } catch (error) {
    return { ...change, problem: (error as Error).message };
  }
  if (same(change.value, now)) return null;
  return { ...change, writable: !of.fixed, problem: of.fixed || tab.failures.get(key) || '' };
}
