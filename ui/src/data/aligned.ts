// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Times of a status by other clocks than the API server's: none is later than when the status
 * was written, which managedFields say. How much a clock is behind does not show. The gateway
 * does the same (internal/change/clock.go).
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

type Times = { startedAt?: string; finishedAt?: string; lastTransitionTime?: string };

/** What has times that the kubelet writes: states of containers, and conditions that are not a controller's. */
function timed({ containerStatuses = [], initContainerStatuses = [], conditions = [] }: NonNullable<Pod['status']>): Times[] {
  const states = [...containerStatuses, ...initContainerStatuses].flatMap(({ state, lastState }) => [state?.running, state?.terminated, lastState?.terminated]);
  return [...states, ...conditions.filter(({ type }) => type !== 'PodScheduled' && type !== 'DisruptionTarget')].filter((one) => one !== undefined);
}

const FIELDS = ['startedAt', 'finishedAt', 'lastTransitionTime'] as const;

/** By how many seconds the clock of a Pod's Node is ahead, as far as it shows. */
export function ahead({ metadata, status = {} }: Pod): number {
  const at = written(metadata);
  return at && Math.max(0, ...timed(status).flatMap((one) => FIELDS.map((field) => seconds(one[field]) - at)));
}

/** The Pod with the times of its Node moved to the API server's clock; these keep their distances. */
export function aligned(pod: Pod): Pod {
  const by = ahead(pod);
  if (!by) return pod;
  const status = structuredClone(pod.status!);
  for (const one of timed(status)) {
    for (const field of FIELDS) if (one[field]) one[field] = new Date(1000 * (seconds(one[field]) - by)).toISOString();
  }
  return { ...pod, status };
}
