// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, test } from 'node:test';
import { connect, StatusError, type ConnectOptions, type InformerOptions } from '../src/index.js';
import { become, eventually, Observer } from './observer.js';
import { ApiServer, refuse, type Stream, type Thing } from './server.js';

const path = '/apis/test/v1/things';
let server: ApiServer;
const observers: Observer<Thing>[] = [];

beforeEach(async () => {
  server = await new ApiServer().start();
});

afterEach(async () => {
  const all = observers.splice(0);
  for (const observer of all) observer.informer.stop();
  await server.stop();
  for (const observer of all) observer.finish();
});

function observe(options: InformerOptions<Thing> = {}, connection: ConnectOptions = {}, anew = false): Observer<Thing> {
  const informer = connect(server.url, connection).informer<Thing>('test/v1/things', options);
  const observer = new Observer(informer, anew);
  observers.push(observer);
  return observer;
}

/** An observer whose informer is live. */
async function live(options: InformerOptions<Thing> = {}, connection: ConnectOptions = {}, anew = false): Promise<Observer<Thing>> {
  const observer = observe(options, connection, anew);
  await watching();
  return observer;
}

const watching = () => eventually('a watch', () => server.watching(path).length === 0);

/** Has the next watch served by a script, which may go on as an ordinary one. */
function scripted(script: (stream: Stream) => void): void {
  server.watches.push(script);
}

test('lists in pages, then follows', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) server.put(path, name);
  const o = await live({ pageSize: 2, labelSelector: 'x=y', fieldSelector: 'metadata.name!=z', fields: ['spec.a', 'spec.b'] });
  server.put(path, 'f');
  server.put(path, 'a');
  server.remove(path, 'b');
  await become('changes', () => o.changes.slice(5), ['add ns/f 106', 'update ns/a 107', 'delete ns/b']);
  assert.deepEqual(o.told.slice(0, 9), [
    'connecting', 'syncing', 'add ns/a 101', 'add ns/b 102', 'add ns/c 103', 'add ns/d 104', 'add ns/e 105', 'sync', 'live',
  ]);
  const asked = server.requests.filter((url) => url.pathname === path).map((url) => Object.fromEntries(url.searchParams));
  const of = { labelSelector: 'x=y', fieldSelector: 'metadata.name!=z', fields: 'spec.a,spec.b' };
  assert.deepEqual(asked.slice(0, 3), [
    { ...of, limit: '2', resourceVersion: '1', resourceVersionMatch: 'NotOlderThan' },
    { ...of, limit: '2', continue: '105:2' },
    { ...of, limit: '2', continue: '105:4' },
  ]);
  assert.equal(asked[3]!.resourceVersion, '105');
  assert.equal(asked[3]!.allowWatchBookmarks, 'true');
  // What a list leaves out is put in, so that all objects look alike.
  assert.equal(o.informer.store.get('ns/c')!.kind, 'Thing');
  assert.equal(o.informer.store.get('ns/c')!.apiVersion, 'v1');
});

test('the store is a read-only map', async () => {
  server.put(path, 'a', 'A');
  server.put(path, 'b', 'B');
  const { store } = (await live()).informer;
  assert.equal(store.size, 2);
  assert.equal(store.get('ns/a')!.text, 'A');
  assert.equal(store.has('ns/c'), false);
  assert.deepEqual([...store.keys()], ['ns/a', 'ns/b']);
  assert.deepEqual([...store.values()].map(({ text }) => text), ['A', 'B']);
  assert.deepEqual([...store].map(([key, { text }]) => key + text), ['ns/aA', 'ns/bB']);
  const seen: string[] = [];
  store.forEach(({ text }, key) => seen.push(key + text));
  assert.deepEqual(seen, ['ns/aA', 'ns/bB']);
});

