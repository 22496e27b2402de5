// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aligned, conditionSince } from '../src/data/aligned';
import { boardRow, nodeOf, NODE_FIELDS, podOf, POD_FIELDS } from '../src/data/columns';
import { besideReason, ends, endWords } from '../src/data/crash';
import { nodeRow, podRow, type Node } from '../src/data/objects';
import { describe, seconds, State, stateAt, type ContainerStatus, type Pod } from '../src/data/state';
import type { When } from '../src/time/words';
import type { Row } from '@watchkeeper/informer';
import { rowOf } from './row';

const ready = [{ type: 'Ready', status: 'True' }, { type: 'Initialized', status: 'True' }];
const up: ContainerStatus = { name: 'a', ready: true, restartCount: 0, state: { running: {} } };
const pod = (status: Pod['status'], spec: Pod['spec'] = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', ...metadata }, spec: { containers: [{}], ...spec }, status,
});
const waiting = (reason: string): ContainerStatus => ({ name: 'a', restartCount: 2, state: { waiting: { reason } } });
const ended = (t: NonNullable<ContainerStatus['state']>['terminated']): ContainerStatus => ({ name: 'a', restartCount: 0, state: { terminated: t } });

// The STATUS that kubectl prints for each, and the state on the board.
const CASES: [string, Pod, string, State, number?][] = [
  ['running and ready', pod({ phase: 'Running', conditions: ready, containerStatuses: [up] }), 'Running', State.ready],
  ['not ready', pod({ phase: 'Running', containerStatuses: [{ ...up, ready: false }] }), 'Running', State.unready],
  ['not scheduled', pod({ phase: 'Pending' }), 'Pending', State.pending],
  ['held back by gates', pod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }), 'SchedulingGated', State.pending],
  ['starting', pod({ phase: 'Pending', containerStatuses: [waiting('ContainerCreating')] }), 'ContainerCreating', State.pending],
  ['crashing', pod({ phase: 'Running', conditions: [{ type: 'Initialized', status: 'True' }], containerStatuses: [waiting('CrashLoopBackOff')] }), 'CrashLoopBackOff', State.failing, 2],
  ['no image', pod({ phase: 'Pending', containerStatuses: [waiting('ImagePullBackOff')] }), 'ImagePullBackOff', State.failing, 2],
  ['a wrong configuration', pod({ phase: 'Pending', containerStatuses: [waiting('CreateContainerConfigError')] }), 'CreateContainerConfigError', State.failing, 2],
  ['out of memory', pod({ phase: 'Running', containerStatuses: [ended({ reason: 'OOMKilled', exitCode: 137 })] }), 'OOMKilled', State.failing],
  ['failed', pod({ phase: 'Failed', containerStatuses: [ended({ reason: 'Error', exitCode: 1 })] }), 'Error', State.failing],
  ['evicted', pod({ phase: 'Failed', reason: 'Evicted' }), 'Evicted', State.failing],
  ['killed by a signal', pod({ phase: 'Failed', containerStatuses: [ended({ signal: 9, exitCode: 137 })] }), 'Signal:9', State.failing],
  ['ended with a code', pod({ phase: 'Failed', containerStatuses: [ended({ exitCode: 3 })] }), 'ExitCode:3', State.failing],
  ['succeeded', pod({ phase: 'Succeeded', containerStatuses: [ended({ reason: 'Completed', exitCode: 0 })] }), 'Completed', State.succeeded],
  ['one of two completed', pod({ phase: 'Running', conditions: ready, containerStatuses: [ended({ reason: 'Completed', exitCode: 0 }), up] }), 'Running', State.ready],
  ['one of two completed, not ready', pod({ phase: 'Running', containerStatuses: [ended({ reason: 'Completed', exitCode: 0 }), up] }), 'NotReady', State.unready],
  ['being deleted', pod({ phase: 'Running', conditions: ready, containerStatuses: [up] }, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'Terminating', State.terminating],
  ['succeeded, and being deleted', pod({ phase: 'Succeeded' }, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'Succeeded', State.terminating],
  ['failed, and being deleted', pod({ phase: 'Failed' }, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'Failed', State.terminating],
  ['its Node is lost', pod({ phase: 'Running', reason: 'NodeLost' }, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'Unknown', State.unknown],
  ['initializing', pod({ phase: 'Pending', initContainerStatuses: [{ name: 'i', state: { running: {} } }] }, { initContainers: [{ name: 'i' }, { name: 'j' }] }), 'Init:0/2', State.pending],
  ['an init container crashes', pod({ phase: 'Pending', initContainerStatuses: [{ name: 'i', restartCount: 4, state: { waiting: { reason: 'CrashLoopBackOff' } } }] }, { initContainers: [{ name: 'i' }] }), 'Init:CrashLoopBackOff', State.failing, 4],
  ['an init container failed', pod({ phase: 'Pending', initContainerStatuses: [{ name: 'i', state: { terminated: { exitCode: 2 } } }] }, { initContainers: [{ name: 'i' }] }), 'Init:ExitCode:2', State.failing],
  ['init containers are done', pod({ phase: 'Pending', initContainerStatuses: [ended({ exitCode: 0, reason: 'Completed' })], containerStatuses: [waiting('PodInitializing')] }, { initContainers: [{ name: 'a' }] }), 'PodInitializing', State.pending, 2],
];

for (const [name, object, text, state, restarts] of CASES) {
  test(`state: ${name}`, () => {
    const got = describe(object);
    assert.deepEqual(describe(podOf(rowOf(object, POD_FIELDS))), got, 'of a row');
    assert.equal(got.text, text);
    assert.equal(got.state, state);
    if (restarts !== undefined) assert.equal(got.restarts, restarts);
  });
}

test('a sidecar counts as a container, and its restarts as the Pod\'s', () => {
  const got = describe(pod(
    { phase: 'Running', conditions: ready, initContainerStatuses: [{ name: 's', started: true, ready: true, restartCount: 3, state: { running: {} } }], containerStatuses: [{ ...up, restartCount: 1 }] },
    { initContainers: [{ name: 's', restartPolicy: 'Always' }] },
  ));
  assert.deepEqual([got.text, got.containers, got.ready, got.restarts], ['Running', 2, 2, 4]);
});

test('since: from the Ready condition, the deletion or the termination', () => {
  const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
  const created = { creationTimestamp: at(100) };
  assert.equal(describe(pod({ phase: 'Pending' }, {}, created)).since, 100);
  assert.equal(describe(pod({ phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at(200) }], containerStatuses: [up] }, {}, created)).since, 200);
  assert.equal(describe(pod({ phase: 'Running', conditions: ready }, {}, { ...created, deletionTimestamp: at(300) })).since, 300);
  for (const [grace, since] of [[30, 270], [600, 240]]) {
    assert.equal(describe(pod({ phase: 'Failed' }, {}, { ...created, deletionTimestamp: at(300), deletionGracePeriodSeconds: grace })).since, since, 'a minute after the request, but not before the grace period ends');
  }
  assert.equal(describe(pod({ phase: 'Succeeded', containerStatuses: [ended({ exitCode: 0, finishedAt: at(400) })] }, {}, created)).since, 400);
});

test('the cells of its containers', () => {
  assert.equal(describe(pod({ phase: 'Running', containerStatuses: [up, waiting('CrashLoopBackOff'), ended({ exitCode: 0 })] })).cells, State.ready | (State.failing << 4) | (State.succeeded << 8));
});

test('a Pod that keeps crashing fails until it has been ready for its back-off, or a minute', () => {
  const at = (s: number): string => new Date(s * 1000).toISOString();
  const error = { terminated: { reason: 'Error', exitCode: 1, finishedAt: at(990) } };
  const running = (restartCount: number, lastState: ContainerStatus['lastState'], readySince = 0): Pod => pod({
    phase: 'Running', conditions: [{ type: 'Initialized', status: 'True' }, { type: 'Ready', status: readySince ? 'True' : 'False', lastTransitionTime: at(readySince) }],
    containerStatuses: [{ name: 'a', ready: readySince > 0, restartCount, state: { running: { startedAt: at(1000) } }, lastState }],
  });
  const states = (object: Pod, ...times: number[]): number[] => times.map((now) => stateAt(describe(object), now));
  const { failing, ready, unready } = State;
  for (const [restarts, wait] of [[1, 60], [3, 60], [4, 80], [5, 160], [6, 300], [100, 300]]) {
    assert.deepEqual(states(running(restarts, error, 1002), 1001 + wait, 1002 + wait), [failing, ready]);
  }
  // kubectl's STATUS stays.
  assert.equal(describe(running(1, error, 1002)).text, 'Running');
  assert.deepEqual(states(running(1, error, 1002), 1003, 1061, 1062), [failing, failing, ready]);
  assert.deepEqual(states(running(4, error, 1030), 1031, 1109, 1110), [failing, failing, ready]);
  // It may never become ready.
  assert.deepEqual(states(running(2, error), 1001, 1059, 1060), [failing, failing, unready]);
  // Long after the crash it was not ready for another reason.
  assert.deepEqual(states(running(2, error, 5000), 5001), [ready]);
  assert.deepEqual(states(running(1, { terminated: { signal: 9, exitCode: 137 } }, 1001), 1002), [failing]);
  // A container that completed, and runs again.
  assert.deepEqual(states(running(3, { terminated: { reason: 'Completed', exitCode: 0 } }, 1001), 1002), [ready]);
  assert.deepEqual(states(pod({ phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }], containerStatuses: [up] }), 0), [ready]);
});

