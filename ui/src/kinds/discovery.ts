// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Learns the resources of the cluster from the API server's discovery. */

import { getJSON } from '../app/api';
import type { Resource } from './resources';

interface Found {
  name: string;
  kind: string;
  namespaced: boolean;
  singular: string;
  shortNames?: string[];
  verbs: string[];
}

/** Aggregated discovery (KEP-3352): two requests for everything. */
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

/** A discovery document as fetched: aggregated, or the list of versions or groups. */
interface Document {
  kind: string;
  items?: { metadata: { name?: string }; versions: { version: string; resources?: { resource: string; responseKind?: { kind: string }; scope: string; singularResource: string; shortNames?: string[]; verbs: string[] }[] }[] }[];
  versions?: string[];
  groups?: { name: string; preferredVersion: { version: string } }[];
}

/** Asks which resources there are, in the order of their names. */
export async function discover(): Promise<Resource[]> {
  const [core, groups] = await Promise.all(['api', 'apis'].map((path) => getJSON<Document>(path, '', undefined, { accept: AGGREGATED })));
  const all = [...(await resourcesOf(core)), ...(await resourcesOf(groups))];
  // A recording has the documents of a moment; some aggregated APIs do not answer.
  return all.filter((one, i) => all.findIndex(({ id }) => id === one.id) === i).sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function resourcesOf(document: Document): Promise<Resource[]> {
  if (document.items) {
    return document.items.flatMap(({ metadata: { name: group = '' }, versions }) => {
      // The first version with a resource is the one that the API server prefers.
      return versions.flatMap(({ version, resources = [] }) =>
        select(group, version, resources.map((r) => ({ name: r.resource, kind: r.responseKind?.kind ?? '', namespaced: r.scope === 'Namespaced', singular: r.singularResource, shortNames: r.shortNames, verbs: r.verbs }))));
    });
  }
  const versions = document.versions ? document.versions.map((version) => ({ group: '', version })) : (document.groups ?? []).map(({ name, preferredVersion }) => ({ group: name, version: preferredVersion.version }));
  const lists = await Promise.all(versions.map(async ({ group, version }) => {
    const path = group ? `apis/${group}/${version}` : `api/${version}`;
    const { resources } = await getJSON<{ resources: (Omit<Found, 'singular'> & { singularName: string })[] }>(path).catch(() => ({ resources: [] }));
    return select(group, version, resources.map((r) => ({ ...r, singular: r.singularName })));
  }));
  return lists.flat();
}

function select(group: string, version: string, found: Found[]): Resource[] {
  return found.filter(({ name, verbs }) => !name.includes('/') && verbs.includes('list')).map(({ name, kind, namespaced, singular, shortNames = [], verbs }) => ({
    id: group ? `${name}.${group}` : name, group, version, name, kind, namespaced,
    names: [singular, kind.toLowerCase(), ...shortNames].filter(Boolean), watched: verbs.includes('watch'),
  }));
}
