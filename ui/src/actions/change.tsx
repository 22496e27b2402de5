// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** A form that changes an object: it shows what the API server would make of the change, and then applies it. */

import { stringify } from '@watchkeeper/informer/json';
import { messageOf } from '../app/api';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Hunks } from '../panel/difference';
import type { Edit } from '../write/patch';
import { Conflict } from '../write/write';
import { apply, preview, type Preview } from './apply';
import { Buttons, Problem, useFirstField, Warnings } from './frame';
import { done, type Subject } from './state';

/** Typing on within this time asks nothing, in milliseconds. */
const pause = 200;

interface Props {
  subject: Subject;
  /** What is to change; null while the form has no valid answer. */
  edits: Edit[] | null;
  /** The button that applies it. */
  press: string;
  /** That it was done, and that it was undone. */
  words: string;
  undone: string;
  /** Why it cannot be done. */
  blocked?: string;
  /** The form has all its fields. */
  complete?: boolean;
  /** Reads the object again. */
  again: () => void;
  close: () => void;
  children?: ComponentChildren;
}

interface Checked {
  key: string;
  preview?: Preview;
  problem: string;
  conflict: boolean;
}

export function Change({ subject, edits, press, words, undone, blocked = '', complete = true, again, close, children }: Props) {
  const [checked, setChecked] = useState<Checked | null>(null);
  const [writing, setWriting] = useState(false);
  useFirstField(complete);
  const ask = edits?.length && !blocked ? edits : null;
  const key = ask ? subject.object.metadata.resourceVersion + stringify(ask) : '';
  useEffect(() => {
    if (!ask) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      preview(subject, ask, stop.signal).then(
        (preview) => setChecked({ key, preview, problem: '', conflict: false }),
        (error: unknown) => stop.signal.aborted || setChecked({ key, problem: messageOf(error), conflict: error instanceof Conflict }),
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  const now = checked?.key === key ? checked : null;
  const ready = now?.preview !== undefined && now.preview.hunks.length > 0;
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!ask || !ready || writing) return;
    setWriting(true);
    apply(subject, ask, words, undone).then(
      (result) => {
        close();
        done.value = result;
      },
      (error: unknown) => {
        setWriting(false);
        setChecked({ key, problem: `Nothing was written. ${messageOf(error)}`, conflict: error instanceof Conflict });
      },
    );
  };
  return (
    <form class="body" onSubmit={submit}>
      {children}
      <div role="status" class={ask && !now ? 'muted' : 'visually-hidden'}>{ask && (now ? (now.problem ? '' : 'The API server accepts this.') : 'Asking the API server.')}</div>
      {edits?.length === 0 && !blocked && <p class="muted">Nothing would change.</p>}
      {now?.preview && <Shown preview={now.preview} />}
      <Problem words={blocked || now?.problem || ''} again={now?.conflict ? again : undefined} />
      <Buttons close={close}>
        <button type="submit" class="button" disabled={!ready}>{writing ? 'Writing' : press}</button>
      </Buttons>
    </form>
  );
}

/** What will change, as the API server says. */
export const Shown = ({ preview: { hunks, warnings } }: { preview: Preview }) => (
  <>
    <Warnings warnings={warnings} />
    <section class="diff" aria-label="What will change">
      {hunks.length > 0 ? <Hunks hunks={hunks} /> : <p class="muted">Nothing would change: the API server sets these values itself.</p>}
    </section>
  </>
);
