// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The Pods of the board as a table. Only the rows in view are rendered. */

import { signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { continuing } from '../app/address';
import { absent } from '../app/contact';
import { refresh, cluster, filter, selection, selectRow } from '../app/state';
import { rowHeight } from '../app/window';
import type { BoardView } from '../board/view';
import { stateName } from '../board/palette';
import { age } from '../data/quantity';
import { clock } from '../data/clock';
import { tableRows, windowOf, type Column } from './rows';
import { reveal, useScroll } from './scrolling';
import { Shape } from './shape';

const COLUMNS: [Column, string][] = [
  ['state', 'Status'], ['name', 'Name'], ['namespace', 'Namespace'], ['node', 'Node'], ['ready', 'Ready'], ['restarts', 'Restarts'], ['age', 'Age'],
];
const sort = signal<{ by: Column; down: boolean }>({ by: 'state', down: false });

/** More than 20,000 rows are sorted at most this often, in milliseconds. */
const sortInterval = 2000;
let sorted: { rows: number[]; key: string; version: number; at: number } = { rows: [], key: '', version: -1, at: 0 };

function currentRows(board: BoardView): number[] {
  const key = `${sort.value.by} ${sort.value.down} ${filter.value}`;
  const fresh = sorted.version === cluster.version || (cluster.length > 20_000 && performance.now() - sorted.at < sortInterval);
  if (sorted.key !== key || !fresh) {
    sorted = { rows: tableRows(cluster, board.engine.matches, sort.value.by, sort.value.down), key, version: cluster.version, at: performance.now() };
  }
  return sorted.rows;
}

export function Table({ board }: { board: BoardView }) {
  void refresh.value;
  const element = useRef<HTMLDivElement>(null);
  const view = useScroll(element);
  const rows = absent.value ? [] : currentRows(board);
  const { from, to } = windowOf(rows.length, view.top, view.height, rowHeight());
  const now = clock.now();
  const sel = selection.value;
  /** The index of the row that the arrow keys reached. */
  const reached = useRef(0);
  const isSelected = (row: number): boolean => sel?.kind === 'pod' && sel.name === cluster.names[row] && sel.namespace === cluster.strings[cluster.namespace[row]];
  const go = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const at = rows.findIndex(isSelected);
    // After the selected Pod was deleted, continue with the row that has its place.
    const next = Math.min(rows.length - 1, Math.max(0, at < 0 ? reached.current : at + by));
    if (rows[next] === undefined) return;
    reached.current = next;
    continuing(() => selectRow(rows[next]));
    board.marks.focus = rows[next];
    reveal(element.current!, next);
  };
  return (
    <div class="table" ref={element} tabIndex={0} role="grid" aria-label="Pods" aria-rowcount={rows.length + 1} aria-colcount={COLUMNS.length} onKeyDown={go}>
      <div class="head" role="row" aria-rowindex={1}>
        {COLUMNS.map(([by, title]) => {
          const on = sort.value.by === by;
          return (
            <span key={by} role="columnheader" class={by} aria-sort={on ? (sort.value.down ? 'descending' : 'ascending') : 'none'}>
              <button onClick={() => (sort.value = { by, down: on && !sort.value.down })}>{title}{on && (sort.value.down ? ' ↓' : ' ↑')}</button>
            </span>
          );
        })}
      </div>
      <div class="body" style={{ height: `${rows.length * rowHeight()}px` }} role="rowgroup">
        {rows.slice(from, to).map((row, i) => (
          <Row key={row} row={row} index={from + i} now={now} selected={isSelected(row)} />
        ))}
      </div>
    </div>
  );
}

function Row({ row, index, now, selected }: { row: number; index: number; now: number; selected: boolean }) {
  const state = stateName(cluster.shown(row));
  const { containers, ready, restarts } = cluster.readiness(row);
  return (
    <div class="line" role="row" aria-rowindex={index + 2} aria-selected={selected} style={{ transform: `translateY(${index * rowHeight()}px)` }} onClick={() => selectRow(row)}>
      <span role="gridcell" class="state"><Shape state={state} /> <span class={`words ${state}`}>{cluster.strings[cluster.text[row]]}</span></span>
      <span role="gridcell" class="name mono">{cluster.names[row]}</span>
      <span role="gridcell" class="namespace muted">{cluster.strings[cluster.namespace[row]]}</span>
      <span role="gridcell" class="node muted mono">{cluster.nodeName(row) || '–'}</span>
      <span role="gridcell" class="ready">{ready}/{containers}</span>
      <span role="gridcell" class={`restarts ${restarts ? '' : 'muted'}`}>{restarts}</span>
      <span role="gridcell" class="age muted">{age(now - cluster.created[row])}</span>
    </div>
  );
}
