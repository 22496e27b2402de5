// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dangerous, inputOf, letters, nameOf, parseName, textOf, valueFrom } from '../src/spreadsheet/cells';
import { columnOf, locate, parsePath, pathsIn, valueOf } from '../src/spreadsheet/path';

const pod = {
  metadata: { name: 'a', labels: { 'app.kubernetes.io/name': 'web', team: 'x' }, managedFields: [{}] },
  spec: { containers: [{ name: 'side', image: 'i' }, { name: 'web', image: 'nginx' }] },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
};

test('paths are read as the gateway reads them', () => {
  assert.deepEqual(parsePath('spec.replicas'), ['spec', 'replicas']);
  assert.deepEqual(parsePath("metadata.labels['app.kubernetes.io/name']"), ['metadata', 'labels', 'app.kubernetes.io/name']);
  assert.deepEqual(parsePath('spec.containers[0].image'), ['spec', 'containers', 0, 'image']);
  assert.deepEqual(parsePath('status.conditions[?(@.type=="Ready")].status'), ['status', 'conditions', { member: 'type', value: 'Ready' }, 'status']);
  for (const bad of ['', '.spec', 'spec.', 'spec..a', 'spec[', 'spec.containers[*].image', 'a b', 'spec[?(@.a)]', "spec['']", '[0]', "spec['a']b"]) assert.throws(() => parsePath(bad), undefined, bad);
});

test('a path selects one value of an object, by index or by an element\'s member', () => {
  assert.equal(valueOf(pod, parsePath('spec.containers[?(@.name=="web")].image')), 'nginx');
  assert.deepEqual(locate(pod, parsePath('spec.containers[?(@.name=="web")].image')), { path: ['spec', 'containers', 1, 'image'], found: [{ path: ['spec', 'containers', 1, 'name'], value: 'web' }] });
  assert.equal(valueOf(pod, parsePath('spec.containers[?(@.name=="other")].image')), undefined);
  assert.equal(locate(pod, parsePath('spec.containers[?(@.name=="other")].image')), null);
});

test('the suggested paths select what they were made of', () => {
  const paths = pathsIn(pod);
  assert.ok(paths.includes("metadata.labels['app.kubernetes.io/name']") && paths.includes('spec.containers[1].image') && paths.includes('status.conditions[?(@.type=="Ready")].status'));
  for (const path of paths) assert.notEqual(valueOf(pod, parsePath(path)), undefined, path);
});

test('only what a client may write can be changed', () => {
  assert.equal(columnOf('spec.replicas').fixed, '');
  assert.equal(columnOf('metadata.labels.team').fixed, '');
  assert.equal(columnOf('data.key').fixed, '');
  for (const text of ['status.readyReplicas', 'metadata.name', 'metadata.labels', 'spec.replicas @ 10m', 'kind']) assert.notEqual(columnOf(text).fixed, '', text);
  assert.deepEqual([columnOf(' spec.replicas  @ 10m ').path, columnOf('spec.replicas @ 10m').at, columnOf('spec.replicas @ 10m').text], ['spec.replicas', '10m', 'spec.replicas @ 10m']);
});

test('cells have their names in formulas', () => {
  for (const [column, text] of [[1, 'A'], [26, 'Z'], [27, 'AA'], [52, 'AZ'], [53, 'BA'], [256, 'IV']] as const) {
    assert.equal(letters(column), text);
    assert.deepEqual(parseName(nameOf(7, column)), [7, column]);
  }
  for (const bad of ['', 'A', '1', 'A0', 'ZZZ1', 'A1:B2', 'A99999999']) assert.equal(parseName(bad), null, bad);
});

test('a typed value keeps the type of the old one', () => {
  assert.equal(valueFrom('5', 3, false), 5);
  assert.equal(valueFrom(' 5 ', 3, false), 5);
  assert.equal(valueFrom('5', '3', false), '5');
  assert.equal(valueFrom('5', undefined, true), '5');
  assert.equal(valueFrom('5', undefined, false), 5);
  assert.equal(valueFrom('TRUE', false, false), true);
  assert.equal(valueFrom(true, undefined, true), 'true');
  assert.equal(valueFrom('', 3, false), undefined);
  assert.equal(valueFrom("'=1", 'x', true), '=1');
  // An integer keeps all its digits, also as a text of a file or from a formula.
  assert.equal(valueFrom('9007199254740993', 3, false), 9007199254740993n);
  assert.equal(valueFrom("'-9223372036854775808", 3n ** 40n, false), -9223372036854775808n);
  assert.equal(valueFrom('9007199254740993', undefined, false), 9007199254740993n);
  assert.equal(valueFrom('5', 9007199254740993n, false), 5);
  assert.equal(inputOf(9007199254740993n), "'9007199254740993");
  assert.equal(textOf({ a: 9007199254740993n }), '{"a":9007199254740993}');
  assert.throws(() => valueFrom('many', 9007199254740993n, false), /is no number/);
  assert.throws(() => valueFrom('many', 3, false), /is no number/);
  assert.throws(() => valueFrom('0x10', 3, false), /is no number/);
  assert.throws(() => valueFrom('maybe', true, false), /neither/);
  assert.throws(() => valueFrom('x', { a: 1 }, false), /whole object/);
});

test('a text of the cluster is typed as a text', () => {
  for (const text of ['=1+1', '+5', '-3', '@SUM(A1)', '\t=1']) {
    assert.equal(inputOf(text), `'${text}`);
    assert.ok(dangerous(text), text);
  }
  assert.equal(inputOf(3), '3');
  assert.equal(inputOf(null), '');
  assert.equal(inputOf('007'), "'007");
});
