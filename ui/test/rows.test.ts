// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { beside, failingSince, healthyWords, needsOf, ranked, nodeNeeds, othersOf, type Finding } from '../src/app/attention';
import { clock } from '../src/data/clock';
import { nodeRow, podRow } from '../src/data/objects';
import { age, cpuText, memoryText, quantity } from '../src/data/quantity';
import { describe, FAILED, State } from '../src/data/state';
import { bySlots, tableRows, windowOf } from '../src/shell/rows';
import { toYAML } from '../src/panel/yaml';
import { filled, Fixture, nodeOf, podOf } from './fixture';

test('a row is sent once per batch, however often its Pod changed', () => {
  const f = filled(1, 3);
  for (let i = 0; i < 10; i++) f.set(podOf('web-0-1', { restarts: i }));
  const applied = f.apply();
  assert.deepEqual([applied.placed, applied.changed.length], [[], 1]);
  assert.equal(f.cluster.readiness(f.row('web-0-1')).restarts, 9);
  f.set(podOf('web-0-1', { restarts: 9 }));
  assert.equal(f.rows.pending, false, 'an update without a change is not sent');
});

test('a Pod that was created and deleted between batches is not sent, a recreated one is another Pod', () => {
  const f = filled(1, 1);
  f.set(podOf('brief'));
  f.rows.deletePod('shop/brief', f.now);
  const before = f.row('web-0-0');
  f.set(podOf('web-0-0', { created: 2000 }));
  const applied = f.apply();
  assert.equal(f.row('brief'), -1);
  assert.notEqual(f.row('web-0-0'), before);
  assert.deepEqual(applied.gone, [before]);
  assert.equal(f.cluster.pods, 1);
});

test('a deleted Pod keeps its row until the page has shown its ghost', () => {
  const f = filled(1, 2);
  const before = f.row('web-0-0');
  f.rows.deletePod('shop/web-0-0', f.now);
  f.now += 60_000; // the page is hidden and takes no batch
  f.set(podOf('next'));
  f.apply();
  assert.deepEqual([f.cluster.state[before], f.cluster.keyOf(before)], [State.gone, 'shop/web-0-0']);
  assert.notEqual(f.row('next'), -1);
  f.set(podOf('soon'));
  f.apply();
  f.now += 60_000;
  f.set(podOf('later'));
  f.apply();
  assert.equal(f.row('later'), before);
  assert.equal(f.cluster.pods, 4);
});

test('counts and the requests of Nodes always match the Pods', () => {
  const f = filled(3, 10);
  f.set(podOf('web-0-0', { state: State.failing, text: 'Error' }), podOf('web-1-1', { node: 'node-1', state: State.succeeded, text: 'Completed' }), podOf('web-2-2', { node: 'node-0' }));
  f.rows.deletePod('shop/web-2-3', f.now);
  f.apply();
  const { cluster } = f;
  assert.deepEqual([cluster.pods, cluster.counts[State.ready], cluster.counts[State.failing], cluster.counts[State.succeeded]], [29, 27, 1, 1]);
  assert.deepEqual([...cluster.nodes.values()].map((n) => [n.name, n.pods, n.cpu]), [['node-0', 11, 1100], ['node-1', 10, 900], ['node-2', 8, 800]]);
  f.rows.setNode(nodeOf('node-0', { ready: 'Unknown' }));
  f.apply();
  assert.deepEqual([cluster.shownCounts()[State.unknown], cluster.shownCounts()[State.failing]], [10, 1]);
});

test('after a full update, Pods that exist keep their rows, and others are deleted', () => {
  const f = filled(2, 2);
  const kept = f.row('web-0-1');
  f.rows.restate();
  f.rows.setNode(nodeOf('node-0'));
  f.set(podOf('web-0-1'), podOf('other'));
  f.rows.settle(f.now);
  const applied = f.apply();
  assert.equal(f.row('web-0-1'), kept);
  assert.equal(applied.all, false);
  assert.equal(applied.gone.length, 3);
  assert.deepEqual(applied.nodesGone, ['node-1']);
});

