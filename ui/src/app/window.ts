// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What the window is like. style/narrow.css has the same limits. */

import { signal, type ReadonlySignal } from '@preact/signals';

/** Whether a media query matches. */
function matching(query: string): ReadonlySignal<boolean> {
  const list = matchMedia(query);
  const on = signal(list.matches);
  list.addEventListener('change', () => (on.value = list.matches));
  return on;
}

/** The window is as narrow as that of a phone: the counts of the top bar are folded. */
export const phone = matching('(max-width: 599px)');
/** What can be pressed is large enough for a finger. */
export const large = matching('(max-width: 899px), (pointer: coarse)');

/** The height of a table's row, in pixels. */
export const rowHeight = (): number => (large.value ? 44 : 28);
