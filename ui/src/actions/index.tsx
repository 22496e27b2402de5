// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The dialog of the chosen action, and what the last action did. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { ComponentType } from 'preact';
import { getJSON, messageOf } from '../app/api';
import { placeOf } from '../app/path';
import { written } from '../app/state';
import type { Stored } from '../write/write';
import { Delete } from './delete';
import { Drain } from './drain-form';
import { Cordon, Restart, Scale, Uncordon, type FormProps } from './forms';
import { Buttons, Frame, Problem } from './frame';
import { Editor } from './editor';
import { writable } from './menu';
import { isAt } from './object';
import type { Name } from './registry';
import { Recreate } from './recreate-form';
import { Rollback } from './rollback';
import { asked, done, type Asked, type Done, type Subject } from './state';

const FORMS: Record<Name, ComponentType<FormProps>> = { scale: Scale, restart: Restart, rollback: Rollback, cordon: Cordon, uncordon: Uncordon, drain: Drain, edit: Editor, delete: Delete, recreate: Recreate };
const TITLES: Record<Name, string> = { scale: 'Scale', restart: 'Restart', rollback: 'Roll back', cordon: 'Cordon', uncordon: 'Uncordon', drain: 'Drain', edit: 'Edit', delete: 'Delete', recreate: 'Create again' };

export { Actions, CreateAgain, RollBack } from './menu';

export const ActionDialogs = () => (
  <>
    {asked.value && <Dialog key={`${asked.value.name} ${asked.value.path}`} {...asked.value} />}
    <Said />
  </>
);

const close = (): void => void (asked.value = null);

function Dialog({ name, path, kind, version, object }: Asked) {
  const [subject, setSubject] = useState<Subject | null>(null);
  const [problem, setProblem] = useState('');
  /** How often it was read, and what is shown of that: each time, the form begins again. */
  const [times, setTimes] = useState(0);
  const [turn, setTurn] = useState(0);
  const place = placeOf(path)!;
  useEffect(() => {
    const stop = new AbortController();
    (object ? Promise.resolve({ ...object }) : getJSON<Stored>(path, '', stop.signal)).then(
      (object) => {
        if (!isAt(object, place)) throw new Error('The answer is not the object that is selected: nothing can be done to it.');
        setSubject({ path, object });
        setTurn(times);
        setProblem('');
      },
    ).catch((error: unknown) => stop.signal.aborted || setProblem(messageOf(error)));
    return () => stop.abort();
  }, [path, times]);
  const again = (): void => setTimes(times + 1);
  const Form = FORMS[name];
  return (
    <Frame title={`${TITLES[name]} ${subject?.object.kind ?? kind} ${place.name}`} where={place.namespace} close={close}>
      {problem || !subject ? (
        <div class="body">
          {!problem && <p class="muted">Reading the object.</p>}
          <Problem words={problem} again={again} />
          <Buttons close={close}>{null}</Buttons>
        </div>
      ) : <Form key={turn} subject={subject} version={version} again={again} close={close} />}
    </Frame>
  );
}

/** What was done, with the way back. It stays until it is closed. */
function Said() {
  const element = useRef<HTMLDivElement>(null);
  const [undoing, setUndoing] = useState(false);
  const stop = useRef<AbortController | null>(null);
  const what = done.value;
  useEffect(() => {
    // From here, Tab leads to Undo.
    if (!what) return;
    written.value++;
    element.current!.focus();
    return () => stop.current?.abort();
  }, [what]);
  const run = async ({ label, run }: NonNullable<Done['undo']>): Promise<void> => {
    if (undoing) return;
    setUndoing(true);
    const here = (stop.current = new AbortController());
    try {
      const result = await run(here.signal);
      if (!here.signal.aborted) done.value = result;
    } catch (error) {
      if (!here.signal.aborted) done.value = { words: `${label} was not possible. ${messageOf(error)}`, failed: true };
    } finally {
      setUndoing(false);
    }
  };
  const dismiss = (): void => {
    done.value = null;
    (document.querySelector<HTMLElement>('.panel .actions') ?? document.querySelector<HTMLElement>('.board, .table'))?.focus();
  };
  return (
    <div class="said" role="status">
      {what && (
        <div class={`what ${what.failed ? 'failed' : ''}`} ref={element} tabIndex={-1}>
          <p>{what.words}</p>
          {what.undo && writable() && <button class="button" onClick={() => void run(what.undo!)}>{undoing ? 'Working' : what.undo.label}</button>}
          <button class="quiet" aria-label="Dismiss" title="Dismiss" onClick={dismiss}>
            <svg width="12" height="12" viewBox="0 0 16 16" aria-hidden="true"><path d="M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z" /></svg>
          </button>
        </div>
      )}
    </div>
  );
}