test('the owner of a Pod of a Deployment is the Deployment', () => {
  const row = podRow({
    metadata: {
      name: 'web-abc-1', namespace: 'shop', labels: { 'pod-template-hash': 'abc', app: 'web' },
      ownerReferences: [{ kind: 'ReplicaSet', name: 'web-abc', controller: true }], creationTimestamp: '1970-01-01T00:01:40Z',
    },
    spec: { nodeName: 'n', containers: [{ resources: { requests: { cpu: '250m', memory: '64Mi' } } }, { resources: { requests: { cpu: '1' } } }] },
    status: { phase: 'Pending' },
  });
  assert.deepEqual([row.owner, row.labels, row.created, row.cpu, row.memory], ['Deployment/web', 'app=web,pod-template-hash=abc', 100, 1250, 65536]);
});

test('needs attention: by workload and reason, the most urgent first', () => {
  const f = new Fixture();
  f.rows.setNode(nodeOf('node-0'));
  f.rows.setNode(nodeOf('sick', { ready: 'False', since: 5 }));
  f.set(
    podOf('a', { state: State.failing, text: 'ImagePullBackOff' }), podOf('b', { state: State.failing, text: 'CrashLoopBackOff', owner: 'Deployment/cart' }),
    podOf('c', { state: State.failing, text: 'CrashLoopBackOff', owner: 'Deployment/cart', since: 900 }), podOf('d', { state: State.pending, text: 'Pending', node: '', since: 1000 }),
    podOf('e', { state: State.pending, text: 'Pending', since: 1990, owner: 'Job/new' }), podOf('f'),
  );
  f.apply();
  const needs = needsOf(f.cluster, f.cluster.state, 2000);
  assert.deepEqual(needs.map((n) => [n.reason, n.title, n.rows.length, n.since]), [
    ['CrashLoopBackOff', 'cart', 2, 900], ['ImagePullBackOff', 'web', 1, 1000], ['Pending, not scheduled', 'web', 1, 1000],
  ]);
  assert.deepEqual(nodeNeeds(f.cluster), [{ name: 'sick', words: 'NotReady', since: 5 }]);
  // An entry is the same element when its reason changes, so that it keeps the focus.
  const keys = needs.map((n) => n.key);
  assert.equal(new Set(keys).size, 3);
  assert.deepEqual(needs.map((n) => n.of), ['shop/Deployment/cart', 'shop/Deployment/web', 'shop/Deployment/web']);
  f.set(podOf('a', { state: State.failing, text: 'ErrImagePull' }));
  f.rows.setNode(nodeOf('sick', { ready: 'Unknown', since: 6 }));
  f.apply();
  assert.deepEqual(needsOf(f.cluster, f.cluster.state, 2000).map((n) => [n.key, n.reason]), [
    [keys[0], 'CrashLoopBackOff'], [keys[1], 'ErrImagePull'], [keys[2], 'Pending, not scheduled'],
  ]);
  assert.deepEqual(nodeNeeds(f.cluster), [{ name: 'sick', words: 'NotReady: kubelet stopped posting node status', since: 6 }]);
});

test('the table: urgent states first, any column in both directions, filtered', () => {
  const f = new Fixture();
  f.set(podOf('b', { namespace: 'x', restarts: 4 }), podOf('a', { created: 5 }), podOf('c', { state: State.failing, text: 'Error', node: 'node-10' }), podOf('d', { node: 'node-9' }));
  f.apply();
  const names = (by: Parameters<typeof tableRows>[2], down = false, only?: (row: number) => boolean): string =>
    tableRows(f.cluster, only ?? null, by, down).map((row) => f.cluster.names[row]).join('');
  assert.equal(names('state'), 'cabd');
  assert.equal(names('name', true), 'dcba');
  assert.equal(names('node'), 'abdc');
  assert.equal(names('restarts'), 'bacd');
  assert.equal(names('age', true)[0], 'a');
  assert.equal(names('name', false, (row) => f.cluster.names[row] > 'b'), 'cd');
});

