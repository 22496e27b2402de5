// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Keeps the keyboard focus when an update removes or hides the focused element.
 * The browser would give the focus to the body, and the next Tab would start at
 * the top of the page. Instead it goes to the first of these that exists:
 *
 * 1. the same element, if the update only moved it;
 * 2. the element that now has its id;
 * 3. the nearest focusable element in the same list, panel or bar;
 * 4. if that panel was closed: what was opened instead, or the board.
 */

const FOCUSABLE = 'a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), [tabindex]:not([tabindex="-1"])';

/** A neighbour is looked for inside the nearest of these, not beyond it. */
const PARTS = 'body, main, aside, header.top, footer.time';

/** Keeps the focus until the returned function is called. */
export function keepFocus(): () => void {
  let last: HTMLElement | null = null;
  /** The focus ring was visible, so it must remain visible somewhere. */
  let ring = false;
  const stop = new AbortController();
  const { signal } = stop;
  document.addEventListener('focusin', ({ target }) => {
    last = target as HTMLElement;
    ring = last.matches(':focus-visible');
  }, { signal });
  // These may remove the focus on purpose: a click on the background, Tab out of the page, Esc in the filter.
  document.addEventListener('pointerdown', () => (last = null), { capture: true, signal });
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Tab' || key === 'Escape') last = null;
  }, { capture: true, signal });
  const observer = new MutationObserver((records) => {
    const active = document.activeElement as HTMLElement | null;
    if (active && holdsFocus(active)) {
      last = active;
      return;
    }
    if (!last) return;
    const to = holdsFocus(last) ? last : (sameId(last) ?? neighbour(records, last) ?? (ring ? nextPart() : null));
    to?.focus({ preventScroll: true });
  });
  observer.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ['class', 'disabled'] });
  return () => {
    stop.abort();
    observer.disconnect();
  };
}

/** Where the focus goes when the part of the page that had it was closed. */
export function nextPart(): HTMLElement | null {
  const places = ['.panel [role=tab][aria-selected=true]', '.changes [aria-current]', '.board, .table'];
  return places.map((place) => document.querySelector<HTMLElement>(place)).find((element) => element && holdsFocus(element)) ?? null;
}

/** Whether an element can have the focus and keep it. */
const holdsFocus = (element: HTMLElement): boolean => element !== document.body && element.isConnected && !element.matches(':disabled') && element.checkVisibility();

function sameId({ id }: HTMLElement): HTMLElement | null {
  const found = id ? document.getElementById(id) : null;
  return found && holdsFocus(found) ? found : null;
}

/** The nearest focusable element around the position from which one was removed. */
function neighbour(records: MutationRecord[], removed: HTMLElement): HTMLElement | null {
  const record = records.find(({ removedNodes }) => [...removedNodes].some((node) => node.contains(removed)));
  if (!record) return null;
  let parent = record.target as HTMLElement;
  let [next, previous] = [record.nextSibling, record.previousSibling];
  while (parent.isConnected && !parent.matches('body, main')) {
    for (let node = next; node; node = node.nextSibling) {
      const first = focusable(node)[0];
      if (first) return first;
    }
    for (let node = previous; node; node = node.previousSibling) {
      const nearest = focusable(node).at(-1);
      if (nearest) return nearest;
    }
    if (parent.matches(FOCUSABLE) && holdsFocus(parent)) return parent;
    if (parent.matches(PARTS) || !parent.parentElement) return null;
    [next, previous] = [parent.nextSibling, parent.previousSibling];
    parent = parent.parentElement;
  }
  return null;
}

/** The focusable elements of a node, itself included, in the order of the document. */
function focusable(node: Node): HTMLElement[] {
  if (!(node instanceof HTMLElement)) return [];
  return [node, ...node.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((element) => element.matches(FOCUSABLE) && holdsFocus(element));
}