test('a transform makes what is kept and told', async () => {
  server.put(path, 'a', 'one');
  const informer = connect(server.url).informer('test/v1/things', { transform: (thing: Thing) => thing.text!.length });
  const told: unknown[] = [];
  informer.on('add', ({ object }) => told.push(object));
  informer.on('update', ({ old, object }) => told.push([old, object]));
  informer.on('delete', ({ object }) => told.push(object));
  await informer.ready();
  await watching();
  server.put(path, 'a', 'three');
  server.remove(path, 'a');
  await become('changes', () => told, [3, [3, 5], 5]);
  informer.stop();
});

test('characters and lines are put together from any chunks', async () => {
  const o = observe();
  scripted(async (stream) => {
    const line = JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'é€😀', namespace: 'ns', uid: '1', resourceVersion: '101' }, text: 'ü😀' } });
    for (const byte of new TextEncoder().encode(line + '\n')) {
      stream.raw(new Uint8Array([byte]));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });
  await become('the object', () => o.informer.store.get('ns/é€😀')?.text, 'ü😀');
  assert.deepEqual(o.errors, []);
});

for (const [what, bytes] of Object.entries({
  'within a line': '{"type":"ADDED","object":{"metad',
  'within a character': new Uint8Array([...new TextEncoder().encode('{"type":"ADDED","object":"'), 0xf0, 0x9f]),
})) {
  for (const how of ['cut', 'end'] as const) {
    test(`a stream that ends ${what} (${how}) is taken up where it was`, async () => {
      server.put(path, 'a');
      scripted((stream) => {
        stream.raw(bytes);
        setTimeout(() => stream[how](), 20);
      });
      const o = await live();
      server.put(path, 'b');
      await become('changes', () => o.changes, ['add ns/a 101', 'add ns/b 102']);
      assert.equal(o.told.filter((line) => line === 'sync').length, 1, 'it was listed again');
      assert.equal(o.errors.length, 1);
      assert.deepEqual(o.told.slice(-3), ['stale', 'live', 'add ns/b 102']);
    });
  }
}

for (const [what, bytes] of Object.entries({
  'no UTF-8': new Uint8Array([0xff, 0xfe, 0x0a]),
  'no JSON': '<html>\n',
  'no event': '{"hello":1}\n',
  'an event of another type': '{"type":"NEWS","object":{"metadata":{"name":"x","uid":"1","resourceVersion":"500"}}}\n',
})) {
  test(`a stream that brings ${what} is taken up where it was`, async () => {
    server.put(path, 'a');
    scripted((stream) => stream.raw(bytes));
    const o = await live();
    server.put(path, 'b');
    await become('changes', () => o.changes, ['add ns/a 101', 'add ns/b 102']);
    assert.equal(o.errors.length, 1);
  });
}

test('streams that bring nonsense again and again lead to a list', async () => {
  server.put(path, 'a');
  for (let i = 0; i < 3; i++) scripted((stream) => stream.raw('nonsense\n'));
  const o = await live();
  assert.deepEqual(o.changes, ['add ns/a 101']);
  assert.equal(o.told.filter((line) => line === 'sync').length, 2);
});

test('an ordinary end is followed by the next watch, and not told', async () => {
  server.put(path, 'a');
  const o = await live();
  for (let i = 0; i < 3; i++) {
    server.put(path, 'b', String(i));
    await become('an update', () => o.informer.store.get('ns/b')?.text, String(i));
    server.watching(path)[0]!.end();
    await eventually('another watch', () => server.requests.filter((url) => url.searchParams.has('watch') && url.pathname === path).length < 2 + i);
    await watching();
  }
  assert.deepEqual(o.errors, []);
  assert.deepEqual(o.told.filter((line) => !/^(add|update)/.test(line)), ['connecting', 'syncing', 'sync', 'live']);
});

