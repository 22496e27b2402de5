// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The paths of columns, as `fields` of the gateway has them (docs/extensions.md):
 * `spec.replicas`, `metadata.labels['app.kubernetes.io/name']`,
 * `spec.template.spec.containers[0].image`, `status.conditions[?(@.type=="Ready")].status`.
 * A path followed by ` @ 10m` is the value at a moment of the past.
 */

import { valueAt, type Path } from '../write/patch';

/** A step: a member, an index, or the first element whose member has a value. */
export type Step = string | number | { member: string; value: string };

const STEP = /^(?:\.?([\w-]+)|\[(\d{1,6})\]|\[(['"])([^'"]+)\3\]|\[\?\(@\.([\w-]+)==(['"])([^'"]*)\6\)\])/;

/** Reads a path. Throws for what the gateway refuses, too, and for `[*]`, which is no single value. */
export function parsePath(text: string): Step[] {
  const steps: Step[] = [];
  for (let rest = text; rest;) {
    const match = STEP.exec(rest);
    if (!match || (steps.length === 0 && rest.startsWith('.')) || (steps.length === 0 && rest.startsWith('[') && match[4] === undefined) || (steps.length > 0 && /^[\w-]/.test(rest))) {
      throw new Error(rest.includes('[*]') ? 'A column has one value: write [0] or [?(@.name=="web")] instead of [*].' : `${text} is no path: at “${rest.slice(0, 20)}”. Write it as in metadata.labels['app.kubernetes.io/name'] or spec.template.spec.containers[0].image.`);
    }
    steps.push(match[1] ?? (match[2] !== undefined ? Number(match[2]) : (match[4] ?? { member: match[5], value: match[7] })));
    rest = rest.slice(match[0].length);
  }
  if (steps.length === 0) throw new Error('A path is missing.');
  return steps;
}

/** A column: a path, and the moment of the past that it shows, as /at takes it; empty for the shown one. */
export interface Column {
  text: string;
  path: string;
  steps: Step[];
  at: string;
  /** Why its cells cannot be changed; empty if they can. */
  fixed: string;
}

export function columnOf(text: string): Column {
  const [, path, at = ''] = /^(.*?)(?:\s+@\s+(\S+))?$/.exec(text.trim())!;
  const steps = parsePath(path);
  return { text: at ? `${path} @ ${at}` : path, path, steps, at, fixed: at ? 'It is a value of the past.' : fixedBecause(steps) };
}

/** Why a value cannot be changed through its object; empty if it can. */
export function fixedBecause([first, second, third]: Step[]): string {
  if (first === 'status') return 'The status is written by controllers.';
  if (first === 'metadata') return (second === 'labels' || second === 'annotations') && third !== undefined ? '' : 'Of the metadata, only labels and annotations can be changed.';
  return first === 'kind' || first === 'apiVersion' ? 'It is what the object is.' : '';
}

/** Whether the values are texts, whatever they look like. */
export const isText = (steps: Step[]): boolean => {
  const parent = steps.at(-2);
  return parent === 'labels' || parent === 'annotations' || parent === 'nodeSelector' || parent === 'matchLabels' || (steps.length === 2 && (steps[0] === 'data' || steps[0] === 'stringData'));
};

/** Whether an element is selected by its value, so that its index is known only from the object. */
export const searches = (steps: Step[]): boolean => steps.some((step) => typeof step === 'object');

/** The keys and indexes of a path in an object, and the members by which elements were found; null if an element is missing. */
export function locate(object: unknown, steps: Step[]): { path: Path; found: { path: Path; value: string }[] } | null {
  const path: Path = [];
  const found: { path: Path; value: string }[] = [];
  for (const step of steps) {
    if (typeof step !== 'object') {
      path.push(step);
      continue;
    }
    const list = valueAt(object, path);
    const index = Array.isArray(list) ? list.findIndex((one) => valueAt(one, [step.member]) === step.value) : -1;
    if (index < 0) return null;
    path.push(index);
    found.push({ path: [...path, step.member], value: step.value });
  }
  return { path, found };
}

/** The value of a path in an object; undefined if there is none. */
export function valueOf(object: unknown, steps: Step[]): unknown {
  const at = locate(object, steps);
  return at ? valueAt(object, at.path) : undefined;
}

/** The paths of the values of an object, for suggestions. */
export function pathsIn(object: unknown, prefix = '', depth = 0): string[] {
  if (typeof object !== 'object' || object === null) return prefix ? [prefix] : [];
  if (depth > 12) return [];
  if (Array.isArray(object)) {
    return object.slice(0, 20).flatMap((one, i) => {
      const by = ['name', 'type'].find((member) => typeof valueAt(one, [member]) === 'string' && !/['"]/.test(valueAt(one, [member]) as string));
      return pathsIn(one, by && prefix.includes('conditions') ? `${prefix}[?(@.${by}=="${String(valueAt(one, [by]))}")]` : `${prefix}[${i}]`, depth + 1);
    });
  }
  return Object.entries(object).flatMap(([key, value]) =>
    prefix === 'metadata' && key === 'managedFields' ? [] : /['"]/.test(key) ? [] : pathsIn(value, /^[\w-]+$/.test(key) ? (prefix ? `${prefix}.${key}` : key) : `${prefix}['${key}']`, depth + 1));
}
