// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Workload } from '../src/details/rollout';

Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' }, matchMedia: () => ({ matches: false, addEventListener() {} }) });
const { allocations, usedBy } = await import('../src/details/allocations');
const { columnsOf } = await import('../src/details/columns');
const { beginning, decodedSize } = await import('../src/details/config');
const { jobState } = await import('../src/details/jobs');
const { endpointsOf, portWords, rulesOf } = await import('../src/details/network');
const { selectorText, selects } = await import('../src/details/objects');
const { locate, objectPath } = await import('../src/details/places');
const { bar, numbers, rolloutOf, waitsFor } = await import('../src/details/rollout');
const { metricsOf } = await import('../src/details/scaling');

const metadata = { name: 'x', namespace: 'shop' };

test('selectors', () => {
  const expressions = [{ key: 'tier', operator: 'In', values: ['a', 'b'] }, { key: 'old', operator: 'DoesNotExist' }, { key: 'zone', operator: 'NotIn', values: ['z'] }, { key: 'app', operator: 'Exists' }];
  const selector = { matchLabels: { app: 'web' }, matchExpressions: expressions };
  assert.ok(selects(selector, { app: 'web', tier: 'a' }));
  for (const labels of [{ app: 'web' }, { app: 'web', tier: 'c' }, { app: 'web', tier: 'a', old: '' }, { app: 'web', tier: 'a', zone: 'z' }, { app: 'api', tier: 'a' }]) assert.ok(!selects(selector, labels), JSON.stringify(labels));
  assert.deepEqual([selects({}, {}), selects(undefined, {})], [true, false]);
  assert.equal(selectorText(selector), 'app=web,tier in (a,b),!old,zone notin (z),app');
});

test('paths', () => {
  assert.equal(objectPath('networking.k8s.io/v1', 'Ingress', 'shop', 'web'), '/apis/networking.k8s.io/v1/namespaces/shop/ingresses/web');
  assert.equal(objectPath('apps/v1beta2', 'Deployment', 'shop', 'web'), '/apis/apps/v1/namespaces/shop/deployments/web');
  assert.equal(objectPath('v1', 'Node', 'shop', 'n'), '/api/v1/nodes/n');
  assert.equal(objectPath('example.com/v1', 'Proxy', 'shop', 'p'), '');
  assert.equal(objectPath('example.com/v1', 'Proxy', 'shop', 'p', [{ apiVersion: 'example.com/v2', kind: 'Proxy', name: 'proxies', namespaced: true }]), '/apis/example.com/v2/namespaces/shop/proxies/p');
  assert.deepEqual(locate('/apis/apps/v1/namespaces/shop/deployments/web'), { apiVersion: 'apps/v1', resource: 'deployments', namespace: 'shop', name: 'web' });
  assert.deepEqual(locate('/api/v1/namespaces/shop'), { apiVersion: 'v1', resource: 'namespaces', namespace: '', name: 'shop' });
  assert.equal(locate('/api/v1/pods'), null);
});

test('a rollout: the numbers, the bar, and what it waits for', () => {
  const deployment = (status: Workload['status'], spec: Workload['spec'] = { replicas: 4 }): Workload => ({ kind: 'Deployment', metadata, spec, status });
  const half = deployment({ replicas: 5, updatedReplicas: 2, readyReplicas: 4, availableReplicas: 3 });
  assert.deepEqual(rolloutOf(half), { wanted: 4, exist: 5, updated: 2, ready: 4, available: 3, unavailable: 1 });
  assert.equal(numbers(rolloutOf(half)), '4 wanted, 2 updated, 4 ready, 3 available, 1 unavailable');
  assert.deepEqual(bar(rolloutOf(half)).map(({ name, width }) => [name, width]), [['available', 0.6], ['ready', 0.2], ['unready', 0.2]]);
  assert.equal(waitsFor(half), '2 of 4 new Pods have been created');
  assert.equal(waitsFor(deployment({ replicas: 5, updatedReplicas: 4 })), '1 old Pod is pending termination');
  assert.equal(waitsFor(deployment({ replicas: 4, updatedReplicas: 4, availableReplicas: 2 })), '2 of 4 updated Pods are available');
  assert.equal(waitsFor(deployment({ replicas: 4, updatedReplicas: 4, availableReplicas: 4 })), '');
  assert.equal(waitsFor(deployment({}, { replicas: 4, paused: true })), 'paused');
  assert.equal(waitsFor(deployment({ conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }] })), 'it exceeded its progress deadline');
  assert.equal(waitsFor({ ...deployment({ observedGeneration: 1 }), metadata: { ...metadata, generation: 2 } as Workload['metadata'] }), 'waiting for its controller to see the change');
  assert.deepEqual(bar(rolloutOf(deployment({}, { replicas: 0 }))), []);
  assert.deepEqual(bar(rolloutOf(deployment({}, { replicas: 2 }))).map(({ name, width }) => [name, width]), [['missing', 1]]);
  const daemons = rolloutOf({ kind: 'DaemonSet', metadata, status: { desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberReady: 2, numberAvailable: 2 } });
  assert.deepEqual(daemons, { wanted: 3, exist: 3, updated: 1, ready: 2, available: 2, unavailable: 1 });
  assert.equal(rolloutOf({ kind: 'ReplicaSet', metadata, spec: { replicas: 1 }, status: {} }).updated, undefined);
});

