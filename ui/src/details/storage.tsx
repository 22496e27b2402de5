// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Claims and volumes. */

import { useLists, within } from './load';
import type { Pod, Reference, Thing } from './objects';
import { asking, Facts, ObjectLink, POD_FIELDS, type Props } from './parts';
import { builtIn, collectionOf } from './places';
import { Pods } from './workloads';

export interface PVCObject extends Thing {
  spec?: { accessModes?: string[]; storageClassName?: string; volumeName?: string; volumeMode?: string; resources?: { requests?: Record<string, string> } };
  status?: { phase?: string; capacity?: Record<string, string> };
}

export interface PVObject extends Thing {
  spec?: { accessModes?: string[]; storageClassName?: string; capacity?: Record<string, string>; claimRef?: Reference; persistentVolumeReclaimPolicy?: string };
  status?: { phase?: string; reason?: string; message?: string };
}

const link = (id: string, namespace: string | undefined, name: string | undefined) => name && <ObjectLink path={`${collectionOf(builtIn(id), namespace)}/${name}`} kind={builtIn(id).kind}>{name}</ObjectLink>;

/** The claims that a Pod mounts: those it names, and those made for it. */
export const claimsOf = ({ metadata, spec }: Pod): string[] =>
  (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => (persistentVolumeClaim?.claimName ? [persistentVolumeClaim.claimName] : ephemeral ? [`${metadata.name}-${name}`] : []));

export function PVC(props: Props<PVCObject>) {
  const { metadata, spec = {}, status = {} } = props.object;
  const { pods } = useLists<Pod>({ pods: within(builtIn('Pod'), metadata.namespace, { fields: POD_FIELDS }) }, asking(props));
  const size = status.capacity?.storage;
  const wanted = spec.resources?.requests?.storage;
  return (
    <>
      <Facts facts={[
        ['Phase', status.phase && <b class={`words ${status.phase === 'Bound' ? 'ready' : status.phase === 'Lost' ? 'failing' : 'pending'}`}>{status.phase}</b>],
        ['Size', size && wanted && size !== wanted ? `${size}, ${wanted} requested` : (size ?? wanted)],
        ['Class', link('StorageClass.storage.k8s.io', '', spec.storageClassName)],
        ['Volume', link('PersistentVolume', '', spec.volumeName)],
        ['Access', spec.accessModes?.join(', ')],
      ]} />
      <Pods title="Mounted by" pods={pods && { ...pods, items: pods.items.filter((pod) => claimsOf(pod).includes(metadata.name)) }} now={props.now} />
    </>
  );
}

export function PV(props: Props<PVObject>) {
  const { spec = {}, status = {} } = props.object;
  const claim = spec.claimRef;
  const { pods } = useLists<Pod>({ pods: claim && within(builtIn('Pod'), claim.namespace, { fields: POD_FIELDS }) }, asking(props));
  return (
    <>
      <Facts facts={[
        ['Phase', status.phase && <b class={`words ${status.phase === 'Failed' ? 'failing' : status.phase === 'Bound' ? 'ready' : 'pending'}`}>{status.phase}</b>],
        ['Message', status.message],
        ['Size', spec.capacity?.storage],
        ['Class', link('StorageClass.storage.k8s.io', '', spec.storageClassName)],
        ['Claim', link('PersistentVolumeClaim', claim?.namespace, claim?.name)],
        ['Access', spec.accessModes?.join(', ')],
        ['Reclaim', spec.persistentVolumeReclaimPolicy],
      ]} />
      {claim?.name && <Pods title="Mounted by" pods={pods && { ...pods, items: pods.items.filter((pod) => claimsOf(pod).includes(claim.name!)) }} now={props.now} />}
    </>
  );
}
