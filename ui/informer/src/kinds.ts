// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The core kinds, with their most common fields. Fields that not every object
// has are optional; so are those that `fields` may leave out.

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
}

/** The fields of every object. Use it as the base of your own types. */
export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'; values?: string[] }[];
}

/** Quantities such as 500m or 2Gi, by resource such as cpu and memory. */
export type Quantities = Record<string, string>;

export interface Container {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  env?: { name: string; value?: string }[];
  ports?: { name?: string; containerPort: number; protocol?: string }[];
  resources?: { requests?: Quantities; limits?: Quantities };
  restartPolicy?: string;
}

export interface ContainerState {
  running?: { startedAt?: string };
  waiting?: { reason?: string; message?: string };
  terminated?: { exitCode: number; signal?: number; reason?: string; message?: string; startedAt?: string; finishedAt?: string };
}

export interface ContainerStatus {
  name: string;
  ready?: boolean;
  started?: boolean;
  restartCount?: number;
  image?: string;
  containerID?: string;
  state?: ContainerState;
  lastState?: ContainerState;
}

export interface PodSpec {
  nodeName?: string;
  containers?: Container[];
  initContainers?: Container[];
  restartPolicy?: string;
  serviceAccountName?: string;
  nodeSelector?: Record<string, string>;
  tolerations?: { key?: string; operator?: string; value?: string; effect?: string; tolerationSeconds?: number }[];
  priorityClassName?: string;
  priority?: number;
  hostNetwork?: boolean;
  overhead?: Quantities;
}

export interface PodTemplateSpec {
  metadata?: Partial<ObjectMeta>;
  spec?: PodSpec;
}

export interface Pod extends KubernetesObject {
  spec?: PodSpec;
  status?: {
    phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
    reason?: string;
    message?: string;
    startTime?: string;
    podIP?: string;
    hostIP?: string;
    qosClass?: string;
    nominatedNodeName?: string;
    conditions?: Condition[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
  };
}

export interface Node extends KubernetesObject {
  spec?: {
    unschedulable?: boolean;
    podCIDR?: string;
    providerID?: string;
    taints?: { key: string; value?: string; effect: string; timeAdded?: string }[];
  };
  status?: {
    capacity?: Quantities;
    allocatable?: Quantities;
    conditions?: Condition[];
    addresses?: { type: string; address: string }[];
    nodeInfo?: { kubeletVersion?: string; osImage?: string; architecture?: string; containerRuntimeVersion?: string };
  };
}

export interface Event extends KubernetesObject {
  involvedObject?: { apiVersion?: string; kind?: string; namespace?: string; name?: string; uid?: string; fieldPath?: string };
  type?: 'Normal' | 'Warning';
  reason?: string;
  message?: string;
  count?: number;
  firstTimestamp?: string;
  lastTimestamp?: string;
  eventTime?: string;
  source?: { component?: string; host?: string };
  reportingComponent?: string;
}

export interface Namespace extends KubernetesObject {
  status?: { phase?: 'Active' | 'Terminating'; conditions?: Condition[] };
}

export interface Deployment extends KubernetesObject {
  spec?: { replicas?: number; paused?: boolean; selector?: LabelSelector; template?: PodTemplateSpec; strategy?: { type?: string } };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    readyReplicas?: number;
    updatedReplicas?: number;
    availableReplicas?: number;
    unavailableReplicas?: number;
    conditions?: Condition[];
  };
}

export interface ReplicaSet extends KubernetesObject {
  spec?: { replicas?: number; selector?: LabelSelector; template?: PodTemplateSpec };
  status?: { observedGeneration?: number; replicas?: number; readyReplicas?: number; availableReplicas?: number; conditions?: Condition[] };
}

export interface StatefulSet extends KubernetesObject {
  spec?: { replicas?: number; serviceName?: string; selector?: LabelSelector; template?: PodTemplateSpec };
  status?: { observedGeneration?: number; replicas?: number; readyReplicas?: number; currentReplicas?: number; updatedReplicas?: number };
}

export interface DaemonSet extends KubernetesObject {
  spec?: { selector?: LabelSelector; template?: PodTemplateSpec };
  status?: {
    observedGeneration?: number;
    desiredNumberScheduled?: number;
    currentNumberScheduled?: number;
    numberReady?: number;
    numberAvailable?: number;
    updatedNumberScheduled?: number;
  };
}

export interface Job extends KubernetesObject {
  spec?: { parallelism?: number; completions?: number; backoffLimit?: number; suspend?: boolean; template?: PodTemplateSpec };
  status?: { active?: number; succeeded?: number; failed?: number; ready?: number; startTime?: string; completionTime?: string; conditions?: Condition[] };
}

export interface CronJob extends KubernetesObject {
  spec?: { schedule?: string; suspend?: boolean };
  status?: { lastScheduleTime?: string; lastSuccessfulTime?: string; active?: { name?: string; namespace?: string; uid?: string }[] };
}

export interface Service extends KubernetesObject {
  spec?: {
    type?: string;
    clusterIP?: string;
    selector?: Record<string, string>;
    ports?: { name?: string; port: number; targetPort?: number | string; nodePort?: number; protocol?: string }[];
  };
}

export interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

export interface Secret extends KubernetesObject {
  type?: string;
  data?: Record<string, string>;
}

export interface PersistentVolumeClaim extends KubernetesObject {
  spec?: { storageClassName?: string; volumeName?: string; accessModes?: string[]; resources?: { requests?: Quantities } };
  status?: { phase?: string; capacity?: Quantities };
}

export interface PersistentVolume extends KubernetesObject {
  spec?: { storageClassName?: string; capacity?: Quantities; claimRef?: { namespace?: string; name?: string; uid?: string } };
  status?: { phase?: string };
}

export interface ServiceAccount extends KubernetesObject {
  automountServiceAccountToken?: boolean;
}

/** Metrics and other kinds can be added by declaration merging. */
export interface Kinds {
  'v1/pods': Pod;
  'v1/nodes': Node;
  'v1/events': Event;
  'v1/namespaces': Namespace;
  'v1/services': Service;
  'v1/configmaps': ConfigMap;
  'v1/secrets': Secret;
  'v1/persistentvolumes': PersistentVolume;
  'v1/persistentvolumeclaims': PersistentVolumeClaim;
  'v1/serviceaccounts': ServiceAccount;
  'apps/v1/deployments': Deployment;
  'apps/v1/replicasets': ReplicaSet;
  'apps/v1/statefulsets': StatefulSet;
  'apps/v1/daemonsets': DaemonSet;
  'batch/v1/jobs': Job;
  'batch/v1/cronjobs': CronJob;
}
