// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Keeps the keyboard focus when an update removes or hides the focused element.
 * The browser would give the focus to the body, and the next Tab would start at
 * the top of the page. Instead it goes to the first of these that exists:
 *
 * 1. the same element, if the update only moved it;
 * 2. the element that now has its id or its data-shows, which names the object
 *    that an element shows;
 * 3. the nearest focusable element in the same list, panel or bar;
 * 4. if that panel was closed: what was opened instead, or the board.
 *
 * The Pod that the arrow keys reached on the board is not an element; see
 * board/follow.ts.
 */

import type { RefObject } from 'preact';
import { useLayoutEffect } from 'preact/hooks';

/** Shows a dialog for as long as it is rendered; then the focus returns to where it was. `closed` is called when the user closes it. */
export function useDialog(element: RefObject<HTMLDialogElement | null>, closed: () => void): void {
  // Before the browser paints: keys that follow at once are for the dialog.
  useLayoutEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    dialog.addEventListener('close', closed);
    // The browser would close it too, but later: a key that follows at once would be lost.
    dialog.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.isComposing || event.defaultPrevented) return;
      event.preventDefault();
      event.stopPropagation();
      closed();
    });
    return () => {
      // The event comes later, when the dialog may have been opened again.
      dialog.removeEventListener('close', closed);
      dialog.close();
    };
  }, []);
}

const FOCUSABLE = 'a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), [tabindex]:not([tabindex="-1"])';

/** A neighbour is looked for inside the nearest of these, not beyond it. */
const PARTS = 'aside, header.top, footer.time';

/** Where an element was before an update. */
interface Place {
  element: HTMLElement;
  /** The elements around it, the innermost first; empty outside of a part. */
  around: HTMLElement[];
  /** All focusable elements of its part, in the order of the document. */
  order: HTMLElement[];
}

/** Keeps the focus until the returned function is called. */
export function keepFocus(): () => void {
  let last: Place | null = null;
  /** The last input was a key, so the focus must remain somewhere. */
  let keyboard = false;
  /** A click, Tab or Esc is in progress. They may remove the focus on purpose: from the page, or from the filter. */
  let leaving = false;
  const stop = new AbortController();
  const { signal } = stop;
  const update = (): void => {
    const active = (document.activeElement ?? document.body) as HTMLElement;
    if (holdsFocus(active)) last = placeOf(active);
    else if (last && holdsFocus(last.element) && leaving) last = null;
    else if (last) refocus(last, keyboard);
  };
  const leave = (): void => {
    leaving = true;
    setTimeout(() => {
      update();
      leaving = false;
    });
  };
  document.addEventListener('focusin', update, { signal });
  document.addEventListener('mousedown', () => {
    keyboard = false;
    leave();
  }, { capture: true, signal });
  document.addEventListener('keydown', ({ key }) => {
    keyboard = true;
    if (key === 'Tab' || key === 'Escape') leave();
  }, { capture: true, signal });
  const observer = new MutationObserver(update);
  observer.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ['class', 'disabled'] });
  return () => {
    stop.abort();
    observer.disconnect();
  };
}

function refocus(last: Place, keyboard: boolean): void {
  const to = holdsFocus(last.element) ? last.element : (sameObject(last.element) ?? neighbour(last) ?? (keyboard ? nextPart() : null));
  to?.focus({ preventScroll: true });
}

/** Where the focus goes when the part of the page that had it was closed. */
function nextPart(): HTMLElement | null {
  const places = ['.panel [role=tab][aria-selected=true]', '.changes [aria-current]', '.board, .table'];
  return places.map((place) => document.querySelector<HTMLElement>(place)).find((element) => element && holdsFocus(element)) ?? null;
}

/** Whether an element can have the focus and keep it. */
const holdsFocus = (element: HTMLElement): boolean => element !== document.body && element.isConnected && !element.matches(':disabled') && element.checkVisibility();

function placeOf(element: HTMLElement): Place {
  const part = element.closest<HTMLElement>(PARTS);
  const around: HTMLElement[] = [];
  for (let at = element.parentElement; part?.contains(at); at = at!.parentElement) around.push(at!);
  return { element, around, order: part ? [...part.querySelectorAll<HTMLElement>(FOCUSABLE)] : [] };
}

function sameObject({ id, dataset: { shows } }: HTMLElement): HTMLElement | null {
  const found = id ? document.getElementById(id) : shows ? document.querySelector<HTMLElement>(`[data-shows="${CSS.escape(shows)}"]`) : null;
  return found && holdsFocus(found) ? found : null;
}

/**
 * The nearest focusable element to a place: in its innermost list that still has
 * one, preferably after it. Not a field, which would take the shortcuts' keys.
 */
function neighbour({ element, around, order }: Place): HTMLElement | null {
  const at = order.indexOf(element);
  const near = [...order.slice(at + 1), ...order.slice(0, at).reverse()];
  const fits = (one: HTMLElement): boolean => holdsFocus(one) && !one.matches('input, select');
  for (const outer of around) {
    if (!outer.isConnected) continue;
    const found = near.find((one) => outer.contains(one) && fits(one)) ?? [...outer.querySelectorAll<HTMLElement>(FOCUSABLE)].find(fits);
    if (found) return found;
  }
  return null;
}
