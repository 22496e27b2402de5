// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The button in the panel's header with what the reader may do with an object now. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { lost } from '../app/contact';
import { session } from '../app/login';
import { ended } from '../app/now';
import { placeOf, type Place } from '../app/path';
import { mode } from '../app/state';
import { recorded, toLive } from '../time/playback';
import { allowed, type Stored, type Verb } from '../write/write';
import { controllerWords } from './forms';
import { isRecorded } from './recorded';
import { actionsOf, type Action } from './registry';
import { asked } from './state';

/** The rights are asked for after an object was shown for this long, and again after so long, in milliseconds. */
const pause = 150;
const interval = 30_000;

/** Whether something can be written at all: not in the past, in a recording or without contact. */
export const writable = (): boolean => mode.value === null && !ended.value && !lost.value;

/** Which of some actions the reader may take; none before it is known. */
export function useAllowed(place: Place | null, actions: Action[]): Action[] {
  const [may, setMay] = useState<{ of: string; names: string[] }>({ of: '', names: [] });
  const of = `${session.value.number} ${JSON.stringify(place)} ${actions.map(({ name }) => name).join()}`;
  useEffect(() => {
    if (!place || !actions.length) return;
    let stopped = false;
    const ask = async (): Promise<void> => {
      const answers = await Promise.all(actions.map(async ({ name, needs }) => ({ name, may: (await Promise.all([name !== 'rollback' || isRecorded(place), ...needs.map(isAllowed)])).every(Boolean) })));
      if (!stopped) setMay({ of, names: answers.filter(({ may }) => may).map(({ name }) => name) });
    };
    const first = setTimeout(() => void ask(), pause);
    const next = setInterval(() => void ask(), interval);
    return () => {
      stopped = true;
      clearTimeout(first);
      clearInterval(next);
    };
  }, [of]);
  return may.of === of ? actions.filter(({ name }) => may.names.includes(name)) : [];
}

/** Without an answer, an action is not offered. */
const isAllowed = (verb: Verb): Promise<boolean> => allowed(verb).then((answer) => answer.allowed, () => false);

export function Actions({ path, object }: { path: string; object: { kind?: string } }) {
  const place = placeOf(path);
  const able = writable() && place !== null;
  const actions = useAllowed(place, able ? actionsOf(object, place, recorded.value) : []);
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  if (!actions.length) return null;
  const items = (): HTMLElement[] => [...menu.current!.querySelectorAll<HTMLElement>('[role="menuitem"]')];
  // Before it is painted.
  const put = (): void => {
    const { right, bottom } = button.current!.getBoundingClientRect();
    menu.current!.style.right = `${Math.max(8, innerWidth - right)}px`;
    menu.current!.style.top = `${Math.max(8, Math.min(bottom + 4, innerHeight - 8 - 48 * actions.length))}px`;
  };
  const toggled = (event: { newState: string }): void => {
    const opens = event.newState === 'open';
    setOpen(opens);
    if (opens && !menu.current!.contains(document.activeElement)) items()[0]!.focus();
  };
  const choose = (name: Action['name']): void => {
    menu.current!.hidePopover();
    button.current!.focus(); // where the focus returns after the dialog
    asked.value = { name, path, kind: object.kind ?? '' };
  };
  const keys = (event: KeyboardEvent): void => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const moves: Record<string, number> = { ArrowDown: (at + 1) % all.length, ArrowUp: at - 1, Home: 0, End: -1 };
    event.stopPropagation();
    if (event.key === 'Tab' || event.key === 'Escape') {
      menu.current!.hidePopover();
      button.current!.focus();
    } else if (event.key in moves) all.at(moves[event.key])!.focus();
    else if (/^[a-z]$/i.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const starts = [...all.slice(at + 1), ...all.slice(0, at + 1)].find((item) => item.textContent!.toLowerCase().startsWith(event.key.toLowerCase()));
      starts?.focus();
    } else return;
    event.preventDefault();
  };
  return (
    <>
      <button
        ref={button} class="actions" aria-haspopup="menu" aria-expanded={open} aria-controls="actions" popovertarget="actions"
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
          event.preventDefault();
          event.stopPropagation();
          menu.current!.showPopover();
          items().at(event.key === 'ArrowUp' ? -1 : 0)!.focus();
        }}
      >
        <span>Actions</span> <svg class="caret" width="10" height="10" viewBox="0 0 16 16" aria-hidden="true"><path d="M2.5 5.5h11L8 12z" /></svg>
        <svg class="dots" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d="M6.500 1.500h3v3h-3zM6.500 6.500h3v3h-3zM6.500 11.500h3v3h-3z" /></svg>
      </button>
      <div class="menu" id="actions" ref={menu} role="menu" aria-label="Actions" popover="auto" onBeforeToggle={put} onToggle={toggled} onKeyDown={keys}>
        {actions.map(({ name, label }) => <button key={name} role="menuitem" tabIndex={-1} class={name} onClick={() => choose(name)}>{label}</button>)}
      </div>
    </>
  );
}

/** The button of a deleted object that creates it again. Its dialog is about now, which the page shows then, too. */
export function CreateAgain({ path, object }: { path: string; object: Stored }) {
  const place = placeOf(path);
  const able = place !== null && place.resource !== 'events' && !ended.value && !lost.value && !controllerWords({ path, object });
  const actions = useAllowed(place, able ? [{ name: 'recreate', label: '', needs: [{ verb: 'create', group: place.group, resource: place.resource, namespace: place.namespace }] }] : []);
  if (!actions.length) return null;
  const choose = (): void => {
    if (mode.value) toLive();
    asked.value = { name: 'recreate', path, kind: object.kind ?? '', object };
  };
  return <button class="button plain" onClick={choose}>Create again now…</button>;
}

/** The button of a recorded version that leads back to it. */
export function RollBack({ path, version }: { path: string; version: string }) {
  const place = placeOf(path);
  const able = writable() && place !== null;
  const actions = useAllowed(place, able ? actionsOf({ spec: {} }, place, true).filter(({ name }) => name === 'rollback') : []);
  if (!actions.length) return null;
  return <button class="button plain" onClick={() => (asked.value = { name: 'rollback', path, kind: '', version })}>Roll back to this version</button>;
}
