// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diffLines, hunks } from '../src/panel/diff';
import { sidesOf } from '../src/panel/sides';
import type { Change } from '../src/time/history';

const signs = (lines: { sign: string; text: string }[]): string[] => lines.map((line) => line.sign + line.text);

test('common lines stay, others are removed or added', () => {
  assert.deepEqual(signs(diffLines(['a', 'b', 'c'], ['a', 'x', 'c', 'd'])), [' a', '-b', '+x', ' c', '+d']);
  assert.deepEqual(signs(diffLines([], ['a'])), ['+a']);
  assert.deepEqual(signs(diffLines(['a'], [])), ['-a']);
  const many = Array.from({ length: 600 }, (_, i) => String(i));
  assert.equal(diffLines(many, [...many].reverse()).length, 1200, 'too long to compare: all lines of both');
});

test('a hunk has the old and the new value', () => {
  const before = {
    metadata: { labels: { app: 'web', 'a.b/c': 'x' } },
    spec: { containers: [{ name: 'web', image: 'nginx:1.25' }, { name: 'log', image: 'log:1' }], replicas: 2 },
  };
  const found = hunks([
    { op: 'replace', path: '/spec/containers/0/image', value: 'nginx:1.27' },
    { op: 'remove', path: '/metadata/labels/a.b~1c' },
    { op: 'add', path: '/spec/paused', value: true },
    { op: 'replace', path: '/spec/replicas', value: 3 },
  ], before);
  assert.deepEqual(found.map(({ path, lines }) => [path, signs(lines)]), [
    ['spec.containers[web].image', ['-nginx:1.25', '+nginx:1.27']],
    ['metadata.labels[a.b/c]', ['-x']],
    ['spec.paused', ['+true']],
    ['spec.replicas', ['-2', '+3']],
  ]);
  assert.equal(before.spec.replicas, 2, 'the object is not modified');
});

test('operations on lists apply in sequence', () => {
  const before = { list: [{ name: 'a' }, { name: 'b' }, { name: 'c', of: { x: 1, z: 2 } }] };
  const found = hunks([
    { op: 'remove', path: '/list/0' },
    { op: 'replace', path: '/list/1/of', value: { x: 1, z: 3 } },
    { op: 'add', path: '/list/0', value: { name: 'new' } },
    { op: 'replace', path: '/list/1/name', value: 'B' },
  ], before);
  assert.deepEqual(found.map(({ path, lines }) => [path, signs(lines)]), [
    ['list[a]', ['-name: a']],
    ['list[c].of', [' x: 1', '-z: 2', '+z: 3']],
    ['list[new]', ['+name: new']],
    ['list[b].name', ['-b', '+B']],
  ]);
});

test('without the previous object, hunks have only new values', () => {
  assert.deepEqual(hunks([{ op: 'replace', path: '/status/phase', value: 'Running' }], undefined).map(({ path, lines }) => [path, signs(lines)]), [['status.phase', ['+Running']]]);
});

test('the sides of a comparison are in the order of time', () => {
  const at = (n: number): number => Date.parse(`2026-01-31T15:00:0${n}Z`);
  const version = (n: number): Change => ({ type: 'MODIFIED', resourceVersion: `${n}0`, time: new Date(at(n)).toISOString(), summary: null });
  const items = [9, 8, 7].map(version); // the newest first; older ones are not loaded
  const bounds = (picked: string[], moment: number): string | undefined => sidesOf(picked, items, moment)?.map(({ rv, time }) => rv || (time ? 'then' : 'now')).join();
  assert.equal(bounds([], 0), undefined);
  assert.equal(bounds(['80'], 0), '80,now');
  assert.equal(bounds(['80'], at(9)), '80,then');
  assert.equal(bounds(['80'], at(8)), '80,then');
  assert.equal(bounds(['80'], at(7)), 'then,80');
  assert.equal(bounds(['90', '70'], 0), '70,90');
  assert.equal(bounds(['70', '90'], at(8)), '70,90');
  assert.equal(bounds(['80', '60'], 0), '60,80');
  assert.equal(bounds(['100', '60'], 0), '60,100');
  assert.equal(bounds(['60', '100'], 0), '60,100');
});
