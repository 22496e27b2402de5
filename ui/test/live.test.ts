// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maxNamespaces, useToken } from '../src/data/access';
import { Live } from '../src/data/live';
import type { Scope, Status } from '../src/data/protocol';
import { Rows } from '../src/data/rows';
import { rowOf } from './row';

const forbidden = (what: string): Response => Response.json({ kind: 'Status', message: `${what} is forbidden`, reason: 'Forbidden', code: 403 }, { status: 403 });

/** A gateway whose caller may read these namespaces, each with a Pod. `fields`: it has projections for them. */
class Gateway {
  readonly asked: { url: URL; authorization: string | null }[] = [];
  /** The watches of each open response. */
  readonly carried = new Set<string[]>();

  constructor(public namespaces: string[], readonly fields = true) {}

  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(String(input));
    this.asked.push({ url, authorization: new Headers(init.headers).get('authorization') });
    const path = url.pathname;
    if (path === '/watchkeeper/v1/access') return Response.json({ resource: 'pods', verb: 'list', all: false, namespaces: this.namespaces, incomplete: false });
    if (path === '/watchkeeper/v1/multiwatch') {
      const watches = url.searchParams.getAll('watch').map((watch) => watch.replace(/\?.*/, ''));
      this.carried.add(watches);
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => init.signal?.addEventListener('abort', () => {
          this.carried.delete(watches);
          controller.error(init.signal!.reason);
        }),
      });
      return new Response(body);
    }
    const [, namespace] = /^\/api\/v1\/namespaces\/([^/]+)\/pods$/.exec(path) ?? [];
    if (!namespace || !this.namespaces.includes(namespace)) return forbidden(path);
    if (url.searchParams.has('fields') && !this.fields) return Response.json({ kind: 'Status', message: 'fields: leave them out', reason: 'BadRequest', code: 400 }, { status: 400 });
    const pod = { metadata: { namespace, name: 'web', uid: namespace, resourceVersion: '5' }, spec: { nodeName: 'node-0' }, status: { phase: 'Running' } };
    const metadata = { resourceVersion: '10' };
    if (url.searchParams.get('as') === 'rows') return Response.json({ kind: 'RowList', metadata, rows: [rowOf(pod, url.searchParams.get('fields')!.split(','))] });
    return Response.json({ kind: 'PodList', apiVersion: 'v1', metadata, items: [pod] });
  };
}

/** Reads a gateway until a condition holds. */
async function read(gateway: Gateway, done: (status: Status | undefined, scope: Scope | undefined, rows: Rows) => boolean) {
  globalThis.fetch = gateway.fetch as typeof fetch;
  const rows = new Rows();
  let status: Status | undefined;
  let scope: Scope | undefined;
  const live = new Live('http://x/', 'http://x/watchkeeper/v1/', rows, () => {}, (s) => (status = s), (s) => (scope = s));
  try {
    for (const deadline = Date.now() + 20_000; !done(status, scope, rows); await new Promise((resolve) => setTimeout(resolve, 10))) {
      assert.ok(Date.now() < deadline, `${JSON.stringify(status)} ${JSON.stringify(scope)} ${rows.size}`);
    }
  } finally {
    live.close();
  }
  return { status: status!, scope: scope!, rows };
}

test('a reader of some namespaces has a watch of each, on few connections', async () => {
  useToken('abc');
  const names = Array.from({ length: maxNamespaces + 20 }, (_, i) => `ns-${String(i).padStart(3, '0')}`);
  const gateway = new Gateway(names);
  let carried: string[][] = [];
  const { status, scope, rows } = await read(gateway, (status, _, rows) => {
    // Namespaces that join later replace the response of their connection.
    carried = [...gateway.carried];
    return status?.phase === 'live' && rows.size === maxNamespaces && new Set(carried.flat()).size === maxNamespaces && carried.flat().length === maxNamespaces;
  });
  assert.equal(status.text, '');
  assert.deepEqual([scope.namespaces, scope.omitted, scope.incomplete], [names.slice(0, maxNamespaces), 20, false]);
  assert.equal(scope.nodes?.denied, true);
  assert.match(scope.nodes.why, /nodes is forbidden/);
  assert.equal(rows.synced, true);
  assert.ok(carried.length <= 3 && carried.every((watches) => watches.length <= 100), `${carried.map((watches) => watches.length)}`);
  assert.deepEqual(gateway.asked.filter(({ authorization }) => authorization !== 'Bearer abc'), []);
  assert.deepEqual(gateway.asked.filter(({ url }) => url.href.includes('abc')), []);
  useToken('');
});

