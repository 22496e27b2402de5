// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Next to the cells: what differs from the cluster, and what was written. */

import { same } from '../write/patch';
import { zoned } from '../time/words';
import { count } from '../data/quantity';
import { pathText } from '../write/patch';
import { shown } from './bar';
import type { Change } from './changes';
import type { Sheet } from './sheet';
import { firstColumn } from './tab';

/** Longer lists are cut off; all of it is applied. */
const maxShown = 200;

export function Review({ sheet }: { sheet: Sheet }) {
  void sheet.book.version.value;
  const changes = sheet.changes();
  const refused = changes.filter(({ problem }) => problem);
  const sound = changes.filter(({ problem }) => !problem);
  const progress = sheet.applier.progress.value;
  const applied = sheet.applier.applied.value;
  const running = progress !== null && progress.phase !== 'done';
  const apply = (others: boolean): void => void sheet.attempt(async () => void (await sheet.applier.apply(changes, others)));
  return (
    <aside class="review" aria-label="Changes">
      <header>
        <h3>{changes.length === 0 ? 'No changes' : count(changes.length, 'change')}</h3>
        <button class="link" onClick={() => (sheet.review.value = false)}>Hide</button>
      </header>
      {progress && <p role="status">{words(progress)}</p>}
      {running && <progress max={progress.total} value={progress.done} aria-label={progress.phase === 'checking' ? 'Checked' : 'Written'} />}
      {changes.length > 0 && !sheet.automatic.on.value && (
        <p class="do">
          <button class="primary" disabled={running} onClick={() => apply(false)}>Apply {changes.length === 1 ? 'the change' : `all ${changes.length}`}</button>
          {refused.length > 0 && sound.length > 0 && <button disabled={running} onClick={() => apply(true)}>Apply the other {sound.length}</button>}
          <button disabled={running} onClick={() => discard(sheet, changes)}>Discard</button>
        </p>
      )}
      {sheet.automatic.anyStopped && <p class="failure">A formula does not settle and was stopped. <button class="link" onClick={() => sheet.automatic.resume()}>Let it write again</button></p>}
      <ul>
        {[...refused, ...sound].slice(0, maxShown).map((change) => <Line key={`${change.tab.index} ${change.key}`} sheet={sheet} change={change} />)}
      </ul>
      {changes.length > maxShown && <p class="muted">and {changes.length - maxShown} more</p>}
      {applied.length > 0 && (
        <>
          <h3>Written</h3>
          <ul>
            {applied.slice(0, maxShown).map((one) => (
              <li key={one.id}>
                <b class="mono">{one.key}</b> <span class="muted">{zoned(one.when)}</span>
                {one.edits.map((edit) => <p key={pathText(edit.path)} class="mono">{pathText(edit.path)}: {shown(edit.old)} → {shown(edit.value)}</p>)}
                {one.problem && <p class="failure">Not undone: {one.problem}</p>}
                {one.state === 'undone' ? <p class="muted">undone</p> : <button class="link" disabled={one.state === 'undoing'} aria-label={`Undo the change of ${one.key}`} onClick={() => void sheet.applier.undo(one)}>Undo</button>}
              </li>
            ))}
          </ul>
        </>
      )}
    </aside>
  );
}

function Line({ sheet, change }: { sheet: Sheet; change: Change }) {
  const { tab, entry, column, old, value, problem, formula } = change;
  const now = entry.values[column - firstColumn];
  const moved = !formula && !entry.gone && !same(now, old);
  const stopped = sheet.automatic.stopped(tab, change.key);
  const select = (): void => {
    sheet.show(tab.index);
    sheet.select(change.row, column);
  };
  return (
    <li>
      <button class="link mono" onClick={select}>{entry.key}</button>{formula && <span class="muted"> by a formula</span>}
      <p class="mono">{tab.columnAt(column)!.text}: <del>{shown(old)}</del> → <ins>{shown(value)}</ins></p>
      {moved && <p>It is {shown(now)} now. <button class="link" onClick={() => { tab.bases.set(change.key, now); tab.failures.delete(change.key); sheet.book.touch(); }}>Replace that</button></p>}
      {problem && <p class="failure">{problem}</p>}
      {stopped && <p class="failure">{stopped}</p>}
      <button class="link" aria-label={`Discard the change of ${entry.key}`} onClick={() => sheet.book.revert(tab, [change.key])}>Discard</button>
    </li>
  );
}

function discard(sheet: Sheet, changes: Change[]): void {
  for (const tab of new Set(changes.map((change) => change.tab))) sheet.book.revert(tab, changes.filter((change) => change.tab === tab).map(({ key }) => key));
}

function words({ phase, done, total, refused, written }: NonNullable<Sheet['applier']['progress']['value']>): string {
  if (phase === 'checking') return `Checked ${done} of ${count(total, 'object')}.`;
  if (phase === 'writing') return `Wrote ${written} of ${count(total, 'object')}${refused ? `, ${refused} refused` : ''}.`;
  if (refused === 0) return `Wrote ${count(written, 'object')}.`;
  return written === 0 ? `${count(refused, 'object')} refused. Nothing was written.` : `Wrote ${count(written, 'object')}; ${refused} refused.`;
}