test('the clock of a Node that is ahead extends no back-off: managedFields say when it wrote', () => {
  const at = (s: number): string => new Date(s * 1000).toISOString();
  for (const ahead of [0, 60, 3600]) {
    const object = pod({
      phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at(1002 + ahead) }],
      containerStatuses: [{ name: 'a', ready: true, restartCount: 1, state: { running: { startedAt: at(1000 + ahead) } }, lastState: { terminated: { exitCode: 1 } } }],
    }, {}, { managedFields: [{ time: at(1500) }, { subresource: 'status', time: at(1002) }] });
    assert.deepEqual([1061, 1062].map((now) => stateAt(describe(object), now)), [State.failing, State.ready], `${ahead} s`);
  }
});

test('the clock of a Node that is behind hides no crash: the kubelet saw no Pod before it was scheduled', () => {
  const at = (s: number): string => new Date(s * 1000).toISOString();
  for (const [by, created, mirror] of [[0, 900], [600, 900], [800, 900], [600, 902], [600, 900, 'x']] as const) {
    const object = pod({
      phase: 'Running', startTime: at(902 - by),
      conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: at(created === 902 ? 902 - by : 902) }, { type: 'Ready', status: 'True', lastTransitionTime: at(1002 - by) }],
      containerStatuses: [{ name: 'a', ready: true, restartCount: 3, state: { running: { startedAt: at(1000 - by) } }, lastState: { terminated: { exitCode: 1, finishedAt: at(990 - by) } } }],
    }, {}, { creationTimestamp: at(created), ...(mirror && { annotations: { 'kubernetes.io/config.mirror': mirror } }) });
    const moved = mirror ? 600 : 0;
    for (const one of [object, podOf(rowOf(object, POD_FIELDS)), aligned(object)]) {
      assert.deepEqual([1061 - moved, 1062 - moved].map((now) => stateAt(describe(one), now)), [State.failing, State.ready], `${by} s`);
      assert.equal(describe(one).since, 1002 - moved);
    }
    const { status } = aligned({ ...object, metadata: { ...object.metadata, managedFields: [{ subresource: 'status', time: at(1001) }] } });
    assert.equal(seconds(status!.conditions![1].lastTransitionTime), Math.min(1001, 1002 - moved), 'not later than it was written');
  }
});

