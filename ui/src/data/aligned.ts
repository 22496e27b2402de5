// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Times of a status by other clocks than the API server's: none is later than when the status
 * was written, which managedFields say, and a kubelet has not seen a Pod before it was scheduled.
 * The gateway does the same (internal/explain/change/clock.go).
 */

import { seconds, type Condition, type Pod } from './state';

export interface ManagedField {
  subresource?: string;
  time?: string;
}

interface Meta {
  managedFields?: ManagedField[];
}

/** When the status was last written, in seconds since 1970; 0 if that is not known. */
export const written = ({ managedFields = [] }: Meta): number => Math.max(0, ...managedFields.map((m) => (m.subresource === 'status' ? seconds(m.time) : 0)));

/** Since when a condition has its status, in seconds since 1970. */
export const conditionSince = (metadata: Meta, { lastTransitionTime }: Partial<Condition> = {}): number =>
  Math.min(seconds(lastTransitionTime), written(metadata) || Infinity);

type Times = { startTime?: string; startedAt?: string; finishedAt?: string; lastTransitionTime?: string };

/** What has times that the kubelet writes: the status, states of containers, and conditions that are not a controller's. */
function timed(status: NonNullable<Pod['status']>): Times[] {
  const { containerStatuses = [], initContainerStatuses = [], conditions = [] } = status;
  const states = [...containerStatuses, ...initContainerStatuses].flatMap(({ state, lastState }) => [state?.running, state?.terminated, lastState?.terminated]);
  return [status, ...states, ...conditions.filter(({ type }) => type !== 'PodScheduled' && type !== 'DisruptionTarget')].filter((one) => one !== undefined);
}

const FIELDS = ['startTime', 'startedAt', 'finishedAt', 'lastTransitionTime'] as const;

/** The annotation of a mirror Pod, which is older than its object. */
export const MIRROR = 'kubernetes.io/config.mirror';

/**
 * By how many seconds the clock of a Node was behind, at least, when its kubelet saw a Pod first,
 * 0 for a mirror Pod. The kubelet writes the condition of a Pod that was created with its Node.
 */
export const behind = (first: number, created: number, scheduled: number): number => first && Math.max(0, created - first, scheduled - first);

/** How many seconds later than its Node says something of a Pod was, as far as it shows; negative if the Node's clock is ahead. */
export function offset({ metadata, status = {} }: Pod): number {
  const scheduled = status.conditions?.find(({ type }) => type === 'PodScheduled')?.lastTransitionTime;
  const by = behind(metadata.annotations?.[MIRROR] ? 0 : seconds(status.startTime), seconds(metadata.creationTimestamp), seconds(scheduled));
  const at = written(metadata);
  return at ? Math.min(by, ...timed(status).flatMap((one) => FIELDS.flatMap((field) => (one[field] ? [at - seconds(one[field])] : [])))) : by;
}

/** The Pod with the times of its Node moved to the API server's clock; these keep their distances. */
export function aligned(pod: Pod): Pod {
  const by = offset(pod);
  if (!by) return pod;
  const status = structuredClone(pod.status!);
  for (const one of timed(status)) {
    for (const field of FIELDS) if (one[field]) one[field] = new Date(1000 * (seconds(one[field]) + by)).toISOString();
  }
  return { ...pod, status };
}
