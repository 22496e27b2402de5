// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The formulas of the spreadsheet: the corpus on which excelize and LibreOffice
// agree (internal/serve/sheet), and what is done with many cells.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { initSync } from '@ironcalc/wasm';
import corpus from '../../internal/serve/sheet/testdata/formulas.json';
import { parseName } from '../src/spreadsheet/cells';
import { Formulas, type Input } from '../src/spreadsheet/formulas';
import { unsupported } from '../src/spreadsheet/functions';

initSync({ module: readFileSync('node_modules/@ironcalc/wasm/wasm_bg.wasm') });

const everywhere = () => true;
const typed = (value: unknown): string => (typeof value === 'string' ? (value.startsWith('=') ? value : `'${value}`) : typeof value === 'boolean' ? String(value).toUpperCase() : String(value ?? ''));

test('IronCalc gives what excelize and LibreOffice give', () => {
  const differ: string[] = [];
  for (const { cells, formula, value } of corpus as { cells: Record<string, unknown>; formula: string; value: unknown }[]) {
    const formulas = new Formulas('UTC');
    const names = ['Sheet1', ...new Set(Object.keys(cells).filter((name) => name.includes('!')).map((name) => name.split('!')[0].replaceAll("'", '')))];
    formulas.tabs(names);
    const inputs = Object.entries(cells).map(([name, cell]): Input => {
      const [tab, at] = name.includes('!') ? name.split('!') : ['Sheet1', name];
      return [names.indexOf(tab.replaceAll("'", '')), ...parseName(at)!, typed(cell)];
    });
    formulas.set([...inputs, [0, 90, 26, formula]], everywhere);
    const result = formulas.evaluate().find(({ row, column }) => row === 90 && column === 26)!;
    const got = result.value ?? result.text;
    const same = typeof value === 'number' && typeof got === 'number' ? Math.abs(value - got) <= 1e-9 * Math.max(1, Math.abs(value)) : got === value;
    if (!same) differ.push(`${formula} with ${JSON.stringify(cells)}: ${JSON.stringify(got)}, want ${JSON.stringify(value)}`);
  }
  assert.deepEqual(differ, []);
});

test('the functions of a formula are known by name, in texts and names of tabs they are none', () => {
  assert.equal(unsupported('=IF(HOUR(NOW())<7,0,3)'), '');
  assert.equal(unsupported('=1+XLOOKUP(1,A:A,B:B)'), 'XLOOKUP');
  assert.equal(unsupported('="FOO(1)"&\'BAR(2)\'!A1'), '');
  assert.equal(unsupported('=webservice("http://x")'), 'WEBSERVICE');
});

/** Formulas of one tab. */
function fresh(...inputs: Input[]): Formulas {
  const formulas = new Formulas('UTC');
  formulas.tabs(['one', 'two']);
  formulas.set(inputs, everywhere);
  return formulas;
}

test('a text is never a formula', () => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', "'=1", '{=1}', '#REF!', '1e5', 'TRUE']) {
    const formulas = fresh([0, 1, 1, `'${text}`], [0, 1, 2, '=A1&""'], [0, 1, 3, '=ISNUMBER(A1)']);
    const results = formulas.evaluate();
    assert.equal(results.find(({ column }) => column === 2)!.value, text);
    assert.equal(results.find(({ column }) => column === 3)!.value, false, text);
  }
});

test('only changed results are told, and numbers have all their digits', () => {
  const formulas = fresh([0, 1, 1, '123456789012'], [0, 1, 2, '=A1+1'], [0, 2, 2, '=1/3'], [0, 3, 2, '=1/0'], [0, 4, 2, '=1=1']);
  assert.deepEqual(formulas.evaluate().map(({ value, text }) => [value, text]), [[123456789013, '123456789013'], [0.333333333333, '0.333333333333'], [null, '#DIV/0!'], [true, 'TRUE']]);
  const long = fresh([0, 1, 1, '1764500000000'], [0, 1, 2, '=A1+1'], [0, 2, 2, '=-A1-1.5'], [0, 3, 2, '=999999999999999-1']);
  assert.deepEqual(long.evaluate().map(({ value }) => value), [1764500000001, -1764500000002, 999999999999998]);
  assert.deepEqual(formulas.evaluate(), []);
  formulas.set([[0, 1, 1, '1']], everywhere);
  assert.deepEqual(formulas.evaluate().map(({ value }) => value), [2]);
});

test('a cell forgets the format of what was in it', () => {
  const formulas = fresh([0, 1, 1, '=TODAY()']);
  formulas.evaluate();
  assert.ok(formulas.volatile);
  formulas.set([[0, 1, 1, '=1/2']], () => false);
  assert.deepEqual(formulas.evaluate().map(({ text }) => text), ['0.5']);
  assert.ok(!formulas.volatile);
});

test('references move when cells are filled and copied, and when rows and columns are', () => {
  const formulas = fresh([0, 2, 2, '10'], [0, 2, 3, '=B2*2']);
  assert.deepEqual(formulas.fill(0, { top: 2, left: 3, bottom: 2, right: 3 }, 4, true), [[0, 3, 3, '=B3*2'], [0, 4, 3, '=B4*2']]);
  assert.deepEqual(formulas.copy(0, { top: 2, left: 3, bottom: 2, right: 3 }, 1, 5, 5), [[1, 5, 5, '=D5*2']]);
  assert.deepEqual(formulas.reshape(0, 'insertColumns', 2), [[0, 2, 4, '=C2*2']]);
  assert.deepEqual(formulas.reshape(0, 'deleteRows', 1), [[0, 1, 4, '=C1*2']]);
});

test('the workbook survives being made anew after many inputs', () => {
  const formulas = fresh([0, 1, 1, "'=1"], [0, 1, 2, '=A1&"x"'], [1, 1, 1, '5'], [0, 1, 3, '=two!A1']);
  formulas.evaluate();
  for (let i = 0; i < 6; i++) formulas.set(Array.from({ length: 10_000 }, (_, row): Input => [1, row + 2, 1, String(i)]), everywhere);
  formulas.set([[1, 1, 1, '7']], everywhere);
  assert.deepEqual(formulas.evaluate().map(({ value }) => value), [7]);
  formulas.set([[0, 1, 4, '=A1']], everywhere);
  assert.deepEqual(formulas.evaluate().map(({ value }) => value), ['=1']);
});

test('tabs come and go', () => {
  const formulas = fresh([0, 1, 1, '=two!A1'], [1, 1, 1, '5']);
  formulas.tabs(['two', 'one']);
  formulas.set([[0, 1, 2, '=one!A1']], everywhere);
  assert.equal(formulas.evaluate().find(({ column }) => column === 2)?.value, 5);
  formulas.tabs([]);
  formulas.tabs(['new']);
  assert.ok(!formulas.any);
});
