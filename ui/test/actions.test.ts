// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { knowing, objectOf, textOf } from '../src/actions/document';
import { contentOf, fresh, isAt, plain } from '../src/actions/object';
import { outcome, planOf, reasonOf, type Eviction, type NodePod } from '../src/actions/plan';
import { actionsOf } from '../src/actions/registry';
import { earlierStates } from '../src/actions/versions';
import { placeOf } from '../src/app/path';
import type { Change } from '../src/time/history';
import { editsBetween } from '../src/write/patch';
import { warningsOf } from '../src/write/warnings';
import type { Stored } from '../src/write/write';

const metadata = (more = {}) => ({ name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '7', ...more });

test('a path is taken apart', () => {
  assert.deepEqual(placeOf('/apis/apps/v1/namespaces/shop/deployments/web'), { group: 'apps', version: 'v1', namespace: 'shop', resource: 'deployments', name: 'web' });
  assert.deepEqual(placeOf('/api/v1/nodes/a'), { group: '', version: 'v1', namespace: '', resource: 'nodes', name: 'a' });
  assert.deepEqual(placeOf('/api/v1/namespaces/shop'), { group: '', version: 'v1', namespace: '', resource: 'namespaces', name: 'shop' });
  assert.equal(placeOf('/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a?b=c&d#e')?.name, 'system:a?b=c&d#e', 'the API server accepts it');
  for (const path of ['/api/v1/namespaces/shop/pods', '/api/v1/nodes/..', '/api/v1/namespaces/shop/pods/.', '/api/v1/nodes/a%23', '/api/v1/namespaces/Shop/pods/a', '/api/v1/namespaces/../pods/a', '/api/../v1/nodes/a', 'http://x/api/v1/nodes/a']) assert.equal(placeOf(path), null, path);
});

test('an action is only about one object, the selected one', () => {
  const place = placeOf('/api/v1/namespaces/shop/pods/web')!;
  assert.equal(isAt({ metadata: metadata() }, place), true);
  for (const other of [{ kind: 'PodList', metadata: { resourceVersion: '7' } }, { metadata: metadata({ uid: '' }) }, { metadata: metadata({ name: 'b' }) }, { metadata: metadata({ namespace: 'b' }) }]) assert.equal(isAt(other as Partial<Stored>, place), false, JSON.stringify(other));
});

test('an object has the actions that mean something for it', () => {
  const names = (path: string, object: object, recorded = true) => actionsOf(object, placeOf(path)!, recorded).map(({ name }) => name).join(' ');
  const deployment = { metadata: metadata(), spec: { replicas: 2, template: {} } };
  assert.equal(names('/apis/apps/v1/namespaces/shop/deployments/web', deployment), 'scale restart rollback edit delete');
  assert.equal(names('/apis/apps/v1/namespaces/shop/deployments/web', deployment, false), 'scale restart edit delete');
  assert.equal(names('/apis/apps/v1/namespaces/shop/replicasets/web', deployment), 'scale rollback edit delete');
  assert.equal(names('/apis/apps/v1/namespaces/shop/daemonsets/web', { spec: { template: {} } }), 'restart rollback edit delete');
  assert.equal(names('/apis/example.com/v1/namespaces/shop/widgets/web', { spec: { replicas: 0 } }), 'scale rollback edit delete');
  assert.equal(names('/api/v1/nodes/a', { spec: {} }), 'rollback cordon drain edit delete');
  assert.equal(names('/api/v1/nodes/a', { spec: { unschedulable: true } }), 'rollback uncordon drain edit delete');
  assert.equal(names('/api/v1/namespaces/shop/pods/web', { spec: {} }), 'edit delete');
  assert.equal(names('/apis/apps/v1/namespaces/shop/deployments/web', { ...deployment, metadata: metadata({ deletionTimestamp: 'now' }) }), 'edit');
  const [, drain] = actionsOf({ spec: {} }, placeOf('/api/v1/nodes/a')!, false);
  assert.deepEqual(drain.needs, [{ verb: 'patch', group: '', resource: 'nodes', namespace: '', name: 'a' }, { verb: 'create', group: '', resource: 'pods', subresource: 'eviction' }]);
});

test('the content of an object is its spec, or what it has instead', () => {
  assert.deepEqual(contentOf({ kind: 'Deployment', metadata: {}, spec: { a: 1 }, status: {} }), { spec: { a: 1 } });
  assert.deepEqual(contentOf({ apiVersion: 'v1', kind: 'ConfigMap', metadata: {}, data: { a: 'b' } }), { data: { a: 'b' } });
});

test('earlier states are the versions with another content, each from its first version', () => {
  const of = (rv: string, n: number, more: Partial<Change> = {}) => ({ type: 'MODIFIED', resourceVersion: rv, time: `t${rv}`, summary: null, object: { spec: { n } }, ...more }) as Change;
  const versions = [of('9', 3), of('8', 3), of('7', 2), of('6', 2), of('5', 3), of('4', 1), of('3', 1, { type: 'FOLDED' }), of('2', 1, { type: 'ADDED' }), of('1', 5, { type: 'DELETED' })];
  assert.deepEqual(earlierStates(versions, { spec: { n: 3 } }).map(({ rv, content }) => [rv, content]), [['6', { spec: { n: 2 } }], ['2', { spec: { n: 1 } }]]);
});

