// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The store and the subscribers of an informer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../src/index.js';
import { live, observe, path, server, watching } from './harness.js';
import { become, eventually } from './observer.js';
import { type Thing } from './server.js';

test('lists in pages, then follows', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) server.put(path, name);
  const o = await live({ pageSize: 2, labelSelector: 'x=y', fieldSelector: 'metadata.name!=z', fields: ['spec.a', 'spec.b'] });
  server.put(path, 'f');
  server.put(path, 'a');
  server.remove(path, 'b');
  await become('changes', () => o.changes.slice(5), ['add ns/f 106', 'update ns/a 107', 'delete ns/b']);
  assert.deepEqual(o.log.slice(0, 9), [
    'connecting', 'syncing', 'add ns/a 101', 'add ns/b 102', 'add ns/c 103', 'add ns/d 104', 'add ns/e 105', 'sync', 'live',
  ]);
  const asked = server.requests.filter((url) => url.pathname === path).map((url) => Object.fromEntries(url.searchParams));
  const of = { labelSelector: 'x=y', fieldSelector: 'metadata.name!=z', fields: 'spec.a,spec.b' };
  assert.deepEqual(asked.slice(0, 3), [
    { ...of, limit: '2', pretty: '0', resourceVersion: '1', resourceVersionMatch: 'NotOlderThan' },
    { ...of, limit: '2', pretty: '0', continue: '105:2' },
    { ...of, limit: '2', pretty: '0', continue: '105:4' },
  ]);
  assert.equal(asked[3]!.resourceVersion, '105');
  assert.equal(asked[3]!.allowWatchBookmarks, 'true');
  // Items of lists get the kind and apiVersion that lists leave out.
  assert.equal(o.informer.store.get('ns/c')!.kind, 'Thing');
  assert.equal(o.informer.store.get('ns/c')!.apiVersion, 'v1');
});

test('the next page is requested before the current one is complete', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) server.put(path, name);
  let page: (() => void) | undefined;
  let ahead = 0;
  server.lists.push(
    (url, response) => {
      response.writeHead(200, { Link: '<?limit=2&continue=105:2>; rel="next"' }).flushHeaders();
      page = () => server.list(url, response);
    },
    (url, response) => {
      ahead++;
      server.list(url, response);
    },
  );
  const o = observe({ pageSize: 2 });
  await eventually('the second page is asked for', () => ahead === 0);
  assert.deepEqual([...o.informer.store.keys()], []);
  page!();
  await become('the store', () => [...o.informer.store.keys()], ['ns/a', 'ns/b', 'ns/c', 'ns/d', 'ns/e']);
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

test('the results of transform are stored and emitted', async () => {
  server.put(path, 'a', 'one');
  const informer = connect(server.url).informer('test/v1/things', { transform: (thing: Thing) => thing.text!.length });
  const emitted: unknown[] = [];
  informer.on('add', ({ object }) => emitted.push(object));
  informer.on('update', ({ old, object }) => emitted.push([old, object]));
  informer.on('delete', ({ object }) => emitted.push(object));
  await informer.ready();
  await watching();
  server.put(path, 'a', 'three');
  server.remove(path, 'a');
  await become('changes', () => emitted, [3, [3, 5], 5]);
  informer.stop();
});

test('exceptions of handlers do not disturb the others', async (t) => {
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

test('handlers can be removed', async () => {
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

test('schedule decides when a batch is delivered, coalesce merges the events of an object', async () => {
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

test('an iteration starts with the current objects and ends with the informer', async () => {
  server.put(path, 'a');
  const o = await live();
  await become('live', () => o.informer.state.phase, 'live'); // which is an event too
  const emitted: string[] = [];
  const done = (async () => {
    for await (const event of o.informer) emitted.push('key' in event ? event.type + ' ' + event.key : event.type);
  })();
  await become('the first', () => emitted, ['add ns/a', 'sync', 'state']);
  server.put(path, 'b');
  await become('another', () => emitted.at(-1), 'add ns/b');
  o.informer.stop();
  await done;
  assert.equal(emitted.at(-1), 'state');
});

test('a slow iteration receives the newest state, in bounded memory', async () => {
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

test('stopping closes all requests', async () => {
  const controller = new AbortController();
  const o = await live({ signal: controller.signal });
  controller.abort();
  await become('no watch', () => server.open.size, 0);
  assert.equal(o.log.at(-1), 'stopped');
  await assert.rejects(connect(server.url, { signal: controller.signal }).informer('v1/pods').ready(), /stopped/);
});

test('Watchkeeper below a prefix, and credentials', async () => {
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

test('an invalid resource throws', () => {
  for (const name of ['pods', 'a/b/c/d', '']) assert.throws(() => connect(server.url).informer(name), /not a resource/);
});
