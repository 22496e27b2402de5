// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * JSON Patches (RFC 6902) that change single values of an object. Each operation
 * follows a `test` of the value that the reader saw, so that the patch fails if
 * somebody else has changed that value, and only then: a change of the status,
 * or of another field, is no conflict.
 */

import { stringify } from '@watchkeeper/informer/json';
import { escaped } from './escape';

/** The keys and indexes that lead to a value. */
export type Path = (string | number)[];

/** A change of one value. Undefined: the object does not have it, or is not to have it. */
export interface Edit {
  path: Path;
  old: unknown;
  value: unknown;
  /** Values that have to be there, too: they tell the items of a list from each other, whose indexes change. */
  beside?: { path: Path; value: unknown }[];
}

export interface Operation {
  op: 'test' | 'add' | 'replace' | 'remove';
  path: string;
  value?: unknown;
}

/** A path as a JSON Pointer (RFC 6901). */
export const pointer = (path: Path): string => path.map((step) => `/${String(step).replace(/~/g, '~0').replace(/\//g, '~1')}`).join('');

/** A path in words, as `fields` of the gateway has it. */
export const pathText = (path: Path): string =>
  path.map((step, i) => (typeof step === 'number' ? `[${step}]` : /^[\w-]+$/.test(step) ? `${i ? '.' : ''}${step}` : `['${step}']`)).join('');

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value at a path; undefined if there is none. */
export const valueAt = (object: unknown, path: Path): unknown =>
  path.reduce<unknown>((at, step) => (typeof at === 'object' && at !== null && Object.hasOwn(at, step) ? (at as Record<string | number, unknown>)[step] : undefined), object);

/** Whether two JSON values are equal, in whatever order their keys are. */
export function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => same(one, b[i]));
  if (!isObject(a) || !isObject(b)) return Object.is(a, b);
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

/**
 * Makes a patch. `object` tells which objects around an added value are missing
 * and have to be added, too; without it they are taken to exist. `uid` makes the
 * patch fail for another object of the same name.
 */
export function patchOf(edits: Edit[], object?: unknown, uid?: string): Operation[] {
  const operations: Operation[] = uid ? [{ op: 'test', path: '/metadata/uid', value: uid }] : [];
  const made = new Set<string>();
  for (const { path, value } of new Map(edits.flatMap(({ beside = [] }) => beside).map((one) => [pointer(one.path), one])).values()) {
    operations.push({ op: 'test', path: pointer(path), value });
  }
  for (const { path, old, value } of edits) {
    if (old === undefined && object !== undefined) {
      for (let depth = 1; depth < path.length; depth++) {
        const parent = path.slice(0, depth);
        const at = pointer(parent);
        if (valueAt(object, parent) !== undefined || made.has(at)) continue;
        made.add(at);
        // A member that does not exist is null for the API server's `test`, if what it is in exists.
        operations.push({ op: 'test', path: at, value: null }, { op: 'add', path: at, value: {} });
      }
    }
    const at = pointer(path);
    operations.push({ op: 'test', path: at, value: old === undefined ? null : old });
    if (value === undefined) operations.push({ op: 'remove', path: at });
    else operations.push({ op: old === undefined ? 'add' : 'replace', path: at, value });
  }
  return operations;
}

/** What Go escapes in JSON. */
const ESCAPED = /[<>&\u2028\u2029]/g;

/** A patch as JSON. The API server compares the text of a `test` with its own, so strings are written as it writes them. */
export const bodyOf = (operations: Operation[]): string => escaped(stringify(operations), ESCAPED);

/** The fields that name an item of a list in most of Kubernetes' types. */
const NAMES = ['name', 'type', 'key', 'mountPath', 'containerPort', 'port', 'ip', 'uid'];

/** What tells an item of a list from the others: its name, or else all of it. */
function identity(item: unknown, path: Path): { path: Path; value: unknown } {
  const name = isObject(item) ? NAMES.find((key) => Object.hasOwn(item, key) && typeof item[key] !== 'object') : undefined;
  return name ? { path: [...path, name], value: (item as Record<string, unknown>)[name] } : { path, value: item };
}

/**
 * What differs between two objects, as edits. Lists of the same length are
 * compared by item, if their items are objects; others are replaced.
 */
export function editsBetween(old: unknown, value: unknown, path: Path = [], beside: Edit['beside'] = undefined): Edit[] {
  if (same(old, value)) return [];
  if (Array.isArray(old) && Array.isArray(value) && old.length === value.length && [...old, ...value].every(isObject)) {
    return old.flatMap((item, i) => editsBetween(item, value[i], [...path, i], [...(beside ?? []), identity(item, [...path, i])]));
  }
  if (isObject(old) && isObject(value)) {
    return [...new Set([...Object.keys(old), ...Object.keys(value)])].flatMap((key) => editsBetween(Object.hasOwn(old, key) ? old[key] : undefined, Object.hasOwn(value, key) ? value[key] : undefined, [...path, key], beside));
  }
  return [{ path, old, value, ...(beside && { beside }) }];
}

/** Returns an object with another value at a path; without the member, if that is undefined. The given one is not changed. */
export function withValue<T>(object: T, path: Path, value: unknown): T {
  const result = structuredClone(object);
  let at = result as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) {
    if (typeof at[step] !== 'object' || at[step] === null) {
      if (value === undefined) return result;
      at[step] = {};
    }
    at = at[step] as Record<string | number, unknown>;
  }
  const last = path[path.length - 1];
  if (value !== undefined) at[last] = structuredClone(value);
  else if (Array.isArray(at)) at.splice(Number(last), 1);
  else delete at[last];
  return result;
}

/** The edits that undo others: from the values that were written to those before. What the API server made of a value is undone, too. */
export const reversed = (edits: Edit[], before: unknown, written: unknown): Edit[] =>
  edits.flatMap(({ path }) => {
    const [now, then] = [valueAt(written, path), valueAt(before, path)];
    return same(now, then) ? [] : [{ path, old: now, value: then, ...besideOf(written, path) }];
  });

/** What tells the list items of a path from others, in an object that has them. */
function besideOf(object: unknown, path: Path): Pick<Edit, 'beside'> {
  const beside = path.flatMap((step, i) => {
    const to = path.slice(0, i + 1);
    return typeof step === 'number' && i < path.length - 1 && valueAt(object, to) !== undefined ? [identity(valueAt(object, to), to)] : [];
  });
  return beside.length ? { beside } : {};
}
