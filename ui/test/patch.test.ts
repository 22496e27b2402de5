// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyOf, editsBetween, patchOf, pathText, pointer, reversed, same, valueAt, withValue } from '../src/write/patch';

test('a pointer escapes what RFC 6901 says', () => {
  assert.equal(pointer(['metadata', 'labels', 'a.b/c~d']), '/metadata/labels/a.b~1c~0d');
  assert.equal(pathText(['metadata', 'labels', 'a.b/c']), "metadata.labels['a.b/c']");
  assert.equal(pathText(['spec', 'containers', 0, 'image']), 'spec.containers[0].image');
});

test('a patch tests what it replaces, adds and removes', () => {
  assert.deepEqual(patchOf([{ path: ['spec', 'replicas'], old: 2, value: 5 }], undefined, 'u'), [
    { op: 'test', path: '/metadata/uid', value: 'u' },
    { op: 'test', path: '/spec/replicas', value: 2 }, { op: 'replace', path: '/spec/replicas', value: 5 },
  ]);
  assert.deepEqual(patchOf([{ path: ['metadata', 'labels', 'a'], old: 'x', value: undefined }]), [
    { op: 'test', path: '/metadata/labels/a', value: 'x' }, { op: 'remove', path: '/metadata/labels/a' },
  ]);
});

test('a patch adds missing objects around a value, once', () => {
  const edits = ['a', 'b'].map((key) => ({ path: ['metadata', 'annotations', key], old: undefined, value: '1' }));
  assert.deepEqual(patchOf(edits, { metadata: {} }), [
    { op: 'test', path: '/metadata/annotations', value: null }, { op: 'add', path: '/metadata/annotations', value: {} },
    { op: 'test', path: '/metadata/annotations/a', value: null }, { op: 'add', path: '/metadata/annotations/a', value: '1' },
    { op: 'test', path: '/metadata/annotations/b', value: null }, { op: 'add', path: '/metadata/annotations/b', value: '1' },
  ]);
  assert.equal(patchOf(edits, { metadata: { annotations: {} } }).length, 4);
});

test('the edits between two objects are as small as they can be', () => {
  const old = { spec: { replicas: 2, containers: [{ name: 'a', image: 'x' }, { name: 'b' }], list: [1] } };
  const value = { spec: { replicas: 2, containers: [{ name: 'a', image: 'y' }, { name: 'b' }], list: [1, 2], paused: true } };
  assert.deepEqual(editsBetween(old, value), [
    { path: ['spec', 'containers', 0, 'image'], old: 'x', value: 'y', beside: [{ path: ['spec', 'containers', 0, 'name'], value: 'a' }] },
    { path: ['spec', 'list'], old: [1], value: [1, 2] },
    { path: ['spec', 'paused'], old: undefined, value: true },
  ]);
  assert.deepEqual(editsBetween(old, structuredClone(old)), []);
});

test('a patch has the digits of integers, and strings as the API server writes them', () => {
  assert.equal(bodyOf(patchOf(editsBetween({ a: 9007199254740993n, b: 'x<y>&\u2028\u2029' }, { a: 9007199254740995n, b: '' }))), '[' + [
    '{"op":"test","path":"/a","value":9007199254740993},{"op":"replace","path":"/a","value":9007199254740995}',
    '{"op":"test","path":"/b","value":"x\\u003cy\\u003e\\u0026\\u2028\\u2029"},{"op":"replace","path":"/b","value":""}',
  ].join() + ']');
  const object = { spec: { a: [9007199254740993n], b: 1 } };
  assert.deepEqual(editsBetween(object, withValue(object, ['spec', 'b'], 2)), [{ path: ['spec', 'b'], old: 1, value: 2 }]);
  assert.ok(!same(9007199254740993n, 9007199254740992) && same([9007199254740993n], [9007199254740993n]));
});

test('values are compared without the order of keys, and only own members count', () => {
  assert.ok(same({ a: 1, b: [null] }, { b: [null], a: 1 }));
  assert.ok(!same({ a: undefined }, { b: undefined }));
  assert.equal(valueAt({}, ['constructor']), undefined);
  assert.equal(valueAt({ a: ['b'] }, ['a', 0]), 'b');
});

test('a change of a list item tests that it is this item', () => {
  const item = (name: string, image: string) => ({ name, image, env: [{ name: 'A', value: image }] });
  const edits = editsBetween([item('a', 'x'), item('b', 'x')], [item('a', 'x'), item('b', 'y')]);
  assert.deepEqual(patchOf(edits), [
    { op: 'test', path: '/1/name', value: 'b' }, { op: 'test', path: '/1/env/0/name', value: 'A' },
    { op: 'test', path: '/1/image', value: 'x' }, { op: 'replace', path: '/1/image', value: 'y' },
    { op: 'test', path: '/1/env/0/value', value: 'x' }, { op: 'replace', path: '/1/env/0/value', value: 'y' },
  ]);
  // Items without a name are tested as a whole, and lists of other values are replaced.
  assert.deepEqual(editsBetween({ rules: [{ verbs: ['get'] }] }, { rules: [{ verbs: ['list'] }] }), [
    { path: ['rules', 0, 'verbs'], old: ['get'], value: ['list'], beside: [{ path: ['rules', 0], value: { verbs: ['get'] } }] },
  ]);
});

test('the reverse of edits goes from what was written to what was there', () => {
  const before = { spec: { replicas: 2, containers: [{ name: 'a', image: 'x' }] }, status: { n: 1 } };
  const edits = editsBetween(before, { spec: { replicas: 5, containers: [{ name: 'a', image: 'y' }], paused: true }, status: { n: 1 } });
  const written = { spec: { replicas: 5, containers: [{ name: 'a', image: 'y:latest' }], paused: true }, status: { n: 2 } };
  assert.deepEqual(reversed(edits, before, written), [
    { path: ['spec', 'replicas'], old: 5, value: 2 },
    { path: ['spec', 'containers', 0, 'image'], old: 'y:latest', value: 'x', beside: [{ path: ['spec', 'containers', 0, 'name'], value: 'a' }] },
    { path: ['spec', 'paused'], old: true, value: undefined },
  ]);
});

test('a value is replaced in a copy', () => {
  const object = { a: { b: [1, 2] } };
  assert.deepEqual(withValue(object, ['a', 'b', 0], 3), { a: { b: [3, 2] } });
  assert.deepEqual(withValue(object, ['a', 'c', 'd'], 3), { a: { b: [1, 2], c: { d: 3 } } });
  assert.deepEqual(withValue(object, ['a', 'b'], undefined), { a: {} });
  assert.deepEqual(withValue(object, ['x', 'y'], undefined), { a: { b: [1, 2] } });
  assert.deepEqual(object, { a: { b: [1, 2] } });
});
