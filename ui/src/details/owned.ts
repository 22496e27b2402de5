// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The owners of an object, and what it owns: found by ownerReferences among the resources that may hold them. */

import { controllerOf, type StateName } from '../data/state';
import { getJSON } from '../app/api';
import type { Known } from './known';
import { table, type Table } from './load';
import type { OwnerReference, Thing } from './objects';
import { builtIn, collectionOf, kindId, objectPath, placeOf, type Place } from './places';

/** An object of the tree. */
export interface Item {
  thing: Thing;
  path: string;
  /** Its state, from the API server's columns. */
  words: string;
  state?: StateName;
}

export interface Branch extends Item {
  owned: Branch[];
}

/** An owner. `error` is why it could not be read. */
export interface Owner {
  kind: string;
  name: string;
  path: string;
  error: string;
  thing?: Thing;
}

const maxOwners = 8;
/** How many resources are searched for owned objects, and how many at a time. */
const maxResources = 60;
const atOnce = 4;

/** Reads the owners up to the root, the nearest first. Only the controller is followed. */
export async function ownersOf(object: Thing, at: string, known: readonly Place[], signal: AbortSignal): Promise<Owner[]> {
  const owners: Owner[] = [];
  let below = object;
  const seen = new Set([object.metadata.uid]);
  while (owners.length < maxOwners) {
    const reference = controllerOf(below.metadata.ownerReferences);
    if (!reference || seen.has(reference.uid)) break;
    seen.add(reference.uid);
    const owner = await readOwner(reference, object.metadata.namespace ?? '', at, known, signal);
    owners.push(owner);
    if (!owner.thing) break;
    below = owner.thing;
  }
  return owners;
}

async function readOwner({ apiVersion = '', kind, name, uid }: OwnerReference, namespace: string, at: string, known: readonly Place[], signal: AbortSignal): Promise<Owner> {
  const path = objectPath(apiVersion, kind, namespace, name, known);
  if (!path) return { kind, name, path, error: 'the cluster has no such kind' };
  try {
    const thing = await getJSON<Thing>(path, at, signal);
    // The garbage collector goes by the uid.
    if (uid && thing.metadata.uid !== uid) return { kind, name, path: '', error: 'it was deleted; another one has its name' };
    return { kind, name, path, error: '', thing };
  } catch (error) {
    if (signal.aborted) throw error;
    return { kind, name, path, error: (error as Error).message };
  }
}

/** What objects of a kind own. Objects of other built-in kinds own nothing; custom resources may own anything. */
const OWNED: Record<string, string[]> = {
  'Deployment.apps': ['ReplicaSet.apps', 'Pod'],
  'ReplicaSet.apps': ['Pod'],
  'StatefulSet.apps': ['Pod', 'ControllerRevision.apps', 'PersistentVolumeClaim'],
  'DaemonSet.apps': ['Pod', 'ControllerRevision.apps'],
  ReplicationController: ['Pod'],
  'CronJob.batch': ['Job.batch', 'Pod'],
  'Job.batch': ['Pod'],
  Service: ['EndpointSlice.discovery.k8s.io'],
  Pod: ['PersistentVolumeClaim'],
};

/** Never owned, or many and of no interest here. */
const SKIPPED = new Set(['Event', 'Event.events.k8s.io', 'Lease.coordination.k8s.io', 'PodMetrics.metrics.k8s.io']);

/** The resources that may hold what an object owns, and how many more there are. */
export function candidates({ apiVersion = '', kind = '', metadata }: Thing, known: readonly Known[]): { places: Place[]; omitted: number } {
  const id = kindId(apiVersion, kind);
  if (Object.hasOwn(OWNED, id)) return { places: OWNED[id].map(builtIn), omitted: 0 };
  if (placeOf(apiVersion, kind)) return { places: [], omitted: 0 };
  const all = known.filter((place) => place.watched && place.namespaced === Boolean(metadata.namespace) && !SKIPPED.has(kindId(place.apiVersion, place.kind)));
  return { places: all.slice(0, maxResources), omitted: Math.max(0, all.length - maxResources) };
}

