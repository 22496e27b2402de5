// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What the overview of an object has of its kind, next to what all objects have. */

import type { ComponentType } from 'preact';
import { Columns } from './columns';
import { ConfigMap, Namespace, Secret, ServiceAccount } from './config';
import { CronJob, Job } from './jobs';
import { Ingress, Service } from './network';
import type { Props } from './parts';
import { kindId } from './places';
import { HPA, PDB } from './scaling';
import { PV, PVC } from './storage';
import { Deployment, PodOwner } from './workloads';

/** By the name of a kind, such as `Deployment.apps`. Versions of a group have what is shown in common. */
const KINDS = {
  'Deployment.apps': Deployment,
  'ReplicaSet.apps': PodOwner,
  'StatefulSet.apps': PodOwner,
  'DaemonSet.apps': PodOwner,
  'Job.batch': Job,
  'CronJob.batch': CronJob,
  Service,
  'Ingress.networking.k8s.io': Ingress,
  'HorizontalPodAutoscaler.autoscaling': HPA,
  'PodDisruptionBudget.policy': PDB,
  PersistentVolumeClaim: PVC,
  PersistentVolume: PV,
  ConfigMap,
  Secret,
  ServiceAccount,
  Namespace,
} as Record<string, ComponentType<Props> | undefined>;

/** Kinds whose overview is complete without more. */
const NONE = new Set(['Event', 'Event.events.k8s.io']);

export function KindDetails({ path, ...props }: Props & { path: string }) {
  const id = kindId(props.object.apiVersion ?? '', props.object.kind ?? '');
  if (NONE.has(id)) return null;
  const Kind = Object.hasOwn(KINDS, id) ? KINDS[id] : undefined;
  return Kind ? <Kind {...props} /> : <Columns path={path} {...props} />;
}
