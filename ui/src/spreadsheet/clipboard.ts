// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Cells on the clipboard: as Excel, LibreOffice and Google Sheets exchange them, and with their formulas within the page. */

import { dangerous, type Range } from './cells';
import type { Tab } from './tab';

/** Cells of this page, of which only the page knows the tab. */
const OWN = 'application/x-watchkeeper-cells';

/** What was copied here last: the clipboard has only its number. */
let own: { number: number; tab: Tab; range: Range } | null = null;

/** Copies a range. */
export function copyCells(data: DataTransfer, tab: Tab, range: Range): void {
  own = { number: (own?.number ?? 0) + 1, tab, range };
  const rows: string[][] = [];
  for (let row = range.top; row <= range.bottom; row++) {
    const cells: string[] = [];
    for (let column = range.left; column <= range.right; column++) cells.push(outside(tab, row, column));
    rows.push(cells);
  }
  data.setData('text/plain', writeTSV(rows));
  data.setData('text/html', writeHTML(rows));
  data.setData(OWN, String(own.number));
}

/** A text of the cluster that another spreadsheet could take for a formula gets an apostrophe. */
function outside(tab: Tab, row: number, column: number): string {
  const text = tab.textAt(row, column);
  const value = tab.valueAt(row, column);
  return typeof value === 'string' && dangerous(text) ? `'${text}` : text;
}

/** What is on the clipboard: a range of this page that still exists, or texts. */
export function pasted(data: DataTransfer, tabs: Tab[]): { tab: Tab; range: Range } | string[][] {
  if (own && data.getData(OWN) === String(own.number) && tabs.includes(own.tab)) return own;
  return parseTSV(data.getData('text/plain'));
}

export const writeTSV = (rows: string[][]): string => rows.map((row) => row.map((text) => (/[\t\r\n"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join('\t')).join('\n');

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const writeHTML = (rows: string[][]): string => `<table>${rows.map((row) => `<tr>${row.map((text) => `<td>${escape(text)}</td>`).join('')}</tr>`).join('')}</table>`;

/** A text up to the next tab or line, quoted if it has them. */
const CELL = /"((?:[^"]|"")*)"(?=[\t\n]|$)|([^\t\n]*)/y;

/** Reads texts separated by tabs; a quoted one may have tabs and lines. */
export function parseTSV(text: string): string[][] {
  const body = text.replace(/\r\n?/g, '\n').replace(/\n$/, '');
  const rows: string[][] = [[]];
  for (let at = 0; at <= body.length; at++) {
    CELL.lastIndex = at;
    const [all, quotedText, plainText] = CELL.exec(body)!;
    rows.at(-1)!.push(quotedText?.replaceAll('""', '"') ?? plainText);
    at += all.length;
    if (body[at] === '\n') rows.push([]);
  }
  return rows;
}
