// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Parts of the page that are loaded after it was painted, or when they are first shown. */

import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';

/** The page is first painted without the parts, in milliseconds. */
const pause = 500;
const parts: { begin(): void; loaded(): boolean }[] = [];

/** A component that is loaded later. Until then, what `waiting` makes of a sentence is shown; nothing without it. */
export function later<P extends object>(load: () => Promise<ComponentType<P>>, waiting?: (words: string) => preact.JSX.Element): ComponentType<P> {
  const loaded = signal<{ part: ComponentType<P> } | null>(null);
  const problem = signal('');
  let begun = false;
  const begin = (): void => {
    if (begun) return;
    begun = true;
    load().then(
      (part) => (loaded.value = { part }),
      () => {
        begun = false; // the next time that it is shown
        problem.value = 'This part of the page could not be loaded: load the page again.';
      },
    );
  };
  parts.push({ begin, loaded: () => loaded.peek() !== null });
  return (props: P) => {
    useEffect(begin, []);
    const Part = loaded.value?.part;
    return Part ? <Part {...props} /> : (waiting?.(problem.value || 'loading') ?? null);
  };
}

/** Loads all parts once the page has nothing else to do: a gateway of a later version does not have those of this page. */
export function loadLater(): void {
  setTimeout(() => {
    for (const { begin } of parts) begin();
  }, pause);
}

/** Whether all parts are loaded. */
export const allLoaded = (): boolean => parts.every(({ loaded }) => loaded());
