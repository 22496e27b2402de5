// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** One change in a list: time, summary and field manager; opened, also the difference. */

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Difference } from '../panel/difference';
import { history, type Change } from './history';
import { clock, doubt, full, when } from './words';

const WORDS: Record<Change['type'], string> = { ADDED: 'created', MODIFIED: 'changed', DELETED: 'deleted', INITIAL: 'existed', FOLDED: 'minor changes' };
/** How many parts of a summary are shown while the entry is closed. */
const maxParts = 4;

/** Moves the focus to the next or the previous entry of a list for an arrow key; false for another key. `around` selects the list around the entry. */
export function walkList(event: KeyboardEvent, around = 'ol, ul'): boolean {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (!step) return false;
  const entry = event.currentTarget as HTMLElement;
  const list = [...entry.closest(around)!.querySelectorAll<HTMLElement>('.pick')];
  list[list.indexOf(entry.querySelector<HTMLElement>('.pick')!) + step]?.focus();
  event.preventDefault();
  event.stopPropagation();
  return true;
}

interface Props {
  change: Change;
  /** The path of the object. */
  path: string;
  /** Names the object, in lists of several objects. */
  title?: ComponentChildren;
  /** Its namespace, in lists of several objects. */
  where?: string;
  /** The board shows the state after this change. */
  current: boolean;
  choose: () => void;
  /** Adds this version to a comparison, or removes it; `on` while it is part of one. */
  compare?: { on: boolean; toggle: () => void };
  /** Below the difference. */
  foot?: ComponentChildren;
  children?: ComponentChildren;
}

export function ChangeRow({ change, path, title, where, current, choose, compare, foot, children }: Props) {
  const [open, setOpen] = useState(false);
  const { type, summary, by, inferred, notBefore, folded } = change;
  const all = (summary ?? []).filter((line) => line !== WORDS[type]);
  const parts = open ? all : all.slice(0, maxParts);
  const keys = (event: KeyboardEvent): void => {
    if (walkList(event)) return;
    if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
      if (type !== 'FOLDED') setOpen(event.key === 'ArrowRight');
    } else if (event.key === 'd' && compare && !event.ctrlKey && !event.metaKey && !event.altKey) compare.toggle();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const managers = [...new Set((by ?? []).map((m) => m.manager))].join(', ');
  // Of a creation or deletion, the first line may have said everything.
  const more = parts.length > 0 || children || inferred || notBefore || managers;
  return (
    <li class={`${type.toLowerCase()} ${current ? 'current' : ''}`} onKeyDown={keys}>
      <button class="pick" aria-current={current ? 'true' : undefined} title="Show the object and the board at this time" onClick={choose}>
        <time class="mono" dateTime={change.time} title={when(change, full)}>{clock(Date.parse(change.time))}</time>
        <span class="what">
          {title} {(!title || type !== 'MODIFIED' || !all.length) && <b class="type">{WORDS[type]}{folded ? ` ${folded.count}×` : ''}</b>}
        </span>
        <span class="line muted">
          {where && <span>{where}{more && ' · '}</span>}
          <span class="summary">{parts.join(' · ')}</span>{all.length > parts.length && ` and ${all.length - parts.length} more`}
          {children}
          {inferred && ' inferred'}
          {doubt({ notBefore })}
          {managers && <span class="managers">{parts.length > 0 && ' ·'} by {managers}</span>}
        </span>
      </button>
      {compare && (
        <button class="quiet compare" aria-pressed={compare.on} aria-label={`Compare the version of ${when(change)}`} title={compare.on ? 'Leave out of the comparison (D)' : 'Compare with the shown moment, or with a second version (D)'} onClick={compare.toggle}>
          <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true"><path d="M10.500 1 14.500 4.600 10.500 8.200V5.600H2V3.600h8.500zM5.500 7.800v2.600H14v2H5.500V15L1.500 11.400z" /></svg>
        </button>
      )}
      {type !== 'FOLDED' && (
        <button class="quiet" aria-expanded={open} aria-label={`What changed at ${when(change)}`} title={open ? 'Close' : 'Show the difference (→)'} onClick={() => setOpen(!open)}>
          <svg width="12" height="12" viewBox="0 0 16 16" aria-hidden="true"><path d={open ? 'M2.5 5.5h11L8 12z' : 'M5.5 2.5v11L12 8z'} /></svg>
        </button>
      )}
      {open && <Difference history={history} path={path} change={change} />}
      {open && foot && <div class="foot">{foot}</div>}
    </li>
  );
}