test('how containers ended, the latest first', () => {
  const at = (s: number): string => new Date(s * 1000).toISOString();
  const words = (...containerStatuses: ContainerStatus[]): string[] => ends(pod({ containerStatuses })).map(({ container, end }) => `${container.name}: ${endWords(end)} ${seconds(end.finishedAt)}`);
  const error = { reason: 'Error', exitCode: 1, finishedAt: at(10) };
  const oom = { reason: 'OOMKilled', exitCode: 137, finishedAt: at(20) };
  const completed = { reason: 'Completed', exitCode: 0, finishedAt: at(30) };
  assert.deepEqual(words({ ...up, lastState: { terminated: error } }, { name: 'b', state: { terminated: oom }, lastState: { terminated: error } }), ['b: OOMKilled, exit code 137 20', 'a: Error, exit code 1 10']);
  assert.deepEqual(words({ name: 'a', state: { terminated: { signal: 9, finishedAt: at(5) } } }), ['a: signal 9 5']);
  assert.deepEqual(words({ ...up, lastState: { terminated: completed } }), []);
  assert.deepEqual(words({ ...waiting('CrashLoopBackOff'), lastState: { terminated: completed } }), ['a: Completed, exit code 0 30']);
  assert.equal(describe(pod({ phase: 'Running', containerStatuses: [{ ...waiting('CrashLoopBackOff'), lastState: { terminated: error } }] })).crash, 'Error, exit code 1');
});