/** What was found, and what could not be read: the resource and why. */
export interface Found {
  items: Item[];
  problems: { resource: string; error: string }[];
  omitted: number;
  /** Objects of its kind may own others. */
  searched: boolean;
}

/** Reads the candidates in the namespace of an object, a few at a time. */
export async function search(object: Thing, at: string, known: readonly Known[], signal: AbortSignal): Promise<Found> {
  const { places, omitted } = candidates(object, known);
  const found: Found = { items: [], problems: [], omitted, searched: places.length > 0 };
  const seen = new Set<string | undefined>([undefined]);
  const waiting = [...places];
  const work = async (): Promise<void> => {
    for (let place = waiting.shift(); place; place = waiting.shift()) {
      const { namespaced, name, apiVersion, kind } = place;
      const path = collectionOf(place, namespaced ? object.metadata.namespace : '');
      try {
        const page = await table(path, at, signal);
        if (page.metadata?.continue) found.problems.push({ resource: name, error: `there are more than the ${page.rows?.length} that were read` });
        for (const item of itemsOf(page, path, apiVersion, kind)) {
          // The same object may be in two groups.
          if (seen.has(item.thing.metadata.uid)) continue;
          seen.add(item.thing.metadata.uid);
          found.items.push(item);
        }
      } catch (error) {
        if (signal.aborted) throw error;
        found.problems.push({ resource: name, error: (error as Error).message });
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return found;
}

const STATES = /^(Ready|Status|Phase|State|Health|Completions|Desired|Available|Synced)$/;

/** The rows of a Table as items. The words are those of the columns about the state. */
export function itemsOf({ columnDefinitions, rows }: Table, path: string, apiVersion: string, kind: string): Item[] {
  const columns = (columnDefinitions ?? []).map(({ name }, i) => ({ name, i })).filter(({ name }) => STATES.test(name));
  return (rows ?? []).flatMap(({ cells, object }) => {
    if (!object) return [];
    const texts = columns.map(({ name, i }) => [name, String(cells[i] ?? '')] as const).filter(([, text]) => text);
    // A number or a truth value says nothing without its name.
    const words = texts.map(([name, text]) => (/^(\d+|true|false)$/i.test(text) ? `${name} ${text}` : text)).join(', ');
    return [{ thing: { apiVersion, kind, metadata: object.metadata }, path: `${path}/${object.metadata.name}`, words, state: kind === 'Pod' ? podState(Object.fromEntries(texts)) : undefined }];
  });
}

/** The state of a Pod by the columns that kubectl prints. */
function podState({ Status = '', Ready = '' }: Record<string, string>): StateName {
  const [ready, all] = Ready.split('/');
  if (Status === 'Running') return ready === all ? 'ready' : 'unready';
  if (Status === 'Completed' || Status === 'Succeeded') return 'succeeded';
  if (Status === 'Terminating') return 'terminating';
  if (Status === 'Unknown') return 'unknown';
  return /^(Pending|ContainerCreating|PodInitializing|SchedulingGated|Init:\d+\/\d+)$/.test(Status) ? 'pending' : 'failing';
}

/** What an object owns, and what those own, from what was found. */
export function tree(root: string | undefined, items: readonly Item[]): Branch[] {
  const byOwner = new Map<string, Item[]>();
  for (const item of items) {
    for (const { uid } of item.thing.metadata.ownerReferences ?? []) if (uid) byOwner.set(uid, [...(byOwner.get(uid) ?? []), item]);
  }
  // Owners in a circle would never end.
  const below = (uid: string | undefined, above: ReadonlySet<string>): Branch[] =>
    (uid && !above.has(uid) ? (byOwner.get(uid) ?? []) : [])
      .map((item) => ({ ...item, owned: below(item.thing.metadata.uid, new Set([...above, uid!])) }))
      .sort((a, b) => order(a) - order(b) || (key(a) < key(b) ? -1 : 1));
  return below(root, new Set());
}

const key = ({ thing: { kind = '', metadata } }: Item): string => `${kind} ${metadata.name}`;
/** What owns something is first. */
const order = ({ owned }: Branch): number => (owned.length ? 0 : 1);
