// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** How far a rollout is, from the status that its controller writes. */

import type { Thing } from './objects';

export interface Workload extends Thing {
  spec?: {
    replicas?: number;
    paused?: boolean;
    selector?: { matchLabels?: Record<string, string> };
    strategy?: { type?: string; rollingUpdate?: { maxSurge?: number | string; maxUnavailable?: number | string } };
    updateStrategy?: { type?: string };
    serviceName?: string;
    template?: { spec?: { containers?: { image?: string }[] } };
    volumeClaimTemplates?: { metadata?: { name?: string } }[];
  };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    updatedReplicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    currentReplicas?: number;
    currentRevision?: string;
    updateRevision?: string;
    desiredNumberScheduled?: number;
    currentNumberScheduled?: number;
    updatedNumberScheduled?: number;
    numberReady?: number;
    numberAvailable?: number;
    numberMisscheduled?: number;
    conditions?: { type: string; status: string; reason?: string }[];
  };
}

/** Numbers of Pods. */
export interface Rollout {
  wanted: number;
  /** That exist. */
  exist: number;
  /** Of the newest template; undefined for a kind without updates. */
  updated: number | undefined;
  ready: number;
  available: number;
  /** That are wanted, and are not available. */
  unavailable: number;
}

/** Reads the numbers of a Deployment, StatefulSet, ReplicaSet or DaemonSet. */
export function rolloutOf({ kind, spec = {}, status = {} }: Workload): Rollout {
  const daemons = kind === 'DaemonSet';
  const wanted = (daemons ? status.desiredNumberScheduled : (spec.replicas ?? 1)) ?? 0;
  const available = (daemons ? status.numberAvailable : status.availableReplicas) ?? 0;
  return {
    wanted,
    exist: (daemons ? status.currentNumberScheduled : status.replicas) ?? 0,
    updated: kind === 'ReplicaSet' || kind === 'ReplicationController' ? undefined : ((daemons ? status.updatedNumberScheduled : status.updatedReplicas) ?? 0),
    ready: (daemons ? status.numberReady : status.readyReplicas) ?? 0,
    available,
    unavailable: Math.max(0, wanted - available),
  };
}

/** A part of the bar, as a share of the larger of the wanted and the existing Pods. */
export interface Part {
  name: 'available' | 'ready' | 'unready' | 'missing';
  from: number;
  width: number;
}

/** The bar: Pods that are available, ready but not available yet, not ready, and those that do not exist. */
export function bar({ wanted, exist, ready, available }: Rollout): Part[] {
  const all = Math.max(wanted, exist);
  const parts: Part[] = [];
  let from = 0;
  for (const [name, n] of [['available', available], ['ready', ready - available], ['unready', exist - Math.max(ready, available)], ['missing', wanted - exist]] as const) {
    if (n <= 0 || all === 0) continue;
    parts.push({ name, from: from / all, width: n / all });
    from += n;
  }
  return parts;
}

/** The numbers in words. */
export function numbers({ wanted, updated, ready, available, unavailable }: Rollout): string {
  return [
    `${wanted} wanted`, ...(updated === undefined ? [] : [`${updated} updated`]), `${ready} ready`, `${available} available`, ...(unavailable ? [`${unavailable} unavailable`] : []),
  ].join(', ');
}

/** What the rollout waits for, as `kubectl rollout status` says it; empty once it is complete. */
export function waitsFor(workload: Workload): string {
  const { kind, metadata, spec = {}, status = {} } = workload;
  const { wanted, exist, updated, available } = rolloutOf(workload);
  if (updated === undefined) return '';
  const { generation } = metadata as { generation?: number };
  if ((status.observedGeneration ?? 0) < (generation ?? 0)) return 'waiting for its controller to see the change';
  if (spec.paused) return 'paused';
  if (status.conditions?.some(({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded')) return 'it exceeded its progress deadline';
  if (updated < wanted) return `${updated} of ${wanted} new Pods have been created`;
  if (kind === 'Deployment' && exist > updated) return `${exist - updated} old ${exist - updated === 1 ? 'Pod is' : 'Pods are'} pending termination`;
  if (available < wanted) return `${available} of ${wanted} updated Pods are available`;
  return '';
}

/** The revision of a ReplicaSet of a Deployment; 0 if it has none. */
export const revisionOf = ({ metadata }: Thing): number => Number(metadata.annotations?.['deployment.kubernetes.io/revision']) || 0;

/** The images of a template, each once. */
export const imagesOf = ({ spec }: Workload): string[] => [...new Set((spec?.template?.spec?.containers ?? []).map(({ image }) => image ?? ''))];

/** Whether an object is the controller of another, or its owner. */
export const owns = (owner: Thing, { metadata }: Thing): boolean => metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) === true;
