// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Converts API objects to rows. */

import type { NodeRow } from './protocol';
import { quantity } from './quantity';
import type { PodRow } from './rows';
import { controllerOf, describe, seconds, type Condition, type Pod } from './state';

export interface Node {
  metadata: { name: string; labels?: Record<string, string>; creationTimestamp?: string };
  spec?: { unschedulable?: boolean };
  status?: { allocatable?: Record<string, string>; nodeInfo?: { kubeletVersion?: string }; conditions?: Condition[] };
}

export function podRow(pod: Pod): PodRow {
  const { metadata, spec = {} } = pod;
  let cpu = 0;
  let memory = 0;
  for (const c of spec.containers ?? []) {
    const requests = c.resources?.requests;
    if (!requests) continue;
    cpu += quantity(requests.cpu) * 1000;
    memory += quantity(requests.memory) / 1024;
  }
  // Named one by one: a spread takes longer than all else here.
  const { state, text, failingUntil, latest, crash, containers, ready, restarts, since, cells } = describe(pod);
  return {
    state, text, failingUntil, latest, crash, containers, ready, restarts, since, cells,
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    node: spec.nodeName ?? '',
    owner: ownerOf(metadata),
    labels: labelText(metadata.labels),
    created: seconds(metadata.creationTimestamp),
    cpu: Math.round(cpu),
    memory: Math.round(memory),
  };
}

/** `Kind/name` of the owner; for a ReplicaSet of a Deployment, the Deployment. */
function ownerOf(metadata: Pod['metadata']): string {
  const owner = controllerOf(metadata.ownerReferences);
  if (!owner) return '';
  const hash = metadata.labels?.['pod-template-hash'];
  if (owner.kind === 'ReplicaSet' && hash && owner.name.endsWith(`-${hash}`)) {
    return `Deployment/${owner.name.slice(0, -hash.length - 1)}`;
  }
  return `${owner.kind}/${owner.name}`;
}

/** Labels that only number the Pods of an owner: without them these Pods share one string. */
const INDEX_LABELS = new Set(['statefulset.kubernetes.io/pod-name', 'apps.kubernetes.io/pod-index', 'batch.kubernetes.io/job-completion-index']);

function labelText(labels: Record<string, string> | undefined): string {
  let text = '';
  let last = '';
  for (const key in labels) {
    if (INDEX_LABELS.has(key)) continue;
    // An API server writes them sorted.
    if (key < last) return Object.keys(labels).filter((one) => !INDEX_LABELS.has(one)).sort().map((one) => `${one}=${labels[one]}`).join(',');
    text = text ? `${text},${key}=${labels[key]}` : `${key}=${labels[key]}`;
    last = key;
  }
  return text;
}

/** The conditions that say, if they are True, that a Node has a problem, as in the gateway's findings: True is good news of others, such as EtcdIsVoter. */
const PROBLEMS = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable'];

export function nodeRow(node: Node): NodeRow {
  const { metadata, spec = {}, status = {} } = node;
  const ready = status.conditions?.find((c) => c.type === 'Ready');
  const pressure = (status.conditions ?? []).filter((c) => PROBLEMS.includes(c.type) && c.status === 'True');
  const allocatable = status.allocatable ?? {};
  return {
    name: metadata.name,
    labels: metadata.labels ?? {},
    ready: (ready?.status as NodeRow['ready']) ?? 'Unknown',
    since: Math.min(...(ready?.status === 'True' && pressure.length ? pressure : [ready]).map((c) => seconds(c?.lastTransitionTime))),
    created: seconds(metadata.creationTimestamp),
    pressure: pressure.map((c) => c.type),
    unschedulable: spec.unschedulable ?? false,
    pods: quantity(allocatable.pods),
    cpu: Math.round(quantity(allocatable.cpu) * 1000),
    memory: Math.round(quantity(allocatable.memory) / 1024),
    version: status.nodeInfo?.kubeletVersion ?? '',
  };
}