test('the table renders the rows in view and some more', () => {
  assert.deepEqual(windowOf(100_000, 28_000, 560, 28), { from: 992, to: 1028 });
  assert.deepEqual(windowOf(5, 0, 560, 28), { from: 0, to: 5 });
  assert.deepEqual(windowOf(3, 9999, 560, 28), { from: 3, to: 3 });
});

test('rows keep their places in the document while a table is scrolled', () => {
  assert.deepEqual(bySlots(0, 4, 5), [0, 1, 2, 3]);
  assert.deepEqual(bySlots(3, 7, 5), [5, 6, 3, 4]);
  assert.deepEqual(bySlots(11, 13, 5), [11, 12], 'the first slot is free');
  assert.deepEqual(bySlots(7, 7, 5), []);
  for (let from = 0; from < 40; from++) {
    const slots = bySlots(from, from + 9, 10).map((index) => index % 10);
    assert.deepEqual(slots, [...slots].sort((a, b) => a - b));
  }
});

test('quantities and durations', () => {
  assert.deepEqual(['100m', '2', '1.5Gi', '1e3', '', 'x', '3k'].map(quantity), [0.1, 2, 1.5 * 2 ** 30, 1000, 0, 0, 3000]);
  assert.deepEqual([cpuText(250), cpuText(1500), cpuText(48000), memoryText(512), memoryText(65536), memoryText(1572864)], ['250m', '1.5', '48', '512Ki', '64Mi', '1.5Gi']);
  assert.deepEqual([5, 119, 120, 250, 900, 4 * 3600 + 300, 30 * 3600, 86400 * 12].map(age), ['5s', '119s', '2m', '4m10s', '15m', '4h5m', '30h', '12d']);
});

test('YAML as kubectl writes it', () => {
  const text = (value: unknown): string => toYAML(value, new Set(['metadata.managedFields'])).map((line) => line.map((p) => p.text).join('')).join('\n');
  assert.equal(
    text({ kind: 'Pod', metadata: { name: 'a-b', labels: { 'app.kubernetes.io/name': 'x', v: '1.0', on: 'true' }, managedFields: [1] }, spec: { args: ['-c', 'echo a: b'], ports: [{ port: 80, p: 'TCP' }], none: [], empty: {}, ok: true, script: 'a\nb\n', s: '' } }),
    ['kind: Pod', 'metadata:', '  name: a-b', '  labels:', '    app.kubernetes.io/name: x', '    v: "1.0"', '    "on": "true"', 'spec:', '  args:', '  - "-c"', '  - "echo a: b"', '  ports:',
      '  - port: 80', '    p: TCP', '  none: []', '  empty: {}', '  ok: true', '  script: |', '    a', '    b', '  s: ""'].join('\n'),
  );
});

test('YAML is read back as the same object in both of its dialects', () => {
  const words = ['yes', 'Yes', 'NO', 'on', 'off', 'n', 'Y', 'true', 'Null', '~', '', '0400', '012', '0o17', '0x1F', '0b1', '1_000', '_1', '1e3', '1.10', '.5', '+5', '-', '--- ', '...', '.inf', '.NaN', '12:30:45', '2026-11-28', '=', '<<', '!!str', '&a', '*a', '?', '|', '>-', '%', '@', '`', 'null ', ' a', 'a: b', 'a:', 'a #b', '# a', '[a', '{a', 'a, b', "'", '"', '\\', 'é😀'];
  const texts = ['a\nb', 'a\n', '\na', 'a\n\n\n', '\n', '\n\n', ' a\nb', '\ta\nb', 'a\n b', 'a\n\tb', 'a \nb', 'a\n  ', 'a\n  \nb\n', '\n  a\n', 'a\r\nb', 'a\u0085b\nc', 'a\u2028b\nc', '\ufeffa\nb', 'a\u0007\nb', '\u007f', '\u0000', '\ufffe', '---\na', '# a\n# b\n', '- a\n- b', 'a: |\n  b\n'];
  const all = [...words, ...texts];
  const object = {
    all, keys: Object.fromEntries(all.map((key) => [key, { [key]: key }])), nested: [[all, [[]], [{}]], [{ a: texts, b: {} }]], values: [true, null, 0, -1.5, 1e21, 1e-7],
    blocks: texts.map((text) => ({ text, after: text })),
  };
  const text = toYAML(object).map((line) => `${line.map((piece) => piece.text).join('')}\n`).join('');
  for (const version of ['1.1', '1.2'] as const) assert.deepEqual(parse(text, { version }), object, version);
  assert.equal(toYAML({ a: [9007199254740993n, -9223372036854775808n] }).at(-1)!.at(-1)!.text, '-9223372036854775808');
});

