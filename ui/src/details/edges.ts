// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What leads from an object to others: names in its spec, selectors, owners. Nothing is asked here. */

import type { ServiceObject, IngressObject, NetworkPolicyObject } from './network';
import { selects, type OwnerReference, type Pod, type PodSpec, type PodTemplate, type Selector, type Thing } from './objects';
import { kindId, objectPath, type Place } from './places';
import type { PDBObject, HPAObject } from './scaling';
import type { PVCObject, PVObject } from './storage';

/** An object of the graph. Its id is its kind, namespace and name. */
export interface Vertex {
  id: string;
  kind: string;
  name: string;
  /** Empty if it is not known. */
  path: string;
  /** What was read of it; undefined if only its name is known. */
  thing?: Thing;
}

export interface Edge {
  from: string;
  to: string;
  /** What `from` does: owns, selects, mounts. */
  name: string;
}

export interface Graph {
  vertices: Map<string, Vertex>;
  edges: Edge[];
}

/** The name of a vertex. A kind without namespaces has none. */
export const idOf = (kind: string, namespace: string, name: string): string => `${kind} ${namespace}/${name}`;

const CLUSTER = new Set(['Node', 'PersistentVolume', 'StorageClass.storage.k8s.io', 'IngressClass.networking.k8s.io', 'Namespace']);

/** The template of the Pods of a workload. */
export function templateOf({ kind, spec = {} }: Thing): PodTemplate | undefined {
  const { template, jobTemplate } = spec as { template?: PodTemplate; jobTemplate?: { spec?: { template?: PodTemplate } } };
  return kind === 'CronJob' ? jobTemplate?.spec?.template : template?.spec ? template : undefined;
}

/** What a Pod mounts, reads and uses: the kind, the name, and how. The token that every Pod has is left out. */
export function usesOf({ volumes = [], containers = [], initContainers = [], imagePullSecrets = [], serviceAccountName }: PodSpec, claim: (volume: string) => string = () => ''): [string, string, string][] {
  const found: [string, string | undefined, string][] = [];
  for (const { name = '', configMap, secret, persistentVolumeClaim, projected, ephemeral } of volumes) {
    if (name.startsWith('kube-api-access-')) continue;
    found.push(['ConfigMap', configMap?.name, 'mounts'], ['Secret', secret?.secretName, 'mounts'], ['PersistentVolumeClaim', persistentVolumeClaim?.claimName ?? (ephemeral && claim(name)), 'mounts']);
    for (const source of projected?.sources ?? []) found.push(['ConfigMap', source.configMap?.name, 'mounts'], ['Secret', source.secret?.name, 'mounts']);
  }
  for (const { env = [], envFrom = [] } of [...initContainers, ...containers]) {
    for (const { valueFrom } of env) found.push(['ConfigMap', valueFrom?.configMapKeyRef?.name, 'reads'], ['Secret', valueFrom?.secretKeyRef?.name, 'reads']);
    for (const { configMapRef, secretRef } of envFrom) found.push(['ConfigMap', configMapRef?.name, 'reads'], ['Secret', secretRef?.name, 'reads']);
  }
  for (const { name } of imagePullSecrets) found.push(['Secret', name, 'pulls with']);
  found.push(['ServiceAccount', serviceAccountName, 'uses']);
  return found.filter((one): one is [string, string, string] => Boolean(one[1]));
}

