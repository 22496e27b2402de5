// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Jobs and CronJobs. */

import { age, count } from '../data/quantity';
import { seconds, type StateName } from '../data/state';
import { clock } from '../time/words';
import { useLists, within } from './load';
import type { Pod, Thing } from './objects';
import { asking, Facts, Lack, POD_FIELDS, Rows, Section, since, type Props } from './parts';
import { builtIn, collectionOf } from './places';
import { owns } from './rollout';
import { Pods } from './workloads';

interface JobObject extends Thing {
  spec?: { completions?: number; parallelism?: number; backoffLimit?: number; suspend?: boolean; activeDeadlineSeconds?: number };
  status?: { active?: number; ready?: number; succeeded?: number; failed?: number; startTime?: string; completionTime?: string; conditions?: { type: string; status: string; lastTransitionTime?: string; reason?: string }[] };
}

interface CronJobObject extends Thing {
  spec?: { schedule?: string; timeZone?: string; suspend?: boolean; concurrencyPolicy?: string };
  status?: { active?: { name?: string }[]; lastScheduleTime?: string; lastSuccessfulTime?: string };
}

/** The state of a Job in words, and when it ended, in seconds since 1970. */
export function jobState({ spec = {}, status = {} }: JobObject): { words: string; state: StateName; ended: number } {
  const ended = (type: string) => status.conditions?.find((c) => c.type === type && c.status === 'True');
  const failed = ended('Failed');
  const complete = ended('Complete');
  if (failed) return { words: `Failed${failed.reason ? `: ${failed.reason}` : ''}`, state: 'failing', ended: seconds(failed.lastTransitionTime) };
  if (complete) return { words: 'Complete', state: 'succeeded', ended: seconds(status.completionTime ?? complete.lastTransitionTime) };
  if (spec.suspend) return { words: 'Suspended', state: 'pending', ended: 0 };
  return { words: 'Running', state: status.failed ? 'unready' : 'ready', ended: 0 };
}

export function Job(props: Props<JobObject>) {
  const { object, now } = props;
  const { metadata, spec = {}, status = {} } = object;
  const { pods } = useLists<Pod>({ pods: within(builtIn('Pod'), metadata.namespace, { labels: `batch.kubernetes.io/controller-uid=${metadata.uid}`, fields: POD_FIELDS }) }, asking(props));
  const { words, state, ended } = jobState(object);
  const began = seconds(status.startTime);
  return (
    <>
      <section class="state"><p class={`words ${state}`}><b>{words}</b></p></section>
      <Facts facts={[
        ['Completions', `${status.succeeded ?? 0} of ${spec.completions ?? spec.parallelism ?? 1}${status.active ? `, ${status.active} active` : ''}`],
        ['Failures', status.failed ? `${count(status.failed, 'Pod')} failed, of at most ${spec.backoffLimit ?? 6} retries` : ''],
        ['Duration', began ? age((ended || now) - began) : ''],
        ['Parallelism', spec.parallelism !== 1 && spec.parallelism],
        ['Deadline', spec.activeDeadlineSeconds && age(spec.activeDeadlineSeconds)],
      ]} />
      <Pods pods={pods && { ...pods, items: pods.items.filter((pod) => owns(object, pod)) }} now={now} />
    </>
  );
}

export function CronJob(props: Props<CronJobObject>) {
  const { object, now } = props;
  const { metadata, spec = {}, status = {} } = object;
  const { jobs } = useLists<JobObject>({ jobs: within(builtIn('Job.batch'), metadata.namespace) }, asking(props));
  const own = (jobs?.items ?? []).filter((job) => owns(object, job)).sort((a, b) => seconds(b.metadata.creationTimestamp) - seconds(a.metadata.creationTimestamp));
  const time = (text?: string) => text && `${clock(1000 * seconds(text))}, ${age(now - seconds(text))} ago`;
  return (
    <>
      <Facts facts={[
        ['Schedule', <code>{spec.schedule}</code>], ['Time zone', spec.timeZone], ['Suspended', spec.suspend && 'yes'], ['Concurrency', spec.concurrencyPolicy],
        ['Active', status.active?.length], ['Last run', time(status.lastScheduleTime) ?? 'never'], ['Last success', time(status.lastSuccessfulTime)],
      ]} />
      <Section title="Last runs">
        <Rows
          label="Last runs"
          rows={own.map((job) => {
            const { words, state, ended } = jobState(job);
            const began = seconds(job.status?.startTime);
            return {
              key: job.metadata.uid ?? job.metadata.name, path: `${collectionOf(builtIn('Job.batch'), metadata.namespace)}/${job.metadata.name}`, name: job.metadata.name, state,
              words: `${words}${began ? ` in ${age((ended || now) - began)}` : ''}, ${since(job.metadata, now)}`,
            };
          })}
        />
        <Lack of={jobs && { ...jobs, items: own }} noun="Jobs" />
      </Section>
    </>
  );
}
