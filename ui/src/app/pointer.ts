// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Handlers of the pointer on an element. */
export interface Pointing {
  down(event: PointerEvent): void;
  move(event: PointerEvent): void;
  /** Released or cancelled. */
  up(event: PointerEvent): void;
  leave(event: PointerEvent): void;
  /** The listener is not passive, so it can prevent scrolling. */
  wheel(event: WheelEvent): void;
}

/** Listens until the returned function is called. */
export function follow(element: HTMLElement, pointing: Pointing): () => void {
  const listening = new AbortController();
  const { signal } = listening;
  element.addEventListener('pointerdown', pointing.down, { signal });
  element.addEventListener('pointermove', pointing.move, { signal });
  element.addEventListener('pointerup', pointing.up, { signal });
  element.addEventListener('pointercancel', pointing.up, { signal });
  element.addEventListener('pointerleave', pointing.leave, { signal });
  element.addEventListener('wheel', pointing.wheel, { passive: false, signal });
  return () => listening.abort();
}