for (const [what, expire] of Object.entries<(stream: Stream, response?: ServerResponse) => void>({
  'an event': (stream) => {
    stream.send('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });
    stream.end();
  },
})) {
  test(`410 as ${what}: only the difference is told`, async () => {
    for (const name of ['a', 'b', 'c']) server.put(path, name);
    const o = await live();
    const stream = server.watching(path)[0]!;
    server.open.delete(stream); // it hears nothing of what happens now
    server.put(path, 'b', 'new');
    server.remove(path, 'c');
    server.put(path, 'd');
    server.put(path, 'a', '', true); // another a
    server.compact();
    expire(stream);
    await become('changes', () => o.changes.slice(3), ['update ns/b 104', 'delete ns/a inferred', 'add ns/a 107', 'add ns/d 106', 'delete ns/c inferred'].sort((x, y) => order(x, y)));
  });
}

/** The order in which the list has them: keys as they were first put, then what is gone. */
function order(x: string, y: string): number {
  const place = (line: string) => ['delete ns/a', 'add ns/a', 'update ns/b', 'add ns/d', 'delete ns/c'].findIndex((start) => line.startsWith(start));
  return place(x) - place(y);
}

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
  assert.equal(again.told.filter((line) => line === 'sync').length, 2);
});

test('a list in which nothing is new tells nothing', async () => {
  for (const name of ['a', 'b', 'c']) server.put(path, name);
  const o = await live({ pageSize: 2 });
  server.compact();
  server.rv++;
  server.compact();
  server.watching(path)[0]!.send('ERROR', { kind: 'Status', code: 410 });
  await become('a second list', () => o.told.filter((line) => line === 'sync').length, 2);
  assert.equal(o.changes.length, 3);
});

