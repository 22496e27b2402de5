// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What the Pods of a Node request, and their limits, of what it can allocate. */

import { cpuText, memoryText, quantity } from '../data/quantity';
import { useLists, within } from './load';
import type { Pod, PodSpec } from './objects';
import { Lack, Section } from './parts';
import { builtIn } from './places';

type Kind = 'requests' | 'limits';

/** What a Pod requests of a resource, as the scheduler counts: its containers together, or the largest init container, and the overhead. */
export function usedBy({ containers = [], initContainers = [], overhead = {} }: PodSpec, kind: Kind, resource: string): number {
  const of = (c: { resources?: Partial<Record<Kind, Record<string, string>>> }): number => quantity(c.resources?.[kind]?.[resource]);
  let together = containers.reduce((sum, c) => sum + of(c), 0);
  let sidecars = 0;
  let most = 0;
  for (const c of initContainers) {
    if (c.restartPolicy === 'Always') {
      sidecars += of(c);
      most = Math.max(most, sidecars);
    } else most = Math.max(most, sidecars + of(c));
  }
  together += sidecars;
  const used = Math.max(together, most);
  return used || kind === 'requests' ? used + quantity(overhead[resource]) : 0;
}

/** A resource of a Node in numbers. */
export interface Allocation {
  resource: string;
  allocatable: number;
  requests: number;
  limits: number;
}

/** The resources that a Node can allocate, those that every Node has first. Pods that have ended use nothing. */
export function allocations(allocatable: Record<string, string>, pods: Pod[]): Allocation[] {
  const running = pods.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed');
  const first = ['cpu', 'memory', 'ephemeral-storage'];
  const rank = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length);
  const sum = (kind: Kind, resource: string): number => running.reduce((n, { spec = {} }) => n + usedBy(spec, kind, resource), 0);
  return Object.entries(allocatable)
    .filter(([resource, value]) => resource !== 'pods' && (first.includes(resource) || quantity(value) > 0))
    .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map(([resource, value]) => ({ resource, allocatable: quantity(value), requests: sum('requests', resource), limits: sum('limits', resource) }));
}

const amount = (resource: string, n: number): string =>
  n === 0 ? '0' : resource === 'cpu' ? cpuText(1000 * n) : /memory|storage|hugepages/.test(resource) ? memoryText(Math.round(n / 1024)) : String(n);

const FIELDS = ['status.phase', 'spec.overhead', ...['containers', 'initContainers'].flatMap((list) => [`spec.${list}[*].resources`, `spec.${list}[*].restartPolicy`])].join();

export function Allocations({ node, allocatable, at, version }: { node: string; allocatable: Record<string, string>; at: string; version: unknown }) {
  const { pods } = useLists<Pod>({ pods: within(builtIn('Pod'), '', { where: `spec.nodeName=${node}`, fields: FIELDS }) }, { at, version, every: 15_000 });
  const share = (n: number, of: number): string => (of ? `${Math.round((100 * n) / of)} %` : '');
  return (
    <Section title="Allocated">
      {pods && !pods.error ? (
        <table class="allocated">
          <thead><tr><th scope="col">Resource</th><th scope="col">Requests</th><th scope="col">Limits</th><th scope="col">Allocatable</th></tr></thead>
          <tbody>
            {allocations(allocatable, pods.items).map(({ resource, allocatable: of, requests, limits }) => (
              <tr key={resource}>
                <th scope="row">{resource}</th>
                <td>{amount(resource, requests)} <span class="muted">{share(requests, of)}</span></td>
                <td>{amount(resource, limits)} <span class="muted">{share(limits, of)}</span></td>
                <td>{amount(resource, of)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : <Lack of={pods} noun="Its Pods" />}
    </Section>
  );
}
