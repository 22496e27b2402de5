// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Thing } from '../src/details/objects';

Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' }, matchMedia: () => ({ matches: false, addEventListener() {} }) });
const { graphOf, idOf, usesOf } = await import('../src/details/edges');
const { columnsOf, layout, boxWidth, maxOpen } = await import('../src/details/layout');
const { candidates, itemsOf, tree } = await import('../src/details/owned');
const { graphAround, reachOf } = await import('../src/details/relations');
const { concealed } = await import('../src/panel/yaml-tab');

let uids = 0;
/** An object in the namespace shop, or in none. */
function thing(apiVersion: string, kind: string, name: string, { owner, labels, ...more }: { owner?: Thing; labels?: Record<string, string> } & Partial<Thing> = {}, namespace: string | undefined = 'shop'): Thing {
  const ownerReferences = owner && [{ apiVersion: owner.apiVersion, kind: owner.kind!, name: owner.metadata.name, uid: owner.metadata.uid, controller: true }];
  return { apiVersion, kind, metadata: { name, namespace, uid: String(++uids), ownerReferences, labels }, ...more };
}

const labels = { app: 'web' };
const podSpec = { serviceAccountName: 'web', containers: [{ envFrom: [{ secretRef: { name: 'keys' } }] }], volumes: [{ name: 'c', configMap: { name: 'settings' } }, { name: 'd', persistentVolumeClaim: { claimName: 'data' } }] };
const web = thing('apps/v1', 'Deployment', 'web', { spec: { template: { metadata: { labels }, spec: podSpec } } });
const set = thing('apps/v1', 'ReplicaSet', 'web-1', { owner: web, spec: { template: { metadata: { labels }, spec: podSpec } } });
const pods = Array.from({ length: 5 }, (_, i) => thing('v1', 'Pod', `web-1-${i}`, { owner: set, labels, spec: { ...podSpec, nodeName: `n${i % 2}` } }));
const service = thing('v1', 'Service', 'web', { spec: { selector: labels } });
const other = thing('v1', 'Service', 'api', { spec: { selector: { app: 'api' } } });
const byHand = thing('v1', 'Service', 'outside', { spec: {} });
const ingress = thing('networking.k8s.io/v1', 'Ingress', 'web', { spec: { ingressClassName: 'nginx', tls: [{ secretName: 'cert' }], rules: [{ http: { paths: [{ backend: { service: { name: 'web' } } }] } }] } });
const scaler = thing('autoscaling/v2', 'HorizontalPodAutoscaler', 'web', { spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } } });
const budget = thing('policy/v1', 'PodDisruptionBudget', 'web', { spec: { selector: { matchLabels: labels } } });
const everything = thing('networking.k8s.io/v1', 'NetworkPolicy', 'all', { spec: { podSelector: {} } });
const claim = thing('v1', 'PersistentVolumeClaim', 'data', { spec: { volumeName: 'pv', storageClassName: 'fast' } });
const all = [web, set, ...pods, service, other, byHand, ingress, scaler, budget, everything, claim];

const idOfThing = ({ apiVersion = '', kind = '', metadata }: Thing): string => idOf(apiVersion.includes('/') ? `${kind}.${apiVersion.split('/')[0]}` : kind, metadata.namespace ?? '', metadata.name);
/** The edges of an object, without those of others. */
function edges(of: Thing, centre = web): string[] {
  const id = idOfThing(of);
  return graphOf(all, idOfThing(centre)).edges.filter(({ from, to }) => from === id || to === id).map(({ from, to, name }) => (from === id ? `${name} → ${to}` : `${from} ${name} →`)).sort();
}

test('what a Pod uses, each once, without the token that all have', () => {
  assert.deepEqual(usesOf({
    ...podSpec, imagePullSecrets: [{ name: 'pull' }],
    volumes: [{ name: 'kube-api-access-x', projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }] } }, { name: 'p', projected: { sources: [{ configMap: { name: 'a' } }, { secret: { name: 'b' } }] } }, { name: 'e', ephemeral: {} }],
    initContainers: [{ env: [{ valueFrom: { configMapKeyRef: { name: 'c' } } }, { valueFrom: { secretKeyRef: { name: 'd' } } }, {}], envFrom: [{ configMapRef: { name: 'e' } }] }],
  }, (volume) => `pod-${volume}`), [
    ['ConfigMap', 'a', 'mounts'], ['Secret', 'b', 'mounts'], ['PersistentVolumeClaim', 'pod-e', 'mounts'],
    ['ConfigMap', 'c', 'reads'], ['Secret', 'd', 'reads'], ['ConfigMap', 'e', 'reads'], ['Secret', 'keys', 'reads'], ['Secret', 'pull', 'pulls with'], ['ServiceAccount', 'web', 'uses'],
  ]);
});