test('the clock of a Node that is ahead extends no back-off', () => {
  const { now } = clock;
  try {
    let seconds = 1000;
    clock.now = () => seconds;
    const f = new Fixture();
    const shown = (...times: number[]): number[] => times.map((time) => {
      seconds = time;
      f.cluster.reassess(1);
      return f.cluster.shown(f.row('a'));
    });
    const { failing, ready } = State;
    // It has started at 1000, and is ready since 1005.
    for (const ahead of [0, 1, 60, 3600, 86400]) {
      seconds = 1005;
      f.set(podOf('a', { failingUntil: 1015 + ahead, latest: 1005 + ahead, since: 1005 + ahead, crash: 'Error' }));
      f.apply();
      assert.equal(f.cluster.since[f.row('a')], 1005);
      assert.deepEqual(shown(1014, 1015), [failing, ready], `${ahead} s`);
      // Another change of the Pod says nothing new of its times.
      f.set(podOf('a', { failingUntil: 1015 + ahead, latest: 1005 + ahead, crash: 'Error', labels: 'x=y' }));
      f.apply();
      assert.deepEqual(shown(1015), [ready], `${ahead} s, changed`);
    }
    // The next crash.
    seconds = 1100;
    f.set(podOf('a', { failingUntil: 1120 + 3600, latest: 1100 + 3600, crash: 'Error' }));
    f.apply();
    assert.deepEqual(shown(1119, 1120), [failing, ready]);
  } finally {
    clock.now = now;
  }
});

test('what is received after an outage is not dated from its begin, where the board still is', () => {
  const { now, received } = clock;
  try {
    clock.now = () => 1000;
    clock.received = () => 1045;
    const f = new Fixture();
    f.set(podOf('a', { state: State.unready, since: 1044 }), podOf('b', { failingUntil: 1060, latest: 1040, crash: 'Error' }));
    f.apply();
    assert.deepEqual([f.cluster.since[f.row('a')], f.cluster.failingUntil[f.row('b')]], [1044, 1060]);
  } finally {
    Object.assign(clock, { now, received });
  }
});

test('a Pod that crashed recovers with the time, without an event', () => {
  const { now } = clock;
  try {
    let seconds = 1000;
    clock.now = () => seconds;
    const f = new Fixture();
    f.set(podOf('a', { failingUntil: 1020, crash: 'Error, exit code 1' }), podOf('b', { state: State.failing, text: 'Error', crash: 'OOMKilled, exit code 137' }), podOf('c'));
    f.apply();
    const a = f.row('a');
    const failing = (): number => f.cluster.counts[State.failing];
    assert.deepEqual([f.cluster.shown(a), failing()], [State.failing, 2]);
    assert.deepEqual(f.cluster.reassess(5), []);
    // Both are one entry, whose reason does not change between Error and Running.
    assert.deepEqual(needsOf(f.cluster, f.cluster.state, 1000).map((n) => [n.reason, n.crash, n.rows.length]), [['Error', 'Error, exit code 1', 2]]);
    seconds = 1020;
    const { version } = f.cluster;
    assert.deepEqual(f.cluster.reassess(5), [a]);
    assert.deepEqual([f.cluster.shown(a), failing(), f.cluster.changed[a]], [State.ready, 1, 5]);
    assert.notEqual(f.cluster.version, version);
    // The past: the same status, at an earlier moment.
    seconds = 1019;
    assert.deepEqual(f.cluster.reassess(6), [a]);
    assert.equal(f.cluster.shown(a), State.failing);
    f.rows.deletePod('shop/a', 1);
    f.apply();
    seconds = 2000;
    assert.deepEqual(f.cluster.reassess(7), []);
    assert.equal(failing(), 1);
  } finally {
    clock.now = now;
  }
});

