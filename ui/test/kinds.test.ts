// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ColumnDefinition, TableRow } from '@watchkeeper/informer';
import { cellText, inapplicable, lineOf, Lines, NAMESPACE, rankOf, type Line } from '../src/kinds/lines';
import { named, type Resource } from '../src/kinds/resources';
import { choicesOf, objectNamed, objectsOf, read } from '../src/kinds/search';
import { maxTextWidth, template, widthOf } from '../src/kinds/widths';
import { filled } from './fixture';

const column = (name: string): ColumnDefinition => ({ name, type: 'string', format: '', description: '', priority: 0 });
const COLUMNS = ['Name', 'Ready', 'Age'].map(column);
const line = (namespace: string, name: string, ready: string, created = 0, more = {}): Line =>
  lineOf({ cells: [name, ready, '1s'], object: { metadata: { namespace, name, uid: name, resourceVersion: '1', creationTimestamp: created ? new Date(created * 1000).toISOString() : undefined, ...more } } } as TableRow);
const names = (lines: Lines): string => lines.sorted.map(({ name }) => name).join('');

test('cells are sorted by their value', () => {
  const sorted = (...values: unknown[]): unknown[] => values.sort((a, b) => {
    const [x, y] = [rankOf(a), rankOf(b)];
    return typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === 'number' ? -1 : 1;
  });
  assert.deepEqual(sorted(10, 9, 100), [9, 10, 100]);
  assert.deepEqual(sorted('3/3', '1/10', '1/2'), ['1/10', '1/2', '3/3']);
  assert.deepEqual(sorted('2d', '4m10s', '119s', '3h5m'), ['119s', '4m10s', '3h5m', '2d']);
  assert.deepEqual(sorted('80%', '9%', 'unknown'), ['9%', '80%', 'unknown']);
  assert.deepEqual(sorted('3 (5m ago)', '12 (1s ago)', '2'), ['2', '3 (5m ago)', '12 (1s ago)']);
  assert.deepEqual(sorted('v1.10.0', 'b', 'A'), ['A', 'b', 'v1.10.0']);
});

test('integers beyond those of a number are sorted by all their digits', () => {
  const lines = new Lines();
  const values: [string, unknown][] = [['c', 9007199254740993n], ['e', 'x'], ['a', 5], ['d', 9007199254740994], ['b', 9007199254740992]];
  lines.arrange(values.map(([name, value]) => ({ ...line('n', name, ''), cells: [name, value, ''] })), COLUMNS, { by: 1, down: false }, '', '');
  assert.equal(names(lines), 'abcde');
  assert.equal(cellText(lines.sorted[2], COLUMNS, 1, 0), '9007199254740993');
});

test('lines stay in order while objects change, in small and large steps', () => {
  const all = new Map<string, Line>();
  const lines = new Lines();
  let seed = 7;
  const random = (n: number): number => (seed = (seed * 16807) % 2147483647) % n;
  for (const [sorting, grouping, filter] of [[{ by: NAMESPACE, down: false }, '', ''], [{ by: 1, down: true }, 'namespace', '-web'], [{ by: 2, down: false }, 'owner', 'ns:b']] as const) {
    lines.arrange(all.values(), COLUMNS, sorting, grouping, filter);
    for (let round = 0; round < 60; round++) {
      const changes = Array.from({ length: round % 10 === 0 ? 50 : 1 + random(3) }, () => {
        const [namespace, name] = ['abc'[random(3)], `${['web', 'api'][random(2)]}-${random(40)}`];
        const old = all.get(`${namespace}/${name}`);
        if (old && random(3) === 0) {
          all.delete(old.key);
          return { old };
        }
        const next = line(namespace, name, `${random(5)}/5`, 1000 + random(50), { ownerReferences: [{ kind: 'Deployment', name: 'd'.repeat(random(3)), controller: true }] });
        all.set(next.key, next);
        return { old, line: next };
      });
      // Several changes of one object in a step: only the last version counts.
      lines.change(changes);
      const fresh = new Lines();
      fresh.arrange(all.values(), COLUMNS, sorting, grouping, filter);
      assert.deepEqual(lines.sorted.map(({ key }) => key), fresh.sorted.map(({ key }) => key), `round ${round}`);
      // Each group has its heading, and each line its index.
      const expected = lines.sorted.flatMap((one, i) => {
        const count = lines.sorted.filter(({ group }) => group === one.group).length;
        return grouping && one.group !== lines.sorted[i - 1]?.group ? [`${one.group} ${count}`, one.key] : [one.key];
      });
      const seen = Array.from({ length: lines.length }, (_, i) => lines.at(i));
      assert.deepEqual(seen.map((one) => ('heading' in one ? `${one.heading} ${one.count}` : one.key)), expected);
      for (const [n, one] of lines.sorted.entries()) assert.equal(seen[lines.indexOf(n)], one);
    }
  }
});

