// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Servers that refuse, fail or fall silent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, StatusError } from '../src/index.js';
import { live, observe, observers, path, scripted, server, watching } from './harness.js';
import { become, Observer } from './observer.js';
import { refuse, type Thing } from './server.js';

test('410 as an answer to a watch', async () => {
  server.put(path, 'a');
  const o = observe();
  const fetched: string[] = [];
  o.informer.stop();
  observers.pop();
  let gone = true;
  const again = observe({}, {
    multiwatch: false,
    fetch: async (input, init) => {
      fetched.push(String(input));
      if (String(input).includes('watch=1') && gone) {
        gone = false;
        return new Response(JSON.stringify({ kind: 'Status', code: 410, reason: 'Expired' }), { status: 410 });
      }
      return fetch(input, init);
    },
  });
  await watching();
  server.put(path, 'b');
  await become('changes', () => again.changes, ['add ns/a 101', 'add ns/b 102']);
  assert.equal(again.log.filter((line) => line === 'sync').length, 2);
});

test('a relist without changes emits no event', async () => {
  for (const name of ['a', 'b', 'c']) server.put(path, name);
  const o = await live({ pageSize: 2 });
  server.compact();
  server.rv++;
  server.compact();
  server.watching(path)[0]!.send('ERROR', { kind: 'Status', code: 410 });
  await become('a second list', () => o.log.filter((line) => line === 'sync').length, 2);
  assert.equal(o.changes.length, 3);
});

test('an expired continue token leads to a list without pages', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) server.put(path, name);
  server.lists.push(
    (url, response) => server.list(url, response),
    (_, response) => {
      server.remove(path, 'b'); // it was on the first page
      refuse(response, 410, 'Expired');
    },
  );
  const o = await live({ pageSize: 2 });
  await become('the store', () => [...o.informer.store.keys()], ['ns/a', 'ns/c', 'ns/d', 'ns/e']);
  assert.equal(o.changes.at(-1), 'delete ns/b inferred');
  assert.deepEqual(o.errors, []);
});

test('server errors are emitted and retried', async () => {
  server.put(path, 'a');
  for (let i = 0; i < 3; i++) server.lists.push((_, response) => refuse(response, 500, 'InternalError'));
  const o = await live();
  await become('changes', () => o.changes, ['add ns/a 101']);
  assert.deepEqual(o.errors.map((error) => (error as StatusError).code), [500, 500, 500]);
  assert.deepEqual(o.log.slice(0, 3), ['connecting', 'connecting', 'syncing']);
});

test('Retry-After is obeyed', async () => {
  let answered = 0;
  let again = 0;
  server.lists.push(
    (_, response) => {
      answered = Date.now();
      refuse(response, 429, 'TooManyRequests', { 'Retry-After': '1' });
    },
    (url, response) => {
      again = Date.now();
      server.list(url, response);
    },
  );
  const o = await live();
  assert.equal((o.errors[0] as StatusError).retryAfter, 1000);
  assert.ok(again - answered >= 990, `asked again after ${again - answered} ms`);
});

for (const [code, reason] of [[401, 'Unauthorized'], [403, 'Forbidden'], [404, 'NotFound']] as const) {
  test(`${code} is emitted with its Status, and retried on wake`, async () => {
    server.lists.push((_, response) => refuse(response, code, reason));
    const connection = connect(server.url);
    const informer = connection.informer<Thing>('test/v1/things');
    const o = new Observer(informer);
    observers.push(o);
    await assert.rejects(informer.ready(), (error) => error instanceof StatusError && error.code === code && error.reason === reason && error.status?.kind === 'Status');
    assert.equal(informer.state.phase, 'denied');
    assert.equal((informer.state.error as StatusError).code, code);
    connection.wake();
    await watching();
    await informer.ready();
    await become('the events', () => o.log, ['connecting', 'denied', 'syncing', 'sync', 'live']);
  });
}

test('a watch that is refused later keeps the store, and is requested again soon', async () => {
  server.put(path, 'a');
  const o = await live();
  for (let i = 0; i < 3; i++) server.lists.push((_, response) => refuse(response, 403, 'Forbidden'));
  server.watching(path)[0]!.send('ERROR', { kind: 'Status', code: 403, reason: 'Forbidden', message: 'no more' });
  await become('the phase', () => o.informer.state.phase, 'denied');
  assert.equal(o.informer.store.size, 1);
  assert.match(o.informer.state.error!.message, /no more|Forbidden/);
  // An API server that has just started does so. With the pauses after a refusal, it would take two minutes.
  await become('the phase', () => o.informer.state.phase, 'live');
});

const ended = { kind: 'Status', code: 401, reason: 'Unauthorized', message: 'the token is not accepted any more' };

/** The reflector tells a watch that lasted from one that was refused at once. */
const lasting = () => new Promise((resolve) => setTimeout(resolve, 1100));

