// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What lists of changes and of versions cannot have. */

import type { Change, Counts, Page, Unobserved } from './history';
import { clock, zoned } from './words';

/** Resources whose changes often cause others, as in `watchkeeper changes`. */
const SUSPECTS = ['configmaps', 'secrets', 'ingresses.networking.k8s.io', 'networkpolicies.networking.k8s.io', 'horizontalpodautoscalers.autoscaling', 'resourcequotas'];

/** Which of them are not recorded, so that the list cannot have them, without their groups. */
export const notRecorded = ({ resources, denied = [] }: Counts): string[] =>
  SUSPECTS.filter((name) => !denied.includes(name) && !resources.some(({ resource }) => resource === name)).map((name) => name.split('.')[0]);

export const BEFORE = 'before';
const REASONS: Record<string, string> = { gap: 'not observed', late: 'not observed', stopped: 'not recorded any more', silent: 'not known, because the API server did not serve the gateway' };

/** An unobserved time in words, without its resource. */
export const unobservedWords = ({ reason, from, to }: Unobserved): string =>
  reason === BEFORE ? `not recorded before ${zoned(Date.parse(to))}` : `${REASONS[reason] ?? reason} from ${clock(Date.parse(from))} to ${zoned(Date.parse(to))}`;

/** Which times were not observed since the oldest version of a list, the latest first. */
export const missedSince = ({ items, unobserved = [] }: Page<Change>): string[] => {
  const oldest = Date.parse(items.at(-1)?.folded?.oldest.time ?? items.at(-1)?.time ?? '');
  return unobserved.filter(({ reason, to }) => reason !== BEFORE && !(Date.parse(to) < oldest)).map(unobservedWords).reverse();
};