test('Pods whose deletion does not end are one entry, whatever they were before', () => {
  const f = filled(1, 1).set(...['Terminating', 'Completed', 'Error'].map((text, i) => podOf(`held-${i}`, { state: State.terminating, text, owner: 'Job/held' })));
  f.apply();
  assert.deepEqual(needsOf(f.cluster, f.cluster.state, 1060).map((n) => [n.reason, n.title, n.rows.length]), [['Terminating', 'held', 3]]);
});

test('whether the Pods of a Job may fail is decided by the Job', () => {
  const f = filled(1, 1).set(podOf('once', { state: State.failing, text: 'Error', owner: 'Job/never', cells: 4 | FAILED }), podOf('again', { state: State.failing, text: 'Error', owner: 'Job/on-failure', cells: 4 }), podOf('alone', { state: State.failing, text: 'Error', owner: '', cells: 4 | FAILED }));
  f.apply();
  const listed = (found: boolean): string[] => needsOf(f.cluster, f.cluster.state, 2000, found).map((n) => n.title).sort();
  assert.deepEqual([listed(true), listed(false)], [['alone', 'on-failure'], ['alone', 'never', 'on-failure']]);
  assert.equal(describe({ metadata: { name: 'x' }, status: { phase: 'Failed', containerStatuses: [{ state: { terminated: { exitCode: 1 } } }] } }).cells, 4 | FAILED);
});

test('what failed on a Node before it was NotReady stays failing', () => {
  const f = filled(1, 2).set(podOf('evicted', { state: State.failing, text: 'Evicted' }), podOf('crashing', { state: State.failing, text: 'CrashLoopBackOff', crash: 'Error, exit code 1' }));
  f.rows.setNode(nodeOf('node-0', { ready: 'Unknown' }));
  f.apply();
  const counts = f.cluster.shownCounts();
  assert.deepEqual([counts[State.failing], counts[State.unknown], counts[State.ready]], [2, 2, 0]);
  const look = Uint8Array.from({ length: f.cluster.length }, (_, row) => f.cluster.shown(row));
  assert.equal(needsOf(f.cluster, look, 2000).length, 2);
});

test('a Pod that is not scheduled is listed after 10 s, other pending ones after a minute', () => {
  const f = filled(1, 1).set(podOf('big', { node: '', state: State.pending, text: 'Pending', owner: '' }), podOf('held', { node: '', state: State.pending, text: 'SchedulingGated', owner: '' }), podOf('starting', { state: State.pending, text: 'ContainerCreating', owner: '' }));
  f.apply();
  const listed = (now: number): string[] => needsOf(f.cluster, f.cluster.state, now).map((n) => n.title).sort();
  assert.deepEqual([listed(1009), listed(1010), listed(1060)], [[], ['big'], ['big', 'held', 'starting']]);
  assert.equal(healthyWords(f.cluster), 'None of 1 Node and 4 Pods needs attention yet; 3 Pods are starting or ending. Workloads without Pods are not checked.');
  assert.equal(healthyWords(filled(2, 3).cluster), 'All healthy: 2 Nodes and 6 Pods. Workloads without Pods are not checked.');
  assert.equal(healthyWords(filled(2, 3).cluster, { nodes: { denied: true, why: 'forbidden' }, namespaces: ['shop'] }), 'All healthy: 6 Pods in 1 namespace. Nodes, and workloads without Pods, are not checked.');
  assert.equal(healthyWords(filled(2, 3).cluster, undefined, true), 'All healthy: 2 Nodes and 6 Pods.');
  assert.equal(healthyWords(filled(2, 3).cluster, { nodes: { denied: true, why: 'forbidden' }, namespaces: ['shop'] }, true), 'All healthy: 6 Pods in 1 namespace. Nodes are not checked.');
});

