// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The columns that a tab begins with, and those that it could have. */

import { getJSON } from '../app/api';
import { collection } from '../kinds/resources';
import { pathsIn } from './path';
import type { Selected } from './reading';

const WORKLOAD = ['spec.replicas', 'status.readyReplicas', 'spec.template.spec.containers[0].image'];
const USUAL: Record<string, string[]> = {
  Deployment: WORKLOAD, StatefulSet: WORKLOAD, ReplicaSet: WORKLOAD,
  DaemonSet: ['status.desiredNumberScheduled', 'status.numberReady', 'spec.template.spec.containers[0].image'],
  Pod: ['status.phase', 'spec.nodeName', 'spec.containers[0].image'],
  Node: ['spec.unschedulable', 'status.conditions[?(@.type=="Ready")].status', 'status.allocatable.cpu', 'status.allocatable.memory'],
  Service: ['spec.type', 'spec.clusterIP', 'spec.ports[0].port'],
  Job: ['spec.parallelism', 'spec.suspend', 'status.succeeded', 'status.failed'],
  CronJob: ['spec.schedule', 'spec.suspend', 'status.lastScheduleTime'],
  HorizontalPodAutoscaler: ['spec.minReplicas', 'spec.maxReplicas', 'status.currentReplicas'],
  PersistentVolumeClaim: ['spec.resources.requests.storage', 'status.phase', 'spec.storageClassName'],
  Namespace: ['status.phase'],
};

export const usualColumns = (kind: string): string[] => USUAL[kind] ?? ['metadata.creationTimestamp'];

/** The paths of the first objects, for suggestions. */
export async function suggested({ resource, namespace, selector }: Selected, signal: AbortSignal): Promise<string[]> {
  const { items } = await getJSON<{ items: unknown[] | null }>(collection(resource, namespace), '', signal, { query: { limit: '5', ...(selector && { labelSelector: selector }) } });
  return [...new Set((items ?? []).flatMap((object) => pathsIn(object)))].filter((path) => !/^(kind|apiVersion)$/.test(path)).sort();
}