/** The graph of objects: what was read, and what they name. `centre` is the id of the shown one. */
export function graphOf(things: Thing[], centre: string, known: readonly Place[] = []): Graph {
  const vertices = new Map<string, Vertex>();
  const edges = new Map<string, Edge>();
  const vertex = (apiVersion: string, kind: string, namespace: string, name: string, thing?: Thing): string => {
    const of = kindId(apiVersion, kind);
    const id = idOf(of, CLUSTER.has(of) ? '' : namespace, name);
    if (!vertices.has(id) || (thing && !vertices.get(id)!.thing)) vertices.set(id, { id, kind, name, path: objectPath(apiVersion, kind, namespace, name, known), thing });
    return id;
  };
  const edge = (from: string, to: string, name: string): void => {
    if (from !== to) edges.set(`${from} ${name} ${to}`, { from, to, name });
  };
  const ids = new Map(things.map((thing) => [thing, vertex(thing.apiVersion ?? '', thing.kind ?? '', thing.metadata.namespace ?? '', thing.metadata.name, thing)]));
  const byUid = new Map([...ids].map(([thing, id]) => [thing.metadata.uid, id]));
  /** What can be selected: Pods, and workloads by the labels of their Pods. One that another workload controls is left out, unless it is shown. */
  const selectable = things.flatMap((thing) => {
    const labels = thing.kind === 'Pod' ? thing.metadata.labels : templateOf(thing)?.metadata?.labels;
    return labels && (thing.kind === 'Pod' || isTop(thing, ids.get(thing) === centre)) ? [{ id: ids.get(thing)!, namespace: thing.metadata.namespace, labels }] : [];
  });
  for (const [thing, id] of ids) {
    const { metadata, kind } = thing;
    const namespace = metadata.namespace ?? '';
    const to = (apiVersion: string, other: string, name: string | undefined, words: string): void => {
      if (name) edge(id, vertex(apiVersion, other, namespace, name), words);
    };
    const selected = (selector: Selector | undefined): void => {
      for (const one of selectable) if (one.namespace === namespace && selects(selector, one.labels)) edge(id, one.id, 'selects');
    };
    for (const owner of metadata.ownerReferences ?? []) edge(ownerVertex(owner, namespace), id, 'owns');
    const template = templateOf(thing);
    if (template?.spec && isTop(thing, id === centre)) for (const [other, name, words] of usesOf(template.spec)) to('v1', other, name, words);
    switch (kindId(thing.apiVersion ?? '', kind ?? '')) {
      case 'Pod': {
        const { spec = {} } = thing as Pod;
        to('v1', 'Node', spec.nodeName, 'runs on');
        for (const [other, name, words] of usesOf(spec, (volume) => `${metadata.name}-${volume}`)) to('v1', other, name, words);
        break;
      }
      case 'Service': {
        const { selector } = (thing as ServiceObject).spec ?? {};
        if (selector && Object.keys(selector).length) selected({ matchLabels: selector });
        break;
      }
      case 'Ingress.networking.k8s.io': {
        const { rules = [], defaultBackend, tls = [], ingressClassName } = (thing as IngressObject).spec ?? {};
        for (const backend of [defaultBackend, ...rules.flatMap(({ http }) => (http?.paths ?? []).map((path) => path.backend))]) to('v1', 'Service', backend?.service?.name, 'routes');
        for (const { secretName } of tls) to('v1', 'Secret', secretName, 'uses');
        to('networking.k8s.io/v1', 'IngressClass', ingressClassName, 'uses');
        break;
      }
      case 'NetworkPolicy.networking.k8s.io':
        selected((thing as NetworkPolicyObject).spec?.podSelector);
        break;
      case 'PodDisruptionBudget.policy':
        selected((thing as PDBObject).spec?.selector);
        break;
      case 'HorizontalPodAutoscaler.autoscaling': {
        const { apiVersion = '', kind: target = '', name } = (thing as HPAObject).spec?.scaleTargetRef ?? {};
        to(apiVersion, target, name, 'scales');
        break;
      }
      case 'PersistentVolumeClaim':
        to('v1', 'PersistentVolume', (thing as PVCObject).spec?.volumeName, 'binds');
        to('storage.k8s.io/v1', 'StorageClass', (thing as PVCObject).spec?.storageClassName, 'uses');
        break;
      case 'PersistentVolume': {
        const { claimRef, storageClassName } = (thing as PVObject).spec ?? {};
        if (claimRef?.name) edge(vertex('v1', 'PersistentVolumeClaim', claimRef.namespace ?? '', claimRef.name), id, 'binds');
        to('storage.k8s.io/v1', 'StorageClass', storageClassName, 'uses');
        break;
      }
      case 'ServiceAccount': {
        const { secrets = [], imagePullSecrets = [] } = thing as { secrets?: { name?: string }[]; imagePullSecrets?: { name?: string }[] };
        for (const { name } of secrets) to('v1', 'Secret', name, 'uses');
        for (const { name } of imagePullSecrets) to('v1', 'Secret', name, 'pulls with');
        break;
      }
    }
  }
  return { vertices, edges: [...edges.values()] };

  /** The vertex of an owner: in the namespace, unless its kind is known to have none. */
  function ownerVertex({ apiVersion = '', kind, name, uid }: OwnerReference, namespace: string): string {
    return (uid && byUid.get(uid)) || vertex(apiVersion, kind, namespace, name);
  }
}

/** What another workload controls is left out: a ReplicaSet of a Deployment has the same template. */
const isTop = ({ metadata }: Thing, shown: boolean): boolean => shown || !metadata.ownerReferences?.some(({ controller, apiVersion = '' }) => controller && /^(apps|batch)\//.test(apiVersion));
