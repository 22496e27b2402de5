// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** An object as YAML that people edit. */

import { same, valueAt, withValue, type Path } from '../write/patch';
import type { Conflict } from '../write/write';
import type { plain } from './object';

/** The parser of YAML, which is loaded with the first editor. */
export type Parser = typeof import('./parser');
type Plain = ReturnType<typeof plain>;

/** No line is folded, so that a line is a value. */
const FORMAT = { lineWidth: 0 };

/** The text of an object, without what the API server and controllers write. */
export const textOf = ({ stringify }: Parser, object: Plain): string => stringify(object, FORMAT);

/** What names an object, and what only the API server writes. */
const FIXED: Path[] = [['apiVersion'], ['kind'], ['metadata', 'name'], ['metadata', 'namespace'], ['metadata', 'uid'], ['metadata', 'creationTimestamp'], ['metadata', 'deletionTimestamp']];
const LEFT_OUT: Path[] = [['status'], ['metadata', 'managedFields'], ['metadata', 'resourceVersion'], ['metadata', 'generation']];

/** Reads a text. Throws an Error that says what is wrong with it, and where. */
export function readText({ parseDocument }: Parser, text: string, base: Plain): Plain {
  const document = parseDocument(text, { prettyErrors: true });
  const [error] = document.errors;
  if (error) {
    const at = error.linePos?.[0];
    const what = error.message.split(/ at line \d+|:?\n/)[0];
    throw new Error(`${at ? `Line ${at.line}, column ${at.col}: ` : ''}${what}${/[.:!?]$/.test(what) ? '' : '.'}`);
  }
  const object = document.toJS() as unknown;
  if (typeof object !== 'object' || object === null || Array.isArray(object)) throw new Error('This is no object.');
  const name = (path: Path): string => path.join('.');
  for (const path of FIXED) {
    if (!same(valueAt(object, path), valueAt(base, path))) throw new Error(`${name(path)} cannot be changed: it is ${String(valueAt(base, path) ?? 'not set')}.`);
  }
  for (const path of LEFT_OUT) {
    if (valueAt(object, path) !== undefined) throw new Error(`Leave ${name(path)} out: it is not yours to change here.`);
  }
  return object as Plain;
}

/** An object with the values that somebody else has written meanwhile: what differs from it is changed knowingly. */
export const knowing = (base: Plain, conflicts: Conflict['edits']): Plain =>
  conflicts.reduce((object, { edit, found }) => withValue(object, edit.path, found), base);

/** A text with those values instead of its own. */
export function taking({ parseDocument }: Parser, text: string, conflicts: Conflict['edits']): string {
  const document = parseDocument(text);
  for (const { edit: { path }, found } of conflicts) {
    if (found === undefined) document.deleteIn(path);
    else document.setIn(path, document.createNode(found));
  }
  return document.toString(FORMAT);
}
