// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The automatic mode of the spreadsheet, with a clock that is set.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Automatic, maxWrites } from '../src/spreadsheet/automatic';
import { keyOf } from '../src/spreadsheet/cells';
import type { Change } from '../src/spreadsheet/changes';
import type { Tab } from '../src/spreadsheet/tab';

/** A formula in C2 that always has another value, and what was written. */
function endless() {
  const written: Change[][] = [];
  let now = 0;
  const key = keyOf(2, 3);
  const entry = { uid: 'u' };
  const tab = { index: 0, inputs: new Map([[key, '=D2+1']]), entryAt: () => entry } as unknown as Tab;
  const change = { tab, key, row: 2, column: 3, entry, formula: true, problem: '' } as unknown as Change;
  const automatic = new Automatic({ running: false, apply: (changes) => { written.push(changes); return Promise.resolve({} as never); } }, () => [change], () => now);
  automatic.on.value = true;
  return { automatic, written, tab, key, entry, change, pass: (ms: number) => (now += ms) };
}

test('an object is written to at most once in a second', async (t) => {
  const { automatic, written, pass } = endless();
  t.after(() => automatic.close());
  await automatic.run();
  pass(999);
  await automatic.run();
  assert.equal(written.length, 1);
  pass(1);
  await automatic.run();
  assert.equal(written.length, 2);
});

test('a formula that does not settle is stopped, and says so; another one in its cell is not', async (t) => {
  const { automatic, written, tab, key, pass } = endless();
  t.after(() => automatic.close());
  for (let i = 0; i < 20; i++) {
    await automatic.run();
    pass(1000);
  }
  assert.equal(written.length, maxWrites);
  assert.match(automatic.stopped(tab, key), /does not settle/);
  assert.ok(automatic.anyStopped);
  tab.inputs.set(key, '=1');
  assert.equal(automatic.stopped(tab, key), '');
  await automatic.run();
  assert.equal(written.length, maxWrites + 1);
});

test('a formula that changes its value now and then is not stopped', async (t) => {
  const { automatic, written, pass } = endless();
  t.after(() => automatic.close());
  for (let i = 0; i < 20; i++) {
    await automatic.run();
    pass(10_000);
  }
  assert.equal(written.length, 20);
});

test('what cannot be written is not, and nothing is in review mode', async (t) => {
  const { automatic, written, change } = endless();
  t.after(() => automatic.close());
  change.problem = 'The formula gives #DIV/0!.';
  await automatic.run();
  change.problem = '';
  automatic.on.value = false;
  await automatic.run();
  assert.equal(written.length, 0);
});