test('the end of a source is not a failure', async () => {
  globalThis.fetch = new Gateway(['a']).fetch as typeof fetch;
  const said: string[] = [];
  const rows = new Rows();
  const live = new Live('http://x/', 'http://x/watchkeeper/v1/', rows, () => said.push('changed'), ({ phase }) => said.push(phase), () => {});
  for (const deadline = Date.now() + 20_000; said.at(-1) !== 'changed' || !said.includes('live') || rows.size === 0; await new Promise((resolve) => setTimeout(resolve, 10))) assert.ok(Date.now() < deadline, said.join());
  const before = said.length;
  live.close();
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(said.slice(before), []);
});

test('a gateway without projections for the reader is asked for whole objects', async () => {
  const gateway = new Gateway(['a', 'b'], false);
  const { scope } = await read(gateway, (status, _, rows) => status?.phase === 'live' && rows.size === 2);
  assert.deepEqual(scope.namespaces, ['a', 'b']);
  assert.ok(gateway.asked.some(({ url }) => url.pathname.endsWith('/namespaces/a/pods') && !url.searchParams.has('fields')));
});

test('a reader without any namespace', async () => {
  const { status, scope, rows } = await read(new Gateway([]), (status) => status?.phase === 'denied');
  assert.deepEqual([status.text, status.code, scope.namespaces, rows.size, rows.synced], ['You may not list Pods in any namespace.', undefined, [], 0, false]);
});

/** A gateway in an outage that has only Pods, or nothing. */
class Outage extends Gateway {
  upstream?: { answers: boolean; reason?: string; lastContact?: string };

  override readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(String(input));
    if (url.pathname === '/watchkeeper/v1/multiwatch') return new Response(new ReadableStream<Uint8Array>({ start: (controller) => init.signal?.addEventListener('abort', () => controller.error(init.signal!.reason)) }));
    if (url.pathname === '/watchkeeper/v1/history' && this.upstream) return Response.json({ recording: { state: 'on' }, resources: [], upstream: this.upstream });
    if (url.pathname !== '/api/v1/pods' || !this.namespaces.length) return Response.json({ kind: 'Status', message: `${url.pathname} cannot be served from the cache now`, reason: 'ServiceUnavailable', code: 503 }, { status: 503 });
    const pod = { metadata: { namespace: 'a', name: 'web', uid: 'a', resourceVersion: '5' }, spec: { nodeName: 'node-0' }, status: { phase: 'Running' } };
    return Response.json({ kind: 'RowList', metadata: { resourceVersion: '10' }, rows: [rowOf(pod, url.searchParams.get('fields')!.split(','))] });
  };
}

test('what the gateway has in an outage is complete without the rest, which is named', async () => {
  const { status, scope, rows } = await read(new Outage(['a']), (status, scope, rows) => status?.phase === 'live' && scope?.nodes?.failed === true && rows.synced);
  assert.deepEqual([status.text, rows.size, scope.pods], ['', 1, undefined]);
  assert.match(scope.nodes!.why, /nodes cannot be served/);
});

test('nothing is complete without any answer', async () => {
  const { status, scope, rows } = await read(new Outage([]), (status, scope) => status?.phase === 'connecting' && status.text !== '' && scope?.pods !== undefined);
  assert.match(status.text, /cannot be served/);
  assert.deepEqual([rows.synced, scope.nodes, scope.pods!.namespaces], [false, null, []]);
});

test('without any answer, the page says since when the API server does not answer, and goes live by itself', async () => {
  const gateway = new Outage([]);
  gateway.upstream = { answers: false, reason: 'connection refused', lastContact: '2026-01-31T07:06:03Z' };
  const reports: Status[] = [];
  const { scope, rows } = await read(gateway, (status, scope) => {
    if (status && status !== reports.at(-1)) reports.push(status);
    if (status?.code === 503 && scope?.pods) gateway.namespaces = ['a']; // contact is back
    return status?.phase === 'live';
  });
  assert.deepEqual(reports.filter(({ text }) => /served/.test(text)), [], 'how the gateway serves Pods is not said');
  assert.deepEqual(reports.find(({ code }) => code === 503), { phase: 'stale', text: 'No answer from the API server: connection refused.', since: Date.parse('2026-01-31T07:06:03Z'), code: 503 });
  assert.deepEqual([rows.size, rows.synced, scope.pods], [1, true, undefined]);
});

test('a gateway that was started in the outage does not know since when', async () => {
  const gateway = new Outage([]);
  gateway.upstream = { answers: false, reason: 'the API server is not ready: etcd failed' };
  const { status } = await read(gateway, (status) => status?.code === 503);
  assert.deepEqual([status.phase, status.text], ['connecting', 'The API server is not ready: etcd failed.']);
  gateway.upstream = { answers: true };
  assert.match((await read(gateway, (status) => !!status?.text)).status.text, /cannot be served/);
});