test('the edges of objects', () => {
  assert.deepEqual(edges(web), [
    'HorizontalPodAutoscaler.autoscaling shop/web scales →', 'NetworkPolicy.networking.k8s.io shop/all selects →', 'PodDisruptionBudget.policy shop/web selects →', 'Service shop/web selects →',
    'mounts → ConfigMap shop/settings', 'mounts → PersistentVolumeClaim shop/data', 'owns → ReplicaSet.apps shop/web-1', 'reads → Secret shop/keys', 'uses → ServiceAccount shop/web',
  ]);
  assert.deepEqual(edges(set), ['Deployment.apps shop/web owns →', ...pods.map(({ metadata }) => `owns → Pod shop/${metadata.name}`)], 'its template is that of the Deployment');
  assert.ok(edges(set, set).includes('mounts → ConfigMap shop/settings'), 'but if it is shown, it counts');
  assert.ok(edges(pods[0]).includes('runs on → Node /n0'));
  assert.deepEqual(edges(ingress), ['routes → Service shop/web', 'uses → IngressClass.networking.k8s.io /nginx', 'uses → Secret shop/cert']);
  assert.deepEqual(edges(claim).filter((edge) => edge.includes('→ ')), ['binds → PersistentVolume /pv', 'uses → StorageClass.storage.k8s.io /fast']);
  assert.deepEqual([edges(other), edges(byHand)], [[], []], 'an empty selector of a Service selects nothing');
  const elsewhere = thing('policy/v1', 'PodDisruptionBudget', 'web', { spec: { selector: { matchLabels: labels } } }, 'other');
  assert.deepEqual(graphOf([elsewhere, ...pods], '').edges.filter(({ name }) => name === 'selects'), [], 'in another namespace');
  const operated = thing('apps/v1', 'Deployment', 'db', { owner: thing('example.com/v1', 'Database', 'db'), spec: { template: { spec: { volumes: [{ configMap: { name: 'settings' } }] } } } });
  assert.ok(graphOf([operated], '').edges.some(({ name }) => name === 'mounts'), 'one that a custom resource controls has a template of its own');
});

test('columns around an object', () => {
  const graph = graphOf(all, idOfThing(web));
  const columns = columnsOf(graph, idOfThing(web), 2, 2);
  const at = (of: Thing) => columns.get(idOfThing(of));
  assert.deepEqual([at(ingress), at(service), at(scaler), at(web), at(set), at(pods[0])], [-2, -1, -1, 0, 1, 2]);
  assert.equal(columns.get('PersistentVolume /pv'), 2);
  assert.equal(columns.get('Node /n0'), undefined, 'too far');
  assert.equal(at(other), undefined);
  assert.equal(columnsOf(graph, idOfThing(web), 1, 1).has(idOfThing(ingress)), false);
});

test('many of a kind are a group, which opens', () => {
  const graph = graphOf(all, idOfThing(web));
  const folded = layout(graph, idOfThing(web), 2, 2);
  const group = folded.boxes.find((box) => box.group)!;
  assert.deepEqual([group.members.length, group.words, group.next, group.column], [5, 'owns', 'ReplicaSet web-1', 2]);
  assert.deepEqual(folded.lines.filter(({ to }) => to === group).map(({ from }) => from.members[0].name), ['web-1'], 'one line leads to it');
  const open = layout(graph, idOfThing(web), 2, 2, new Set([group.id]));
  assert.equal(open.boxes.length, folded.boxes.length + 5);
  assert.equal(open.lines.length, folded.lines.length + 4);
  const column = open.boxes.filter((box) => box.column === 2).sort((a, b) => a.y - b.y);
  const head = column.findIndex((box) => box.group === 'open');
  assert.deepEqual(column.slice(head + 1, head + 6).map(({ members }) => members[0].name), pods.map(({ metadata }) => metadata.name), 'below its head');
  for (const { boxes, width, height } of [folded, open]) {
    for (const a of boxes) {
      assert.ok(a.x >= 0 && a.y >= 0 && a.x + boxWidth <= width && a.y < height);
      for (const b of boxes) assert.ok(a === b || a.column !== b.column || Math.abs(a.y - b.y) >= 44, 'none overlap');
    }
  }
  const many = Array.from({ length: 200 }, (_, i) => thing('v1', 'Pod', `p${i}`, { owner: set }));
  const id = layout(graphOf([set, ...many], idOfThing(set)), idOfThing(set), 1, 1).boxes.find((box) => box.group)!.id;
  assert.equal(layout(graphOf([set, ...many], idOfThing(set)), idOfThing(set), 1, 1, new Set([id])).boxes.filter(({ words, column }) => words === 'owns' && column === 1).length, maxOpen + 1);
});

