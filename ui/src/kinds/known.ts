// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { messageOf } from '../app/api';
import { signal } from '@preact/signals';
import { discover } from './discovery';
import type { Resource } from './resources';

/** The resources of the cluster; null before they are known. */
export const resources = signal<Resource[] | null>(null);
/** Why they are not known; empty if they are. */
export const problem = signal('');
let asked = 0;

/** Learns which resources there are, again after half a minute: definitions come and go. */
export async function learn(): Promise<void> {
  if (resources.peek() && Date.now() - asked < 30_000) return;
  asked = Date.now();
  try {
    resources.value = await discover();
    problem.value = '';
  } catch (error) {
    asked = 0;
    problem.value = messageOf(error);
  }
}
