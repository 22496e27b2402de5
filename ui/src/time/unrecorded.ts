// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What the list of changes cannot have. */

import type { Counts } from './history';

/** Resources whose changes often cause others, as in `watchkeeper changes`. */
const SUSPECTS = ['configmaps', 'secrets', 'ingresses.networking.k8s.io', 'networkpolicies.networking.k8s.io', 'horizontalpodautoscalers.autoscaling', 'resourcequotas'];

/** Which of them are not recorded, so that the list cannot have them, without their groups. */
export const notRecorded = ({ resources, denied = [] }: Counts): string[] =>
  SUSPECTS.filter((name) => !denied.includes(name) && !resources.some(({ resource }) => resource === name)).map((name) => name.split('.')[0]);
