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

test('a cell that cannot be written keeps the others from it, unless only those are wanted', async () => {
  Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' }, matchMedia: () => ({ matches: false, addEventListener() {} }) });
  const { Applier } = await import('../src/spreadsheet/apply');
  const asked: string[] = [];
  globalThis.fetch = async (url) => (asked.push(new URL(String(url)).searchParams.get('dryRun') ?? 'written'), Response.json({ metadata: { name: 'a', resourceVersion: '2' } }));
  const tab = { failures: new Map(), inputs: new Map(), entries: [], columns: [], selected: { resource: { group: 'apps', version: 'v1', name: 'deployments' } }, columnAt: () => ({ steps: ['spec', 'replicas'] }), entryAt: () => null };
  const change = { tab, key: 1, entry: { namespace: 'shop', name: 'a', uid: 'u' }, old: 3, value: 5, formula: false, writable: true, problem: '' } as unknown as Change;
  const wrong = { ...change, key: 2, entry: { ...change.entry, name: 'b' }, value: 'abc', writable: false, problem: 'no number' };
  const applier = new Applier({ touch() {}, settle() {} } as never);
  assert.deepEqual(await applier.apply([change, wrong]), { phase: 'done', done: 1, total: 1, refused: 1, written: 0 });
  assert.deepEqual(asked, ['All']);
  assert.equal((await applier.apply([change, wrong], true)).written, 1);
  assert.deepEqual(asked, ['All', 'All', 'written']);
});
