// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The state of a Pod. The text is that of kubectl's STATUS column, derived as
 * kubectl derives it. The state is one byte and selects the shape and the colour
 * on the board.
 */

import { offset, type ManagedField } from './aligned';
import { ends, endWords, failingUntil, type Termination } from './crash';

/** The states of a block. `none` is an empty slot, `gone` the ghost of a deleted Pod. */
export const State = {
  none: 0, ready: 1, unready: 2, pending: 3, failing: 4, succeeded: 5, terminating: 6, unknown: 7, gone: 8,
} as const;
export type State = (typeof State)[keyof typeof State];

/** The states of Pods, the most urgent first: the order of the legend. */
export const STATES = ['failing', 'unknown', 'unready', 'pending', 'terminating', 'ready', 'succeeded'] as const;
export type StateName = (typeof STATES)[number];

export interface ContainerStatus {
  name?: string;
  ready?: boolean;
  started?: boolean;
  restartCount?: number;
  state?: {
    running?: { startedAt?: string };
    waiting?: { reason?: string; message?: string };
    terminated?: Termination;
  };
  lastState?: { terminated?: Termination };
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Pod {
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: { kind: string; name: string; apiVersion?: string; controller?: boolean; uid?: string }[];
    creationTimestamp?: string;
    deletionTimestamp?: string;
    deletionGracePeriodSeconds?: number;
    finalizers?: string[];
    managedFields?: ManagedField[];
  };
  spec?: {
    nodeName?: string;
    containers?: { name?: string; image?: string; resources?: { requests?: Record<string, string> } }[];
    initContainers?: { name?: string; restartPolicy?: string }[];
  };
  status?: {
    phase?: string;
    reason?: string;
    message?: string;
    startTime?: string;
    conditions?: Condition[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
  };
}

/** The result of `describe`. */
export interface Described {
  state: State;
  /** As in kubectl's STATUS column. */
  text: string;
  /** While a Pod runs after a crash: until when it counts as failing, in seconds since 1970; otherwise 0. */
  failingUntil: number;
  /** Then also the latest time that its Node wrote; otherwise 0. */
  latest: number;
  /** How the container that crashed last ended, such as `Error, exit code 1`; empty without a crash. */
  crash: string;
  /** The number of containers, and of ready ones, as in kubectl's READY column. */
  containers: number;
  ready: number;
  restarts: number;
  /** When it came into this state, in seconds since 1970; 0 if unknown. */
  since: number;
  /** The states of the first seven containers, four bits each, the first one lowest; and FAILED. */
  cells: number;
}

/** The phase is Failed: no container runs again. */
export const FAILED = 1 << 28;

const conditionTrue = (conditions: Condition[] | undefined, type: string): boolean =>
  conditions?.find((c) => c.type === type)?.status === 'True';

const ended = (t: { reason?: string; signal?: number; exitCode?: number }): string =>
  t.reason || (t.signal ? `Signal:${t.signal}` : `ExitCode:${t.exitCode ?? 0}`);

/** The controller among owners, or the first of them without one. */
export const controllerOf = <T extends { controller?: boolean }>(owners: T[] | undefined): T | undefined => owners?.find((o) => o.controller) ?? owners?.[0];

/** Seconds since 1970 of an RFC 3339 time; 0 for none. */
export function seconds(time: string | undefined): number {
  if (!time) return 0;
  // As an API server writes it.
  if (time.length !== 20 || time[4] !== '-' || time[10] !== 'T' || time[19] !== 'Z') return Math.floor(Date.parse(time) / 1000) || 0;
  const two = (at: number): number => time.charCodeAt(at) * 10 + time.charCodeAt(at + 1) - 528;
  return Date.UTC(two(0) * 100 + two(2), two(5) - 1, two(8), two(11), two(14), two(17)) / 1000;
}

/** Derives the state of a Pod from its status, as kubectl does. */
export function describe(pod: Pod): Described {
  const { status = {}, spec = {}, metadata } = pod;
  const inits = spec.initContainers ?? [];
  const sidecars = new Set(inits.filter((c) => c.restartPolicy === 'Always').map((c) => c.name));
  let text = status.reason || status.phase || 'Unknown';
  if (status.conditions?.some((c) => c.type === 'PodScheduled' && c.reason === 'SchedulingGated')) text = 'SchedulingGated';

  let ready = 0;
  let restarts = 0;
  let sidecarRestarts = 0;
  let initializing = false;
  for (const [i, c] of (status.initContainerStatuses ?? []).entries()) {
    const sidecar = sidecars.has(c.name);
    restarts += c.restartCount ?? 0;
    if (sidecar) sidecarRestarts += c.restartCount ?? 0;
    const { terminated, waiting } = c.state ?? {};
    if (terminated && !terminated.exitCode && !terminated.signal) continue;
    if (sidecar && c.started) {
      if (c.ready) ready++;
      continue;
    }
    if (terminated) text = `Init:${ended(terminated)}`;
    else if (waiting?.reason && waiting.reason !== 'PodInitializing') text = `Init:${waiting.reason}`;
    else text = `Init:${i}/${inits.length}`;
    initializing = true;
    break;
  }

  const statuses = status.containerStatuses ?? [];
  if (!initializing || conditionTrue(status.conditions, 'Initialized')) {
    restarts = sidecarRestarts;
    let running = false;
    for (let i = statuses.length - 1; i >= 0; i--) {
      const c = statuses[i];
      const { waiting, terminated } = c.state ?? {};
      restarts += c.restartCount ?? 0;
      if (waiting?.reason) text = waiting.reason;
      else if (terminated) text = ended(terminated);
      else if (c.ready && c.state?.running) {
        running = true;
        ready++;
      }
    }
    if (text === 'Completed' && running) text = conditionTrue(status.conditions, 'Ready') ? 'Running' : 'NotReady';
  }

  const over = status.phase === 'Succeeded' || status.phase === 'Failed';
  if (metadata.deletionTimestamp && status.reason === 'NodeLost') text = 'Unknown';
  else if (metadata.deletionTimestamp && !over) text = 'Terminating';

  // The text of one that has ended is its last status, but a finalizer may hold it.
  const state = metadata.deletionTimestamp && over && text !== 'Unknown' ? State.terminating : stateOf(text, status.phase, conditionTrue(status.conditions, 'Ready'));
  const [crash] = state === State.failing || state === State.ready || state === State.unready ? ends(pod) : [];
  const failing = state === State.ready || state === State.unready ? failingUntil(pod) : { until: 0, latest: 0 };
  return {
    state, text, ready, restarts,
    failingUntil: failing.until, latest: failing.until && failing.latest,
    crash: crash ? endWords(crash.end) : '',
    containers: (spec.containers?.length ?? statuses.length) + sidecars.size,
    since: since(pod, state),
    cells: cellsOf(statuses) | (status.phase === 'Failed' ? FAILED : 0),
  };
}

/** The state of a Pod at a moment, in seconds since 1970. */
export const stateAt = ({ state, failingUntil: until }: Pick<Described, 'state' | 'failingUntil'>, now: number): State => (until > now ? State.failing : state);

const WAITING = /^(Pending|ContainerCreating|PodInitializing|SchedulingGated|Init:\d+\/\d+|Init:PodInitializing|Init:ContainerCreating|Unschedulable)$/;

function stateOf(text: string, phase: string | undefined, isReady: boolean): State {
  if (text === 'Terminating') return State.terminating;
  if (text === 'Unknown') return State.unknown;
  if (phase === 'Succeeded') return State.succeeded;
  if (WAITING.test(text)) return State.pending;
  if (text === 'Running') return isReady ? State.ready : State.unready;
  if (text === 'NotReady' || text === 'Completed') return State.unready;
  return State.failing;
}

/** When the Pod came into its state: the newest timestamp that can explain it. */
function since(pod: Pod, state: State): number {
  const { metadata, status = {} } = pod;
  // Since the deletion was requested, or the last minute of a longer grace period, which it may take.
  if (state === State.terminating) return seconds(metadata.deletionTimestamp) - Math.min(60, metadata.deletionGracePeriodSeconds ?? 0);
  let at = 0;
  if (state === State.ready || state === State.unready || state === State.failing) {
    at = seconds(status.conditions?.find((c) => c.type === 'Ready')?.lastTransitionTime);
  } else if (state === State.succeeded) {
    for (const c of status.containerStatuses ?? []) at = Math.max(at, seconds(c.state?.terminated?.finishedAt));
  }
  return at ? at + offset(pod) : seconds(metadata.creationTimestamp);
}

function cellsOf(statuses: ContainerStatus[]): number {
  let cells = 0;
  for (let i = 0; i < statuses.length && i < 7; i++) cells |= containerState(statuses[i]) << (4 * i);
  return cells;
}

/** The state of a container. */
export function containerState(c: ContainerStatus): State {
  const { running, waiting, terminated } = c.state ?? {};
  if (running) return c.ready ? State.ready : State.unready;
  if (terminated) return terminated.exitCode || terminated.signal ? State.failing : State.succeeded;
  if (waiting?.reason && !WAITING.test(waiting.reason)) return State.failing;
  return State.pending;
}
