// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import type { Cluster } from '../data/cluster';
import type { Positions } from './positions';

/**
 * The row to which the focus of the arrow keys moves after an update. It is the
 * same row unless its Pod was deleted. Then it is that of the Pod that now has
 * its name, on whatever Node; without one it is the nearest Pod, once the ghost
 * of the deleted one has disappeared. -1 if there is no Pod.
 */
export function follow(row: number, cluster: Cluster, positions: Positions): number {
  if (row < 0 || cluster.has(row)) return row;
  const again = cluster.rowOf(cluster.strings[cluster.namespace[row]], cluster.names[row]);
  return again >= 0 ? again : positions.nearest(row, (other) => cluster.has(other));
}
