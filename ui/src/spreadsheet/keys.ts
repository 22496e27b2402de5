// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The keys of the grid, as in other spreadsheets. */

import type { Sheet } from './sheet';

const MOVES: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Acts on a key of the grid, while nothing is edited; true if it was used. */
export function onKey(sheet: Sheet, event: KeyboardEvent, page: number): boolean {
  const { key, shiftKey: shift } = event;
  const control = event.ctrlKey || event.metaKey;
  const [row, column] = shift ? sheet.end.value : sheet.cell.value;
  const tab = sheet.active!;
  const [lastRow, lastColumn] = [Math.max(tab.lastRow, 1), Math.max(tab.lastBound, 1)];
  if (event.altKey) return false;
  if (key in MOVES) {
    const [down, right] = MOVES[key];
    if (control) sheet.select(...edge(sheet, row, column, down, right), shift);
    else sheet.select(row + down, column + right, shift);
  } else if (key === 'PageDown' || key === 'PageUp') {
    if (control) sheet.show(sheet.tab.value + (key === 'PageDown' ? 1 : -1));
    else sheet.select(row + (key === 'PageDown' ? page : -page), column, shift);
  } else if (key === 'Home') sheet.select(control ? 1 : row, 1, shift);
  else if (key === 'End') sheet.select(control ? lastRow : row, lastColumn, shift);
  else if (control && key.toLowerCase() === 'a') sheet.selectRange({ top: 1, left: 1, bottom: lastRow, right: lastColumn });
  else if (control && key.toLowerCase() === 'z') sheet.book.undo();
  else if (control && key.toLowerCase() === 'd') fill(sheet, true);
  else if (control && key.toLowerCase() === 'r') fill(sheet, false);
  else if (control) return false;
  else if (key === 'Enter') {
    if (shift) sheet.select(row - 1, column);
    else sheet.edit();
  } else if (key === 'F2') sheet.edit();
  else if (key === 'Delete' || key === 'Backspace') clear(sheet);
  else if (key === 'Escape' && sheet.end.value.join() !== sheet.cell.value.join()) sheet.select(...sheet.cell.value);
  else if (key.length === 1) sheet.edit(key);
  else return false;
  return true;
}

/** The last cell of a run of cells that are filled, or the first filled one. */
function edge(sheet: Sheet, row: number, column: number, down: number, right: number): [number, number] {
  const tab = sheet.active!;
  const [rows, columns] = sheet.last;
  const filled = (r: number, c: number): boolean => tab.textAt(r, c) !== '';
  const inside = (r: number, c: number): boolean => r >= 1 && c >= 1 && r <= rows && c <= columns;
  const run = filled(row, column) && inside(row + down, column + right) && filled(row + down, column + right);
  let [r, c] = [row + down, column + right];
  while (inside(r + down, c + right) && (run ? filled(r + down, c + right) : !filled(r, c))) [r, c] = [r + down, c + right];
  return [r, c];
}

/** Empties what was typed in the selected cells; in a single cell of the cluster, removes the value. */
function clear(sheet: Sheet): void {
  const tab = sheet.active!;
  const keys = sheet.book.keysIn(tab, sheet.range);
  if (keys.length > 0) sheet.book.revert(tab, keys);
  else if (sheet.cell.value.join() === sheet.end.value.join()) sheet.type([[...sheet.cell.value, '']]);
}

/** Fills the selected cells from the first row or column of them. */
export function fill(sheet: Sheet, down: boolean): void {
  const { top, left, bottom, right } = sheet.range;
  if (down ? bottom > top : right > left) {
    const from = down ? { top, left, bottom: top, right } : { top, left, bottom, right: left };
    void sheet.attempt(() => sheet.book.fill(sheet.active!, from, down ? bottom : right, down));
  }
}
