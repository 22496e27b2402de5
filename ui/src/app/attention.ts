// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What needs attention: unhealthy Pods grouped by owner and reason, unhealthy Nodes, and what else the gateway finds; the most urgent first. */

import { stateName } from '../board/palette';
import type { Cluster } from '../data/cluster';
import type { Scope } from '../data/protocol';
import { count } from '../data/quantity';
import { FAILED, seconds, State, type StateName } from '../data/state';
import type { Failing } from './failing';

/** A Pod that is pending, not ready or terminating is listed after this many seconds, and one that is not scheduled. */
const minAge = 60;
const minUnscheduledAge = 10;
/** Of how many Pods of an entry the history is asked since when they fail. */
const maxAsked = 3;

export interface Need {
  /** The workload, or the Pod if it has no owner. Entries with different reasons share it. */
  of: string;
  /** The workload and a number. Without the reason: an entry whose reason changes remains the same element. */
  key: string;
  state: StateName;
  reason: string;
  /** How the container that crashed last ended, such as `Error, exit code 1`; empty without a crash. */
  crash: string;
  /** The workload, or the Pod if it has no owner. */
  title: string;
  namespace: string;
  rows: number[];
  /** When the first of these Pods came into this state, in seconds since 1970. */
  since: number;
}

export interface NodeNeed {
  name: string;
  words: string;
  since: number;
}

/** The order of reasons; all others rank 3. */
const RANK: Record<string, number> = {
  OOMKilled: 0, CrashLoopBackOff: 1, Error: 2, 'Init:CrashLoopBackOff': 2, 'Init:Error': 2, ImagePullBackOff: 4, ErrImagePull: 4, Evicted: 6,
};
const STATE_RANK: Record<string, number> = { failing: 0, unknown: 10, pending: 20, unready: 30, terminating: 40 };
const rank = (need: Need): number => STATE_RANK[need.state] + (need.state === 'failing' ? (RANK[need.reason] ?? 3) : 0);

/**
 * Groups the unhealthy Pods of a cluster. `now` is in seconds since 1970. `found`: the gateway's findings have the Jobs that failed,
 * which decide whether their Pods may fail.
 */
export function needsOf(cluster: Cluster, look: Uint8Array, now: number, found = false): Need[] {
  const groups = new Map<string, Need>();
  for (let row = 0; row < cluster.length; row++) {
    const state = look[row];
    if (state === State.none || state === State.ready || state === State.succeeded || state === State.gone) continue;
    if (state !== State.failing && state !== State.unknown && now - cluster.since[row] < patience(cluster, row)) continue;
    if (state === State.unknown && cluster.state[row] !== State.unknown) continue;
    const title = cluster.strings[cluster.owner[row]];
    if (found && state === State.failing && cluster.cells[row] & FAILED && title.startsWith('Job/')) continue;
    const of = title ? `${cluster.strings[cluster.namespace[row]]}/${title}` : `Pod ${cluster.keyOf(row)}`;
    const reason = reasonOf(cluster, row, state);
    const crash = state === State.failing ? cluster.strings[cluster.crash[row]] : '';
    // A Pod that keeps crashing changes its status with each restart, and one that is deleted when its containers end.
    const group = `${crash ? 'crash' : state === State.terminating ? reason : cluster.text[row]} ${of}`;
    const need = groups.get(group);
    if (need) {
      if ((RANK[reason] ?? 3) < (RANK[need.reason] ?? 3)) need.reason = reason;
      need.rows.push(row);
      need.since = Math.min(need.since, cluster.since[row]);
      continue;
    }
    groups.set(group, {
      of, key: of, state: stateName(state), reason, crash, title: title ? title.slice(title.indexOf('/') + 1) : cluster.names[row],
      namespace: cluster.strings[cluster.namespace[row]], rows: [row], since: cluster.since[row],
    });
  }
  const needs = [...groups.values()].sort((a, b) => rank(a) - rank(b) || b.rows.length - a.rows.length || compare(a.key, b.key) || compare(a.reason, b.reason));
  const seen = new Map<string, number>();
  for (const need of needs) {
    const n = seen.get(need.key) ?? 0;
    seen.set(need.key, n + 1);
    need.key = `${need.key} ${n}`;
  }
  return needs;
}

/** For how many seconds a Pod may be in its state. The scheduler decides at once; a Pod that gates hold back is not for it yet. */
const patience = (cluster: Cluster, row: number): number =>
  cluster.strings[cluster.text[row]] === 'Pending' && !cluster.nodeName(row) ? minUnscheduledAge : minAge;

/**
 * Says that the list is empty, and of what. Pods that were not listed because they are new count as not yet ready. `found`: the gateway
 * has looked at what is not on the board, too.
 */
export function healthyWords(cluster: Cluster, { nodes, namespaces }: Pick<Scope, 'nodes' | 'namespaces'> = { nodes: null, namespaces: null }, found = false): string {
  const counts = cluster.shownCounts();
  const late = counts[State.unready] + counts[State.pending] + counts[State.terminating];
  const pods = `${count(cluster.pods, 'Pod')}${namespaces ? ` in ${count(namespaces.length, 'namespace')}` : ''}`;
  const of = nodes ? pods : `${count(cluster.nodes.size, 'Node')} and ${pods}`;
  const words = late ? `None of ${of} needs attention yet; ${late === 1 ? '1 Pod is' : `${late} Pods are`} starting or ending.` : `All healthy: ${of}.`;
  const unchecked = nodes ? (found ? 'Nodes are' : 'Nodes, and workloads without Pods, are') : found ? '' : 'Workloads without Pods are';
  return unchecked ? `${words} ${unchecked} not checked.` : words;
}