test('a container that only waits has no exit code, and its message is shown once', async () => {
  Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' }, matchMedia: () => ({ matches: false, addEventListener() {} }) });
  const { endsOf, messagesOf } = await import('../src/panel/failing');
  const message = 'Back-off pulling image "ngnix:typo"';
  const object = pod({ phase: 'Pending', containerStatuses: [{ name: 'c', state: { waiting: { reason: 'ImagePullBackOff', message } } }] });
  const failing = { failing: true, containers: [{ name: 'c', state: 'waiting', reason: 'ImagePullBackOff', message }] };
  // The panel shows the message of the status.
  assert.deepEqual(endsOf(object, failing), []);
  assert.deepEqual(messagesOf(object), [message]);
  assert.equal(endWords(failing.containers[0]), 'ImagePullBackOff');
  const crashed = { name: 'c', reason: 'Error', exitCode: 2 };
  assert.deepEqual(endsOf(object, { failing: true, containers: [crashed] }), [crashed]);
});

test('a reason is named once', () => {
  assert.equal(besideReason('OOMKilled, exit code 137', 'OOMKilled'), 'exit code 137');
  assert.equal(besideReason('Error, exit code 1', 'CrashLoopBackOff'), 'Error, exit code 1');
});

test('nothing of a deleted Pod runs, and its age is that of its life', async () => {
  const { containerWords } = await import('../src/panel/pod');
  const { deletionOf, lifetime } = await import('../src/panel/lifetime');
  const at = (s: number): string => new Date(s * 1000).toISOString();
  const running = { state: { running: { startedAt: at(1000) } } };
  assert.equal(containerWords(running, 1100, null), 'running for 100s');
  assert.equal(containerWords(running, 1100, deletionOf({ time: at(1100) })), 'ran for 100s');
  assert.equal(lifetime(at(1000), 1100, null), '100s ago');
  const lived = (time: number, notBefore?: number) => lifetime(at(1000), 1100, deletionOf({ time: at(time), notBefore: notBefore && at(notBefore) } as When));
  assert.match(lived(1060), /:40, lived 60s$/);
  // Deleted in a time that was not observed, and created before it, or in it.
  assert.match(lived(1060, 1020), /:40, lived at least 20s$/);
  assert.match(lived(1060, 990), /:40, lived at most 60s$/);
});

