// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Reports whether resourceVersion `a` is older than `b`. Both are decimal
 * numbers of up to 64 bits, without leading zeros. The opaque ones of some
 * aggregated APIs have no order: the result is false.
 */
export function older(a: string, b: string): boolean {
  if (!number.test(a) || !number.test(b)) return false;
  return a.length === b.length ? a < b : a.length < b.length;
}

/** The resourceVersion before `rv`. */
export function before(rv: string): string {
  return number.test(rv) ? String(BigInt(rv) - 1n) : rv;
}

const number = /^[1-9]\d*$/;
