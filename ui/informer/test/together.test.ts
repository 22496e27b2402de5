// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Informers whose watches share a response.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { connect, type Connection } from '../src/index.js';
import { become, eventually, Observer } from './observer.js';
import { ApiServer, type Thing } from './server.js';

const path = (plural: string) => '/apis/test/v1/' + plural;
let server: ApiServer;
let connection: Connection;
let observers: Record<string, Observer<Thing>>;

beforeEach(async () => {
  server = await new ApiServer().start();
  server.multiwatch = true;
  observers = {};
});

afterEach(async () => {
  connection.close();
  await server.stop();
  for (const observer of Object.values(observers)) observer.finish();
});

/** Starts informers, and waits until they are live. */
async function start(plurals: string[]): Promise<void> {
  for (const plural of plurals) observers[plural] = new Observer(connection.informer<Thing>('test/v1/' + plural));
  for (const plural of plurals) await become(plural, () => observers[plural]!.informer.state.phase, 'live');
}

/**
 * Starts informers, and waits until each has one watch. A list that takes longer than the
 * others has its watch join later: then a second response replaces the first.
 */
async function observe(plurals: string[]): Promise<void> {
  await start(plurals);
  await become('a watch each', () => [...server.open].map((stream) => stream.path).sort(), Object.keys(observers).map(path).sort());
}

const together = () => server.requests.filter((url) => url.pathname.endsWith('/multiwatch'));
/** The phases of an informer since its first sync. */
const phases = (plural: string) => observers[plural]!.log.slice(observers[plural]!.log.indexOf('sync') + 1).filter((line) => !line.includes(' '));

test('watches share one response', async () => {
  connection = connect(server.url);
  await observe(['pods', 'nodes', 'widgets']);
  for (const plural of ['pods', 'nodes', 'widgets']) server.put(path(plural), 'a-' + plural);
  for (const plural of ['pods', 'nodes', 'widgets']) {
    await become('changes', () => observers[plural]!.changes.map((line) => line.replace(/\d+/, '')), ['add ns/a-' + plural + ' ']);
  }
  const watched = server.requests.filter((url) => url.searchParams.has('watch') && url.pathname.startsWith('/apis'));
  assert.deepEqual(watched, []);
  assert.equal(together().at(-1)!.searchParams.getAll('watch').length, 3);
});

test('a later informer does not disturb the others', async () => {
  connection = connect(server.url);
  await observe(['pods']);
  server.put(path('pods'), 'a');
  await become('changes', () => observers.pods!.changes, ['add ns/a 101']);
  await start(['nodes']);
  server.put(path('pods'), 'b');
  server.put(path('nodes'), 'c');
  await become('changes', () => observers.pods!.changes, ['add ns/a 101', 'add ns/b 102']);
  await become('changes', () => observers.nodes!.changes, ['add ns/c 103']);
  assert.deepEqual(phases('pods'), ['live']);
  assert.deepEqual(observers.pods!.errors, []);
  await eventually('the first response to be closed', () => server.open.size !== 2);
});

test('the watch of a stopped informer is no longer sent', async () => {
  connection = connect(server.url);
  await observe(['pods', 'nodes']);
  observers.nodes!.informer.stop();
  await become('one watch', () => [...server.open].map((stream) => stream.path), [path('pods')]);
  assert.deepEqual(phases('pods'), ['live']);
});

test('a refused watch does not disturb the others', async () => {
  connection = connect(server.url);
  await observe(['pods', 'nodes']);
  const [stream] = server.watching(path('nodes'));
  stream!.send('ERROR', { kind: 'Status', code: 403, reason: 'Forbidden', message: 'not you' });
  stream!.end();
  await become('the phase', () => observers.nodes!.informer.state.phase, 'denied');
  server.put(path('pods'), 'a');
  await become('changes', () => observers.pods!.changes, ['add ns/a 101']);
  assert.deepEqual(phases('pods'), ['live']);
  connection.wake();
  await become('the phase', () => observers.nodes!.informer.state.phase, 'live');
});

