// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The part of a table that is in view. */

import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { inFrame } from '../app/frame';
import { rowHeight } from '../app/window';

/** How long an element has to stand still until it does not count as moving, in milliseconds. */
const restInterval = 200;

/** How far an element is scrolled, whether it is moving, and its size, in pixels. */
export function useScroll(element: RefObject<HTMLElement | null>): { top: number; left: number; height: number; width: number; moving: boolean } {
  const [view, setView] = useState({ top: 0, left: 0, height: 800, width: 1200, moving: false });
  useEffect(() => {
    const at = element.current!;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const measure = (): void => setView({ top: at.scrollTop, left: at.scrollLeft, height: at.clientHeight, width: at.clientWidth, moving: timer !== undefined });
    const rest = (): void => {
      timer = undefined;
      measure();
    };
    const scroll = (): void => {
      clearTimeout(timer);
      timer = setTimeout(rest, restInterval);
      inFrame(measure);
    };
    const observer = new ResizeObserver(measure);
    observer.observe(at);
    at.addEventListener('scroll', scroll, { passive: true });
    return () => {
      clearTimeout(timer);
      observer.disconnect();
      at.removeEventListener('scroll', scroll);
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