test('a watch whose token ends goes on at once with that of the next request', async () => {
  let token = 0;
  const o = await live({}, { headers: () => ({ Authorization: `Bearer ${++token}` }) });
  for (const name of ['a', 'b']) {
    await lasting();
    const before = token;
    server.watching(path)[0]!.send('ERROR', ended);
    await become('the next request', () => token > before, true);
    await watching();
    server.put(path, name);
    await become('the store', () => o.informer.store.has(`ns/${name}`), true);
  }
  assert.ok(!o.log.includes('denied') && !o.log.includes('stale'), String(o.log));
  assert.deepEqual(o.errors, []);
});

test('it is denied if the next request is refused, too', async () => {
  const o = await live();
  await lasting();
  scripted((stream) => stream.send('ERROR', ended));
  server.watching(path)[0]!.send('ERROR', ended);
  await become('the phase', () => o.informer.state.phase, 'denied');
  assert.equal((o.informer.state.error as StatusError).code, 401);
});

test('an event received twice is emitted once', async () => {
  server.put(path, 'a');
  const b = server.put(path, 'b');
  const o = await live();
  const stream = server.watching(path)[0]!;
  server.remove(path, 'b');
  stream.send('MODIFIED', b); // it is deleted, and this is older
  stream.send('DELETED', { ...b, metadata: { ...b.metadata, resourceVersion: '103' } });
  const a = server.put(path, 'a');
  stream.send('MODIFIED', a);
  stream.send('ADDED', a);
  server.put(path, 'c');
  await become('changes', () => o.changes.slice(2), ['delete ns/b', 'update ns/a 104', 'add ns/c 105']);
});

test('deletions that share a resourceVersion are all emitted, even if the stream ends between them', async () => {
  for (const name of ['a', 'b', 'c']) server.put(path, name);
  const o = await live();
  const stream = server.watching(path)[0]!;
  const end = stream.send;
  let sent = 0;
  stream.send = (type, object) => {
    if (sent++ < 2) end(type, object);
  };
  server.remove(path, 'a', 'b', 'c');
  await become('two deletions', () => o.changes.slice(3), ['delete ns/a', 'delete ns/b']);
  stream.cut();
  await become('three', () => o.changes.slice(3), ['delete ns/a', 'delete ns/b', 'delete ns/c']);
});

test('an object with another UID is a deletion and an addition', async () => {
  server.put(path, 'a');
  const o = await live();
  server.put(path, 'a', '', true);
  await become('changes', () => o.changes, ['add ns/a 101', 'delete ns/a inferred', 'add ns/a 102']);
});

test('a silent watch is requested again before it is closed', async () => {
  server.put(path, 'a');
  scripted(() => {}); // half-open: it never sends anything
  const o = observe({}, { silence: 100 });
  await watching();
  server.put(path, 'b');
  await become('changes', () => o.changes, ['add ns/a 101', 'add ns/b 102']);
  assert.deepEqual(o.errors, []);
  assert.equal(o.log.includes('stale'), false);
});

test('a server that stops answering is stale since its last byte', async () => {
  server.put(path, 'a');
  let mute = false;
  let refusedAt = 0;
  const o = await live({}, {
    silence: 100,
    multiwatch: false,
    fetch: (input, init) => {
      if (!mute) return fetch(input, init);
      refusedAt ||= Date.now();
      return Promise.reject(new TypeError('no route'));
    },
  });
  await become('the phase', () => o.informer.state.phase, 'live');
  mute = true;
  await become('the phase', () => o.informer.state.phase, 'stale');
  // An answer that was under way may have come after mute was set, but before this request.
  assert.ok(o.informer.state.since <= refusedAt);
  assert.equal(o.informer.state.error!.message, 'no route');
  // Its connection is open, and so is the watch.
  server.put(path, 'b');
  await become('the phase', () => o.informer.state.phase, 'live');
  assert.deepEqual(o.changes, ['add ns/a 101', 'add ns/b 102']);
  assert.equal(o.log.filter((line) => line === 'sync').length, 1);
});

test('a server that misses its heartbeats is stale', async () => {
  server.put(path, 'a');
  let mute = false;
  const o = await live({}, {
    multiwatch: false,
    fetch: async (input, init) => {
      if (mute) throw new TypeError('no route');
      const { body, status, headers } = await fetch(input, init);
      return new Response(body, { status, headers: [...headers, ['Watchkeeper-Heartbeat', '0.03']] });
    },
  });
  await become('the phase', () => o.informer.state.phase, 'live');
  mute = true;
  await become('the phase', () => o.informer.state.phase, 'stale');
  mute = false;
  await become('the phase', () => o.informer.state.phase, 'live');
});

test('a server that stops and starts again', async () => {
  server.put(path, 'a');
  const o = await live();
  await server.stop();
  await become('the phase', () => o.informer.state.phase, 'stale');
  server.put(path, 'b');
  server.remove(path, 'a');
  await server.start();
  await become('changes', () => o.changes, ['add ns/a 101', 'add ns/b 102', 'delete ns/a']);
  await become('the phase', () => o.informer.state.phase, 'live');
});
