// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, rowsOf, type Row } from '../src/index.js';
import { path, scripted, server } from './harness.js';
import { eventually } from './observer.js';
import { refuse } from './server.js';

const things = () => connect(server.url).informer('test/v1/things', { fields: ['text'], rows: true });
const page = (rows: Row[], more = {}) => JSON.stringify({ kind: 'RowList', metadata: { resourceVersion: '7', ...more }, columns: [], rows });

test('rows are listed in pages and watched', async (t) => {
  server.lists.push((url, response) => response.end(page([['ns', 'a', 'u1', '5', 'x']], { continue: url.searchParams.get('as')! })));
  server.lists.push((url, response) => {
    assert.equal(url.searchParams.get('continue'), 'rows');
    assert.equal(url.searchParams.get('fields'), 'text');
    response.end(page([[null, 'b', 'u2', '6', null]]));
  });
  scripted((stream) => {
    assert.equal(stream.query.get('as'), 'rows');
    stream.send('MODIFIED', ['ns', 'a', 'u1', '8', 'y']);
    stream.send('BOOKMARK', { metadata: { resourceVersion: '9' } });
    stream.send('DELETED', [null, 'b', 'u2', '10', null]);
  });
  const informer = things();
  t.after(() => informer.stop());
  const seen: unknown[] = [];
  informer.on('add', ({ key, object }) => seen.push(['add', key, object[4]]));
  informer.on('update', ({ key, object, old }) => seen.push(['update', key, old[4], object[4]]));
  informer.on('delete', ({ key }) => seen.push(['delete', key]));
  await eventually('the events', () => seen.length < 4);
  assert.deepEqual(seen, [['add', 'ns/a', 'x'], ['add', 'b', null], ['update', 'ns/a', 'x', 'y'], ['delete', 'b']]);
  assert.deepEqual([...informer.store], [['ns/a', ['ns', 'a', 'u1', '8', 'y']]]);
});

test('what rows repeat of the one before is left out', async (t) => {
  const columns = ['metadata.namespace', 'metadata.name', 'metadata.uid', 'metadata.resourceVersion', 'text'];
  server.lists.push((url, response) => {
    assert.equal(url.searchParams.get('repeated'), 'omit');
    response.end(JSON.stringify({ kind: 'RowList', metadata: { resourceVersion: '7', continue: 'more' }, columns, repeated: 'omit', rows: [[0, 'ns', 0, 'a', 0, 'u1', 0, '5', 0, { x: 1 }], [1, 'b', 0, 'u2']] }));
  });
  server.lists.push((_, response) => response.end(page([['ns', 'c', 'u3', '6', 'y']])));
  const informer = things();
  t.after(() => informer.stop());
  await informer.ready();
  assert.deepEqual([...informer.store.values()], [['ns', 'a', 'u1', '5', { x: 1 }], ['ns', 'b', 'u2', '5', { x: 1 }], ['ns', 'c', 'u3', '6', 'y']]);
  const [a, b] = rowsOf({ columns, repeated: 'omit', rows: [[0, 'ns', 3, { x: 1 }], []] });
  assert.ok(a![4] === b![4] && a !== b, 'a repeated value is the same object, in rows of their own');
});

test('an object that a list no longer has is deleted, also one that the list before confirmed', async (t) => {
  server.lists.push((_, response) => response.end(page([['ns', 'a', 'u1', '5', 'x'], ['ns', 'b', 'u2', '6', 'y']])));
  scripted((stream) => stream.send('ERROR', { kind: 'Status', code: 410, reason: 'Expired' }));
  server.lists.push((_, response) => response.end(page([['ns', 'a', 'u1', '5', 'x']])));
  const informer = things();
  t.after(() => informer.stop());
  const deleted: string[] = [];
  informer.on('delete', ({ key, inferred }) => deleted.push(`${key} ${inferred}`));
  await eventually('the deletion', () => deleted.length < 1);
  assert.deepEqual([deleted, [...informer.store.keys()]], [['ns/b true'], ['ns/a']]);
});

