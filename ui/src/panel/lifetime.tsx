// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { age } from '../data/quantity';
import { seconds } from '../data/state';
import { clock, type When } from '../time/words';

/** When an object was deleted, in seconds since 1970: between `notBefore` and `at`, which are the same if it was observed. */
export interface Deletion {
  notBefore: number;
  at: number;
}

export const deletionOf = ({ time, notBefore = time }: When): Deletion => ({ notBefore: Date.parse(notBefore) / 1000, at: Date.parse(time) / 1000 });

/** How long something lasted that began at a time in seconds since 1970, and ended with a deletion. */
export const lasted = (from: number, { notBefore, at }: Deletion): string =>
  notBefore === at ? age(at - from) : notBefore > from ? `at least ${age(notBefore - from)}` : `at most ${age(at - from)}`;

/** How old an object is, or how long it lived. */
export function lifetime(created: string | undefined, now: number, deleted: Deletion | null): string {
  const at = seconds(created);
  return deleted ? `${clock(at * 1000)}, lived ${lasted(at, deleted)}` : `${age(now - at)} ago`;
}

export const Lifetime = ({ created, now, deleted }: { created: string | undefined; now: number; deleted: Deletion | null }) => <><dt>Created</dt><dd>{lifetime(created, now, deleted)}</dd></>;
