// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The dialog of an action, and the parts that its forms have in common. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useDialog } from '../shell/focus';

export function Frame({ title, where, close, children }: { title: string; where: string; close: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useDialog(element, close);
  return (
    // The page's keys are letters.
    <dialog class="action" ref={element} aria-labelledby="action-title" onKeyDown={(event) => event.stopPropagation()}>
      <header>
        <h2 id="action-title">{title}</h2>
        {where && <span class="muted">{where}</span>}
        <button class="quiet" aria-label="Close" title="Close (Esc)" onClick={close}>
          <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true"><path d="M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z" /></svg>
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** Moves the focus to the first field of the dialog, once it is there; without one, to its first button. */
export function useFirstField(there: boolean): void {
  useEffect(() => {
    if (!there) return;
    const fields = document.querySelectorAll<HTMLElement>('dialog.action .body :is(input, select, textarea), dialog.action footer button');
    fields[0]?.focus();
  }, [there]);
}

/** Why something was not done. `again` reads the object again. */
export const Problem = ({ words, again, label = 'Look again' }: { words: string; again?: () => void; label?: string }) => (
  <div role="alert">
    {words && <p class="failure">{words}</p>}
    {words && again && <button type="button" class="button plain" onClick={again}>{label}</button>}
  </div>
);

export const Warnings = ({ warnings }: { warnings: string[] }) =>
  warnings.length ? <ul class="warnings" aria-label="Warnings of the API server">{warnings.map((text) => <li key={text}>Warning: {text}</li>)}</ul> : null;

/** The last row: the buttons. */
export const Buttons = ({ close, children }: { close: () => void; children: ComponentChildren }) => (
  <footer>
    <button type="button" class="button plain" onClick={close}>Cancel</button>
    {children}
  </footer>
);
