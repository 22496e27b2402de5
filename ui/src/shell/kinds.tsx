// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The table of any resource and the dialog that opens it, which are loaded when they are first shown. */

import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { opener } from '../app/state';

const loaded = signal<typeof import('../kinds') | null>(null);
const problem = signal('');

async function load(): Promise<void> {
  try {
    loaded.value = await import('../kinds');
  } catch {
    problem.value = 'This part of the page could not be loaded: load the page again.';
  }
}

export function KindsView() {
  useEffect(() => void load(), []);
  const Kinds = loaded.value?.Kinds;
  return Kinds ? <Kinds /> : <div class="table kinds empty" tabIndex={0}><p role="status">{problem.value || 'loading'}</p></div>;
}

export function OpenerView() {
  const shown = opener.value;
  useEffect(() => {
    if (shown) void load();
  }, [shown]);
  const Opener = loaded.value?.Opener;
  return shown && Opener ? <Opener /> : null;
}
