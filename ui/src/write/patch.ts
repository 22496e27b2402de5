// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * JSON Patches (RFC 6902) that change single values of an object. Each operation
 * follows a `test` of the value that the reader saw, so that the patch fails if
 * somebody else has changed that value, and only then: a change of the status,
 * or of another field, is no conflict.
 */

/** The keys and indexes that lead to a value. */
export type Path = (string | number)[];

/** A change of one value. Undefined: the object does not have it, or is not to have it. */
export interface Edit {
  path: Path;
  old: unknown;
  value: unknown;
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

/**
 * What differs between two objects, as edits. Arrays of the same length are
 * compared by element, others are replaced.
 */
export function editsBetween(old: unknown, value: unknown, path: Path = []): Edit[] {
  if (same(old, value)) return [];
  if (Array.isArray(old) && Array.isArray(value) && old.length === value.length) return old.flatMap((one, i) => editsBetween(one, value[i], [...path, i]));
  if (isObject(old) && isObject(value)) {
    return [...new Set([...Object.keys(old), ...Object.keys(value)])].flatMap((key) => editsBetween(Object.hasOwn(old, key) ? old[key] : undefined, Object.hasOwn(value, key) ? value[key] : undefined, [...path, key]));
  }
  return [{ path, old, value }];
}