test('an object is created again without what only the API server may say', () => {
  const owners = [{ apiVersion: 'v1', kind: 'A', name: 'a', uid: '1' }, { apiVersion: 'v1', kind: 'B', name: 'b', uid: '2' }];
  const object = { metadata: metadata({ generation: 3, creationTimestamp: 'then', managedFields: [], deletionTimestamp: 'now', labels: { a: 'b' }, ownerReferences: owners }), spec: {}, status: {} };
  assert.deepEqual(fresh(object, [owners[0]]), { metadata: { name: 'web', namespace: 'shop', labels: { a: 'b' }, ownerReferences: [owners[1]] }, spec: {} });
  assert.ok(!('ownerReferences' in (fresh(object, owners).metadata as object)));
  const labels = { app: 'x', 'controller-uid': 'u', 'batch.kubernetes.io/controller-uid': 'u' };
  const job = { kind: 'Job', metadata: metadata({ labels }), spec: { selector: { matchLabels: labels }, template: { metadata: { labels } } } };
  assert.deepEqual(fresh(job, []), { kind: 'Job', metadata: { name: 'web', namespace: 'shop', labels: { app: 'x' } }, spec: { template: { metadata: { labels: { app: 'x' } } } } });
  assert.deepEqual((fresh({ ...job, spec: { ...job.spec, manualSelector: true } }, []).spec as { selector: unknown }).selector, { matchLabels: labels });
});

test('a drain leaves what kubectl leaves, and asks about what is lost', () => {
  const pod = (name: string, kind: string, more: Partial<NodePod> = {}, annotations = {}): NodePod => ({ metadata: { name, namespace: 'n', uid: name, annotations, ...(kind && { ownerReferences: [{ controller: true, kind, name: 'o' }] }) }, ...more });
  const cache = { spec: { volumes: [{ name: 'cache', emptyDir: {} }] } };
  const plan = planOf([
    pod('agent', 'DaemonSet'), pod('agent-ended', 'DaemonSet', { status: { phase: 'Failed' } }), pod('static', 'Node', {}, { 'kubernetes.io/config.mirror': 'x' }),
    pod('web', 'ReplicaSet', cache), pod('alone', ''), pod('ended', '', { ...cache, status: { phase: 'Succeeded' } }),
  ]);
  const names = Object.fromEntries(Object.entries(plan).map(([key, pods]) => [key, (pods as NodePod[]).map(({ metadata }) => metadata.name).join(' ')]));
  assert.deepEqual(names, { evicted: 'agent-ended web alone ended', daemons: 'agent', mirrors: 'static', alone: 'alone', withData: 'web' });
});

test('the outcome of a drain says what was done', () => {
  const all = (...states: Eviction['state'][]) => states.map((state) => ({ state }) as Eviction);
  assert.equal(outcome('a', all('gone', 'gone'), false), 'Drained a: 2 Pods evicted. It remains cordoned.');
  assert.equal(outcome('a', all('gone', 'evicted', 'refused'), true), 'Stopped: 2 of 3 Pods evicted. a remains cordoned.');
  assert.equal(outcome('a', all('gone', 'failed'), false), '1 of 2 Pods evicted; 1 cannot be. a remains cordoned.');
});

test('a refusal names the PodDisruptionBudget', () => {
  assert.equal(reasonOf('{"message":"Cannot evict pod.","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 2."}]}}'), 'Cannot evict pod. The disruption budget web needs 2.');
  assert.equal(reasonOf('upstream timeout'), 'upstream timeout');
});

test('warnings are read from their header', () => {
  assert.deepEqual(warningsOf('299 - "spec.a: is \\"old\\", use b", 299 kube "two"'), ['spec.a: is "old", use b', 'two']);
  assert.deepEqual(warningsOf(null), []);
});

const stored: Stored = { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata({ generation: 2, managedFields: [] }), data: { a: 'yes', b: '012', c: 'one\ntwo\n', d: 'x'.repeat(200) }, status: {} };

test('a text has what people write, and reads as the same object', () => {
  const base = plain(stored);
  const text = textOf(base);
  assert.ok(text.startsWith('apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n'));
  assert.ok(!/status|managedFields|resourceVersion|generation/.test(text));
  assert.deepEqual(objectOf(parse(text), base), base);
});

test('another object is refused', () => {
  const base = plain(stored);
  const text = textOf(base);
  const says = (edited: string, words: RegExp) => assert.throws(() => objectOf(parse(edited), base), { message: words });
  says('- a', /^This is no object\.$/);
  says('', /^This is no object\.$/);
  says(text.replace('ConfigMap', 'Secret'), /^kind cannot be changed: it is ConfigMap\.$/);
  says(text.replace('namespace: shop', 'namespace: other'), /^metadata\.namespace cannot be changed: it is shop\.$/);
  says(text.replace('  uid: u\n', ''), /^metadata\.uid cannot be changed: it is u\.$/);
  says(`${text}status: {}\n`, /^Leave status out/);
});

test('of a conflict, the reader keeps the own value or takes the other', () => {
  const base = plain(stored);
  const mine = parse(textOf(base).replace('a: "yes"', 'a: mine # why')) as typeof base;
  const [edit] = editsBetween(base, mine);
  for (const found of ['theirs', undefined]) {
    const conflicts = [{ edit, found }];
    const known = knowing(base, conflicts);
    assert.deepEqual(editsBetween(known, mine), [{ path: ['data', 'a'], old: found, value: 'mine' }]);
    assert.deepEqual(editsBetween(known, parse(textOf(knowing(mine, conflicts)))), []);
  }
});
