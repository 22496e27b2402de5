// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileFilter, generalTerms, parseFilter, problemOf, termText } from '../src/app/filter';
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
  ['stat:failing', ['cart-1', 'loose', 'web-1', 'web-2']],
  ['stat:failing ns:pay', ['cart-1']],
];
for (const [text, names] of CASES) test(`filter: ${JSON.stringify(text)}`, () => assert.deepEqual(found(text), names));

const PROBLEMS: [string, string | undefined][] = [
  ['stat:failing', 'no such filter key stat: did you mean state:? → state:failing'],
  ['web -Namspace:shop', 'no such filter key Namspace: did you mean namespace:? → web -namespace:shop'],
  ['nod:', 'no such filter key nod: did you mean node:? → node:'],
  ['web app:cart', 'no such filter key app → '],
  ['state:faling', 'no such state faling: did you mean state:failing? → state:failing'],
  ['state:crash', 'no such state crash: did you mean reason:crash? → reason:crash'],
  ['state:crashloopbackoff', undefined],
  ['state:fa ns: web', undefined],
  ['', undefined],
  ['restarts:x', 'restarts: takes a number, not x → '],
  ['restarts:>=3', undefined],
  ['ns:payments,shop', 'no name has a comma, as in ns:payments,shop → '],
  ['ns=payments web', 'no Pod has a label ns: did you mean ns:payments? → ns:payments web'],
  ['node!=node-0', 'no Pod has a label node: did you mean -node:node-0? → -node:node-0'],
];
for (const [text, want] of PROBLEMS) {
  test(`problem of ${JSON.stringify(text)}`, () => {
    const problem = problemOf(text, f.cluster);
    assert.equal(problem ? `${problem.words}${problem.meant && `: did you mean ${problem.meant}?`} → ${problem.fixed}` : undefined, want);
  });
}

test('a parsed filter is written unchanged', () => {
  for (const text of ['web', '-web', 'ns:shop', '-ns:shop', 'app=web', 'app!=web', 'a.b/c=d', 'stat:failing']) assert.equal(parseFilter(text).map(termText).join(' '), text);
});

test('the terms that apply to all objects', () => {
  assert.equal(generalTerms('Web -ns:kube-system app=web state:failing namespace:data -cart ns:'), 'web -ns:kube-system ns:data -cart');
});
