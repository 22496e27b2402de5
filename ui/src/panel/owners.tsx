// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { filter, selection, selectionOf } from '../app/state';
import { useKnown } from '../details/known';
import { objectPath, placeOf } from '../details/places';
import { controllerOf, type Pod } from '../data/state';
import { pathOf, useObject } from './resource';

/** The chain of owners: a Deployment and its ReplicaSet. */
export function Owners({ metadata, at }: { metadata: Pod['metadata']; at: string }) {
  const own = controllerOf(metadata.ownerReferences);
  const namespace = metadata.namespace ?? '';
  // Only these kinds have an owner of their own.
  const between = own && (own.kind === 'ReplicaSet' || own.kind === 'Job');
  const { value } = useObject<Pod>(between ? pathOf(own.kind, own.apiVersion ?? 'apps/v1', namespace, own.name) : '', at, '');
  const top = value?.metadata.ownerReferences?.[0];
  // Only discovery knows the plural of a custom resource, and whether it has namespaces.
  const known = useKnown(own !== undefined && !placeOf(own.apiVersion ?? '', own.kind));
  const pathOfOwner = ({ kind, apiVersion = 'apps/v1', name }: NonNullable<typeof own>): string => objectPath(apiVersion, kind, namespace, name, known) || pathOf(kind, apiVersion, namespace, name);
  const chain = [top, own].filter((o) => o !== undefined);
  return (
    <nav class="crumbs muted" aria-label="Owners">
      {namespace && <button class="link" onClick={() => (filter.value = `ns:${namespace}`)}>{namespace}</button>}
      {chain.map((o) => (
        <span key={o.name}> / <button class="link" title={`Show this ${o.kind}`} onClick={() => (selection.value = selectionOf(pathOfOwner(o)))}>{o.kind} {o.name}</button></span>
      ))}
    </nav>
  );
}