test('a watch is stale while the gateway has no contact with the API server', async () => {
  connection = connect(server.url);
  await observe(['pods', 'nodes']);
  assert.equal(together().at(-1)!.searchParams.get('upstream'), '1');
  const [stream] = server.watching(path('pods'));
  stream!.raw('{"watch":0,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"connection refused"}}\n');
  await become('the phase', () => observers.pods!.informer.state.phase, 'stale');
  const { since, error } = observers.pods!.informer.state;
  assert.deepEqual([since, error!.message], [Date.UTC(2026, 0, 31, 15, 4, 5), 'connection refused']);
  server.put(path('pods'), 'a'); // an event that was already under way
  await become('changes', () => observers.pods!.changes, ['add ns/a 101']);
  assert.deepEqual([observers.pods!.informer.state.phase, phases('nodes')], ['stale', ['live']]);
  stream!.raw('{"watch":0,"type":"CURRENT"}\n');
  await become('phases', () => phases('pods'), ['live', 'stale', 'live']);
  assert.deepEqual(observers.pods!.errors, []);
  // A new watch starts without that state.
  stream!.raw('{"watch":0,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"connection refused"}}\n');
  await become('the phase', () => observers.pods!.informer.state.phase, 'stale');
  stream!.end();
  await become('the phase', () => observers.pods!.informer.state.phase, 'live');
});

test('normal ends emit no event', async () => {
  connection = connect(server.url);
  await observe(['pods', 'nodes']);
  server.put(path('pods'), 'a');
  server.put(path('nodes'), 'b');
  await become('changes', () => observers.nodes!.changes.length + observers.pods!.changes.length, 2);
  for (const stream of [...server.open]) stream.end();
  await become('two watches', () => server.open.size, 2);
  server.put(path('pods'), 'c');
  await become('changes', () => observers.pods!.changes, ['add ns/a 101', 'add ns/c 103']);
  assert.deepEqual([phases('pods'), phases('nodes')], [['live'], ['live']]);
});

for (const how of ['cut', 'close'] as const) {
  test(`a response that ends before its watches (${how}) ends for all`, async () => {
    connection = connect(server.url);
    await observe(['pods', 'nodes']);
    [...server.open][0]![how]();
    await become('phases', () => phases('pods'), ['live', 'stale', 'live']);
    await become('phases', () => phases('nodes'), ['live', 'stale', 'live']);
    server.put(path('pods'), 'a');
    await become('changes', () => observers.pods!.changes, ['add ns/a 101']);
  });
}

test('a watch that breaks off casts doubt on the others', async () => {
  connection = connect(server.url);
  server.put(path('nodes'), 'a', 'backup');
  const restore = server.backup();
  await observe(['pods', 'nodes']);
  observers.nodes!.restored = true;
  server.put(path('nodes'), 'a', 'lost');
  await become('the change', () => observers.nodes!.informer.store.get('ns/a')?.text, 'lost');
  for (const stream of server.watching(path('nodes'))) server.open.delete(stream); // its end is on the way
  restore();
  for (const text of ['1', '2', '3']) server.put(path('nodes'), 'b', text);
  const [pods] = server.watching(path('pods'));
  pods!.send('ERROR', { kind: 'Status', code: 502, message: 'it broke off' });
  pods!.end();
  await become('the store', () => [...observers.nodes!.informer.store].map(([key, { text }]) => key + ' ' + text).sort(), ['ns/a backup', 'ns/b 3']);
});

test('a silent connection is requested again before it is closed', async () => {
  connection = connect(server.url, { silence: 150 });
  await observe(['pods', 'nodes']);
  for (const stream of [...server.open]) server.open.delete(stream); // half-open
  server.put(path('pods'), 'a');
  server.put(path('nodes'), 'b');
  await become('changes', () => observers.pods!.changes, ['add ns/a 101']);
  await become('changes', () => observers.nodes!.changes, ['add ns/b 102']);
  assert.deepEqual([phases('pods'), phases('nodes')], [['live'], ['live']]);
});

test('without multiwatch each watch is a response of its own', async () => {
  server.multiwatch = false;
  connection = connect(server.url);
  await observe(['pods', 'nodes']);
  const asked = together().length;
  assert.ok(asked > 0);
  await observe(['widgets']);
  assert.equal(together().length, asked, 'the server was asked again for multiwatch');
  for (const observer of Object.values(observers)) assert.deepEqual(observer.errors, []);
});