test('what a Node has allocated', () => {
  const of = (cpu: string, memory = '') => ({ resources: { requests: { cpu, memory }, limits: { memory } } });
  assert.equal(usedBy({ containers: [of('100m'), of('200m')] }, 'requests', 'cpu').toFixed(3), '0.300');
  assert.equal(usedBy({ containers: [of('100m')], initContainers: [of('1')] }, 'requests', 'cpu'), 1);
  assert.equal(usedBy({ containers: [of('1')], initContainers: [{ ...of('1'), restartPolicy: 'Always' }, of('500m')], overhead: { cpu: '2' } }, 'requests', 'cpu'), 4);
  assert.equal(usedBy({ containers: [of('1')], overhead: { cpu: '2' } }, 'limits', 'cpu'), 0, 'an overhead is no limit of its own');
  const pods = [{ metadata, spec: { containers: [of('500m', '1Gi')] }, status: { phase: 'Running' } }, { metadata, spec: { containers: [of('9', '9Gi')] }, status: { phase: 'Succeeded' } }];
  assert.deepEqual(allocations({ pods: '110', 'example.com/gpu': '2', memory: '4Gi', 'hugepages-1Gi': '0', cpu: '2' }, pods), [
    { resource: 'cpu', allocatable: 2, requests: 0.5, limits: 0 },
    { resource: 'memory', allocatable: 4 * 2 ** 30, requests: 2 ** 30, limits: 2 ** 30 },
    { resource: 'example.com/gpu', allocatable: 2, requests: 0, limits: 0 },
  ]);
});

test('endpoints, ports and rules', () => {
  const targetRef = { kind: 'Pod', name: 'a' };
  const found = endpointsOf([
    { metadata, endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true }, targetRef, nodeName: 'n' }, { addresses: ['10.0.0.2'], conditions: {} }] },
    { metadata, endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true }, targetRef }, { addresses: ['10.0.0.3'], conditions: { ready: false, serving: true, terminating: true } }, { addresses: ['10.0.0.4'], conditions: { ready: false } }] },
    { metadata, endpoints: null },
  ]);
  assert.deepEqual(found.map(({ address, words, pod }) => [address, words, pod]), [['10.0.0.3', 'terminating, still serving', ''], ['10.0.0.4', 'not ready', ''], ['10.0.0.2', 'ready', ''], ['10.0.0.1', 'ready', 'a']]);
  assert.equal(portWords({ name: 'http', port: 80, targetPort: 'web', nodePort: 30000 }), 'http 80/TCP → web, on nodes 30000');
  assert.equal(portWords({ port: 53, protocol: 'UDP', targetPort: 53 }), '53/UDP');
  const backend = { service: { name: 'web', port: { name: 'http' } } };
  assert.deepEqual(rulesOf({ metadata, spec: { defaultBackend: { resource: { kind: 'Bucket', name: 'b' } }, rules: [{ host: 'a.example', http: { paths: [{ path: '/x', pathType: 'Prefix', backend }, { path: '/y', pathType: 'Exact', backend }] } }, { http: { paths: [{ backend }] } }] } }), [
    { from: 'a.example/x/*', service: 'web', to: 'web:http' }, { from: 'a.example/y', service: 'web', to: 'web:http' }, { from: '*/', service: 'web', to: 'web:http' },
    { from: 'everything else', service: '', to: 'Bucket b' },
  ]);
});

test('metrics of an autoscaler', () => {
  const cpu = (value: object) => ({ type: 'Resource', resource: { name: 'cpu', ...value } });
  const queue = (value: object) => ({ type: 'External', external: { metric: { name: 'queue' }, ...value } });
  assert.deepEqual(metricsOf({
    metadata, spec: { metrics: [cpu({ target: { averageUtilization: 70 } }), queue({ target: { averageValue: '5' } }), { type: 'Pods', pods: { metric: { name: 'rps' }, target: { averageValue: '1k' } } }] },
    status: { currentMetrics: [queue({ current: { averageValue: '8' } }), cpu({ current: { averageUtilization: 93, averageValue: '93m' } })] },
  }), [{ name: 'cpu', current: '93 %', target: '70 %' }, { name: 'queue', current: '8', target: '5' }, { name: 'rps', current: 'unknown', target: '1k' }]);
});

test('states of Jobs', () => {
  const state = (status: object, spec = {}) => jobState({ metadata, spec, status });
  assert.deepEqual(state({ conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', lastTransitionTime: '1970-01-01T00:01:00Z' }] }), { words: 'Failed: BackoffLimitExceeded', state: 'failing', ended: 60 });
  assert.deepEqual(state({ completionTime: '1970-01-01T00:02:00Z', conditions: [{ type: 'Complete', status: 'True' }] }), { words: 'Complete', state: 'succeeded', ended: 120 });
  assert.equal(state({}, { suspend: true }).words, 'Suspended');
  assert.deepEqual([state({ active: 1 }).state, state({ active: 1, failed: 2 }).state], ['ready', 'unready']);
});

test('values of configuration', () => {
  assert.deepEqual(beginning('a\nb\n'), { shown: 'a\nb\n', more: false });
  assert.deepEqual(beginning('1\n2\n3\n4\n5\n6\n7'), { shown: '1\n2\n3\n4\n5\n6', more: true });
  assert.equal(beginning('x'.repeat(1000)).shown.length, 400);
  for (const text of ['', 'a', 'ab', 'abc', 'do-not-show']) assert.equal(decodedSize(Buffer.from(text).toString('base64')), text.length);
});

test('columns of the API server', () => {
  const columnDefinitions = ['Name', 'Size', 'Ready', 'Empty', 'Age'].map((name) => ({ name, priority: 0 }));
  assert.deepEqual(columnsOf({ columnDefinitions, rows: [{ cells: ['x', 7, true, null, '5d'] }] }), [['Size', '7'], ['Ready', 'true']]);
  assert.deepEqual(columnsOf({ columnDefinitions: null, rows: null }), []);
});
