// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { age } from '../data/quantity';
import { seconds } from '../data/state';
import { clock } from '../time/words';

/** How old an object is, or how long it lived: then `deleted` is when it was deleted, in seconds since 1970, otherwise 0. */
export function lifetime(created: string | undefined, now: number, deleted: number): string {
  const at = seconds(created);
  return deleted ? `${clock(at * 1000)}, lived ${age(deleted - at)}` : `${age(now - at)} ago`;
}

export const Lifetime = ({ created, now, deleted }: { created: string | undefined; now: number; deleted: number }) => <><dt>Created</dt><dd>{lifetime(created, now, deleted)}</dd></>;
