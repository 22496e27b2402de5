// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The functions that formulas may use: those for which IronCalc, excelize and
 * LibreOffice give the same results (internal/serve/sheet), so that a workbook means the
 * same here, on the command line and in an office program.
 */

import names from '../../../internal/serve/sheet/functions.json';

const supported = new Set<string>(names);

/** The first function of a formula that is not supported, or ''. */
export function unsupported(formula: string): string {
  const bare = formula.replace(/"(?:[^"]|"")*"|'(?:[^']|'')*'/g, '""');
  for (const [, name] of bare.matchAll(/([A-Za-z_][\w.]*)\s*\(/g)) if (!supported.has(name.toUpperCase())) return name.toUpperCase();
  return '';
}
