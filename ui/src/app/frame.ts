// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What is rendered in the next frame. */

const waiting = new Set<() => void>();

/** Calls a function in the next frame, once, together with all others: what they change is rendered once. */
export function inFrame(change: () => void): void {
  if (waiting.size === 0) requestAnimationFrame(run);
  waiting.add(change);
}

function run(): void {
  const all = [...waiting];
  waiting.clear();
  for (const change of all) change();
}
