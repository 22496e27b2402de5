// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Crashes of containers: how one ended, and how long a Pod counts as failing after it. */

import { offset } from './aligned';
import { seconds, type ContainerStatus, type Pod } from './state';

/** The kubelet's delay before a restart, in seconds: doubled with each one, up to the maximum. */
const minBackOff = 10;
const maxBackOff = 300;

/** How long a Pod has to be ready after a crash to have recovered, in seconds, if its back-off is shorter. */
const minReady = 60;

/** How a container ended. */
export interface Termination {
  reason?: string;
  exitCode?: number;
  signal?: number;
  message?: string;
  startedAt?: string;
  finishedAt?: string;
}

const failed = (t: Termination | undefined): boolean => !!t && (!!t.exitCode || !!t.signal);

/**
 * Until when a Pod counts as failing although its containers run, in seconds since
 * 1970; 0 if none has crashed. A Pod that keeps crashing is ready between two crashes:
 * it has recovered when it has been ready for its back-off, or a minute. One that does
 * not become ready counts as not ready after that time. `latest` is the latest time that
 * the Node wrote, for one who knows when it was seen: the clock of a Node may be ahead.
 * managedFields, which the board does not read, say when the status was written. One that is
 * behind shows by when it saw the Pod first.
 */
export function failingUntil(pod: Pod): { until: number; latest: number } {
  const { status = {} } = pod;
  const condition = status.conditions?.find((c) => c.type === 'Ready');
  const readySince = condition?.status === 'True' ? seconds(condition.lastTransitionTime) : 0;
  let until = 0;
  let latest = readySince;
  for (const c of containers(status)) {
    if (!c.state?.running || !failed(c.lastState?.terminated)) continue;
    const started = seconds(c.state.running.startedAt);
    latest = Math.max(latest, started);
    const wait = Math.max(minReady, Math.min(maxBackOff, minBackOff * 2 ** ((c.restartCount ?? 1) - 1)));
    // A Pod that becomes ready later has another reason for it.
    const from = readySince > started && readySince <= started + wait ? readySince : started;
    until = Math.max(until, from + wait);
  }
  const by = until && offset(pod);
  return { until: until + by, latest: latest + by };
}

/** How a container ended last that has crashed, or that the kubelet restarts more slowly; undefined if it has not. */
export function lastEnd(c: ContainerStatus): Termination | undefined {
  const { terminated, waiting } = c.state ?? {};
  if (failed(terminated)) return terminated;
  const last = c.lastState?.terminated;
  return failed(last) || waiting?.reason === 'CrashLoopBackOff' ? last : undefined;
}

/** The last end of each container that has crashed, the latest first. */
export function ends({ status = {} }: Pod): { container: ContainerStatus; end: Termination }[] {
  return containers(status)
    .flatMap((container) => {
      const end = lastEnd(container);
      return end ? [{ container, end }] : [];
    })
    .sort((a, b) => seconds(b.end.finishedAt) - seconds(a.end.finishedAt));
}

const containers = (status: NonNullable<Pod['status']>): ContainerStatus[] => [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];

/** An end in words: `Error, exit code 1`. A container that only waits has no exit code. */
export const endWords = ({ reason, exitCode, signal }: Termination): string =>
  [reason, signal ? `signal ${signal}` : exitCode === undefined ? '' : `exit code ${exitCode}`].filter(Boolean).join(', ');

/** The same next to the reason, without naming it again: `exit code 137`. */
export const besideReason = (words: string, reason: string): string => (words.startsWith(`${reason}, `) ? words.slice(reason.length + 2) : words);