test('the clock of a Node that is ahead cuts no time of a container or a condition', async () => {
  const { containerWords } = await import('../src/panel/pod');
  const at = (s: number): string => new Date(s * 1000).toISOString();
  for (const by of [0, 3600]) {
    const object = pod({
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at(1000 + by) }, { type: 'PodScheduled', status: 'True', lastTransitionTime: at(990) }],
      containerStatuses: [{ state: { running: { startedAt: at(998 + by) } }, lastState: { terminated: { finishedAt: at(995 + by) } } }],
    }, {}, { managedFields: [{ time: at(2000) }, { subresource: 'status', time: at(1000) }] });
    const { metadata, status } = aligned(object);
    const [container] = status!.containerStatuses!;
    assert.equal(containerWords(container, 1100, null), 'running for 102s', `${by} s ahead`);
    assert.equal(seconds(container.lastState!.terminated!.finishedAt), 995);
    assert.deepEqual(status!.conditions!.map((c) => conditionSince(metadata, c)), [1000, 990]);
    assert.equal(conditionSince(metadata, object.status!.conditions![0]), 1000); // of any object
    assert.equal(conditionSince({}, object.status!.conditions![0]), 1000 + by); // not known when it was written
  }
});

test('what is said of an object that was not found', async () => {
  const { gone } = await import('../src/panel/last');
  const nothing = { was: null, created: null };
  assert.equal(gone(nothing, false, false), 'Not found, and nothing of it is recorded: check the name.');
  assert.equal(gone(nothing, false, true), 'It did not exist at this moment, and nothing of it is recorded before.');
  const created = (notBefore?: string) => gone({ was: null, created: { time: '1970-01-01T00:16:40Z', notBefore } }, false, true);
  assert.match(created(), /^It did not exist yet at this moment: it was created at .*16:40[^(]*\.$/);
  assert.match(created('1970-01-01T00:12:00Z'), /16:40.* \(not before .*12:00\)\.$/);
});

test('a Pod that is being deleted waits for its finalizers', async () => {
  const { waitsFor } = await import('../src/panel/pod');
  const finalizers = ['example.com/hold'];
  assert.deepEqual(waitsFor(pod({}, {}, { finalizers })), []);
  assert.deepEqual(waitsFor(pod({}, {}, { finalizers, deletionTimestamp: '2026-01-01T00:00:00Z' })), finalizers);
});

test('on a lost Node, the panel shows what the board shows', async () => {
  const { shownState } = await import('../src/panel/failing');
  const shown = (object: Pod, lost: number): State => shownState(describe(object), 2000, lost);
  const running = pod({ phase: 'Running', conditions: ready, containerStatuses: [up] });
  const evicted = pod({ phase: 'Failed', reason: 'Evicted' });
  assert.deepEqual([shown(running, 0), shown(running, 1900), shown(evicted, 1900)], [State.ready, State.unknown, State.failing]);
});

test('a row of a Pod or a Node has all that the board needs', () => {
  const pod: Pod = {
    metadata: {
      name: 'web-abc-1', namespace: 'shop', uid: 'u', resourceVersion: '7', labels: { 'pod-template-hash': 'abc' }, creationTimestamp: '2026-01-01T00:00:00Z',
      ownerReferences: [{ kind: 'Other', name: 'first' }, { kind: 'ReplicaSet', name: 'web-abc', controller: true }],
    },
    spec: { nodeName: 'n', containers: [{}, { resources: { requests: { cpu: '250m', memory: '64Mi' } } }], initContainers: [{ name: 'i' }, { name: 's', restartPolicy: 'Always' }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Initialized', status: 'True' }, { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:10:05Z' }],
      initContainerStatuses: [
        { name: 'i', ready: true, restartCount: 1, state: { terminated: { exitCode: 0, reason: 'Completed' } } },
        { name: 's', started: true, ready: true, restartCount: 2, state: { running: { startedAt: '2026-01-01T00:00:10Z' } } },
      ],
      containerStatuses: [
        { ready: true, restartCount: 3, state: { running: { startedAt: '2026-01-01T00:10:00Z' } }, lastState: { terminated: { exitCode: 137, reason: 'OOMKilled', finishedAt: '2026-01-01T00:09:00Z' } } },
        { ready: true, restartCount: 0, state: { running: {} } },
      ],
    },
  };
  const row = podRow(pod);
  assert.deepEqual([row.owner, row.crash !== '', row.failingUntil > 0, row.cpu, row.restarts, row.containers], ['Deployment/web', true, true, 250, 5, 3]);
  assert.deepEqual(podRow(podOf(rowOf(pod, POD_FIELDS))), row);
  assert.deepEqual(podRow(podOf(rowOf({ metadata: { name: 'x', uid: 'u', resourceVersion: '1' } }, POD_FIELDS))), podRow({ metadata: { name: 'x' } }));
  const node: Node = {
    metadata: { name: 'n', labels: { a: 'b' }, creationTimestamp: '2026-01-01T00:00:00Z' }, spec: { unschedulable: true },
    status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110' }, nodeInfo: { kubeletVersion: 'v1.36.0' }, conditions: [{ type: 'MemoryPressure', status: 'True' }, { type: 'Ready', status: 'False', lastTransitionTime: '2026-01-01T00:01:00Z' }] },
  };
  assert.deepEqual(nodeRow(nodeOf(rowOf(node, NODE_FIELDS))), nodeRow(node));
  assert.deepEqual(nodeRow(nodeOf(rowOf({ metadata: { name: 'n' } }, NODE_FIELDS))), nodeRow({ metadata: { name: 'n' } }));
});

