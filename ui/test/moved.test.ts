// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Past, type Shown } from '../src/data/past';
import type { Scope, Status } from '../src/data/protocol';
import { Rows } from '../src/data/rows';
import { rowOf } from './row';

/** The Pods of a moment, by name, with the Node of each. */
type Moment = Record<string, string>;

/** A gateway with a history: its moments are seconds, and each has the resourceVersion of its second. */
class Gateway {
  asked: string[] = [];
  /** The history before it is another one, as after a restore. */
  epochs = 0;
  differences: (() => Response) | null = null;
  constructor(readonly moments: Moment[]) {}

  readonly fetch = async (input: string | URL | Request): Promise<Response> => {
    const url = new URL(String(input));
    const { searchParams: query } = url;
    const [, at, diffed] = /^(?:\/at\/(\d+)\/api|\/watchkeeper\/v1\/history\/(diff)\/api)\/v1\//.exec(url.pathname)!;
    const nodes = url.pathname.endsWith('/nodes');
    this.asked.push(`${diffed ?? 'list'} ${nodes ? 'nodes' : 'pods'}`);
    const fields = query.get('fields')!.split(',');
    const row = ([name, node]: [string, string]) => rowOf({ metadata: { name, namespace: 'd', uid: name, resourceVersion: '1' }, spec: { nodeName: node } }, fields);
    const version = (moment: string): { resourceVersion: string } => ({ resourceVersion: String(Number(moment) + 100 * this.epochs) });
    if (!diffed) return Response.json({ metadata: version(at), rows: nodes ? [] : Object.entries(this.moments[Number(at)]).map(row) });
    if (this.differences) return this.differences();
    const [from, to] = [this.moments[Number(query.get('from'))], this.moments[Number(query.get('to'))]];
    const changed = nodes ? [] : Object.entries(to).filter(([name, node]) => from[name] !== node).map(row);
    const deleted = nodes ? [] : Object.keys(from).filter((name) => !(name in to)).map((name) => ['d', name]);
    return Response.json({ from: version(query.get('from')!), to: version(query.get('to')!), rows: changed, deleted });
  };
}

/** Goes to a moment, and returns what the gateway was asked for, and which moment the rows show. */
async function go(gateway: Gateway, rows: Rows, at: string, shown: Shown | null, speed = 0): Promise<{ asked: string; shown: Shown | null; status: Status }> {
  globalThis.fetch = gateway.fetch as typeof fetch;
  gateway.asked = [];
  const { past, status } = await new Promise<{ past: Past; status: Status }>((resolve) => {
    const past: Past = new Past('http://x/', at, speed, rows, () => {}, (status) => setTimeout(() => resolve({ past, status })), null, 'http://x/watchkeeper/v1/', (_: Scope) => {}, shown);
  });
  return { asked: gateway.asked.sort().join(', '), shown: past.shown, status };
}

/** The Pods on the board, after the changes that `rows` would send. */
class Board {
  readonly pods = new Map<number, string>();
  constructor(readonly rows: Rows) {}

  names(): string {
    const batch = this.rows.take(0, 0);
    batch.names.rows.forEach((row, i) => this.pods.set(row, batch.names.names[i]));
    for (const row of batch.gone) this.pods.delete(row);
    return [...this.pods.values()].sort().join('');
  }
}

test('another moment is read as the difference from the one that is shown', async () => {
  const gateway = new Gateway([{ a: 'n', b: 'n' }, { a: 'm', c: 'n' }, { c: 'n', d: 'n' }]);
  const rows = new Rows();
  const board = new Board(rows);
  let now = await go(gateway, rows, '0', null);
  assert.deepEqual([now.asked, now.shown, board.names()], ['list nodes, list pods', { at: '0', nodes: '0', pods: '0' }, 'ab']);
  now = await go(gateway, rows, '2', now.shown);
  assert.deepEqual([now.asked, now.shown, board.names()], ['diff nodes, diff pods', { at: '2', nodes: '2', pods: '2' }, 'cd']);
  now = await go(gateway, rows, '1', now.shown);
  assert.deepEqual([now.asked, board.names()], ['diff nodes, diff pods', 'ac']);

  // A refusal, and the state of another history, are answered by lists.
  gateway.differences = () => Response.json({ message: 'too many changes: list the state at to' }, { status: 400 });
  now = await go(gateway, rows, '0', now.shown);
  assert.deepEqual([now.asked, now.status.phase, board.names()], ['diff nodes, diff pods, list nodes, list pods', 'past', 'ab']);
  gateway.differences = null;
  gateway.epochs++;
  now = await go(gateway, rows, '2', now.shown);
  assert.deepEqual([now.asked, board.names()], ['diff nodes, diff pods, list nodes, list pods', 'cd']);
});

test('after a replay the rows show no moment', async () => {
  const gateway = new Gateway([{ a: 'n' }, { a: 'n', b: 'n' }]);
  const rows = new Rows();
  const now = await go(gateway, rows, '1', { at: '0', nodes: '0', pods: '0' }, 10);
  assert.equal(now.shown, null);
});
