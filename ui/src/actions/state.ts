// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Which action is asked about, and what the last one did. */

import { signal } from '@preact/signals';
import type { Stored } from '../write/write';
import type { Name } from './registry';

/** The action whose dialog is open. */
export interface Asked {
  name: Name;
  /** The API path of the object. */
  path: string;
  kind: string;
  /** The version to roll back to, as an RV. */
  version?: string;
  /** The last state of a deleted object. */
  object?: Stored;
}

export const asked = signal<Asked | null>(null);

/** What an action did, and the way back. */
export interface Done {
  words: string;
  /** It did not work. */
  failed?: boolean;
  undo?: { label: string; run: (signal: AbortSignal) => Promise<Done> };
}

export const done = signal<Done | null>(null);

/** The field manager of everything that the page writes. */
export const manager = 'watchkeeper';

/** What a dialog is about: an object as it was just read. */
export interface Subject {
  path: string;
  object: Stored;
}