test('a Node needs attention for the conditions that are a problem, since they are', () => {
  const at = (s: number): string => new Date(s * 1000).toISOString();
  const needs = (...conditions: [string, string, number][]) => {
    const f = filled(1, 1);
    f.rows.setNode(nodeRow({ metadata: { name: 'node-0' }, status: { conditions: conditions.map(([type, status, since]) => ({ type, status, lastTransitionTime: at(since) })) } }));
    f.apply();
    return nodeNeeds(f.cluster).map(({ words, since }) => [words, since]);
  };
  assert.deepEqual(needs(['Ready', 'True', 100], ['EtcdIsVoter', 'True', 200]), []);
  assert.deepEqual(needs(['Ready', 'True', 100], ['DiskPressure', 'True', 300], ['PIDPressure', 'True', 200]), [['DiskPressure, PIDPressure', 200]]);
  assert.deepEqual(needs(['Ready', 'False', 400], ['DiskPressure', 'True', 300]), [['NotReady', 400]]);
});

test('findings are listed if they are about what is not on the board', () => {
  const finding = (rule: string, severity: Finding['severity'], kind = 'Deployment'): Finding => ({ rule, severity, kind, name: 'x', title: 't', touches: 1, objects: [{ kind, name: 'x' }] });
  const all = [finding('crash', 'critical'), finding('create', 'critical'), finding('creating', 'critical'), finding('controller', 'critical'), finding('deletion', 'warning', 'Pod'), finding('deletion', 'warning', 'Backup'), finding('claim', 'info'), finding('node', 'critical', 'Node'), finding('unobserved', 'critical', 'APIServer'), finding('unobserved', 'warning', 'Recording')];
  assert.deepEqual(beside(all), [all[1], all[3], all[5], all[9]]);
  // What could not be read is not on the board.
  const failed = { denied: false, failed: true, why: '' };
  assert.deepEqual(beside(all, { nodes: failed }), [all[1], all[3], all[5], all[7], all[9]]);
  assert.deepEqual(beside(all, { nodes: null, pods: { why: '', namespaces: [] } }), [all[0], all[1], all[2], all[3], all[4], all[5], all[9]]);
  assert.deepEqual(beside(all, { nodes: null, pods: { why: '', namespaces: ['other'] } }), beside(all));
  assert.deepEqual(beside(all, null), all.filter(({ severity, kind }) => severity !== 'info' && kind !== 'APIServer'));
});

test('an entry is as severe, and in the place, as the finding about its Pods', () => {
  const finding = (rule: string, severity: Finding['severity'], kind: string, name: string): Finding => ({ rule, severity, kind, namespace: 'shop', name, title: 't', touches: 1, objects: [{ kind, name }] });
  const f = filled(1, 0).set(podOf('big', { owner: '', node: '', state: State.pending, text: 'Pending' }), podOf('bad', { owner: '', state: State.failing, text: 'Error' }), podOf('slow', { owner: '', state: State.unready }));
  f.apply();
  const all = [finding('unscheduled', 'critical', 'Pod', 'big'), finding('claim', 'warning', 'PersistentVolumeClaim', 'data'), finding('create', 'critical', 'Deployment', 'held')];
  const list = (findings: Finding[]): string[] => ranked(f.cluster, needsOf(f.cluster, f.cluster.state, 2000), beside(findings), findings).map((entry) => `${entry.critical ? '✗' : '!'} ${'need' in entry ? entry.need.title : entry.finding.name}`);
  assert.deepEqual(list(all), ['✗ big', '✗ held', '✗ bad', '! data', '! slow']);
  assert.deepEqual(list([]), ['✗ bad', '! big', '! slow']);
});

test('since when a Pod fails comes from the history, also after its eviction', () => {
  const f = filled(1, 1).set(podOf('evicted', { state: State.failing, text: 'Evicted', since: 1900 }));
  f.apply();
  const [need] = needsOf(f.cluster, f.cluster.state, 2000);
  assert.deepEqual(failingSince(need, () => 1900, () => undefined), { since: 1900 });
  const answer = { failing: true, since: new Date(1500_000).toISOString(), sinceKnown: true };
  assert.deepEqual(failingSince(need, () => 1900, () => answer), { since: 1500, from: answer });
});