test('a continue token that has expired leads to a list in one piece', async () => {
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

test('errors of the server are told and tried again', async () => {
  server.put(path, 'a');
  for (let i = 0; i < 3; i++) server.lists.push((_, response) => refuse(response, 500, 'InternalError'));
  const o = await live();
  await become('changes', () => o.changes, ['add ns/a 101']);
  assert.deepEqual(o.errors.map((error) => (error as StatusError).code), [500, 500, 500]);
  assert.deepEqual(o.told.slice(0, 3), ['connecting', 'connecting', 'syncing']);
});

test('Retry-After is kept to', async () => {
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
  test(`${code} is told with its Status, and asked again when it is woken`, async () => {
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
    await become('what was told', () => o.told, ['connecting', 'denied', 'syncing', 'sync', 'live']);
  });
}

test('a watch that is refused later keeps what there is', async () => {
  server.put(path, 'a');
  const o = await live();
  server.watching(path)[0]!.send('ERROR', { kind: 'Status', code: 403, reason: 'Forbidden', message: 'no more' });
  await become('the phase', () => o.informer.state.phase, 'denied');
  assert.equal(o.informer.store.size, 1);
  assert.equal(o.informer.state.error!.message, 'no more');
});

test('what is told twice is taken once', async () => {
  server.put(path, 'a');
  const b = server.put(path, 'b');
  const o = await live();
  const stream = server.watching(path)[0]!;
  server.remove(path, 'b');
  stream.send('MODIFIED', b); // it is gone, and older
  stream.send('DELETED', { ...b, metadata: { ...b.metadata, resourceVersion: '103' } });
  const a = server.put(path, 'a');
  stream.send('MODIFIED', a);
  stream.send('ADDED', a);
  server.put(path, 'c');
  await become('changes', () => o.changes.slice(2), ['delete ns/b', 'update ns/a 104', 'add ns/c 105']);
});

test('deletions that share a resourceVersion are all told, also when the stream ends between them', async () => {
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

test('another object under a name is a deletion and an addition', async () => {
  server.put(path, 'a');
  const o = await live();
  server.put(path, 'a', '', true);
  await become('changes', () => o.changes, ['add ns/a 101', 'delete ns/a inferred', 'add ns/a 102']);
});

test('a watch that says nothing is asked again before it is given up', async () => {
  server.put(path, 'a');
  scripted(() => {}); // half-open: it says nothing, for ever
  const o = observe({}, { silence: 100 });
  await watching();
  server.put(path, 'b');
  await become('changes', () => o.changes, ['add ns/a 101', 'add ns/b 102']);
  assert.deepEqual(o.errors, []);
  assert.equal(o.told.includes('stale'), false);
});

test('a server that has become mute is stale since it was heard', async () => {
  server.put(path, 'a');
  let mute = false;
  const o = await live({}, {
    silence: 100,
    multiwatch: false,
    fetch: (input, init) => (mute ? Promise.reject(new TypeError('no route')) : fetch(input, init)),
  });
  await become('the phase', () => o.informer.state.phase, 'live');
  mute = true;
  const since = Date.now();
  await become('the phase', () => o.informer.state.phase, 'stale');
  assert.ok(o.informer.state.since <= since);
  assert.equal(o.informer.state.error!.message, 'no route');
  // Its connection is as it was, and so is the watch.
  server.put(path, 'b');
  await become('the phase', () => o.informer.state.phase, 'live');
  assert.deepEqual(o.changes, ['add ns/a 101', 'add ns/b 102']);
  assert.equal(o.told.filter((line) => line === 'sync').length, 1);
});

test('a server that goes and comes back', async () => {
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

test('a server that is behind does not bring back what was', async () => {
  server.put(path, 'a', 'old');
  server.put(path, 'b');
  const o = await live();
  const old = server.objects.get(path + '/a')!;
  server.put(path, 'a', 'new');
  server.remove(path, 'b');
  await become('changes', () => o.changes.length, 4);
  // Another server answers, which has not seen that yet.
  server.compact();
  server.lists.push((_, response) =>
    response.end(JSON.stringify({ kind: 'ThingList', metadata: { resourceVersion: '102' }, items: [old] })),
  );
  server.watching(path)[0]!.send('ERROR', { kind: 'Status', code: 410 });
  await become('another list', () => o.told.filter((line) => line === 'sync').length, 2);
  assert.deepEqual(o.changes.slice(2), ['update ns/a 103', 'delete ns/b']);
  assert.match(o.errors[0]!.message, /behind/);
});

test('a server that was restored from a backup is believed', async () => {
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

test('handlers that throw do not harm the others', async (t) => {
  const o = observe();
  const thrown: unknown[] = [];
  const later = queueMicrotask;
  t.mock.method(globalThis, 'queueMicrotask', (callback: () => void) =>
    later(() => {
      try {
        callback();
      } catch (error) {
        thrown.push(error);
      }
    }),
  );
  o.informer.on('add', () => {
    throw new Error('a handler');
  });
  const seen: string[] = [];
  o.informer.on('add', ({ key }) => seen.push(key));
  await watching();
  server.put(path, 'a');
  server.put(path, 'b');
  await become('what was seen', () => seen, ['ns/a', 'ns/b']);
  assert.equal(thrown.length, 2);
  assert.deepEqual(o.errors, []);
});

test('an end of handlers', async () => {
  const o = await live();
  const seen: string[] = [];
  const off = o.informer.on('add', ({ key }) => seen.push(key));
  const offBatch = o.informer.onBatch((events) => events.forEach((event) => 'key' in event && seen.push('batch ' + event.key)));
  server.put(path, 'a');
  await become('what was seen', () => [...seen].sort(), ['batch ns/a', 'ns/a']);
  off();
  offBatch();
  server.put(path, 'b');
  await become('the store', () => o.informer.store.size, 2);
  assert.equal(seen.length, 2);
});

test('batches are due when their schedule says so, and tell one event of each object', async () => {
  server.put(path, 'a', '1');
  server.put(path, 'gone');
  const o = await live();
  let frame: (() => void) | undefined;
  const batches: string[][] = [];
  o.informer.onBatch(
    (events) => batches.push(events.map((event) => ('key' in event ? `${event.type} ${event.key} ${event.object.text}${event.coalesced ? ' coalesced' : ''}` : event.type))),
    { schedule: (flush) => (frame = flush), coalesce: true },
  );
  await eventually('a schedule', () => !frame);
  const next = () => {
    const flush = frame!;
    frame = undefined;
    flush();
  };
  next();
  server.put(path, 'a', '2');
  server.put(path, 'a', '3');
  server.put(path, 'short');
  server.remove(path, 'short');
  server.put(path, 'gone', 'once more');
  server.remove(path, 'gone');
  server.put(path, 'new', '1');
  server.put(path, 'new', '2');
  server.put(path, 'last');
  await become('the store', () => o.informer.store.has('ns/last'), true);
  assert.equal(batches.length, 1);
  next();
  assert.deepEqual(batches, [
    ['add ns/a 1', 'add ns/gone ', 'sync', 'state'],
    ['update ns/a 3 coalesced', 'delete ns/gone once more coalesced', 'add ns/new 2 coalesced', 'add ns/last '],
  ]);
});

test('an iteration begins with what there is and ends with the informer', async () => {
  server.put(path, 'a');
  const o = await live();
  const told: string[] = [];
  const done = (async () => {
    for await (const event of o.informer) told.push('key' in event ? event.type + ' ' + event.key : event.type);
  })();
  await become('the first', () => told, ['add ns/a', 'sync', 'state']);
  server.put(path, 'b');
  await become('another', () => told.at(-1), 'add ns/b');
  o.informer.stop();
  await done;
  assert.equal(told.at(-1), 'state');
});

test('a slow iteration is told all of what remains, in bounded memory', async () => {
  for (let i = 0; i < 10; i++) server.put(path, 'p' + i);
  const o = await live();
  const iterator = o.informer[Symbol.asyncIterator]();
  const known = new Map<string, Thing>();
  let count = 0;
  const take = async () => {
    const { value: event } = await iterator.next();
    count++;
    if (event && 'key' in event) {
      if (event.type === 'delete') known.delete(event.key);
      else known.set(event.key, event.object);
    }
  };
  await take();
  for (let i = 0; i < 20_000; i++) server.put(path, 'p' + (i % 10), String(i));
  server.remove(path, 'p3');
  server.put(path, 'end');
  await become('the store', () => o.informer.store.has('ns/end'), true);
  while (!known.has('ns/end')) await take();
  assert.deepEqual([...known.keys()].sort(), [...o.informer.store.keys()].sort());
  for (const [key, object] of known) assert.equal(object, o.informer.store.get(key));
  assert.ok(count < 2500, `${count} events were held`);
});

test('stopping ends all that it has open', async () => {
  const controller = new AbortController();
  const o = await live({ signal: controller.signal });
  controller.abort();
  await become('no watch', () => server.open.size, 0);
  assert.equal(o.told.at(-1), 'stopped');
  await assert.rejects(connect(server.url, { signal: controller.signal }).informer('v1/pods').ready(), /stopped/);
});

test('a Watchkeeper below a prefix, and credentials', async () => {
  const seen: string[] = [];
  const informer = connect('/below/', {
    multiwatch: false,
    headers: async () => ({ Authorization: 'Bearer t' }),
    fetch: async (input, init) => {
      seen.push(String(input).replace(/\?.*/, '') + ' ' + new Headers(init?.headers).get('authorization'));
      return new Response(JSON.stringify({ metadata: { resourceVersion: '1' }, items: null }));
    },
  }).informer('apps/v1/deployments', { namespace: 'default' });
  await informer.ready();
  informer.stop();
  assert.equal(seen[0], '/below/apis/apps/v1/namespaces/default/deployments Bearer t');
});

test('what is no resource is a mistake of the caller', () => {
  for (const name of ['pods', 'a/b/c/d', '']) assert.throws(() => connect(server.url).informer(name), /no resource/);
});
