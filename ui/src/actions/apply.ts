// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Checks and writes changes of an object, and undoes them. */

import { getJSON } from '../app/api';
import { hunks, type Hunk } from '../panel/diff';
import { history, type Operation } from '../time/history';
import { editsBetween, pointer, reversed, type Edit } from '../write/patch';
import { send, type Stored, type Target } from '../write/write';
import { plain } from './object';
import { manager, type Done, type Subject } from './state';

export const targetOf = ({ path, object }: Subject): Target => ({ path, uid: object.metadata.uid, manager });

/** Edits as people read them, given the object that they apply to. */
export const hunksOf = (edits: Edit[], before: unknown): Hunk[] =>
  hunks(edits.map(({ path, old, value }): Operation => (value === undefined ? { op: 'remove', path: pointer(path) } : { op: old === undefined ? 'add' : 'replace', path: pointer(path), value })), before);

/** What the API server would do. */
export interface Preview {
  hunks: Hunk[];
  warnings: string[];
}

/** Asks the API server what it would make of edits, without writing anything. Throws what a write throws. */
export async function preview(subject: Subject, edits: Edit[], signal: AbortSignal): Promise<Preview> {
  const target = targetOf(subject);
  const current = await getJSON<Stored>(target.path, '', signal);
  const { object, warnings } = await send(target, edits, { dryRun: true, signal, current });
  const before = plain(current);
  return { hunks: hunksOf(editsBetween(before, plain(object)), before), warnings };
}

/** Writes edits. `words` say that it was done, `undone` that it was undone. */
export async function apply(subject: Subject, edits: Edit[], words: string, undone: string): Promise<Done> {
  const { object, warnings } = await send(targetOf(subject), edits);
  return { words: [words, ...warnings].join(' '), undo: { label: 'Undo', run: (signal) => undo(subject, edits, object, undone, signal) } };
}

/** Writes the values from before a write again, if those that it wrote are still there. */
export async function undo(subject: Subject, edits: Edit[], written: Stored, words: string, signal: AbortSignal): Promise<Done> {
  const before = (await recordedBefore(subject.path, written, signal)) ?? subject.object;
  const back = reversed(edits, before, written);
  if (back.length) await send(targetOf(subject), back, { signal });
  return { words };
}

/** The recorded version before one that was written; undefined if it is not recorded. */
async function recordedBefore(path: string, written: Stored, signal: AbortSignal): Promise<Stored | undefined> {
  const rv = written.metadata.resourceVersion;
  try {
    const version = await history.version(path, rv, signal);
    const before = version?.resourceVersion === rv ? (version.before as Stored | undefined) : undefined;
    return before?.metadata.uid === written.metadata.uid ? before : undefined;
  } catch {
    return undefined; // the object as the dialog had it is known
  }
}
