// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Which resources the gateway records. */

import { askJSON, extension } from '../app/api';
import type { Place } from '../app/path';

/** An answer is used this long, in milliseconds. */
const trusted = 30_000;
let known: { until: number; resources: Promise<Set<string>> } | null = null;

async function ask(): Promise<Set<string>> {
  const { resources } = await askJSON<{ resources: { resource: string }[] | null }>(new URL('history', extension()));
  return new Set(resources?.map(({ resource }) => resource));
}

/** Whether there are recorded versions of a resource. */
export async function isRecorded({ group, resource }: Place): Promise<boolean> {
  if (!known || known.until < Date.now()) known = { until: Date.now() + trusted, resources: ask() };
  const { resources } = known;
  resources.catch(() => (known = null));
  return (await resources.catch(() => new Set())).has(group ? `${resource}.${group}` : resource);
}