test('the filter of the page, as far as it applies', () => {
  const lines = new Lines();
  const all = [line('shop', 'web', '1/1', 0, { labels: { app: 'web' } }), line('shop-2', 'db', 'Failed', 0, { ownerReferences: [{ kind: 'StatefulSet', name: 'db' }] }), line('', 'node-1', 'True')];
  const matching = (filter: string): string => {
    lines.arrange(all, COLUMNS, { by: 0, down: false }, '', filter);
    return names(lines);
  };
  assert.deepEqual(['', 'e', 'ns:shop', '-ns:shop', 'app=web', 'app!=web', 'owner:stateful', 'reason:fail', 'state:failing', 'ns:'].map(matching),
    ['dbnode-1web', 'node-1web', 'dbweb', 'node-1', 'web', 'dbnode-1', 'db', 'db', 'dbnode-1web', 'dbnode-1web']);
  assert.deepEqual(inapplicable('web state:failing restarts:3 node:x app=b').map(({ kind }) => kind), ['state', 'restarts', 'node']);
});

test('cells are texts, and ages pass', () => {
  const one = line('a', 'b', '', 1000);
  assert.deepEqual([0, 1, 2].map((i) => cellText(one, COLUMNS, i, 1000 + 7200)), ['b', '', '120m']);
  assert.equal(cellText({ ...one, cells: [['x', 1]] }, COLUMNS, 0, 0), '["x",1]');
});

const resource = (name: string, group: string, kind: string, names: string[] = []): Resource => ({ id: group ? `${name}.${group}` : name, group, version: 'v1', name, kind, namespaced: true, names: [kind.toLowerCase(), ...names], watched: true });
const RESOURCES = [resource('deployments', 'apps', 'Deployment', ['deploy']), resource('events', '', 'Event', ['ev']), resource('events', 'events.k8s.io', 'Event', ['ev']), resource('pods', '', 'Pod', ['po']), resource('widgets', 'example.com', 'Widget')];

test('resources have the names that kubectl takes', () => {
  const id = (text: string): string | undefined => named(RESOURCES, text)?.id;
  assert.deepEqual(['deploy', 'Deployment', 'deployments.apps', 'ev', 'events.events.k8s.io', 'po', 'nothing', ''].map(id), ['deployments.apps', 'deployments.apps', 'deployments.apps', 'events', 'events.events.k8s.io', 'pods', undefined, undefined]);
});

