// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Creates a deleted object again, after the API server was asked whether it would. */

import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../app/api';
import { Hunks, wholeObject } from '../panel/difference';
import type { FormProps } from './forms';
import { Buttons, Problem, useFirstField } from './frame';
import { fresh } from './object';
import { recreate } from './recreate';
import { done } from './state';

export function Recreate({ subject: { path, object }, again, close }: FormProps) {
  /** Why it cannot be created; null before the API server has answered. */
  const [problem, setProblem] = useState<string | null>(null);
  const [writing, setWriting] = useState(false);
  useFirstField(true);
  useEffect(() => {
    const stop = new AbortController();
    recreate(path, object, stop.signal, true).then(() => setProblem(''), (error: unknown) => stop.signal.aborted || setProblem(messageOf(error)));
    return () => stop.abort();
  }, [object]);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (problem !== '' || writing) return;
    setWriting(true);
    recreate(path, object, new AbortController().signal).then(
      (what) => {
        close();
        done.value = what;
      },
      (error: unknown) => {
        setWriting(false);
        setProblem(`Nothing was created. ${messageOf(error)}`);
      },
    );
  };
  return (
    <form class="body" onSubmit={submit}>
      <p class="muted">It is created now, from its last recorded state, as a new object: with another uid, and without what it owned.</p>
      <div role="status" class={problem === null ? 'muted' : 'visually-hidden'}>{problem === null ? 'Asking the API server.' : problem ? '' : 'The API server accepts this.'}</div>
      <section class="diff" aria-label="What will be created"><Hunks hunks={[wholeObject(fresh(object, []), '+')]} /></section>
      <Problem words={problem ?? ''} again={again} />
      <Buttons close={close}>
        <button type="submit" class="button" disabled={problem !== ''}>{writing ? 'Creating' : 'Create'}</button>
      </Buttons>
    </form>
  );
}