test('a Pod terminates since its deletion was first requested', () => {
  const f = filled(1, 1).set(podOf('held', { state: State.terminating, text: 'Terminating', since: 1900 }));
  f.apply();
  const [need] = needsOf(f.cluster, f.cluster.state, 2000);
  const since = (finding?: { title: string; since: string }): number => failingSince(need, () => 1900, () => ({ failing: false, finding })).since;
  assert.deepEqual([since(), since({ title: 'Terminating', since: new Date(1870_000).toISOString() })], [1900, 1870]);
});

test('Pods whose images cannot be pulled fail since the first attempt, not since they were made', () => {
  const f = filled(1, 1);
  const own = [1890, 1880, 1881, 1882];
  own.forEach((since, i) => f.set(podOf(`web-${i}`, { owner: 'Deployment/web', state: State.failing, text: 'ImagePullBackOff', since })));
  f.apply();
  const [need] = needsOf(f.cluster, f.cluster.state, 2000);
  assert.equal(need.rows.length, 4);
  const sinceOf = (row: number): number => f.cluster.since[row];
  const at = (s: number, sinceKnown: boolean) => ({ failing: true, since: new Date(s * 1000).toISOString(), sinceKnown });
  const since = (...answers: (ReturnType<typeof at> | undefined)[]) => failingSince(need, sinceOf, (row) => answers[own.indexOf(f.cluster.since[row])]).since;
  assert.equal(since(), 1880);
  assert.equal(since(undefined, at(1990, true), at(1985, true), at(1991, true)), 1985); // the newest Pod is not asked
  assert.equal(since(undefined, at(1990, false), at(1985, true), at(1991, true)), 1880); // when the record begins, it failed already
});

test('a workload whose only Pod keeps crashing is not well', async () => {
  const { failingPods, replicaWords } = await import('../src/panel/replicas');
  const f = filled(1, 1).set(podOf('api-5d9-x', { owner: 'Deployment/api', state: State.failing, text: 'Running', crash: 'Error, exit code 1' }));
  f.apply();
  assert.deepEqual(['Deployment/api', 'ReplicaSet/api-5d9', 'Deployment/web', 'StatefulSet/api'].map((of) => failingPods(f.cluster, ...(of.split('/') as [string, string]).toSpliced(1, 0, 'shop') as [string, string, string])), [1, 1, 0, 0]);
  assert.deepEqual(replicaWords(1, 1, 1, false), { words: '1 of 1 ready, 1 failing', state: 'failing' });
  assert.deepEqual(replicaWords(1, 1, 0, false), { words: '1 of 1 ready', state: 'ready' });
});

test('Pods of namespaces that may not be read any more are deleted, and Nodes whose states are not known', () => {
  const f = filled(1, 2);
  f.set(podOf('api', { namespace: 'shop-2' }));
  f.apply();
  f.rows.retain((namespace) => namespace === 'shop-2', f.now);
  assert.equal(f.apply().gone.length, 2, 'shop-2 is not shop');
  assert.deepEqual([f.row('web-0-0'), f.cluster.pods], [-1, 1]);
  // The Pods are listed again, and the Nodes are not.
  f.rows.restate(false);
  f.rows.settle(f.now);
  f.apply();
  assert.deepEqual([f.cluster.pods, f.cluster.nodes.size], [0, 1]);
  f.rows.deleteNodes();
  f.apply();
  assert.equal(f.cluster.nodes.size, 0);
});

test('an entry says how many of its Pods are so only since later', () => {
  assert.equal(othersOf([100, 130, 190]), null);
  assert.deepEqual(othersOf([1900, 100, 1905]), { others: 2, since: 1900 });
  assert.equal(othersOf([100]), null);
});

test('no text of a Pod turns or hides what is drawn around it', () => {
  const f = filled(1, 1).set(podOf('odd', { state: State.failing, text: 'Er\u202eror\u009b' }));
  f.apply();
  assert.equal(f.cluster.strings[f.cluster.text[f.cluster.rowOf('shop', 'odd')]], 'Er\ufffdror\ufffd');
});
