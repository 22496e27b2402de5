// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The difference between two versions of an object, or between one and the shown moment. */

import { useEffect, useState } from 'preact/hooks';
import { compared, mode } from '../app/state';
import { when, type When } from '../time/words';
import { history, type Change, type ObjectDifference } from '../time/history';
import { playhead } from '../time/playback';
import { hunks } from './diff';
import { Hunks, wholeObject } from './difference';
import { sidesOf, type Side } from './sides';

export function Comparison({ path, picked, items, version }: { path: string; picked: readonly string[]; items: readonly Change[]; version: unknown }) {
  const [found, setFound] = useState<ObjectDifference | null>(null);
  const [message, setMessage] = useState('');
  const shown = mode.value?.at ?? '';
  const sides = sidesOf(picked, items, playhead.value);
  /** The sides that are in the wrong order. The time of a version that is not loaded is in the answer. */
  const [reversed, reverse] = useState('');
  // The RV of a version that was not observed may be inside the gap: nothing is known there.
  const moments = (sides ?? []).map(({ rv, time, notBefore }) => (!rv ? shown || 'now' : notBefore && sides![0].time !== sides![1].time ? new Date(time).toISOString() : `rv:${rv}`));
  const pair = moments.join();
  if (pair === reversed) {
    sides?.reverse();
    moments.reverse();
  }
  const [from, to] = moments;
  // Only the present changes.
  const reload = to === 'now' && version;
  useEffect(() => {
    if (!from || !to) return;
    const stop = new AbortController();
    // The list has when a version was written; the difference only has the time at which it was observed.
    const version = (rv: string) => (items.some(({ resourceVersion }) => resourceVersion === rv) ? undefined : history.version(path, rv, stop.signal));
    Promise.all([history.difference(path, from, to, stop.signal), ...[from, to].map((moment) => (moment.startsWith('rv:') && picked.includes(moment.slice(3)) ? version(moment.slice(3)) : undefined))]).then(
      ([answer, ofFrom, ofTo]) => {
        const difference = { ...answer, from: ofFrom ?? answer.from, to: ofTo ?? answer.to };
        if (Date.parse(difference.from.time) > Date.parse(difference.to.time)) return reverse(pair === reversed ? '' : pair);
        setFound(difference);
        setMessage('');
      },
      (error: Error) => {
        if (stop.signal.aborted) return;
        setFound(null);
        setMessage(error.message);
      },
    );
    return () => stop.abort();
  }, [path, from, to, reload]);
  if (!sides) return null;
  const item = found?.items?.[0];
  return (
    <section class="comparison" aria-label="Comparison">
      <header>
        <p role="status">
          <Bound side={sides[0]} found={found?.from} rv={item ? (item.from ?? 'none') : ''} /> <span class="muted" aria-label="to">→</span> <Bound side={sides[1]} found={found?.to} rv={item ? (item.to ?? 'none') : ''} />
        </p>
        <button class="quiet" aria-label="Close the comparison" title="Close the comparison" onClick={() => (compared.value = { path, versions: [] })}>
          <svg width="12" height="12" viewBox="0 0 16 16" aria-hidden="true"><path d="M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z" /></svg>
        </button>
      </header>
      {message && <p class="failure">{message}</p>}
      {!found && !message && <p class="muted small">loading</p>}
      {found && !item && <p class="muted small">No significant field differs.</p>}
      {item && <div class="diff"><Hunks hunks={linesOf(item)} /></div>}
    </section>
  );
}

const linesOf = ({ type, changes, before, object }: NonNullable<ObjectDifference['items']>[number]) =>
  type === 'ADDED' ? [wholeObject(object, '+')] : type === 'DELETED' ? [wholeObject(before, '-')] : hunks(changes ?? [], before);

/** A bound by time and RV. `rv` is that of the object at the shown moment; "none" if it does not exist. */
function Bound({ side, found, rv }: { side: Side; found: When | undefined; rv: string }) {
  const at: When | undefined = side.time ? { time: new Date(side.time).toISOString(), notBefore: side.notBefore } : side.rv ? found : undefined;
  const version = side.rv || rv;
  return (
    <span class="bound">
      <b>{at ? when(at) : side.rv ? '' : 'now'}</b> {rv === 'none' ? <span class="muted">does not exist</span> : version && <span class="muted mono">RV {version}</span>}
    </span>
  );
}
