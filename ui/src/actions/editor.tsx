// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Edits an object as YAML. Only what was changed is written. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { getJSON, messageOf } from '../app/api';
import { editsBetween, pathText, type Edit } from '../write/patch';
import { Conflict, type Stored } from '../write/write';
import { apply, preview, type Preview } from './apply';
import { Shown } from './change';
import { knowing, objectOf, textOf } from './document';
import { Controlled, type FormProps } from './forms';
import { Buttons, Problem } from './frame';
import { plain } from './object';
import { done } from './state';
import { readYAML } from './typed';

export function Editor({ subject, close }: FormProps) {
  const { path, object } = subject;
  /** What the text began with. Another one replaces it only if the reader says so. */
  const [base, setBase] = useState(() => plain(object));
  const [text, setText] = useState(() => textOf(base));
  const first = useRef(text);
  /** What the field has now: an answer about another text says nothing. */
  const latest = useRef(text);
  const [checked, setChecked] = useState<{ edits: Edit[]; preview: Preview } | null>(null);
  const [problem, setProblem] = useState('');
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const [asking, setAsking] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const stop = useRef(new AbortController());
  const applying = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    field.current!.focus();
    field.current!.setSelectionRange(0, 0);
    field.current!.scrollTop = 0;
    return () => stop.current.abort();
  }, []);
  const refuse = (error: unknown, lead = ''): void => {
    if (stop.current.signal.aborted) return;
    setChecked(null);
    setProblem(lead + messageOf(error));
    setConflict(error instanceof Conflict ? error : null);
  };
  const check = async (from = base, now = latest.current): Promise<void> => {
    if (asking) return;
    setChecked(null);
    setProblem('');
    setConflict(null);
    setAsking('Asking the API server.');
    try {
      const edits = editsBetween(from, objectOf(await readYAML(now, stop.current.signal), from));
      const shown = edits.length ? await preview(subject, edits, stop.current.signal) : { hunks: [], warnings: [] };
      if (now !== latest.current) return;
      setChecked({ edits, preview: shown });
      requestAnimationFrame(() => applying.current?.focus());
    } catch (error) {
      if (now === latest.current) refuse(error);
    } finally {
      setAsking('');
    }
  };
  const type = (value: string): void => {
    latest.current = value;
    setText(value);
    setChecked(null);
    setProblem('');
    setConflict(null);
  };
  const write = async (): Promise<void> => {
    if (!checked || asking) return;
    setAsking('Writing.');
    try {
      const result = await apply(subject, checked.edits, `Changed ${object.metadata.name}: ${summary(checked.edits)}.`, `Undone: ${object.metadata.name} is as it was before.`);
      close();
      done.value = result;
    } catch (error) {
      refuse(error, 'Nothing was written. ');
      setAsking('');
    }
  };
  /** The others' values are known now: keep the reader's, or take theirs, in a text without its comments. */
  const settle = async (take: boolean): Promise<void> => {
    try {
      const { edits } = conflict!;
      const words = take ? textOf(knowing(objectOf(await readYAML(text, stop.current.signal), base), edits)) : text;
      if (text !== latest.current) return;
      const next = knowing(base, edits);
      setBase(next);
      latest.current = words;
      setText(words);
      await check(next, words);
    } catch (error) {
      refuse(error);
    }
  };
  const compareAgain = async (): Promise<void> => {
    try {
      const current = await getJSON<Stored>(path, '', stop.current.signal);
      if (current.metadata.uid !== object.metadata.uid) throw new Error('The object was deleted, and another one has its name.');
      setBase(plain(current));
      await check(plain(current));
    } catch (error) {
      refuse(error);
    }
  };
  const keys = (event: KeyboardEvent): void => {
    // The text would be lost. A second Esc, on a button, closes the dialog.
    if (event.key === 'Escape' && text !== first.current) {
      event.preventDefault();
      field.current!.form!.querySelector<HTMLElement>('footer .check-text')!.focus();
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void check();
    }
  };
  const ready = checked !== null && checked.preview.hunks.length > 0;
  return (
    <form class="body" onSubmit={(event) => { event.preventDefault(); if (ready) void write(); else void check(); }}>
      <textarea ref={field} class="yaml-text" aria-label="YAML" spellcheck={false} autocapitalize="off" autocomplete="off" wrap="off" rows={20} value={text} aria-invalid={problem !== ''} aria-describedby="yaml-problem" onInput={(event) => type(event.currentTarget.value)} onKeyDown={keys} />
      <Controlled subject={subject} />
      <div role="status" class={asking ? 'muted' : 'visually-hidden'}>{asking || (ready ? 'The API server accepts this.' : '')}</div>
      {checked && (checked.edits.length ? <Shown preview={checked.preview} /> : <p class="muted">Nothing is changed.</p>)}
      <div id="yaml-problem"><Problem words={problem} /></div>
      {conflict && (
        <div class="row">
          {conflict.edits.length > 0 ? (
            <>
              <button type="button" class="button plain" onClick={() => void settle(false)}>Keep mine</button>
              <button type="button" class="button plain" onClick={() => void settle(true)}>Take the other's</button>
            </>
          ) : <button type="button" class="button plain" onClick={() => void compareAgain()}>Compare again with the current object</button>}
        </div>
      )}
      <Buttons close={close}>
        <button type="button" class="button plain check-text" title="Ask the API server (Ctrl Enter)" onClick={() => void check()}>Check</button>
        <button type="submit" class="button" ref={applying} disabled={!ready}>Apply</button>
      </Buttons>
    </form>
  );
}

/** How many changed values are named. */
const maxNamed = 3;
const summary = (edits: Edit[]): string => edits.slice(0, maxNamed).map(({ path }) => pathText(path)).join(', ') + (edits.length > maxNamed ? ` and ${edits.length - maxNamed} more` : '');
