// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The columns of Nodes and Pods that the board requests, and the objects that rows of them stand for. */

import type { Row } from '@watchkeeper/informer';
import { behind, MIRROR } from './aligned';
import { podRow, type Node } from './objects';
import type { PodRow } from './rows';
import { seconds, State, type Condition, type ContainerStatus, type Pod } from './state';

/** The columns that each row begins with: namespace, name, UID, resourceVersion. */
const FIRST = 4;

const condition = (type: string, member: string): string => `status.conditions[?(@.type=="${type}")].${member}`;

const CONTAINER = ['ready', 'restartCount', 'state.running', 'state.waiting.reason', 'state.terminated', 'lastState.terminated'];
const INIT_CONTAINER = [...CONTAINER, 'name', 'started'];

export const POD_FIELDS = [
  'metadata.labels', 'metadata.creationTimestamp', 'metadata.deletionTimestamp', 'metadata.deletionGracePeriodSeconds',
  `metadata.annotations['${MIRROR}']`,
  'metadata.ownerReferences[*].kind', 'metadata.ownerReferences[*].name', 'metadata.ownerReferences[*].controller',
  'spec.nodeName', 'spec.containers[*].resources.requests', 'spec.initContainers[*].name', 'spec.initContainers[*].restartPolicy',
  'status.phase', 'status.reason', 'status.startTime',
  condition('PodScheduled', 'reason'), condition('PodScheduled', 'lastTransitionTime'), condition('Initialized', 'status'), condition('Ready', 'status'), condition('Ready', 'lastTransitionTime'),
  ...CONTAINER.map((member) => `status.containerStatuses[*].${member}`), ...INIT_CONTAINER.map((member) => `status.initContainerStatuses[*].${member}`),
];

export const NODE_FIELDS = [
  'metadata.labels', 'metadata.creationTimestamp', 'spec.unschedulable', 'status.allocatable', 'status.nodeInfo.kubeletVersion',
  'status.conditions[*].type', 'status.conditions[*].status', 'status.conditions[*].lastTransitionTime',
];

type Value = string | null | undefined;
/** The values of a path with [*]. */
type Values = unknown[] | null | undefined;

const given = <T>(value: T | null | undefined): T | undefined => value ?? undefined;

/** The Pod of a row, as far as the board needs it. */
export function podOf(row: Row): Pod {
  let at = FIRST;
  const next = (): any => row[at++];
  const labels = given<Record<string, string>>(next());
  const creationTimestamp = given<string>(next());
  const deletionTimestamp = given<string>(next());
  const deletionGracePeriodSeconds = given<number>(next());
  const mirror: Value = next();
  const kinds: Values = next();
  const names: Values = next();
  const controllers: Values = next();
  const nodeName = given<string>(next());
  const requests: Values = next();
  const initNames: Values = next();
  const policies: Values = next();
  const phase = given<string>(next());
  const reason = given<string>(next());
  const startTime = given<string>(next());
  const scheduled: Value = next();
  const scheduledSince: Value = next();
  const initialized: Value = next();
  const ready: Value = next();
  const readySince: Value = next();
  const conditions: Condition[] = [];
  if (scheduled || scheduledSince) conditions.push({ type: 'PodScheduled', status: '', reason: given(scheduled), lastTransitionTime: given(scheduledSince) });
  if (initialized) conditions.push({ type: 'Initialized', status: initialized });
  if (ready) conditions.push({ type: 'Ready', status: ready, lastTransitionTime: given(readySince) });
  return {
    metadata: {
      name: row[1], namespace: given(row[0]), labels, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds,
      annotations: mirror ? { [MIRROR]: mirror } : undefined,
      ownerReferences: kinds?.map((kind, i) => ({ kind: String(kind), name: String(names?.[i]), controller: controllers?.[i] === true })),
    },
    spec: {
      nodeName,
      containers: requests?.map((one) => ({ resources: { requests: given(one as Record<string, string> | null) } })),
      initContainers: initNames?.map((name, i) => ({ name: String(name), restartPolicy: given(policies?.[i] as Value) })),
    },
    status: { phase, reason, startTime, conditions, containerStatuses: statusesOf(row, at), initContainerStatuses: statusesOf(row, at + CONTAINER.length, true) },
  };
}

