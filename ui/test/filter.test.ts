// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileFilter, parseFilter, termText } from '../src/app/filter';
import { State } from '../src/data/state';
import { Fixture, nodeOf, podOf } from './fixture';

const f = new Fixture();
f.rows.setNode(nodeOf('node-0'));
f.rows.setNode(nodeOf('node-1', { ready: 'Unknown' }));
f.set(
  podOf('web-1', { labels: 'app=web,tier=front' }),
  podOf('web-2', { labels: 'app=web,tier=back', state: State.failing, text: 'CrashLoopBackOff', restarts: 5 }),
  podOf('cart-1', { namespace: 'payments', owner: 'StatefulSet/cart', labels: 'app=cart', node: 'node-1' }),
  podOf('loose', { namespace: 'kube-system', owner: '', labels: '', node: '', state: State.pending, text: 'Pending' }),
);
f.apply();

const found = (text: string): string[] => {
  const matches = compileFilter(text, f.cluster);
  return f.cluster.names.filter((_, row) => !matches || matches(row)).sort();
};

const CASES: [string, string[]][] = [
  ['', ['cart-1', 'loose', 'web-1', 'web-2']],
  ['web', ['web-1', 'web-2']],
  ['WEB-1', ['web-1']],
  ['web 2', ['web-2']],
  ['-web', ['cart-1', 'loose']],
  ['ns:shop', ['web-1', 'web-2']],
  ['namespace:pay', ['cart-1']],
  ['-ns:kube-system ns:', ['cart-1', 'web-1', 'web-2']],
  ['node:node-1', ['cart-1']],
  ['node:none', ['loose']],
  ['owner:cart', ['cart-1']],
  ['owner:statefulset/', ['cart-1']],
  ['app=web', ['web-1', 'web-2']],
  ['app=web tier=back', ['web-2']],
  ['app!=web', ['cart-1', 'loose']],
  ['tier=', ['web-1', 'web-2']],
  ['state:failing', ['web-2']],
  ['phase:pending', ['loose']],
  ['state:crashloopbackoff', ['web-2']],
  ['state:unknown', ['cart-1']],
  ['reason:crash', ['web-2']],
  ['restarts:3', ['web-2']],
  ['restarts:>=6', []],
  ['state:', ['cart-1', 'loose', 'web-1', 'web-2']],
];
for (const [text, names] of CASES) test(`filter: ${JSON.stringify(text)}`, () => assert.deepEqual(found(text), names));

test('a parsed filter is written unchanged', () => {
  for (const text of ['web', '-web', 'ns:shop', '-ns:shop', 'app=web', 'app!=web', 'a.b/c=d']) assert.equal(parseFilter(text).map(termText).join(' '), text);
});