test('a transform gets the row', async (t) => {
  server.lists.push((_, response) => response.end(page([['ns', 'a', 'u1', '5', 'x']])));
  const informer = connect(server.url).informer('test/v1/things', { fields: ['text'], rows: true, transform: (row) => `${row[1]}=${row[4]}` });
  t.after(() => informer.stop());
  await informer.ready();
  assert.deepEqual([...informer.store], [['ns/a', 'a=x']]);
});

test('a server without rows is reported', async (t) => {
  server.put(path, 'a');
  const informer = things();
  t.after(() => informer.stop());
  await assert.rejects(informer.ready(), { name: 'StatusError', code: 400, message: /leave out rows/ });
  assert.equal(informer.store.size, 0);
  server.lists.push((_, response) => refuse(response, 400, 'fields'));
  assert.throws(() => connect(server.url).informer('test/v1/things', { rows: true, fields: [] }), TypeError);
});

test('a watch that sends objects instead of rows is not taken', async (t) => {
  server.lists.push((_, response) => response.end(page([['ns', 'a', 'u1', '5', 'x']])));
  const informer = things();
  t.after(() => informer.stop());
  const errors: string[] = [];
  informer.on('error', ({ error }) => errors.push(error.message));
  scripted((stream) => stream.send('MODIFIED', { metadata: { name: 'a', namespace: 'ns', uid: 'u1', resourceVersion: '8' } }));
  await eventually('the error', () => errors.length === 0);
  assert.match(errors[0]!, /not a watch event: MODIFIED/);
  assert.equal(informer.store.get('ns/a')![4], 'x');
});

const tableRow = (name: string, rv: string, cell: string) => ({ cells: [name, cell], object: { kind: 'PartialObjectMetadata', metadata: { name, namespace: 'ns', uid: 'u-' + name, resourceVersion: rv, managedFields: [] } } });
const columns = (...names: string[]) => names.map((name) => ({ name, type: 'string', format: '', description: '', priority: 0 }));
const table = (row: ReturnType<typeof tableRow>, more = {}) => ({ kind: 'Table', rows: [row], ...more });

test('a Table is listed and watched, with its columns', async (t) => {
  server.lists.push((_, response) => response.end(JSON.stringify(table(tableRow('a', '5', 'x'), { metadata: { resourceVersion: '7' }, columnDefinitions: columns('Name', 'Text') }))));
  scripted((stream) => {
    stream.send('MODIFIED', table(tableRow('a', '8', 'y'), { columnDefinitions: columns('Name', 'Other') }));
    stream.send('BOOKMARK', table(tableRow('', '9', '')));
    stream.send('ADDED', table(tableRow('b', '10', 'z'), { columnDefinitions: null }));
    stream.send('DELETED', table(tableRow('a', '11', 'y'), { columnDefinitions: null }));
  });
  const accepts = new Set<string | null>();
  const counting: typeof fetch = (input, init) => (accepts.add(new Headers(init?.headers).get('Accept')), fetch(input, init));
  const informer = connect(server.url, { fetch: counting }).informer('test/v1/things', { table: true });
  t.after(() => informer.stop());
  const seen: unknown[] = [];
  informer.on('update', ({ old, object }) => seen.push([old.cells[1], object.cells[1], informer.columns.map(({ name }) => name).join()]));
  informer.on('delete', ({ key }) => seen.push(key));
  await informer.ready();
  assert.deepEqual(informer.columns.map(({ name }) => name), ['Name', 'Text']);
  await eventually('the events', () => seen.length < 2);
  assert.deepEqual(seen, [['x', 'y', 'Name,Other'], 'ns/a']);
  assert.deepEqual([...informer.store].map(([key, { cells, object }]) => [key, cells, 'managedFields' in object.metadata]), [['ns/b', ['b', 'z'], false]]);
  assert.deepEqual([...accepts], ['application/json;as=Table;g=meta.k8s.io;v=v1']);
});