test('the tree of what an object owns', () => {
  const item = (one: Thing) => ({ thing: one, path: '', words: '' });
  const names = (branches: ReturnType<typeof tree>): unknown => branches.map(({ thing: { metadata }, owned }) => (owned.length ? [metadata.name, names(owned)] : metadata.name));
  assert.deepEqual(names(tree(web.metadata.uid, [...pods, set, service].map(item))), [['web-1', pods.map(({ metadata }) => metadata.name)]]);
  const a = thing('v1', 'ConfigMap', 'a');
  const b = thing('v1', 'ConfigMap', 'b', { owner: a });
  a.metadata.ownerReferences = [{ kind: 'ConfigMap', name: 'b', uid: b.metadata.uid }];
  assert.deepEqual(names(tree(a.metadata.uid, [a, b].map(item))), [['b', ['a']]], 'a circle ends');
  assert.deepEqual(tree(undefined, [item(web)]), []);
});

test('where owned objects are looked for', () => {
  const known = (name: string, kind: string, namespaced: boolean, watched = true) => ({ apiVersion: 'example.com/v1', name, kind, namespaced, watched });
  const cluster = [known('a', 'A', true), known('b', 'B', false), known('c', 'C', true, false), { ...known('events', 'Event', true), apiVersion: 'v1' }];
  assert.deepEqual(candidates(web, cluster).places.map(({ kind }) => kind), ['ReplicaSet', 'Pod']);
  assert.deepEqual(candidates(thing('v1', 'ConfigMap', 'c'), cluster).places, []);
  assert.deepEqual(candidates(thing('example.com/v1', 'A', 'x'), cluster).places.map(({ kind }) => kind), ['A'], 'what can be watched, but no Events');
  assert.deepEqual(candidates(thing('example.com/v1', 'B', 'x', {}, ''), cluster).places.map(({ kind }) => kind), ['B'], 'of an object without a namespace, others without one');
  const many = candidates(thing('example.com/v1', 'A', 'x'), Array.from({ length: 100 }, (_, i) => known(`k${i}`, `K${i}`, true)));
  assert.deepEqual([many.places.length, many.omitted], [60, 40]);
});

test('the states of rows in words', () => {
  const rows = (names: string[], cells: unknown[], kind: string) => itemsOf({ columnDefinitions: names.map((name) => ({ name, priority: 0 })), rows: [{ cells, object: { metadata: { name: 'x' } } }, { cells }] }, '/api/v1/x', 'v1', kind).map(({ path, words, state }) => [path, words, state]);
  assert.deepEqual(rows(['Name', 'Ready', 'Status', 'Age'], ['x', '1/2', 'Running', '5d'], 'Pod'), [['/api/v1/x/x', '1/2, Running', 'unready']]);
  assert.deepEqual(rows(['Name', 'Ready', 'Status'], ['x', '0/1', 'CrashLoopBackOff'], 'Pod')[0].slice(1), ['0/1, CrashLoopBackOff', 'failing']);
  assert.deepEqual(rows(['Desired', 'Ready', 'Phase', 'Synced'], [3, 2, null, true], 'Thing')[0].slice(1), ['Desired 3, Ready 2, Synced true', undefined]);
});

test('the graph around an object has its owners, and each object once', () => {
  const owner = { kind: 'Deployment', name: 'web', path: '', error: '', thing: web };
  const owned = { items: [{ thing: { ...pods[0], spec: undefined }, path: '', words: '' }], problems: [], omitted: 0, searched: true };
  const { graph, centre } = graphAround(set, { things: pods, owners: [owner], owned, known: [], problems: [] });
  assert.equal(centre, 'ReplicaSet.apps shop/web-1');
  assert.ok(graph.edges.some(({ from, to }) => from === 'Deployment.apps shop/web' && to === centre));
  assert.ok(graph.vertices.get('Pod shop/web-1-0')!.thing!.spec, 'the row without a spec does not count');
  assert.deepEqual(reachOf(thing('example.com/v1', 'Constructor', 'x')).kinds, []);
});

test('the YAML of a Secret has no values', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"a":"eA=="}}', note: 'n' };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', annotations }, data: { a: 'eA==' } };
  assert.ok(!JSON.stringify(concealed(secret)).includes('eA=='));
  assert.ok(JSON.stringify(concealed(secret)).includes('"note":"n"'));
  assert.equal(concealed(web), web);
});
