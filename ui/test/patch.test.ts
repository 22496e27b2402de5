// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { editsBetween, patchOf, pathText, pointer, same, valueAt } from '../src/write/patch';

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
    { path: ['spec', 'containers', 0, 'image'], old: 'x', value: 'y' },
    { path: ['spec', 'list'], old: [1], value: [1, 2] },
    { path: ['spec', 'paused'], old: undefined, value: true },
  ]);
  assert.deepEqual(editsBetween(old, structuredClone(old)), []);
});

test('values are compared without the order of keys, and only own members count', () => {
  assert.ok(same({ a: 1, b: [null] }, { b: [null], a: 1 }));
  assert.ok(!same({ a: undefined }, { b: undefined }));
  assert.equal(valueAt({}, ['constructor']), undefined);
  assert.equal(valueAt({ a: ['b'] }, ['a', 0]), 'b');
});
