// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** An object as YAML that people edit. */

import { textOf as lineText, toYAML } from '../panel/yaml';
import { same, valueAt, withValue, type Path } from '../write/patch';
import type { Conflict } from '../write/write';
import type { plain } from './object';

type Plain = ReturnType<typeof plain>;

/** The text of an object, without what the API server and controllers write. */
export const textOf = (object: Plain): string => toYAML(object).map((line) => `${lineText(line)}\n`).join('');

/** What names an object, and what only the API server writes. */
const FIXED: Path[] = [['apiVersion'], ['kind'], ['metadata', 'name'], ['metadata', 'namespace'], ['metadata', 'uid'], ['metadata', 'creationTimestamp'], ['metadata', 'deletionTimestamp']];
const LEFT_OUT: Path[] = [['status'], ['metadata', 'managedFields'], ['metadata', 'resourceVersion'], ['metadata', 'generation']];

/** The object that was typed. Throws an Error for what is no object, or another one. */
export function objectOf(object: unknown, base: Plain): Plain {
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
