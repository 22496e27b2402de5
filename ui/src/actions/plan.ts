// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What a drain does with which Pod, in which order, and what it did. */

import { count } from '../data/quantity';

export interface NodePod {
  metadata: {
    name: string; namespace: string; uid: string; annotations?: Record<string, string>;
    ownerReferences?: { controller?: boolean; kind: string; name: string }[];
  };
  spec?: { volumes?: { name: string; emptyDir?: unknown }[] };
  status?: { phase?: string };
}

/** What a drain does with the Pods of a Node. */
export interface Plan {
  evicted: NodePod[];
  /** Those of DaemonSets, which would come back, and static Pods, which the kubelet runs by itself. */
  daemons: NodePod[];
  mirrors: NodePod[];
  /** Evicted Pods that nothing makes again, and those with data that is lost. */
  alone: NodePod[];
  withData: NodePod[];
}

const controllerOf = ({ metadata }: NodePod) => metadata.ownerReferences?.find(({ controller }) => controller);
const finished = ({ status }: NodePod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Sorts the Pods of a Node by kubectl's rules. */
export function planOf(pods: NodePod[]): Plan {
  const isMirror = ({ metadata }: NodePod): boolean => metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined;
  const mirrors = pods.filter(isMirror);
  const daemons = pods.filter((pod) => !isMirror(pod) && !finished(pod) && controllerOf(pod)?.kind === 'DaemonSet');
  const evicted = pods.filter((pod) => !mirrors.includes(pod) && !daemons.includes(pod));
  const running = evicted.filter((pod) => !finished(pod));
  return { evicted, daemons, mirrors, alone: running.filter((pod) => !controllerOf(pod)), withData: running.filter(({ spec }) => spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined)) };
}

/** A Pod that is being evicted. */
export interface Eviction {
  pod: NodePod;
  state: 'waiting' | 'asked' | 'refused' | 'evicted' | 'gone' | 'failed';
  /** Why it was refused. */
  reason: string;
  /** When it is asked for again, in milliseconds since 1970. */
  due: number;
}

/** Why the API server refuses: the cause names the PodDisruptionBudget. */
export function reasonOf(body: string): string {
  try {
    const { message, details } = JSON.parse(body) as { message?: string; details?: { causes?: { message?: string }[] } };
    return [message, ...(details?.causes ?? []).map((cause) => cause.message)].filter(Boolean).join(' ');
  } catch {
    return body.slice(0, 300);
  }
}

/** The API server has accepted the eviction, or the Pod is gone. */
export const isEvicted = ({ state }: Eviction): boolean => state === 'evicted' || state === 'gone';

/** What was done, in words. */
export function outcome(node: string, all: Eviction[], stopped: boolean): string {
  const evicted = all.filter(isEvicted).length;
  const failed = all.filter(({ state }) => state === 'failed').length;
  const words = stopped ? `Stopped: ${evicted} of ${count(all.length, 'Pod')} evicted.` : failed ? `${evicted} of ${count(all.length, 'Pod')} evicted; ${failed} cannot be.` : `Drained ${node}: ${count(all.length, 'Pod')} evicted.`;
  return `${words} ${stopped || failed ? node : 'It'} remains cordoned.`;
}
