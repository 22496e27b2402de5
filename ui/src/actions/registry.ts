// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Which actions an object has, and the rights that each needs. */

import type { Place } from '../app/path';
import type { Verb } from '../write/write';
import { contentOf } from './object';

export type Name = 'scale' | 'restart' | 'rollback' | 'cordon' | 'uncordon' | 'drain' | 'edit' | 'delete' | 'recreate';

export interface Action {
  name: Name;
  /** In the menu. The dots say that a dialog follows. */
  label: string;
  /** What the reader has to be allowed to do. */
  needs: Verb[];
}

interface Shape {
  spec?: { replicas?: unknown; template?: unknown; unschedulable?: boolean };
}

const isWorkload = ({ group, resource }: Place): boolean => group === 'apps' && ['deployments', 'statefulsets', 'daemonsets'].includes(resource);

/** The actions of an object, in the order of the menu. `recorded`: there is a history. */
export function actionsOf(object: object, place: Place, recorded: boolean): Action[] {
  const { spec } = object as Shape;
  const { group, resource, namespace, name } = place;
  const may = (verb: string): Verb => ({ verb, group, resource, namespace, name });
  const actions: Action[] = [];
  const terminating = 'metadata' in object && 'deletionTimestamp' in (object.metadata as object);
  const add = (name: Name, label: string, ...needs: Verb[]): void => void actions.push({ name, label, needs });
  // Then only its finalizers matter.
  if (terminating) {
    add('edit', 'Edit YAML…', may('patch'));
    return actions;
  }
  if (typeof spec?.replicas === 'number') add('scale', 'Scale…', may('patch'));
  if (isWorkload(place) && spec?.template) add('restart', 'Restart…', may('patch'));
  // A Pod's spec is fixed, and an Event is a note.
  if (recorded && !['pods', 'events'].includes(resource) && Object.keys(contentOf(object)).length > 0) add('rollback', 'Roll back…', may('patch'));
  if (group === '' && resource === 'nodes') {
    if (spec?.unschedulable) add('uncordon', 'Uncordon…', may('patch'));
    else add('cordon', 'Cordon…', may('patch'));
    add('drain', 'Drain…', may('patch'), { verb: 'create', group: '', resource: 'pods', subresource: 'eviction' });
  }
  add('edit', 'Edit YAML…', may('patch'));
  add('delete', 'Delete…', may('delete'));
  return actions;
}
