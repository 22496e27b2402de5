// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** For a moment that is not known: buttons that lead to the nearest ones that are. */

import { useEffect, useState } from 'preact/hooks';
import { askJSON, extensionURL } from '../app/api';
import { mode, scope, type Mode } from '../app/state';
import { knownSpans, nearestKnown, timeOf, type Index } from './known';
import { goTo, ON_BOARD } from './playback';
import { full, zoned } from './words';

/** In the place of the objects of a kind: why they are not known at the shown moment. */
export const NotKnown = ({ kind, resource, why }: { kind: string; resource: string; why: string }) => (
  <div class="notice absent" role="alert"><h1>{kind} objects are not known at this moment</h1><p>{why}</p><Nearest resource={resource} /></div>
);

/** `resource` is shown, in addition to the board. */
export function Nearest({ resource = '' }: { resource?: string }) {
  const [found, setFound] = useState<number[]>([]);
  const shown = mode.value;
  const namespace = scope.value.namespaces?.[0] ?? '';
  useEffect(() => {
    setFound([]);
    if (!shown) return;
    const stop = new AbortController();
    knownMoments(shown, resource, stop.signal).then(setFound, () => {}); // without them, the reason remains
    return () => stop.abort();
  }, [shown, namespace, resource]);
  if (!found.length) return null;
  return (
    <p class="nearest">
      {found.length > 1 ? 'The nearest known moments:' : 'The nearest known moment:'}{' '}
      {found.map((time) => <button key={time} class="button" title={full(time)} onClick={() => goTo(time)}>{zoned(time)}</button>)}
    </p>
  );
}

/** The moments nearest to one at which the board is known, and `resource`, if one is given: itself if that is one. */
export async function knownMoments(moment: Mode, resource = '', signal?: AbortSignal): Promise<number[]> {
  const namespace = scope.peek().namespaces?.[0] ?? '';
  const { resources, ...index } = await askJSON<Index>(extensionURL('history', namespace ? { namespace } : {}), signal);
  const shown = resources.filter((one) => (one.resource === resource || ON_BOARD.some((name) => name === one.resource)) && one.epochs.length);
  return shown.length ? nearestKnown(moment.time || timeOf(BigInt(moment.at.replace('rv:', '')), shown), shown.map((one) => knownSpans(one, index))) : [];
}