/** How much later than the one before a Pod may fail, in seconds, to fail since the same time: as in the gateway's findings. */
const maxApart = 60;

/** How many of the Pods that are so since `times` are so only since a later time than the first, and since when; null if they are alike. */
export function othersOf(times: number[]): { others: number; since: number } | null {
  const sorted = [...times].sort((a, b) => a - b);
  const first = sorted.findIndex((time, i) => i > 0 && time - sorted[i - 1] > maxApart);
  return first < 0 ? null : { others: sorted.length - first, since: sorted[first] };
}

/**
 * Since when the first Pod of an entry fails, in seconds since 1970, and `from` which answer of the history. `sinceOf` returns what the
 * status of a row says, which is since when it is not ready; `ask` what the history knows of it, if it does, which counts also if it is
 * later. The Pods that are not asked are those that are so for the shortest time. One that terminates does so since the first request.
 */
export function failingSince({ rows, since, state }: Need, sinceOf: (row: number) => number, ask: (row: number) => Failing | undefined): { since: number; from?: Failing } {
  if (state !== 'failing' && state !== 'terminating') return { since };
  const asked = rows.toSorted((a, b) => sinceOf(a) - sinceOf(b)).slice(0, maxAsked);
  if (state === 'terminating') return { since: Math.min(since, ...asked.map((row) => seconds(ask(row)?.finding?.since) || since)) };
  let first: { since: number; from?: Failing } | undefined;
  for (const row of asked) {
    const answer = ask(row);
    const at = answer?.failing ? seconds(answer.since) : 0;
    const one = at && (answer!.sinceKnown || at < sinceOf(row)) ? { since: at, from: answer } : { since: sinceOf(row) };
    if (!first || one.since < first.since) first = one;
  }
  return first!;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function reasonOf(cluster: Cluster, row: number, state: number): string {
  if (state === State.terminating) return 'Terminating';
  const text = cluster.strings[cluster.text[row]];
  if (state === State.failing && cluster.settled[row] !== State.failing) return `${text} after a crash`;
  if (text === 'Running') return 'not ready';
  return text === 'Pending' && !cluster.nodeName(row) ? 'Pending, not scheduled' : text;
}

/** Unhealthy Nodes, the longest first. */
export function nodeNeeds(cluster: Cluster): NodeNeed[] {
  const out: NodeNeed[] = [];
  for (const { name, row } of cluster.nodes.values()) {
    if (!row) continue;
    if (row.ready !== 'True') out.push({ name, words: row.ready === 'Unknown' ? 'NotReady: kubelet stopped posting node status' : 'NotReady', since: row.since });
    else if (row.pressure.length) out.push({ name, words: row.pressure.join(', '), since: row.since });
  }
  return out.sort((a, b) => a.since - b.since);
}

/** An item of /watchkeeper/v1/findings. */
export interface Finding {
  rule: string;
  severity: 'critical' | 'warning' | 'info';
  kind: string;
  namespace?: string;
  name: string;
  path?: string;
  /** One line without the subject, in the words of `watchkeeper diagnose`. */
  title: string;
  messages?: string[];
  since?: string;
  sinceKnown?: boolean;
  notBefore?: string;
  /** How many of the objects fail only since `othersSince`. */
  others?: number;
  othersSince?: string;
  touches: number;
  objects: { kind: string; name: string }[];
}

/** The rules about Pods. */
const OF_PODS = new Set(['crash', 'image', 'start', 'creating', 'unscheduled', 'not-ready', 'pod-failed']);
const isOfPods = ({ rule, objects }: Finding): boolean => OF_PODS.has(rule) || (rule === 'deletion' && objects.every((one) => one.kind === 'Pod'));

/**
 * Leaves out what the board shows, what needs no attention, and that the API server does not answer, which the page tells otherwise.
 * `board`: what is on the board; null if it shows another moment.
 */
export const beside = (all: Finding[], board: Pick<Scope, 'nodes' | 'pods'> | null = { nodes: null }): Finding[] =>
  all.filter((one) => {
    if (one.severity === 'info' || (one.rule === 'unobserved' && one.kind !== 'Recording')) return false;
    if (!board) return true;
    if (one.rule === 'node') return board.nodes !== null;
    const without = board.pods?.namespaces;
    return !isOfPods(one) || (without !== undefined && (without.length === 0 || without.includes(one.namespace ?? '')));
  });

/** An entry of the list about Pods, or a finding about something else, and whether it is critical. */
export type Ranked = { critical: boolean; place: number } & ({ need: Need } | { finding: Finding });

/**
 * The entries of the list, the critical ones first, in the order of the gateway's findings: `all` has those about Pods, too, which say how
 * severe an entry is. One of which there is none is critical if its Pods fail.
 */
export function ranked(cluster: Cluster, needs: Need[], found: Finding[], all: Finding[]): Ranked[] {
  const places = new Map<string, number>();
  for (const [place, one] of all.entries()) {
    if (isOfPods(one)) for (const { kind, name } of one.objects) if (kind === 'Pod' && !places.has(`${one.namespace}/${name}`)) places.set(`${one.namespace}/${name}`, place);
  }
  const placeOf = ({ rows }: Need): number => Math.min(...rows.map((row) => places.get(cluster.keyOf(row)) ?? Infinity));
  return [
    ...found.map((finding) => ({ finding, critical: finding.severity === 'critical', place: all.indexOf(finding) })),
    ...needs.map((need) => {
      const place = placeOf(need);
      return { need, critical: place < Infinity ? all[place].severity === 'critical' : need.state === 'failing', place };
    }),
  ].sort((a, b) => Number(b.critical) - Number(a.critical) || (a.place === b.place ? 0 : a.place - b.place));
}
