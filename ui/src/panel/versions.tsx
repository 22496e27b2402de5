// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The recorded versions of an object, the newest first, each with its difference. A click shows the board at that time. */

import { useEffect, useState } from 'preact/hooks';
import { compared, mode, statusUpdates } from '../app/state';
import { when } from '../time/words';
import { RollBack } from '../shell/actions';
import { ChangeRow, walkList } from '../time/change-row';
import { history, refreshed, versionKey, type Change, type Page } from '../time/history';
import { momentOf, playhead, showChange } from '../time/playback';
import { missedSince } from '../time/unrecorded';
import { Comparison } from './comparison';
import { foldStatus, isStatusUpdate, runWords } from './status-runs';

/** How many times that were not observed are listed. */
const maxMissed = 5;

/** `folding`: status updates are folded unless they are switched on. Of a Pod or Node they are what happened. */
export function Versions({ path, version, folding, deleted }: { path: string; version: unknown; folding: boolean; deleted: boolean }) {
  const [found, setFound] = useState<Page<Change> | null>(null);
  const { items = null, more = '' } = found ?? {};
  const [message, setMessage] = useState('');
  const load = (after: string, signal: AbortSignal): void => {
    history.versions(path, after, signal).then(
      (page) => {
        setFound((old) => (after && old ? { ...old, items: [...old.items, ...page.items], more: page.more } : refreshed(old, page, versionKey)));
        setMessage('');
      },
      (error: Error) => signal.aborted || setMessage(error.message),
    );
  };
  useEffect(() => {
    const stop = new AbortController();
    load('', stop.signal);
    return () => stop.abort();
  }, [path, version]);
  const missed = found ? missedSince(found) : [];
  const picked = compared.value.path === path ? compared.value.versions : [];
  const toggle = (rv: string): void => {
    compared.value = { path, versions: picked.includes(rv) ? picked.filter((one) => one !== rv) : [...picked, rv].slice(-2) };
  };
  const shown = playhead.value;
  // The newest version that is not after the shown moment.
  const current = items?.find((item) => (mode.value?.at === momentOf(item) || (shown || Infinity) >= Date.parse(item.time)) && item.type !== 'FOLDED');
  return (
    <>
      {message && <p class="muted">{message}</p>}
      {!items && !message && <p class="muted">loading versions</p>}
      {items?.length === 0 && !more && <p class="muted">No version is recorded.</p>}
      {folding && items?.some(isStatusUpdate) && (
        <div class="kinds which">
          <button class="label" aria-pressed={statusUpdates.value} title="Also list versions in which only the status changed, which controllers write" onClick={() => (statusUpdates.value = !statusUpdates.value)}>status updates</button>
        </div>
      )}
      {missed.slice(0, maxMissed).map((words) => <p key={words} class="gap-note muted">{words[0].toUpperCase()}{words.slice(1)}.</p>)}
      {missed.length > maxMissed && <p class="gap-note muted">And {missed.length - maxMissed} earlier times.</p>}
      <ol class="changes-list">
        {foldStatus(items ?? [], (item) => !folding || statusUpdates.value || (item === current && mode.value !== null) || picked.includes(item.resourceVersion)).map((item) => ('updates' in item ? (
          <li key={`run ${item.from}`} class="folded run" onKeyDown={(event) => void walkList(event)}><button class="pick" title="List them" onClick={() => (statusUpdates.value = true)}><span class="muted">{runWords(item)}</span></button></li>
        ) : (
          <ChangeRow
            key={versionKey(item)} change={item} path={path} current={item === current} choose={() => void showChange(item)}
            foot={!deleted && <RollBack path={path} version={item.resourceVersion} />}
            compare={item.type === 'FOLDED' ? undefined : { on: picked.includes(item.resourceVersion), toggle: () => toggle(item.resourceVersion) }}
          >
            {item.type === 'FOLDED' && item.folded && (
              <>{Object.entries(item.folded.noise ?? {}).map(([kind, n]) => `${kind} ${n}×`).join(', ')}, since {when({ time: item.folded.oldest.time, notBefore: item.notBefore })}</>
            )}
          </ChangeRow>
        )))}
      </ol>
      {more && <button class="link" onClick={() => load(more, new AbortController().signal)}>older</button>}
      <Comparison path={path} picked={picked} items={items ?? []} version={version} />
    </>
  );
}
