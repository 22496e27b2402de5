// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Servers whose etcd was restored from a backup, and servers that only lag.

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { live, observe, path, scripted, server, watching } from './harness.js';
import { become, type Observer } from './observer.js';
import { refuse, type Thing } from './server.js';

/** Ends all watches of the test's path with 410 Expired. */
function expire(): void {
  for (const stream of server.watching(path)) stream.send('ERROR', { kind: 'Status', code: 410, reason: 'Expired' });
}

/** Waits until the store has exactly the objects of the server. */
async function same({ informer }: Observer<Thing>): Promise<void> {
  const of = (things: Iterable<Thing>) => [...things].map(({ metadata, text }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion} ${text}`).sort();
  await become('the objects of the server', () => of(informer.store.values()), of(server.objects.values()));
}

test('a lagging server does not bring back older versions', async () => {
  server.put(path, 'a', 'old');
  server.put(path, 'b');
  const o = await live();
  const old = server.objects.get(path + '/a')!;
  server.put(path, 'a', 'new');
  server.remove(path, 'b');
  await become('changes', () => o.changes.length, 4);
  // Another server answers, which is at an older RV.
  server.compact();
  server.lists.push((_, response) =>
    response.end(JSON.stringify({ kind: 'ThingList', metadata: { resourceVersion: '102' }, items: [old] })),
  );
  server.watching(path)[0]!.send('ERROR', { kind: 'Status', code: 410 });
  await become('another list', () => o.log.filter((line) => line === 'sync').length, 2);
  assert.deepEqual(o.changes.slice(2), ['update ns/a 103', 'delete ns/b']);
  assert.match(o.errors[0]!.message, /older than what is known/);
});

test('the state of a server restored from a backup is accepted', async () => {
  server.put(path, 'a', 'old');
  server.put(path, 'b');
  const o = await live({}, {}, true);
  server.put(path, 'a', 'new');
  server.remove(path, 'b');
  server.put(path, 'c');
  await become('changes', () => o.changes.length, 5);
  await server.stop();
  server.compact();
  server.rv = 90;
  server.objects.clear();
  server.put(path, 'a', 'restored');
  server.put(path, 'b');
  await server.start();
  await become('the store', () => [...o.informer.store].map(([key, { text }]) => key + ' ' + text).sort(), ['ns/a restored', 'ns/b ']);
  server.put(path, 'b', 'changed');
  await become('the store', () => o.informer.store.get('ns/b')!.text, 'changed');
});

test('a list that was not completed is not followed by an older one', async () => {
  server.put(path, 'a');
  const o = await live({ pageSize: 2 });
  for (const name of ['b', 'c']) server.put(path, name);
  await become('changes', () => o.changes.length, 3);
  const stream = server.watching(path)[0]!;
  server.open.delete(stream); // it receives nothing from now on
  server.put(path, 'a', 'new');
  server.compact();
  server.lists.push(
    (url, response) => server.list(url, response),
    (_, response) => refuse(response, 500, 'InternalError'),
    // Another server answers, which has not received the change of a.
    (_, response) => response.end(JSON.stringify({ kind: 'ThingList', metadata: { resourceVersion: '103' }, items: [] })),
  );
  stream.send('ERROR', { kind: 'Status', code: 410 });
  await become('another list', () => o.log.filter((line) => line === 'sync').length, 2);
  assert.deepEqual(o.changes.slice(3), ['update ns/a 104']);
  assert.match(o.errors.at(-1)!.message, /older than what is known/);
});

test('a restore that adds to the resourceVersions is recognized by objects that went back', async () => {
  for (const name of ['a', 'b', 'same']) server.put(path, name, 'backup');
  const restore = server.backup();
  const o = await live({}, {}, true);
  server.put(path, 'a', 'lost');
  server.remove(path, 'b');
  server.put(path, 'c', 'lost');
  await become('changes', () => o.changes.length, 6);
  restore(1_000_000_000);
  expire();
  await same(o);
  assert.match(o.errors.at(-1)!.message, /restore/);
  await watching();
  server.put(path, 'a', 'new');
  await same(o);
});

test('after a restore, objects of the same resourceVersion may differ', async () => {
  for (const name of ['changed', 'created', 'back']) server.put(path, name, 'backup');
  server.remove(path, 'created');
  const restore = server.backup();
  const o = await live({ pageSize: 1 }, {}, true);
  server.put(path, 'changed', 'lost');
  server.put(path, 'created', 'lost');
  server.put(path, 'back', 'lost');
  await become('changes', () => o.changes.length, 5);
  restore();
  server.put(path, 'changed', 'new');
  server.put(path, 'created', 'new');
  server.put(path, 'other', 'new');
  server.put(path, 'other', 'newer');
  server.compact();
  expire();
  await same(o);
});

test('after a restore, an object with another UID may have the same resourceVersion', async () => {
  server.put(path, 'a');
  const restore = server.backup();
  const o = await live({}, {}, true);
  server.put(path, 'b', 'lost');
  await become('changes', () => o.changes.length, 2);
  restore();
  server.put(path, 'b', 'new');
  server.put(path, 'c');
  server.compact();
  expire();
  await same(o);
});

test('a restore is remembered until a list is complete', async () => {
  for (const name of ['a', 'b']) server.put(path, name, 'backup');
  const restore = server.backup();
  const o = await live({ pageSize: 1 }, {}, true);
  server.put(path, 'b', 'lost');
  server.put(path, 'a', 'lost');
  await become('changes', () => o.changes.length, 4);
  restore();
  server.put(path, 'b', 'new');
  server.put(path, 'other');
  server.compact();
  server.lists.push(
    (url, response) => server.list(url, response), // a has gone back
    (url, response) => server.list(url, response),
    (url, response) => server.list(url, response), // the next list puts a back
    (_, response) => refuse(response, 500, 'InternalError'),
  );
  expire();
  await same(o);
});

for (const [what, change] of Object.entries({ 'an event': () => server.put(path, 'a', 'lost'), 'a list': () => {} })) {
  test(`a restored server that has passed the newest version, known from ${what}, is recognized`, async () => {
    server.put(path, 'a', 'backup');
    const restore = server.backup();
    server.put(path, 'b', 'lost');
    const o = await live({}, {}, true);
    change();
    await become('it', () => o.changes.length, what === 'a list' ? 2 : 3);
    await server.stop();
    restore();
    for (const text of ['1', '2', '3', '4']) server.put(path, 'c', text);
    await server.start();
    await same(o);
    assert.match(o.errors.at(-1)!.message, /restore/);
    await watching();
    server.put(path, 'a', 'new');
    await same(o);
  });
}

test('a server that was restored while the watch was silent is recognized', async () => {
  server.put(path, 'a', 'backup');
  const restore = server.backup();
  const o = await live({}, { silence: 100 }, true);
  server.put(path, 'a', 'lost');
  await become('the change', () => o.informer.store.get('ns/a')!.text, 'lost');
  for (const stream of [...server.open]) server.open.delete(stream); // half-open
  restore();
  for (const text of ['1', '2', '3']) server.put(path, 'c', text);
  await same(o);
});

test('a deletion below the last known event, of an object that is still known, is not passed over', async () => {
  for (const name of ['a', 'b', 'c', 'd']) server.put(path, name);
  const o = await live({}, {}, true);
  server.put(path, 'a', 'new'); // 105
  server.remove(path, 'c');
  server.remove(path, 'd'); // 107
  await become('the changes', () => o.changes.length, 7);
  const [stream, b] = [server.watching(path)[0]!, server.objects.get(path + '/b')!];
  server.open.delete(stream); // it receives nothing from now on
  server.remove(path, 'b');
  server.compact();
  // A gateway that has missed everything since 105 reports what a later list does not have.
  scripted((next) => {
    next.send('MODIFIED', server.objects.get(path + '/a')!);
    next.send('DELETED', { ...b, metadata: { ...b.metadata, resourceVersion: '106' } });
  });
  stream.cut();
  await same(o);
});

test('the same server is recognized, and not listed again', async () => {
  for (const name of ['a', 'b', 'c']) server.put(path, name);
  const o = await live();
  server.put(path, 'a', 'new');
  server.remove(path, 'b', 'c');
  server.rv++;
  server.bookmark(path);
  await become('the changes', () => o.changes.length, 6);
  for (let i = 0; i < 3; i++) {
    server.watching(path)[0]!.cut();
    await become('an error', () => o.errors.length, i + 1);
    await watching();
    server.put(path, 'd', String(i));
    await become('the change', () => o.informer.store.get('ns/d')?.text, String(i));
  }
  assert.deepEqual(o.changes.slice(3), ['update ns/a 104', 'delete ns/b', 'delete ns/c', 'add ns/d 107', 'update ns/d 108', 'update ns/d 109']);
  assert.equal(o.log.filter((line) => line === 'sync').length, 1);
});

test('resourceVersions without an order are not compared', async () => {
  const list = (_: URL, response: ServerResponse) =>
    response.end(JSON.stringify({ kind: 'ThingList', metadata: { resourceVersion: 'x' }, items: [{ metadata: { name: 'a', uid: '1', resourceVersion: 'w' } }] }));
  server.lists.push(list, list); // the second one checks for a restore
  scripted((stream) => stream.cut());
  const event = { kind: 'Thing', metadata: { name: 'b', uid: '2', resourceVersion: 'y' } };
  scripted((stream) => stream.send('ADDED', event));
  const o = observe();
  await become('the changes', () => o.changes, ['add a w', 'add b y']);
  const asked = server.requests.filter((url) => url.searchParams.has('watch') && url.pathname === path).map((url) => url.searchParams.get('resourceVersion'));
  assert.deepEqual(asked, ['x', 'x']);
});
