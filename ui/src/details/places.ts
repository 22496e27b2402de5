// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Where objects are in the API: the paths of kinds, and the kinds of paths. */

import { placeOf as parsed } from '../app/path';

/** A resource: `apps/v1`, `deployments`, and its kind. */
export interface Place {
  apiVersion: string;
  name: string;
  kind: string;
  namespaced: boolean;
}

const core = 'v1';
const BUILT_IN: Place[] = [
  ...[
    ['pods', 'Pod'], ['services', 'Service'], ['configmaps', 'ConfigMap'], ['secrets', 'Secret'], ['serviceaccounts', 'ServiceAccount'],
    ['persistentvolumeclaims', 'PersistentVolumeClaim'], ['replicationcontrollers', 'ReplicationController'], ['events', 'Event'],
    ['resourcequotas', 'ResourceQuota'], ['limitranges', 'LimitRange'],
  ].map(([name, kind]) => ({ apiVersion: core, name, kind, namespaced: true })),
  ...[['nodes', 'Node'], ['namespaces', 'Namespace'], ['persistentvolumes', 'PersistentVolume']].map(([name, kind]) => ({ apiVersion: core, name, kind, namespaced: false })),
  ...[['deployments', 'Deployment'], ['replicasets', 'ReplicaSet'], ['statefulsets', 'StatefulSet'], ['daemonsets', 'DaemonSet'], ['controllerrevisions', 'ControllerRevision']]
    .map(([name, kind]) => ({ apiVersion: 'apps/v1', name, kind, namespaced: true })),
  { apiVersion: 'batch/v1', name: 'jobs', kind: 'Job', namespaced: true },
  { apiVersion: 'batch/v1', name: 'cronjobs', kind: 'CronJob', namespaced: true },
  { apiVersion: 'autoscaling/v2', name: 'horizontalpodautoscalers', kind: 'HorizontalPodAutoscaler', namespaced: true },
  { apiVersion: 'policy/v1', name: 'poddisruptionbudgets', kind: 'PodDisruptionBudget', namespaced: true },
  { apiVersion: 'networking.k8s.io/v1', name: 'ingresses', kind: 'Ingress', namespaced: true },
  { apiVersion: 'networking.k8s.io/v1', name: 'networkpolicies', kind: 'NetworkPolicy', namespaced: true },
  { apiVersion: 'networking.k8s.io/v1', name: 'ingressclasses', kind: 'IngressClass', namespaced: false },
  { apiVersion: 'discovery.k8s.io/v1', name: 'endpointslices', kind: 'EndpointSlice', namespaced: true },
  { apiVersion: 'storage.k8s.io/v1', name: 'storageclasses', kind: 'StorageClass', namespaced: false },
];

const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '');

/** The name of a kind in this module: `Deployment.apps`, `Pod`. */
export const kindId = (apiVersion: string, kind: string): string => (groupOf(apiVersion) ? `${kind}.${groupOf(apiVersion)}` : kind);

const byKind = new Map(BUILT_IN.map((place) => [kindId(place.apiVersion, place.kind), place]));

/** A built-in resource by the name of its kind, such as `Deployment.apps`. */
export function builtIn(id: string): Place {
  const place = byKind.get(id);
  if (!place) throw new Error(`no built-in kind ${id}`);
  return place;
}

/** The place of a kind among the built-in ones, or else among those that the cluster has. Its version may be another one. */
export function placeOf(apiVersion: string, kind: string, known: readonly Place[] = []): Place | undefined {
  const id = kindId(apiVersion, kind);
  return byKind.get(id) ?? known.find((place) => kindId(place.apiVersion, place.kind) === id);
}

/** The path of a collection, in a namespace or in all. */
export const collectionOf = ({ apiVersion, name }: Place, namespace = ''): string =>
  `/${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}/${namespace ? `namespaces/${namespace}/` : ''}${name}`;

/** The path of an object; empty if its kind is not known. */
export function objectPath(apiVersion: string, kind: string, namespace: string, name: string, known: readonly Place[] = []): string {
  const place = placeOf(apiVersion, kind, known);
  return place && (namespace || !place.namespaced) ? `${collectionOf(place, place.namespaced ? namespace : '')}/${name}` : '';
}

/** What a path names. */
export interface Location {
  apiVersion: string;
  resource: string;
  namespace: string;
  name: string;
}

/** Reads the path of an object. */
export function locate(path: string): Location | null {
  const place = parsed(path);
  return place && { apiVersion: place.group ? `${place.group}/${place.version}` : place.version, resource: place.resource, namespace: place.namespace, name: place.name };
}
