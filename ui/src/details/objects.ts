// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Objects of any kind, with the fields that the details read. The API server may leave out each of them. */

import type { Condition, ContainerStatus } from '../data/state';

export interface OwnerReference {
  apiVersion?: string;
  kind: string;
  name: string;
  uid?: string;
  controller?: boolean;
}

export interface Meta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  creationTimestamp?: string;
  deletionTimestamp?: string;
  finalizers?: string[];
}

export interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

interface Source {
  name?: string;
  optional?: boolean;
}

export interface Container {
  name?: string;
  image?: string;
  restartPolicy?: string;
  env?: { name?: string; valueFrom?: { configMapKeyRef?: Source; secretKeyRef?: Source } }[];
  envFrom?: { configMapRef?: Source; secretRef?: Source }[];
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
}

export interface Volume {
  name?: string;
  configMap?: Source;
  secret?: { secretName?: string };
  persistentVolumeClaim?: { claimName?: string };
  projected?: { sources?: { configMap?: Source; secret?: Source }[] };
  ephemeral?: object;
}

export interface PodSpec {
  nodeName?: string;
  serviceAccountName?: string;
  imagePullSecrets?: Source[];
  volumes?: Volume[];
  containers?: Container[];
  initContainers?: Container[];
  overhead?: Record<string, string>;
}

export interface PodTemplate {
  metadata?: { labels?: Record<string, string> };
  spec?: PodSpec;
}

/** A reference to an object, as specs have it. */
export interface Reference {
  apiVersion?: string;
  apiGroup?: string;
  kind?: string;
  name?: string;
  namespace?: string;
}

export interface Thing {
  apiVersion?: string;
  kind?: string;
  metadata: Meta;
  /** The files of the kinds say what each has there. */
  spec?: object;
  status?: object;
}

export interface Pod extends Thing {
  spec?: PodSpec;
  status?: { phase?: string; reason?: string; message?: string; podIP?: string; conditions?: Condition[]; containerStatuses?: ContainerStatus[]; initContainerStatuses?: ContainerStatus[] };
}

/** A list. Its items have neither apiVersion nor kind. */
export interface List<T> {
  apiVersion?: string;
  kind?: string;
  metadata?: { continue?: string };
  items: T[] | null;
}

/** The plural of a kind, as people write it. */
export const plural = (kind: string): string => (/(s|x|ch)$/.test(kind) ? `${kind}es` : /[^aeiou]y$/.test(kind) ? `${kind.slice(0, -1)}ies` : `${kind}s`);

/** Whether a selector selects labels. An absent one selects nothing, an empty one everything. */
export function selects(selector: Selector | undefined, labels: Record<string, string> = {}): boolean {
  if (!selector) return false;
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labels[key] !== value) return false;
  return (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const has = key in labels;
    if (operator === 'Exists') return has;
    if (operator === 'DoesNotExist') return !has;
    return operator === 'NotIn' ? !has || !values.includes(labels[key]) : operator === 'In' && has && values.includes(labels[key]);
  });
}

/** A selector as the API takes it in `labelSelector`. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: Selector): string {
  return [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values = [] }) =>
      operator === 'Exists' ? key : operator === 'DoesNotExist' ? `!${key}` : `${key} ${operator === 'NotIn' ? 'notin' : 'in'} (${values.join()})`),
  ].join();
}
