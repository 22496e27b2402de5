// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * A worker that generates a cluster instead of reading one, with the protocol of
 * the real one. `synthetic=NODESxPODS` sets the Nodes and the Pods per Node,
 * `rate` the changes per second, `failing` the percentage of failing Pods.
 */

import { Outbox } from '../src/data/outbox';
import type { Request } from '../src/data/protocol';
import { Rows, type PodRow } from '../src/data/rows';
import { State } from '../src/data/state';

/** A seeded pseudo-random generator. */
let seed = 42;
const random = (): number => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};
const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)];

const APPS = ['web', 'api', 'checkout', 'cart', 'search', 'auth', 'mailer', 'thumbnailer', 'ledger', 'feed', 'gateway', 'pricing'];
const NAMESPACES = ['shop', 'payments', 'platform', 'search', 'media', 'internal'];
const TROUBLE = ['CrashLoopBackOff', 'CrashLoopBackOff', 'ImagePullBackOff', 'Error', 'OOMKilled', 'Evicted'];
const letters = (n: number): string => Array.from({ length: n }, () => 'bcdfghjklmnpqrstvwxz2456789'[Math.floor(random() * 27)]).join('');
const HASHES = new Map<string, string>();
const hashOf = (app: string): string => HASHES.get(app) ?? HASHES.set(app, letters(9)).get(app)!;

const scope = self as unknown as { postMessage(m: unknown, t: Transferable[]): void; onmessage: (e: MessageEvent<Request>) => void; name: string };
const options = new URLSearchParams(scope.name);
const [nodes, perNode] = (options.get('synthetic') ?? '5x40').split('x').map(Number);
const rate = Number(options.get('rate') ?? 20);
const failing = Number(options.get('failing') ?? 1.2) / 100;

const rows = new Rows();
const outbox = new Outbox(rows, (message, transfer) => scope.postMessage(message, transfer));
const pods: PodRow[] = [];
const nodeName = (i: number): string => `node-${i}`;
const now = (): number => Math.floor(Date.now() / 1000);

function makePod(node: string): PodRow {
  const namespace = random() < 0.12 ? 'kube-system' : pick(NAMESPACES);
  const app = namespace === 'kube-system' ? pick(['coredns', 'kube-proxy', 'cni']) : pick(APPS);
  const pod: PodRow = {
    name: `${app}-${hashOf(app)}-${letters(5)}`, namespace, node, owner: `Deployment/${app}`,
    labels: `app=${app},pod-template-hash=${hashOf(app)},tier=${pick(['front', 'back'])}`,
    created: now() - Math.floor(random() ** 3 * 3e6), cpu: pick([50, 100, 250, 500]), memory: pick([64, 128, 256, 512]) * 1024,
    state: State.ready, text: 'Running', containers: random() < 0.25 ? 2 : 1, ready: 0, restarts: random() < 0.06 ? Math.floor(random() * 9) : 0,
    since: now() - Math.floor(random() * 1e5), cells: 0, failingUntil: 0, latest: 0, crash: '',
  };
  // Most failing Pods are in a few workloads.
  const r = Math.imul(app.length * 7 + namespace.length * 13, 31) % 9 === 0 ? random() / 4 : random() * 1.3;
  setState(pod, r < failing ? State.failing : r < failing * 1.7 ? State.unready : r < failing * 2.2 ? State.pending : r < failing * 2.2 + 0.03 ? State.succeeded : r < failing * 2.6 + 0.03 ? State.terminating : State.ready);
  if (!node) setState(pod, State.pending);
  return pod;
}

function setState(pod: PodRow, state: State): void {
  pod.state = state;
  pod.since = now();
  pod.ready = state === State.ready ? pod.containers : 0;
  pod.text = state === State.failing ? pick(TROUBLE) : state === State.pending ? (pod.node ? 'ContainerCreating' : 'Pending')
    : state === State.succeeded ? 'Completed' : state === State.terminating ? 'Terminating' : 'Running';
  if (state === State.failing) pod.restarts++;
  pod.cells = 0;
  for (let i = 0; i < pod.containers; i++) pod.cells |= (i === 0 ? state : state === State.unready ? State.ready : state) << (4 * i);
}

function begin(): void {
  rows.reset();
  for (let i = 0; i < nodes; i++) {
    const lost = nodes > 3 && i % 997 === 3 && options.get('lost') !== '0';
    rows.setNode({
      name: nodeName(i), ready: lost ? 'Unknown' : 'True', since: now() - 260, created: now() - 8e5, pressure: [], unschedulable: nodes > 20 && i % 41 === 7,
      labels: { 'topology.kubernetes.io/zone': `zone-${'abc'[i % 3]}`, 'node.kubernetes.io/pool': pick(['general', 'general', 'compute', 'memory']), 'kubernetes.io/hostname': nodeName(i) },
      pods: 110, cpu: 16000, memory: 64 * 2 ** 20, version: 'v1.37.2',
    });
    const load = Math.round(perNode * (0.55 + 0.75 * random()));
    for (let k = 0; k < load; k++) pods.push(makePod(nodeName(i)));
  }
  for (let k = 0; k < Math.min(40, Math.ceil(pods.length * failing * 0.3)); k++) pods.push(makePod(''));
  for (const pod of pods) {
    pod.since = now() - 60 - Math.floor(random() * 1e5);
    rows.setPod(pod, 0);
  }
  rows.sync();
  outbox.status({ phase: 'live', text: '', since: Date.now() });
  outbox.changed(false);
}

/** One change: usually a Pod enters its next state, sometimes one is deleted and another created. */
function change(): void {
  const i = Math.floor(random() * pods.length);
  const pod = pods[i];
  if (pod.state === State.terminating || random() < 0.1) {
    rows.deletePod(`${pod.namespace}/${pod.name}`, performance.now());
    pods[i] = makePod(nodes ? nodeName(Math.floor(random() * nodes)) : '');
    setState(pods[i], State.pending);
    rows.setPod(pods[i], performance.now());
    return;
  }
  if (pod.state === State.pending && !pod.node && random() < 0.7) pod.node = nodeName(Math.floor(random() * nodes));
  else if (!pod.node) return;
  setState(pod, pod.state === State.pending ? State.unready : pod.state === State.ready && random() < failing * 2 ? State.failing : pod.state === State.ready && random() < 0.1 ? State.terminating : State.ready);
  rows.setPod(pod, performance.now());
}

let owed = 0;
let last = performance.now();
scope.onmessage = ({ data }) => {
  if (data.kind === 'applied') return outbox.applied(true);
  if (data.kind !== 'open' || pods.length) return;
  if (options.get('denied')) {
    outbox.status({ phase: 'denied', text: 'you may not list pods in all namespaces', since: Date.now() });
    return;
  }
  begin();
  setInterval(() => {
    const at = performance.now();
    owed += ((at - last) / 1000) * rate;
    last = at;
    if (owed < 1 || pods.length === 0) return;
    for (; owed >= 1; owed--) change();
    outbox.changed(true);
  }, 10);
};
