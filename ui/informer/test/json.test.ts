// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, type ConnectOptions, type KubernetesObject } from '../src/index.js';
import { parse, stringify } from '../src/json.js';
import { scripted, server } from './harness.js';
import { eventually } from './observer.js';

test('JSON is read as JSON.parse does, and integers with all their digits', () => {
  const exact = ['9007199254740992', '9007199254740993', '-9007199254740993', '9223372036854775807', '-9223372036854775808', '18446744073709551615', '100000000000000000000'];
  for (const text of exact) {
    assert.equal(parse(text), BigInt(text));
    assert.equal(stringify(parse(text)), text);
  }
  const same = [
    '0', '-0', '9007199254740991', '-9007199254740991', '0.1', '1e21', '1.2345678901234567890', '12345678901234567.5', '12345678901234567e3', '1e+0000000000000000001', '0.12345678901234567',
    '"9007199254740993"', '" 9007199254740993"', '"a:9007199254740993,"', '"\\":9007199254740993"', '"\\\\"', '"sha256:1234567890123456789012345678901234567890123456789012345678901234"', '["\\\\",9007199254740991]', '{"__proto__":1}', 'null',
  ];
  for (const text of same) assert.deepEqual(parse(text), JSON.parse(text), text);
  const nested = '{"a":[9007199254740993,-9007199254740993 ,{"b\\"":"\\\\","c":\n9007199254740995}],"s":"[9007199254740993]","1234567890123456789":"","n":1.5}';
  assert.deepEqual(parse(nested), { a: [9007199254740993n, -9007199254740993n, { 'b"': '\\', c: 9007199254740995n }], s: '[9007199254740993]', '1234567890123456789': '', n: 1.5 });
  for (const text of ['', '{', '{"a":9007199254740993', '9007199254740993x', '09007199254740993', '"a" 9007199254740993', '[9007199254740993"]']) assert.throws(() => parse(text), SyntaxError, text);
});

test('what was read is written in the same way', () => {
  const digits = () => String(Math.random()).slice(2);
  const value = (depth: number): string => {
    const kind = Math.floor(Math.random() * (depth ? 6 : 4));
    const text = () => JSON.stringify(['', ':', '\\', '"', '\\"', ',', '[ ', 'é'].map((part) => part + (Math.random() < 0.5 ? digits() : '')).sort(() => Math.random() - 0.5).join(''));
    if (kind === 0) return text();
    if (kind === 1) return String(BigInt((Math.random() < 0.5 ? '-' : '') + digits() + digits().slice(0, Math.random() * 8)));
    if (kind === 2) return JSON.stringify(Number(`${digits().slice(0, 3)}.${digits()}`));
    if (kind === 3) return ['true', 'null', '1e+21', '0'][Math.floor(Math.random() * 4)]!;
    const members = Array.from({ length: 4 }, (_, i) => (kind === 4 ? '' : `"${i}${digits()}x":`) + value(depth - 1)).join(',');
    return kind === 4 ? `[${members}]` : `{${members}}`;
  };
  for (let i = 0; i < 2000; i++) {
    const text = value(4);
    assert.equal(stringify(parse(text)), text);
  }
});

test('large texts are read', () => {
  const count = 500_000; // a regular expression would run out of stack, and a scan of the rest for each integer would not end
  const text = `[${'9007199254740993,'.repeat(count)}${'"\\\\\\"1234567890123456",'.repeat(count)}"${'\\"'.repeat(8 * count)}",9007199254740995]`;
  const read = parse(text);
  assert.deepEqual([read.length, read[count - 1], read[count], read.at(-2).length, read.at(-1)], [2 * count + 2, 9007199254740993n, '\\"1234567890123456', 8 * count, 9007199254740995n]);
});

test('an informer keeps the digits of integers if it is given a parser that does', async (t) => {
  const item = (rv: string, n: string) => `{"metadata":{"name":"a","uid":"u","resourceVersion":"${rv}"},"n":${n}}`;
  const seen = async (options: ConnectOptions) => {
    server.lists.push((_, response) => response.end(`{"kind":"ThingList","metadata":{"resourceVersion":"7"},"items":[${item('5', '9007199254740993')}]}`));
    scripted((stream) => stream.raw(`{"type":"MODIFIED","object":${item('8', '-9223372036854775807')}}\n`));
    const informer = connect(server.url, options).informer<KubernetesObject & { n: unknown }>('test/v1/things');
    t.after(() => informer.stop());
    const values: unknown[] = [];
    informer.on('add', ({ object }) => values.push(object.n));
    informer.on('update', ({ object }) => values.push(object.n));
    await eventually('the events', () => values.length < 2);
    return values;
  };
  assert.deepEqual(await seen({}), [9007199254740992, -9223372036854775808]); // as JSON.parse
  assert.deepEqual(await seen({ parse }), [9007199254740993n, -9223372036854775807n]);
});
