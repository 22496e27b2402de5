// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The recorded versions of an object, the newest first; each is a way to the board as it was then. */

import { useEffect, useState } from 'preact/hooks';
import { mode } from '../app/state';
import { clock } from '../time/words';
import { history, type Change } from '../time/history';

const WORDS: Record<Change['type'], string> = { ADDED: 'created', MODIFIED: 'changed', DELETED: 'deleted', INITIAL: 'was there', FOLDED: 'no news' };

export function Versions({ path, version }: { path: string; version: unknown }) {
  const [items, setItems] = useState<Change[] | null>(null);
  const [more, setMore] = useState('');
  const [words, say] = useState('');
  const load = (after: string, signal: AbortSignal): void => {
    history.versions(path, after, signal).then(
      (page) => {
        setItems((old) => (after && old ? [...old, ...page.items] : page.items));
        setMore(page.continue ?? '');
        say('');
      },
      (error: Error) => signal.aborted || say(error.message),
    );
  };
  useEffect(() => {
    const stop = new AbortController();
    load('', stop.signal);
    return () => stop.abort();
  }, [path, version]);
  return (
    <>
      {words && <p class="muted">{words}</p>}
      {!items && !words && <p class="muted">asking for its versions</p>}
      <ol class="versions">
        {items?.map((item) => (
          <li key={`${item.resourceVersion} ${item.type}`} class={item.type.toLowerCase()}>
            <button title={`The board at rv ${item.resourceVersion}`} onClick={() => (mode.value = { at: `rv:${item.resourceVersion}`, time: Date.parse(item.time), speed: 0 })}>
              <time class="mono">{clock(Date.parse(item.time))}</time> <b>{WORDS[item.type]}</b>
              {item.folded && <span class="muted"> {item.folded.count} times</span>}
              {item.inferred && <span class="muted"> not seen, only found out</span>}
            </button>
            {item.summary?.map((line) => <p key={line} class="muted">{line}</p>)}
            {item.by?.length ? <p class="muted small">by {item.by.map((m) => m.manager).join(', ')}</p> : null}
          </li>
        ))}
      </ol>
      {more && <button class="link" onClick={() => load(more, new AbortController().signal)}>older</button>}
    </>
  );
}
