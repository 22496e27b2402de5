// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The part of a table that is in view. */

import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { rowHeight } from '../app/window';

/** How far an element is scrolled, and its size, in pixels. */
export function useScroll(element: RefObject<HTMLElement | null>): { top: number; left: number; height: number; width: number } {
  const [view, setView] = useState({ top: 0, left: 0, height: 800, width: 1200 });
  useEffect(() => {
    const at = element.current!;
    const measure = (): void => setView({ top: at.scrollTop, left: at.scrollLeft, height: at.clientHeight, width: at.clientWidth });
    const observer = new ResizeObserver(measure);
    observer.observe(at);
    at.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      at.removeEventListener('scroll', measure);
    };
  }, []);
  return view;
}

/** Scrolls a table so that a row is in view, below its head. */
export function reveal(table: HTMLElement, index: number): void {
  const y = index * rowHeight();
  if (y < table.scrollTop) table.scrollTop = y;
  else if (y + 2 * rowHeight() > table.scrollTop + table.clientHeight) table.scrollTop = y + 2 * rowHeight() - table.clientHeight;
}
