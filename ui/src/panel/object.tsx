// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The overview of an object that is not on the board: a workload, a Service, an Event. */

import { cluster, filter, refresh } from '../app/state';
import { absent, misplaced } from '../app/contact';
import type { ManagedField } from '../data/aligned';
import { clock } from '../data/clock';
import type { Condition } from '../data/state';
import { KindDetails } from '../details/kinds';
import type { Thing } from '../details/objects';
import { kindId } from '../details/places';
import { Events } from './events';
import { Lifetime, type Deletion } from './lifetime';
import { failingPods, replicaWords } from './replicas';
import { Conditions, Labels } from './pod';

export interface AnyObject {
  apiVersion?: string;
  kind?: string;
  metadata: { name: string; namespace?: string; uid?: string; resourceVersion?: string; labels?: Record<string, string>; creationTimestamp?: string; managedFields?: ManagedField[] };
  spec?: { replicas?: number };
  status?: { conditions?: Condition[]; replicas?: number; readyReplicas?: number; updatedReplicas?: number; availableReplicas?: number };
  type?: string;
  reason?: string;
  message?: string;
}

/** Conditions for which True is a problem. */
const BAD = /Failure|Failed|Pressure|Unavailable|Limited/;

/** The moment of what belongs to an object: of a deleted one, just before its deletion. */
export const momentOf = (at: string, deleted: Deletion | null): string => (deleted ? new Date(1000 * deleted.at - 1).toISOString() : at);

export function ObjectOverview({ object, path, at, now, deleted = null }: { object: AnyObject; path: string; at: string; now: number; deleted?: Deletion | null }) {
  const { kind = '', metadata, spec = {}, status = {} } = object;
  const namespace = metadata.namespace ?? '';
  const owns = spec.replicas !== undefined;
  void refresh.value;
  // The board has another moment, or none.
  const elsewhere = deleted !== null || absent.value !== '' || misplaced.value;
  const replicas = replicaWords(status.readyReplicas ?? 0, spec.replicas ?? 0, elsewhere ? 0 : failingPods(cluster, kind, namespace, metadata.name), deleted !== null);
  return (
    <>
      {object.message && <section class="state"><p><b>{object.reason}</b></p><p>{object.message}</p></section>}
      {owns && (
        <section class="state">
          <p class={`words ${replicas.state}`}><b>{replicas.words}</b></p>
          {!deleted && <p><button class="link" onClick={() => (filter.value = kind === 'ReplicaSet' ? `ns:${namespace} name:${metadata.name}` : `ns:${namespace} owner:${kind.toLowerCase()}/${metadata.name}`)}>show its Pods on the board</button></p>}
        </section>
      )}
      <dl class="facts">
        <dt>Kind</dt><dd>{kind}</dd>
        {namespace && <><dt>Namespace</dt><dd><button class="link" onClick={() => (filter.value = `ns:${namespace}`)}>{namespace}</button></dd></>}
        <Lifetime created={metadata.creationTimestamp} now={now} deleted={deleted} />
      </dl>
      <KindDetails key={kindId(object.apiVersion ?? '', kind)} path={path} object={object as Thing} at={momentOf(at, deleted)} now={now} />
      <Conditions of={object} good={(c) => (c.status === 'True') !== BAD.test(c.type)} now={now} />
      <Labels labels={metadata.labels} />
      {kind !== 'Event' && <Events namespace={namespace} name={metadata.name} uid={metadata.uid ?? ''} at={at} now={deleted ? clock.now() : now} deleted={deleted?.at ?? 0} version={metadata.resourceVersion} />}
    </>
  );
}
