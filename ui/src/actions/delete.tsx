// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Deletes an object, after the API server was asked whether it would. */

import { useEffect, useState } from 'preact/hooks';
import { apiError, apiURL, jsonOf, request, messageOf } from '../app/api';
import { Hunks, wholeObject } from '../panel/difference';
import { warningsOf } from '../write/warnings';
import type { Stored } from '../write/write';
import { controllerWords, type FormProps } from './forms';
import { Buttons, Problem, useFirstField, Warnings } from './frame';
import { plain } from './object';
import { recreate } from './recreate';
import { done, type Subject } from './state';

const POLICIES = [
  ['Background', 'now, and what it owns after it'],
  ['Foreground', 'after what it owns'],
  ['Orphan', 'alone: what it owns remains'],
] as const;
type Policy = (typeof POLICIES)[number][0];

/** With these, more is lost than their objects, and undo does not bring it back: their name has to be typed. */
const LOSSES: Record<string, string> = {
  Namespace: 'Everything in the namespace is deleted, and undo does not bring it back.',
  CustomResourceDefinition: 'All objects of this kind are deleted, and undo does not bring them back.',
  PersistentVolumeClaim: 'The data may be deleted, and undo does not bring it back.',
  Node: 'The Pods of the Node are deleted with it, and undo does not bring them back.',
  PersistentVolume: 'The data may be out of reach, and undo does not bring it back.',
};

/** Deletes an object if it is still the same one. Returns the warnings, and whether it still exists. */
async function remove({ path, object }: Subject, propagationPolicy: Policy, dryRun: boolean, signal?: AbortSignal): Promise<{ warnings: string[]; remains: boolean }> {
  const response = await request(apiURL(path), {
    method: 'DELETE', headers: { 'content-type': 'application/json', accept: 'application/json' }, signal,
    body: JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy, preconditions: { uid: object.metadata.uid }, ...(dryRun && { dryRun: ['All'] }) }),
  });
  if (!response.ok) throw await apiError(response);
  const answer = await jsonOf<Stored>(response);
  return { warnings: warningsOf(response.headers.get('warning')), remains: answer.kind !== 'Status' && answer.metadata?.deletionTimestamp !== undefined };
}

export function Delete({ subject, again, close }: FormProps) {
  const { path, object } = subject;
  const { name, finalizers = [] } = object.metadata as Stored['metadata'] & { finalizers?: string[] };
  const loss = LOSSES[object.kind ?? ''];
  const owner = controllerWords(subject);
  const [policy, setPolicy] = useState<Policy>('Background');
  const [typed, setTyped] = useState('');
  const [checked, setChecked] = useState<{ policy: Policy; warnings: string[]; problem: string } | null>(null);
  const [writing, setWriting] = useState(false);
  useFirstField(true);
  useEffect(() => {
    const stop = new AbortController();
    remove(subject, policy, true, stop.signal).then(
      ({ warnings }) => setChecked({ policy, warnings, problem: '' }),
      (error: unknown) => stop.signal.aborted || setChecked({ policy, warnings: [], problem: messageOf(error) }),
    );
    return () => stop.abort();
  }, [subject, policy]);
  const now = checked?.policy === policy ? checked : null;
  const ready = now?.problem === '' && (!loss || typed === name);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!ready || writing) return;
    setWriting(true);
    remove(subject, policy, false).then(
      ({ remains, warnings }) => {
        close();
        const words = [remains ? `${name} is being deleted.` : `Deleted ${name}.`, ...(owner ? [`${owner} may make another one.`] : []), ...warnings].join(' ');
        done.value = { words, ...(!owner && { undo: { label: 'Undo', run: (signal) => recreate(path, object, signal) } }) };
      },
      (error: unknown) => {
        setWriting(false);
        setChecked({ policy, warnings: [], problem: `Nothing was deleted. ${messageOf(error)}` });
      },
    );
  };
  return (
    <form class="body" onSubmit={submit}>
      <label class="field">Delete it{' '}
        <select value={policy} onChange={(event) => setPolicy(event.currentTarget.value as Policy)}>
          {POLICIES.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
        </select>
      </label>
      {owner && <p class="note">{owner} controls it, and may make another one. So there is no undo.</p>}
      {finalizers.length > 0 && <p class="note">It has finalizers ({finalizers.join(', ')}), and remains until their controllers have removed them.</p>}
      {!owner && <p class="muted">Undo creates it again, as a new object: with another uid, and without what it owned.</p>}
      {loss && (
        <>
          <p class="failure">{loss}</p>
          <label class="field">Type <code>{name}</code> to confirm <input type="text" autocomplete="off" autocapitalize="off" spellcheck={false} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} /></label>
        </>
      )}
      <div role="status" class={now ? 'visually-hidden' : 'muted'}>{now ? (now.problem ? '' : 'The API server accepts this.') : 'Asking the API server.'}</div>
      {now && <Warnings warnings={now.warnings} />}
      <section class="diff" aria-label="What will be deleted"><Hunks hunks={[wholeObject(plain(object), '-')]} /></section>
      <Problem words={now?.problem ?? ''} again={again} />
      <Buttons close={close}>
        <button type="submit" class="button danger" disabled={!ready}>{writing ? 'Deleting' : 'Delete'}</button>
      </Buttons>
    </form>
  );
}
