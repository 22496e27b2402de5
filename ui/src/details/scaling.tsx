// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** HorizontalPodAutoscalers and PodDisruptionBudgets. */

import type { Reference, Selector, Thing } from './objects';
import { Facts, ObjectLink, Section, type Props } from './parts';
import { objectPath } from './places';
import { useKnown } from './known';

interface Value {
  type?: string;
  averageUtilization?: number;
  averageValue?: string;
  value?: string;
}

interface Metric {
  name?: string;
  container?: string;
  metric?: { name?: string };
  describedObject?: Reference;
  target?: Value;
  current?: Value;
}

/** One metric: its member is named as its type is, with a small letter. */
type Metrics = { type: string } & Partial<Record<string, Metric | string>>;

export interface HPAObject extends Thing {
  spec?: { scaleTargetRef?: Reference; minReplicas?: number; maxReplicas?: number; metrics?: Metrics[] | null };
  status?: { currentReplicas?: number; desiredReplicas?: number; currentMetrics?: Metrics[] | null; lastScaleTime?: string };
}

const partOf = (metric: Metrics): Metric => (metric[metric.type.charAt(0).toLowerCase() + metric.type.slice(1)] as Metric | undefined) ?? {};

const nameOf = ({ name, container, metric, describedObject }: Metric): string =>
  `${name ?? metric?.name ?? ''}${container ? ` of container ${container}` : ''}${describedObject ? ` of ${describedObject.kind} ${describedObject.name}` : ''}`;

const valueWords = (value: Value | undefined): string => (value?.averageUtilization !== undefined ? `${value.averageUtilization} %` : (value?.averageValue ?? value?.value ?? 'unknown'));

/** What is measured: its name, and the current and the wanted value. */
export function metricsOf({ spec = {}, status = {} }: HPAObject): { name: string; current: string; target: string }[] {
  const now = (status.currentMetrics ?? []).map((metric) => ({ type: metric.type, part: partOf(metric) }));
  return (spec.metrics ?? []).map((metric) => {
    const part = partOf(metric);
    const found = now.find((one) => one.type === metric.type && nameOf(one.part) === nameOf(part));
    // The status has the average, too, of a target that is a utilization, and the other way around.
    const { current } = found?.part ?? {};
    const wanted = part.target?.averageUtilization !== undefined ? { averageUtilization: current?.averageUtilization } : { averageValue: current?.averageValue ?? current?.value };
    return { name: nameOf(part), current: current ? valueWords(wanted) : 'unknown', target: valueWords(part.target) };
  });
}

export function HPA({ object }: Props<HPAObject>) {
  const { metadata, spec = {}, status = {} } = object;
  const known = useKnown();
  const target = spec.scaleTargetRef ?? {};
  const metrics = metricsOf(object);
  return (
    <>
      <Facts facts={[
        ['Scales', <ObjectLink path={objectPath(target.apiVersion ?? '', target.kind ?? '', metadata.namespace ?? '', target.name ?? '', known)} kind={target.kind}>{target.kind} {target.name}</ObjectLink>],
        ['Replicas', `${status.currentReplicas ?? 0}${status.desiredReplicas && status.desiredReplicas !== status.currentReplicas ? ` → ${status.desiredReplicas}` : ''}, from ${spec.minReplicas ?? 1} to ${spec.maxReplicas}`],
      ]} />
      <Section title="Metrics">
        <ul class="sets" aria-label="Metrics">
          {metrics.map(({ name, current, target }) => <li key={name}><b>{name}</b> <span>{current}</span> <span class="muted">of {target}</span></li>)}
        </ul>
        {metrics.length === 0 && <p class="muted small">none</p>}
      </Section>
    </>
  );
}

export interface PDBObject extends Thing {
  spec?: { minAvailable?: number | string; maxUnavailable?: number | string; selector?: Selector };
  status?: { currentHealthy?: number; desiredHealthy?: number; disruptionsAllowed?: number; expectedPods?: number };
}

export function PDB({ object: { spec = {}, status = {} } }: Props<PDBObject>) {
  return (
    <Facts facts={[
      ['Allows', `${status.disruptionsAllowed ?? 0} disruptions now`],
      ['Healthy', `${status.currentHealthy ?? 0} of ${status.expectedPods ?? 0}, at least ${status.desiredHealthy ?? 0}`],
      ['Minimum', spec.minAvailable !== undefined && String(spec.minAvailable)],
      ['Maximum', spec.maxUnavailable !== undefined && `${spec.maxUnavailable} unavailable`],
    ]} />
  );
}
