// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What the opener offers for a text: kinds, objects, namespaces, and the filter. */

import type { Row } from '@watchkeeper/informer';
import { parseFilter } from '../app/filter';
import type { Cluster } from '../data/cluster';
import { collection, named, type Resource } from './resources';

export type Choice =
  /** A table, with a filter. */
  | { to: 'kind'; resource: Resource; filter: string }
  | { to: 'object'; path: string; name: string; namespace: string; kind: string }
  | { to: 'namespace'; name: string }
  /** The board, with a filter. */
  | { to: 'board'; filter: string };

/** How many objects, and how many choices of all kinds, are offered. */
const maxObjects = 20;

/** A text as the opener reads it: a kind, wherever it stands, and the rest. `-n shop` and `deployments/web` are kubectl's. */
export interface Wanted {
  resource?: Resource;
  /** The filter that the other words are. */
  filter: string;
  /** The part of a name among them. */
  name: string;
  namespace: string;
}

export function read(text: string, resources: Resource[]): Wanted {
  const words = text.trim().replace(/(^|\s)(-n|--namespace)[ =]+(\S+)/g, '$1ns:$3').replace(/^([\w.-]+)\/(\S*)/, '$1 $2').split(/\s+/).filter(Boolean);
  const at = words.findIndex((word) => named(resources, word));
  const resource = at >= 0 ? named(resources, words[at]) : undefined;
  const rest = words.filter((_, i) => i !== at);
  const terms = parseFilter(rest.join(' '));
  const of = (kind: string): string => terms.find((term) => term.kind === kind && !term.not)?.value ?? '';
  return { resource, filter: rest.join(' '), name: of('name'), namespace: of('ns') };
}

/** The choices for a text, the best first. `objects` are some of the wanted kind, `namespaces` those that are known, also without Pods. */
export function choicesOf(text: string, resources: Resource[], cluster: Cluster, objects: Choice[], namespaces: string[]): Choice[] {
  const wanted = read(text, resources);
  const word = text.trim().toLowerCase().split(/\s+/)[0] ?? '';
  const choices: Choice[] = [];
  if (wanted.resource) choices.push({ to: 'kind', resource: wanted.resource, filter: wanted.filter }, ...objects);
  const begins = (one: Resource): boolean => one.id.startsWith(word) || one.names.some((name) => name.startsWith(word));
  const similar = resources.filter((one) => one !== wanted.resource && (begins(one) || (word.length > 2 && one.id.includes(word))));
  for (const resource of similar.sort((a, b) => Number(begins(b)) - Number(begins(a))).slice(0, word ? 12 : 40)) choices.push({ to: 'kind', resource, filter: '' });
  if (!wanted.resource && word) choices.push(...onBoard(wanted, cluster, namespaces), ...(wanted.filter ? [{ to: 'board' as const, filter: wanted.filter }] : []));
  return choices;
}

/** Namespaces, Nodes and Pods with a part of a name. */
function onBoard({ name, namespace }: Wanted, cluster: Cluster, known: string[]): Choice[] {
  const part = name || namespace;
  if (!part) return [];
  const ids = new Set(cluster.namespace.subarray(0, cluster.length).filter((_, row) => cluster.has(row)));
  const namespaces = [...new Set([...known, ...[...ids].map((id) => cluster.strings[id])])].filter((one) => one.includes(part)).sort();
  const nodes = [...cluster.nodes.keys()].filter((one) => one.includes(part)).slice(0, 5);
  const pods: Choice[] = [];
  for (let row = 0; row < cluster.length && pods.length < maxObjects; row++) {
    const of = cluster.strings[cluster.namespace[row]];
    if (cluster.has(row) && cluster.names[row].includes(part) && of.includes(namespace)) pods.push({ to: 'object', path: `/api/v1/namespaces/${of}/pods/${cluster.names[row]}`, name: cluster.names[row], namespace: of, kind: 'Pod' });
  }
  return [
    ...namespaces.slice(0, 5).map((one) => ({ to: 'namespace' as const, name: one })),
    ...nodes.map((one) => ({ to: 'object' as const, path: `/api/v1/nodes/${one}`, name: one, namespace: '', kind: 'Node' })),
    ...pods,
  ];
}

/** The object that is named in full: for a reader who may read it, and not list its kind. */
export const objectNamed = (resource: Resource, { name, namespace }: Pick<Wanted, 'name' | 'namespace'>): Extract<Choice, { to: 'object' }> | null =>
  name && (namespace || !resource.namespaced) ? { to: 'object', path: `${collection(resource, resource.namespaced ? namespace : '')}/${name}`, name, namespace: resource.namespaced ? namespace : '', kind: resource.kind } : null;

/** The objects of a list that match the name and the namespace, as choices. */
export function objectsOf(rows: Pick<Row, 0 | 1>[], { resource, name, namespace }: Wanted, pathOf: (resource: Resource, namespace: string) => string): Choice[] {
  const found = rows.filter((row) => row[1].includes(name) && (row[0] ?? '').includes(namespace));
  const exact = (row: Pick<Row, 0 | 1>): number => (row[1] === name ? 0 : row[1].startsWith(name) ? 1 : 2);
  return found.sort((a, b) => exact(a) - exact(b)).slice(0, maxObjects).map((row) => ({
    to: 'object', path: `${pathOf(resource!, row[0] ?? '')}/${row[1]}`, name: row[1], namespace: row[0] ?? '', kind: resource!.kind,
  }));
}