/** The statuses whose columns begin at an index. */
function statusesOf(row: Row, at: number, init = false): ContainerStatus[] | undefined {
  const [ready, restarts, running, waiting, terminated, last, names, started] = row.slice(at, at + INIT_CONTAINER.length) as Values[];
  return ready?.map((isReady, i) => ({
    name: init ? given(names?.[i] as Value) : undefined,
    started: init && started?.[i] === true,
    ready: isReady === true,
    restartCount: Number(restarts?.[i] ?? 0),
    state: {
      running: given(running?.[i] as object | null),
      waiting: waiting?.[i] ? { reason: waiting[i] as string } : undefined,
      terminated: given(terminated?.[i] as object | null),
    },
    lastState: last?.[i] ? { terminated: last[i] as object } : undefined,
  }));
}

/** Columns that nearly every Pod has its own value in. */
const CREATED = POD_FIELDS.indexOf('metadata.creationTimestamp') + FIRST;
const NODE = POD_FIELDS.indexOf('spec.nodeName') + FIRST;
const AS_MIRROR = POD_FIELDS.findIndex((field) => field.includes(MIRROR)) + FIRST;
const START = POD_FIELDS.indexOf('status.startTime') + FIRST;
const SCHEDULED = POD_FIELDS.indexOf(condition('PodScheduled', 'lastTransitionTime')) + FIRST;
const READY_SINCE = POD_FIELDS.indexOf(condition('Ready', 'lastTransitionTime')) + FIRST;
const RUNNING = POD_FIELDS.indexOf('status.containerStatuses[*].state.running') + FIRST;
/** The others that say something about it. */
const COMMON = [0, ...POD_FIELDS.map((_, i) => i + FIRST)].filter((at) => ![CREATED, NODE, START, SCHEDULED, READY_SINCE, RUNNING].includes(at));

/** The last Pod whose state depends on the time only by when it came into it: one that has not crashed, and is not deleted. */
let last: Row | null = null;
let lastRow: PodRow | null = null;

/**
 * The row of a Pod for the board. In a list, most Pods differ from the one before, such as
 * one of the same Deployment, only in what they are called and in times: a value that is
 * repeated is the same object there (rowsOf).
 */
export function boardRow(row: Row): PodRow {
  if (last && lastRow && isAlike(row, last)) {
    const { state, text, containers, ready, restarts, cells, namespace, owner, labels, cpu, memory } = lastRow;
    const time = (at: number): number => seconds(given(row[at] as Value));
    const created = time(CREATED);
    const since = state === State.pending ? 0 : time(READY_SINCE);
    return {
      state, text, failingUntil: 0, latest: 0, crash: '', containers, ready, restarts, cells, namespace, owner, labels, cpu, memory, created,
      name: row[1], node: (row[NODE] as Value) ?? '', since: since ? since + behind(row[AS_MIRROR] ? 0 : time(START), created, time(SCHEDULED)) : created,
    };
  }
  const pod = podRow(podOf(row));
  const steady = pod.state === State.ready || pod.state === State.unready || pod.state === State.pending;
  last = row;
  lastRow = steady && !pod.crash && !pod.failingUntil ? pod : null;
  return pod;
}

/** Whether two Pods have the same values in common columns, and the same containers run. */
function isAlike(a: Row, b: Row): boolean {
  for (const at of COMMON) if (a[at] !== b[at]) return false;
  const [runA, runB] = [a[RUNNING] as Values, b[RUNNING] as Values];
  if (!runA || !runB) return runA === runB;
  for (let i = 0; i < runA.length || i < runB.length; i++) if (!runA[i] !== !runB[i]) return false;
  return true;
}

/** The Node of a row, as far as the board needs it. */
export function nodeOf(row: Row): Node {
  const [labels, creationTimestamp, unschedulable, allocatable, kubeletVersion, types, states, since] = row.slice(FIRST) as any[];
  return {
    metadata: { name: row[1], labels: given(labels), creationTimestamp: given(creationTimestamp) },
    spec: { unschedulable: given(unschedulable) },
    status: {
      allocatable: given(allocatable), nodeInfo: { kubeletVersion: given(kubeletVersion) },
      conditions: (types as Values)?.map((type, i) => ({ type: String(type), status: String(states?.[i]), lastTransitionTime: given(since?.[i] as Value) })),
    },
  };
}
