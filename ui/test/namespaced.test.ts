// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Scope } from '../src/data/protocol';
import type { Counts, History, ObjectChange, Page } from '../src/time/history';
import { namespaced } from '../src/time/namespaced';

/** A history with a change in each namespace at each of its times, in pages of two. A page in the middle is empty. */
function recorded(times: Record<string, number[]>) {
  const asked: string[] = [];
  const of = (namespace: string): History =>
    ({
      async counts(from: number, to: number, _: AbortSignal, resources: readonly string[] = []): Promise<Counts> {
        asked.push(`counts ${namespace} ${resources}`);
        if (!namespace && !resources.includes('nodes')) throw new Error('pods is forbidden');
        const one = (resource: string) => ({ resource, added: [times[namespace]?.length ?? 7, 0], modified: [0, 1], deleted: [1, 0], spans: [{ from: new Date(100).toISOString(), to: new Date(to).toISOString() }], gaps: [] });
        return { from: new Date(from).toISOString(), to: new Date(to).toISOString(), binSeconds: 1, bins: 2, resources: resources.map(one), ...(namespace === 'b' && { denied: ['secrets'] }) };
      },
      async changes(_from: number, _to: number, limit: number, _signal: AbortSignal, resources: readonly string[] = [], more = ''): Promise<Page<ObjectChange>> {
        asked.push(`changes ${namespace} ${resources} ${more}`);
        if (!namespace) throw new Error('pods is forbidden');
        const [at, empty] = (more || '0').split('-').map(Number);
        const step = Math.min(2, limit);
        if (at === 4 && !empty) return { items: [], more: '4-1' };
        const items = times[namespace].slice(at, at + step).map((time) => ({ type: 'MODIFIED', path: `/${namespace}`, resourceVersion: String(time), time: new Date(time).toISOString() }) as ObjectChange);
        return { items, more: at + step < times[namespace].length ? String(at + step) : '' };
      },
      warnings: async () => [{ time: times[namespace][0], warning: true, about: namespace, words: '' }],
      state: async () => ({ on: true, reason: '', first: 9000, end: 0 }),
    }) as unknown as History;
  return { of, asked };
}

const scopeOf = (namespaces: string[] | null, nodes: Scope['nodes'] = null): Scope => ({ namespaces, omitted: 0, incomplete: false, nodes });
const { signal } = new AbortController();

test('changes of several namespaces are one list, the newest first, in pages', async () => {
  const times = { a: [90, 70, 50, 30, 10], b: [80, 60, 55, 54, 53, 52, 20], c: [] };
  const { of } = recorded(times);
  const history = namespaced(of(''), of, () => scopeOf(['a', 'b', 'c']));
  const all = Object.values(times).flat().sort((x, y) => y - x);
  for (const limit of [1, 2, 3, 5, 100]) {
    const found: number[] = [];
    let more = '';
    do {
      const page: Page<ObjectChange> = await history.changes(0, 100, limit, signal, [], more);
      assert.ok(page.items.length <= limit);
      const again: Page<ObjectChange> = await history.changes(0, 100, limit, signal, [], more);
      assert.deepEqual(again.items, page.items, 'the same token is the same page');
      found.push(...page.items.map(({ time }) => Date.parse(time)));
      more = page.more;
    } while (more);
    assert.deepEqual(found, all, `${limit} per page`);
  }
});

test('a reader of no namespace gets the answer for all: what they may not list is not told as not recorded', async () => {
  const { of } = recorded({});
  const history = namespaced(of(''), of, () => scopeOf([]));
  await assert.rejects(history.counts(0, 2000, signal), /forbidden/);
  await assert.rejects(history.changes(0, 2000, 10, signal), /forbidden/);
});

test('counts are the sum of the namespaces, and those of Nodes are asked for once', async () => {
  const { of, asked } = recorded({ a: [1, 2], b: [3] });
  const history = namespaced(of(''), of, () => scopeOf(['a', 'b']));
  const { resources, bins, denied } = await history.counts(0, 2000, signal, ['pods', 'nodes']);
  assert.deepEqual(resources.map(({ resource, added, modified, deleted, spans }) => [resource, added, modified, deleted, spans.length]), [['pods', [3, 0], [0, 2], [2, 0], 1], ['nodes', [7, 0], [0, 1], [1, 0], 1]]);
  assert.equal(bins, 2);
  assert.deepEqual(denied, ['secrets'], 'what is left out of one of them');
  assert.deepEqual(asked.sort(), ['counts  nodes', 'counts a pods', 'counts b pods']);
  assert.deepEqual((await history.warnings!(5, signal)).map(({ about }) => about), ['a', 'b']);
  assert.equal((await history.state(signal)).first, 100, 'when the record begins, as its namespaces have it');
});

test('what may not be read is not asked about', async () => {
  const some = recorded({ a: [1] });
  await namespaced(some.of(''), some.of, () => scopeOf(['a'], { denied: true, why: 'nodes is forbidden' })).counts(0, 2000, signal, ['pods', 'nodes']);
  assert.deepEqual(some.asked, ['counts a pods']);
  const shop = recorded({});
  const without = namespaced({ ...shop.of(''), state: async () => ({ on: true, reason: '', first: 9000, end: 9999, resources: ['pods'] }) }, shop.of, () => scopeOf(null));
  await without.state(signal);
  await assert.rejects(without.counts(0, 2000, signal, ['pods', 'nodes']), /pods is forbidden/);
  assert.deepEqual(shop.asked, ['counts  pods'], 'Nodes that a recording does not have');
  assert.deepEqual(await without.changes(0, 2000, 10, signal, ['events']), { items: [], more: '' }, 'nor Events');
  const all = recorded({});
  await namespaced(all.of(''), all.of, () => scopeOf(null)).counts(0, 2000, signal, ['pods', 'nodes']);
  assert.deepEqual(all.asked, ['counts  pods,nodes'], 'as before');
});