test('a row of the board does not depend on the row before', () => {
  const times = ['2026-01-01T00:00:00Z', '2026-01-01T00:10:05Z', '2026-01-02T00:00:00Z', undefined];
  const running = { running: { startedAt: times[1] } };
  const statuses = [
    [{ ready: true, restartCount: 0, state: running }],
    [{ ready: true, restartCount: 0, state: { running: { startedAt: times[2] } } }],
    [{ ready: false, restartCount: 0, state: {} }],
    [{ ready: false, restartCount: 0, state: running }],
    [{ ready: true, restartCount: 2, state: running, lastState: { terminated: { exitCode: 1, reason: 'Error', finishedAt: times[0] } } }],
    [{ ready: false, restartCount: 4, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: { exitCode: 137 } } }],
    [{ ready: false, restartCount: 0, state: { terminated: { exitCode: 0, finishedAt: times[2] } } }],
    [{ ready: true, restartCount: 0, state: running }, { ready: true, restartCount: 0, state: running }],
    undefined,
  ];
  let seed = 1;
  const pick = <T>(of: T[]): T => of[(seed = (seed * 48271) % 2147483647) % of.length];
  /** The rows of a list, in which a repeated value is the same object, as rowsOf makes them. */
  let before: Row | null = null;
  let alike = 0;
  let last: Pod = { metadata: { name: '' } };
  for (let i = 0; i < 20_000; i++) {
    const wild = i % 3 === 0;
    const pod: Pod = {
      metadata: {
        name: `p${i}`, namespace: wild ? pick(['a', 'b']) : last.metadata.namespace, creationTimestamp: pick(times),
        labels: wild ? pick([{ app: 'x' }, { app: 'y', 'pod-template-hash': 'h' }, undefined]) : last.metadata.labels,
        deletionTimestamp: pick([...times.slice(0, 1), ...Array(20).fill(undefined)]),
      },
      spec: { nodeName: pick(['n1', 'n2', undefined]), containers: wild ? pick([[{}], [{ resources: { requests: { cpu: '1' } } }]]) : last.spec?.containers },
      status: {
        startTime: pick([times[0], times[1], undefined]),
        phase: wild ? pick(['Running', 'Pending', 'Succeeded', 'Failed']) : last.status?.phase,
        conditions: [{ type: 'Ready', status: wild ? pick(['True', 'False']) : last.status!.conditions![0].status, lastTransitionTime: pick(times) }, { type: 'PodScheduled', status: 'True', lastTransitionTime: pick(times) }],
        containerStatuses: pick([last.status?.containerStatuses, pick(statuses)]),
      },
    };
    last = pod;
    const row = rowOf(pod, POD_FIELDS);
    const shared = before?.map((value, at) => (JSON.stringify(value) === JSON.stringify(row[at]) ? value : row[at])) as Row | undefined;
    assert.deepEqual(boardRow(shared ?? row), podRow(podOf(row)), JSON.stringify(pod));
    if (shared && shared.filter((value, at) => value === before![at]).length > 26) alike++;
    before = shared ?? row;
  }
  assert.ok(alike > 3000, `${alike} rows were like the one before`);
});