test('the opener reads kinds, names, namespaces and labels in any order', () => {
  const brief = (text: string): unknown[] => {
    const { resource, filter, name, namespace } = read(text, RESOURCES);
    return [resource?.id, filter, name, namespace];
  };
  assert.deepEqual(brief('deploy web'), ['deployments.apps', 'web', 'web', '']);
  assert.deepEqual(brief('web deploy -n shop'), ['deployments.apps', 'web ns:shop', 'web', 'shop']);
  assert.deepEqual(brief('deployments/web'), ['deployments.apps', 'web', 'web', '']);
  assert.deepEqual(brief('app=web ns:shop'), [undefined, 'app=web ns:shop', '', 'shop']);
  const f = filled(2, 2);
  f.apply();
  const words = (text: string): string[] => choicesOf(text, RESOURCES, f.cluster, [], ['shop-empty']).map((c) => (c.to === 'kind' ? `${c.resource.id} ${c.filter}`.trim() : c.to === 'object' ? c.path : c.to === 'namespace' ? `ns ${c.name}` : `board ${c.filter}`));
  assert.deepEqual(words('widg'), ['widgets.example.com', 'board widg']);
  assert.deepEqual(words('web-0-1'), ['/api/v1/namespaces/shop/pods/web-0-1', 'board web-0-1']);
  assert.deepEqual(words('shop'), ['ns shop', 'ns shop-empty', 'board shop'], 'also without Pods');
  assert.equal(words('').length, RESOURCES.length);
  const found = objectsOf([['a', 'my-web'], ['b', 'web-2'], ['b', 'web'], ['b', 'other']], read('deploy web', RESOURCES), ({ name }, namespace) => `/${namespace}/${name}`);
  assert.deepEqual(found.map((c) => 'path' in c && c.path), ['/b/deployments/web', '/b/deployments/web-2', '/a/deployments/my-web']);
});

test('an object that is named in full is offered to a reader who may not list its kind', () => {
  const path = (text: string): string | undefined => objectNamed(RESOURCES[0], read(text, RESOURCES))?.path;
  assert.equal(path('deploy web ns:shop'), '/apis/apps/v1/namespaces/shop/deployments/web');
  assert.deepEqual([path('deploy web'), path('deploy ns:shop')], [undefined, undefined]);
  assert.equal(objectNamed({ ...RESOURCES[0], namespaced: false }, { name: 'web', namespace: '' })?.path, '/apis/apps/v1/deployments/web');
});

test('discovery, aggregated or not', async () => {
  Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' } });
  const { discover } = await import('../src/kinds/discovery');
  const answers: Record<string, unknown> = {
    '/api': { kind: 'APIVersions', versions: ['v1'] },
    '/api/v1': { resources: [{ name: 'pods', singularName: 'pod', kind: 'Pod', namespaced: true, shortNames: ['po'], verbs: ['list', 'watch'] }, { name: 'pods/log', kind: 'Pod', verbs: ['get'] }, { name: 'bindings', kind: 'Binding', verbs: ['create'] }] },
    '/apis': {
      kind: 'APIGroupDiscoveryList',
      items: [{ metadata: { name: 'apps' }, versions: [
        { version: 'v1', resources: [{ resource: 'deployments', responseKind: { kind: 'Deployment' }, scope: 'Namespaced', singularResource: 'deployment', shortNames: ['deploy'], verbs: ['list'] }] },
        { version: 'v1beta1', resources: [{ resource: 'deployments', responseKind: { kind: 'Deployment' }, scope: 'Namespaced', singularResource: 'deployment', verbs: ['list', 'watch'] }, { resource: 'olds', responseKind: { kind: 'Old' }, scope: 'Cluster', singularResource: 'old', verbs: ['list', 'watch'] }] },
      ] }],
    },
  };
  globalThis.fetch = async (input) => Response.json(answers[new URL(String(input)).pathname] ?? {}, { status: new URL(String(input)).pathname in answers ? 200 : 404 });
  assert.deepEqual((await discover()).map(({ id, version, namespaced, names, watched }) => [id, version, namespaced, names.join(), watched]), [
    ['deployments.apps', 'v1', true, 'deployment,deployment,deploy', false], ['olds.apps', 'v1beta1', false, 'old,old', true], ['pods', 'v1', true, 'pod,pod,po', true],
  ]);
});

test('columns have room for their texts, within limits', () => {
  assert.equal(widthOf('Age', ['5d', '253d']), 8);
  assert.equal(widthOf('Name', ['web-0', 'service-000-a4d9a79c86-2fdpq']), 32);
  assert.equal(widthOf('Notes', ['x'.repeat(200)]), 50);
  assert.ok(maxTextWidth('WWW') > maxTextWidth('AAA') && maxTextWidth('AAA') > maxTextWidth('aaa') && maxTextWidth('日本') > maxTextWidth('ab'));
  assert.equal(template([14, 32, 8]), '14ch 32ch minmax(8ch, 1fr)');
});
