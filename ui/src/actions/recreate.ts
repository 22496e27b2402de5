// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Creates an object again that was deleted. */

import { stringify } from '@watchkeeper/informer/json';
import { apiError, apiURL, ApiError, getJSON, request } from '../app/api';
import { placeOf } from '../app/path';
import { learn, resources } from '../kinds/known';
import { collection } from '../kinds/resources';
import { history } from '../time/history';
import type { Stored } from '../write/write';
import { fresh, type Owner } from './object';
import { manager, type Done } from './state';

/** The owners of an object that no longer exist. One that may not be read is taken to exist. */
async function goneOwners(object: Stored, signal: AbortSignal): Promise<Owner[]> {
  const owners = (object.metadata.ownerReferences ?? []) as Owner[];
  if (owners.length) await learn();
  const gone = await Promise.all(owners.map(async ({ apiVersion, kind, name, uid }) => {
    const group = apiVersion.includes('/') ? apiVersion.split('/')[0] : '';
    const resource = resources.peek()?.find((one) => one.group === group && one.kind === kind);
    if (!resource) return resources.peek() !== null;
    try {
      const owner = await getJSON<Stored>(`${collection(resource, resource.namespaced ? object.metadata.namespace : '')}/${name}`, '', signal);
      return owner.metadata.uid !== uid;
    } catch (error) {
      return error instanceof ApiError && error.code === 404;
    }
  }));
  return owners.filter((_, i) => gone[i]);
}

/** The last state of a deleted object: the recorded one, or else that of the dialog. */
async function lastState(path: string, object: Stored, signal: AbortSignal): Promise<Stored> {
  try {
    const change = await history.last(path, '', signal);
    const last = (change?.before ?? change?.object) as Stored | undefined;
    return last?.metadata.uid === object.metadata.uid ? last : object;
  } catch {
    return object;
  }
}

/** How often an object that is still being deleted is looked at, in milliseconds. */
const interval = 1000;

/** Waits until a deleted object is gone, or another one has its name. */
async function waitUntilGone(path: string, uid: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    try {
      const { metadata } = await getJSON<Stored>(path, '', signal);
      if (metadata.uid !== uid) return;
      if (!metadata.deletionTimestamp) throw new Error(`${metadata.name} was not deleted.`);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, interval));
  }
}

/** Creates a deleted object again, or only asks the API server whether it would (`dryRun`). */
export async function recreate(path: string, object: Stored, signal: AbortSignal, dryRun = false): Promise<Done> {
  await waitUntilGone(path, object.metadata.uid, signal);
  const last = await lastState(path, object, signal);
  const gone = await goneOwners(last, signal);
  const body = { apiVersion: object.apiVersion, kind: object.kind, ...fresh(last, gone) };
  const response = await request(apiURL(path.slice(0, path.lastIndexOf('/')), '', { fieldManager: manager, ...(dryRun && { dryRun: 'All' }) }), {
    method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json' }, body: stringify(body), signal,
  });
  if (!response.ok) throw await apiError(response);
  const without = gone.map(({ kind, name }) => `${kind} ${name}`).join(', ');
  return { words: `Created ${object.metadata.name} again, as a new object with another uid${without && `, without its former owner ${without}`}.${placeOf(path)?.resource === 'namespaces' ? ' What was in it is gone.' : ''}` };
}
