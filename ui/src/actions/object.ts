// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Parts of objects: what their users decide, and what only the API server writes. */

import type { Place } from '../app/path';
import type { Stored } from '../write/write';

/** Whether an answer is the one object at a path, with a uid for the preconditions: nothing is done to a list or to another object. */
export const isAt = ({ metadata }: Partial<Stored>, { name, namespace }: Place): boolean => metadata?.name === name && (metadata.namespace ?? '') === namespace && Boolean(metadata.uid);

/** What its users decide about an object: the spec, or what an object without one has instead, such as the data of a ConfigMap. */
export function contentOf(object: object): Record<string, unknown> {
  if ('spec' in object) return { spec: object.spec };
  return Object.fromEntries(Object.entries(object).filter(([key]) => !['apiVersion', 'kind', 'metadata', 'status'].includes(key)));
}

/** An object without what the API server and controllers write into it. */
export function plain(object: Stored): Omit<Stored, 'metadata'> & { metadata: Record<string, unknown> } {
  const { apiVersion, kind, status: _, metadata: { managedFields: _fields, resourceVersion: _rv, generation: _n, ...metadata }, ...rest } = object;
  return { apiVersion, kind, metadata, ...rest };
}

/** Who owns an object. */
export interface Owner {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
}

/** An object without what only the API server may say, and without the owners that no longer exist. */
export function fresh(object: Stored, gone: readonly Owner[]): Record<string, unknown> {
  const { status: _, metadata, ...rest } = structuredClone(object);
  for (const field of ['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'managedFields', 'selfLink']) delete metadata[field];
  const owners = ((metadata.ownerReferences ?? []) as Owner[]).filter(({ uid }) => !gone.some((owner) => owner.uid === uid));
  if (owners.length) metadata.ownerReferences = owners;
  else delete metadata.ownerReferences;
  const result = { ...rest, metadata } as Record<string, unknown>;
  if (object.kind === 'Job') withoutSelector(result as unknown as Job);
  return result;
}

interface Job {
  metadata: { labels?: Record<string, string> };
  spec: { selector?: unknown; manualSelector?: boolean; template: { metadata?: { labels?: Record<string, string> } } };
}

/** A Job's selector has the uid of the Job, unless somebody chose it. */
function withoutSelector({ metadata, spec }: Job): void {
  if (spec.manualSelector) return;
  delete spec.selector;
  for (const labels of [metadata.labels, spec.template.metadata?.labels]) {
    for (const key of ['controller-uid', 'batch.kubernetes.io/controller-uid']) delete labels?.[key];
  }
}
