// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Rows of objects, as a gateway makes them. */

import type { Row } from '@watchkeeper/informer';

const STEP = /^\.?([\w-]+)|^\['([^']+)'\]|^\[(\*)\]|^\[\?\(@\.(\w+)=="(\w+)"\)\]/;

function value(of: any, path: string): unknown {
  if (path === '' || of === undefined || of === null) return of ?? null;
  const step = STEP.exec(path);
  if (!step) throw new Error(`not a path: ${path}`);
  const rest = path.slice(step[0].length);
  if (step[1] ?? step[2]) return value(of[step[1] ?? step[2]], rest);
  if (!Array.isArray(of)) return null;
  if (step[3]) return of.map((one) => value(one, rest));
  return value(of.find((one) => one[step[4]] === step[5]), rest);
}

/** The row of an object with these fields. */
export const rowOf = (object: any, fields: string[]): Row =>
  ['metadata.namespace', 'metadata.name', 'metadata.uid', 'metadata.resourceVersion', ...fields].map((path) => value(object, path)) as Row;
