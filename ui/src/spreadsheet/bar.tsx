// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Above the cells: the selected cell and what is in it, and what can be done with the workbook. */

import { useEffect, useState } from 'preact/hooks';
import { mode } from '../app/state';
import { count } from '../data/quantity';
import { allowed } from '../write/write';
import { keyOf, nameOf, parseName, textOf } from './cells';
import { changeOf } from './changes';
import { editorKey } from './grid';
import type { Sheet } from './sheet';
import type { Tab } from './tab';
import { firstColumn } from './tab';

export function Bar({ sheet, open, close }: { sheet: Sheet; open: (dialog: 'column' | 'files' | 'tab') => void; close: () => void }) {
  void sheet.book.version.value;
  const tab = sheet.active!;
  const pending = sheet.changes();
  const past = mode.value !== null;
  const gone = tab.entries.filter((entry) => entry.gone).length;
  const automatic = sheet.automatic.on.value;
  return (
    <div class="sheet-bar">
      <h2>{tab.name}</h2>
      <span role="status" class="muted">
        {tab.selected && (tab.unknown || (tab.problem && !tab.complete && !tab.entries.length) ? 'not known' : `${count(tab.entries.length - gone, tab.selected.resource.kind)}${tab.complete ? '' : ' so far'}`)}
        {tab.namespaces && `, in the ${count(tab.namespaces.length, 'namespace')} that you may read`}
        {past && ' · The past cannot be changed.'}
      </span>
      {tab.problem && !tab.unknown && <span class="failure" role="alert">{tab.problem}</span>}
      {sheet.book.broken.value && <span class="failure" role="alert">Formulas are not evaluated: {sheet.book.broken.value}.</span>}
      {sheet.tooLong.value && <span class="muted">The workbook is too large for the address: keep it in a file or a ConfigMap.</span>}
      {!past && <Rights tab={tab} />}
      <span class="choices">
        {gone > 0 && !past && <button class="link" onClick={() => void sheet.attempt(() => sheet.book.removeGone(tab))}>Remove {count(gone, 'deleted row')}</button>}
        {tab.selected && !past && <button onClick={() => open('column')}>Columns…</button>}
        <button onClick={() => open('files')}>Files…</button>
        {!past && (
          <span class="segments" role="group" aria-label="How changes are written">
            <button aria-pressed={!automatic} title="Changes are listed, and written when you apply them" onClick={() => (sheet.automatic.on.value = false)}>Review</button>
            <button aria-pressed={automatic} title="Changes are written at once, at most one for each object and second" onClick={() => { sheet.automatic.on.value = true; void sheet.automatic.run(); }}>Automatic</button>
          </span>
        )}
        {!past && <button class={pending.length > 0 ? 'primary' : ''} aria-expanded={sheet.review.value} onClick={() => (sheet.review.value = !sheet.review.value)}>{pending.length === 0 ? 'No changes' : count(pending.length, 'change')}</button>}
        <button class="link" onClick={close}>Close</button>
      </span>
    </div>
  );
}

/** Says why nothing can be written, if the reader may not. */
function Rights({ tab }: { tab: Tab }) {
  const [refused, setRefused] = useState('');
  useEffect(() => {
    if (!tab.selected) return setRefused('');
    const { resource: { group, name, kind }, namespace } = tab.selected;
    let on = true;
    allowed({ verb: 'patch', group, resource: name, namespace }).then(
      ({ allowed: may, reason }) => on && setRefused(may ? '' : `You may not change ${kind} objects${namespace ? ` in ${namespace}` : ' in all namespaces'}${reason ? `: ${reason}` : ''}.`),
      () => undefined, // the writes say it
    );
    return () => { on = false; };
  }, [tab]);
  return refused ? <span class="muted">{refused}</span> : null;
}

/** The name of the selected cell, which can be typed to go to another one, and what is in the cell. */
export function FormulaBar({ sheet }: { sheet: Sheet }) {
  void sheet.book.version.value;
  const tab = sheet.active!;
  const [row, column] = sheet.cell.value;
  const editing = sheet.editing.value;
  const { top, left, bottom, right } = sheet.range;
  const name = top === bottom && left === right ? nameOf(row, column) : `${nameOf(top, left)}:${nameOf(bottom, right)}`;
  const fixed = mode.value ? 'The past cannot be changed.' : tab.fixed(row, column);
  return (
    <div class="formula-bar">
      <input
        key={name} class="name mono" aria-label="Selected cells" defaultValue={name} spellcheck={false} autocomplete="off"
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key !== 'Enter') return;
          const [from, to] = event.currentTarget.value.split(':').map(parseName);
          if (!from) return void (sheet.refusal.value = `“${event.currentTarget.value}” is no cell: write it like C2 or C2:D9.`);
          sheet.select(...from);
          if (to) sheet.select(...to, true);
          event.currentTarget.closest('.spreadsheet')!.querySelector<HTMLElement>('.cells')!.focus();
        }}
      />
      <input
        class="content mono" aria-label="Content of the cell" value={editing ?? tab.inputAt(row, column)} readOnly={fixed !== ''} spellcheck={false} autocomplete="off"
        onInput={(event) => (sheet.editing.value = event.currentTarget.value)}
        onKeyDown={(event) => editorKey(sheet, event)}
        onBlur={(event) => {
          // To a cell: the grid commits. Elsewhere, what was typed stays in the editor.
          if (!(event.relatedTarget as HTMLElement | null)?.closest('.spreadsheet')) sheet.commit();
        }}
      />
      <p class={`note ${sheet.refusal.value ? 'failure' : 'muted'}`} role="status">{sheet.refusal.value || noteOf(sheet, tab, row, column) || fixed}</p>
    </div>
  );
}

/** What there is to say about a cell. */
function noteOf(sheet: Sheet, tab: Tab, row: number, column: number): string {
  const key = keyOf(row, column);
  const input = tab.inputs.get(key);
  const entry = tab.entryAt(row);
  if (entry?.gone && column <= tab.lastBound) return tab.goneWords;
  if (input === undefined || !entry || !tab.columnAt(column)) return '';
  const stopped = sheet.automatic.stopped(tab, key);
  if (stopped) return stopped;
  const change = changeOf(tab, key, input);
  if (!change) return '';
  const now = entry.values[column - firstColumn];
  const words = `${shown(change.old)} → ${shown(change.value)}${now !== change.old && !change.formula ? `; it is ${shown(now)} now` : ''}`;
  return change.problem ? `Not written: ${change.problem}` : `${words}, not written yet.`;
}

export const shown = (value: unknown): string => (value === undefined ? 'none' : textOf(value));
