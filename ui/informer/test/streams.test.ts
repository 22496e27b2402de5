// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// What a watch delivers, in any chunks, and how it is resumed.

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { live, observe, path, scripted, server, watching } from './harness.js';
import { become, eventually } from './observer.js';
import { type Stream } from './server.js';

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
    test(`a stream that ends ${what} (${how}) is resumed`, async () => {
      server.put(path, 'a');
      scripted((stream) => {
        stream.raw(bytes);
        setTimeout(() => stream[how](), 20);
      });
      const o = await live();
      server.put(path, 'b');
      await become('changes', () => o.changes, ['add ns/a 101', 'add ns/b 102']);
      assert.equal(o.log.filter((line) => line === 'sync').length, 1, 'it was listed again');
      assert.equal(o.errors.length, 1);
      assert.deepEqual(o.log.slice(-3), ['stale', 'live', 'add ns/b 102']);
    });
  }
}

for (const [what, bytes] of Object.entries({
  'invalid UTF-8': new Uint8Array([0xff, 0xfe, 0x0a]),
  'invalid JSON': '<html>\n',
  'something that is no event': '{"hello":1}\n',
  'an event of unknown type': '{"type":"NEWS","object":{"metadata":{"name":"x","uid":"1","resourceVersion":"500"}}}\n',
})) {
  test(`a stream with ${what} is resumed`, async () => {
    server.put(path, 'a');
    scripted((stream) => stream.raw(bytes));
    const o = await live();
    server.put(path, 'b');
    await become('changes', () => o.changes, ['add ns/a 101', 'add ns/b 102']);
    assert.equal(o.errors.length, 1);
  });
}

test('repeated malformed streams lead to a relist', async () => {
  server.put(path, 'a');
  for (let i = 0; i < 3; i++) scripted((stream) => stream.raw('nonsense\n'));
  const o = await live();
  assert.deepEqual(o.changes, ['add ns/a 101']);
  assert.equal(o.log.filter((line) => line === 'sync').length, 2);
});

test('a normal end is followed by the next watch, and emits no event', async () => {
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
  assert.deepEqual(o.log.filter((line) => !/^(add|update)/.test(line)), ['connecting', 'syncing', 'sync', 'live']);
});

for (const [what, expire] of Object.entries<(stream: Stream, response?: ServerResponse) => void>({
  'an event': (stream) => {
    stream.send('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });
    stream.end();
  },
})) {
  test(`410 as ${what}: only the differences are emitted`, async () => {
    for (const name of ['a', 'b', 'c']) server.put(path, name);
    const o = await live();
    const stream = server.watching(path)[0]!;
    server.open.delete(stream); // it receives nothing from now on
    server.put(path, 'b', 'new');
    server.remove(path, 'c');
    server.put(path, 'd');
    server.put(path, 'a', '', true); // another a
    server.compact();
    expire(stream);
    await become('changes', () => o.changes.slice(3), ['update ns/b 104', 'delete ns/a inferred', 'add ns/a 107', 'add ns/d 106', 'delete ns/c inferred'].sort((x, y) => order(x, y)));
  });
}

/** The order of the list: keys in the order in which they were created, then what was deleted. */
function order(x: string, y: string): number {
  const place = (line: string) => ['delete ns/a', 'add ns/a', 'update ns/b', 'add ns/d', 'delete ns/c'].findIndex((start) => line.startsWith(start));
  return place(x) - place(y);
}
