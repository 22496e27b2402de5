// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The resources that the cluster has, as the details need them. */

import { useEffect, useState } from 'preact/hooks';
import type { Place } from './places';

export interface Known extends Place {
  /** It can be watched, so a gateway may have it. */
  watched: boolean;
}

/** The resources of the cluster. The tables learn them, and load later, too. */
export async function learned(): Promise<Known[]> {
  const { learn, problem, resources } = await import('../kinds');
  await learn();
  if (!resources.peek()) throw new Error(problem.peek());
  return resources.peek()!.map(({ group, version, name, kind, namespaced, watched }) => ({ apiVersion: group ? `${group}/${version}` : version, name, kind, namespaced, watched }));
}

/** The same, for a component that needs it; empty until it is known. */
export function useKnown(needed = true): Known[] {
  const [known, set] = useState<Known[]>([]);
  useEffect(() => {
    if (!needed) return;
    let shown = true;
    learned().then((all) => shown && set(all), () => {});
    return () => void (shown = false);
  }, [needed]);
  return known;
}
