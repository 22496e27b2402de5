// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diffLines, hunks } from '../src/panel/diff';

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
