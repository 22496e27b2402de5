// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What is read for the graph of relations and the tree of owners: which collections, for which kind. */

import { graphOf, idOf, templateOf, type Graph } from './edges';
import { learned, type Known } from './known';
import { list, within, type Wanted } from './load';
import { selectorText, type Selector, type Thing } from './objects';
import { ownersOf, search, type Found, type Owner } from './owned';
import { POD_FIELDS } from './parts';
import { builtIn, kindId } from './places';

const INGRESS = 'Ingress.networking.k8s.io';
const CLAIM = 'PersistentVolumeClaim';
/** What selects Pods. */
const SELECTORS = ['Service', 'NetworkPolicy.networking.k8s.io', 'PodDisruptionBudget.policy'];
const SCALED = ['Deployment.apps', 'StatefulSet.apps', 'DaemonSet.apps'];
/** What has a template of Pods. */
const TEMPLATES = [...SCALED, 'CronJob.batch', 'Job.batch'];
const AROUND = [...SELECTORS, INGRESS, 'HorizontalPodAutoscaler.autoscaling', CLAIM, 'Pod'];

interface Reach {
  /** How many steps are shown to either side. */
  left: number;
  right: number;
  /** The kinds that are listed in its namespace. Its owners are read in any case. */
  kinds: string[];
}

const user = { left: 1, right: 1, kinds: ['Pod', ...TEMPLATES] };
const selector = { left: 1, right: 1, kinds: ['Pod', ...SCALED] };
const REACHES: Record<string, Reach> = {
  Pod: { left: 3, right: 2, kinds: [...SELECTORS, INGRESS, CLAIM] },
  'Deployment.apps': { left: 2, right: 2, kinds: [...AROUND, 'ReplicaSet.apps'] },
  'ReplicaSet.apps': { left: 2, right: 2, kinds: AROUND },
  'StatefulSet.apps': { left: 2, right: 2, kinds: AROUND },
  'DaemonSet.apps': { left: 2, right: 2, kinds: AROUND },
  'Job.batch': { left: 2, right: 2, kinds: ['Pod', CLAIM] },
  'CronJob.batch': { left: 2, right: 2, kinds: ['Job.batch', 'Pod', CLAIM] },
  Service: { left: 1, right: 1, kinds: [INGRESS, 'Pod', ...SCALED] },
  [INGRESS]: { left: 1, right: 2, kinds: ['Service', 'Pod'] },
  'NetworkPolicy.networking.k8s.io': selector,
  'PodDisruptionBudget.policy': selector,
  'HorizontalPodAutoscaler.autoscaling': { left: 1, right: 2, kinds: [] },
  ConfigMap: user,
  Secret: { ...user, kinds: [...user.kinds, INGRESS, 'ServiceAccount'] },
  ServiceAccount: user,
  [CLAIM]: user,
  PersistentVolume: { left: 2, right: 1, kinds: ['Pod'] },
  Node: { left: 1, right: 1, kinds: ['Pod'] },
  'StorageClass.storage.k8s.io': { left: 1, right: 0, kinds: ['PersistentVolume'] },
};
/** Any other kind: its owners, and what it owns. */
const OTHER: Reach = { left: 4, right: 3, kinds: [] };

export const reachOf = ({ apiVersion = '', kind = '' }: Thing): Reach => {
  const id = kindId(apiVersion, kind);
  return Object.hasOwn(REACHES, id) ? REACHES[id] : OTHER;
};

/** Where the objects of a kind are that may be related to one. */
function wantedOf(id: string, object: Thing): Wanted {
  const { kind, metadata, spec = {} } = object;
  const place = builtIn(id);
  const fields = id === 'Pod' ? POD_FIELDS : undefined;
  if (kind === 'Node') return within(place, '', { where: `spec.nodeName=${metadata.name}`, fields });
  const { claimRef } = spec as { claimRef?: { namespace?: string } };
  if (kind === 'PersistentVolume') return within(place, claimRef?.namespace, { fields });
  // What a workload or a Service owns or selects has its labels.
  const own = (id === 'Pod' || id === 'ReplicaSet.apps') && (templateOf(object) || kind === 'Service') ? (spec as { selector?: Selector | Record<string, string> }).selector : undefined;
  const labels = own && Object.keys(own).length ? selectorText(kind === 'Service' ? { matchLabels: own as Record<string, string> } : (own as Selector)) : undefined;
  return within(place, metadata.namespace, { labels, fields });
}

/** What was read of an object's surroundings. */
export interface Surroundings {
  things: Thing[];
  owners: Owner[];
  owned: Found;
  known: Known[];
  /** What could not be read, and why. */
  problems: { resource: string; error: string }[];
}

/** Reads everything at once; what fails is among the problems. */
export async function surroundings(object: Thing, at: string, signal: AbortSignal): Promise<Surroundings> {
  const problems: Surroundings['problems'] = [];
  const known = await learned().catch((error: Error) => {
    problems.push({ resource: 'the kinds of the cluster', error: error.message });
    return [];
  });
  const { kinds } = reachOf(object);
  const placed = object.kind === 'PersistentVolume' && !(object.spec as { claimRef?: object } | undefined)?.claimRef ? [] : kinds;
  const [owners, owned, ...lists] = await Promise.all([
    ownersOf(object, at, known, signal),
    search(object, at, known, signal),
    ...placed.map(async (id) => ({ id, ...(await list(wantedOf(id, object), at, signal)) })),
  ]);
  for (const { id, error, more, items } of lists) {
    if (error) problems.push({ resource: builtIn(id).name, error });
    else if (more) problems.push({ resource: builtIn(id).name, error: `there are more than the ${items.length.toLocaleString('en')} that were read` });
  }
  for (const problem of owned.problems) if (!problems.some(({ resource }) => resource === problem.resource)) problems.push(problem);
  return { things: lists.flatMap(({ items }) => items), owners, owned, known, problems };
}

/** The graph around an object, and the name of the object in it. */
export function graphAround(object: Thing, { things, owners, owned, known }: Surroundings): { graph: Graph; centre: string } {
  const { apiVersion = '', kind = '', metadata } = object;
  const centre = idOf(kindId(apiVersion, kind), metadata.namespace ?? '', metadata.name);
  const all = [object, ...owners.flatMap(({ thing }) => thing ?? []), ...things, ...owned.items.map(({ thing }) => thing)];
  // The same object may have been read as a row, which has no spec: the first one counts.
  const seen = new Set<string>();
  const unique = all.filter(({ metadata: { uid = '' } }) => !seen.has(uid) && seen.add(uid));
  return { graph: graphOf(unique, centre, known), centre };
}
