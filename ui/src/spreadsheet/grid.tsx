// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The cells of a tab. Only those in view are rendered. */

import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { rowHeight } from '../app/window';
import { inRange, isFormula, keyOf, letters, nameOf, type Range } from './cells';
import { changeOf } from './changes';
import { copyCells, pasted } from './clipboard';
import { onKey } from './keys';
import { useScroll } from '../shell/scrolling';
import type { Sheet } from './sheet';
import { firstRow, type Tab } from './tab';

/** The width of the numbers of rows, in pixels. */
const gutter = 56;
/** Rows and columns beyond what is in view. */
const margin = 3;

/** The width of a column, in pixels. */
export function widthOf(tab: Tab, column: number): number {
  if (column > tab.lastBound) return 104;
  if (column <= 2) return column === 1 ? 128 : 200;
  return Math.min(280, Math.max(96, 24 + 7.4 * tab.headingAt(column).length));
}

export function Grid({ sheet }: { sheet: Sheet }) {
  const tab = sheet.active!;
  void sheet.book.version.value;
  const element = useRef<HTMLDivElement>(null);
  const scroll = useScroll(element);
  const across = scroll.left;
  const [lastRow, lastColumn] = sheet.last;
  const height = rowHeight();
  const lefts: number[] = [gutter];
  for (let column = 1; column <= lastColumn; column++) lefts.push(lefts[column - 1] + widthOf(tab, column));
  const firstSeen = Math.max(1, lefts.findIndex((left) => left > across + gutter) - margin);
  const end = lefts.findIndex((left) => left > across + scroll.width);
  const lastSeen = Math.min(lastColumn, (end < 0 ? lastColumn : end) + margin);
  const from = Math.max(2, Math.floor(scroll.top / height) - margin);
  const to = Math.min(lastRow, Math.ceil((scroll.top + scroll.height) / height) + margin);
  const columns = Array.from({ length: Math.max(0, lastSeen - firstSeen + 1) }, (_, i) => firstSeen + i);
  const [row, column] = sheet.end.value;
  useEffect(() => reveal(element.current!, row, lefts[column - 1], lefts[column], height), [row, column, tab]);
  // With the rendering, not after it: a later focus would take keys from what was focused meanwhile.
  useLayoutEffect(() => {
    if (sheet.editing.value === null) element.current!.focus({ preventScroll: true });
  }, [sheet.editing.value === null, tab]);
  const template = { gridTemplateColumns: `${lefts[firstSeen - 1]}px ${columns.map((one) => `${widthOf(tab, one)}px`).join(' ')}` };
  const cellAt = (event: PointerEvent): [number, number] | null => {
    const at = (event.target as HTMLElement).closest<HTMLElement>('[data-cell]')?.dataset.cell?.split(',');
    return at ? [Number(at[0]), Number(at[1])] : null;
  };
  // Rows and cells read no signals: they are rendered with the grid.
  const [active, activeColumn] = sheet.cell.value;
  const look: Look = { sheet, tab, columns, template, active, activeColumn, range: sheet.range, editing: sheet.editing.value !== null };
  const shown = (one: number): boolean => one === 1 || (one >= from && one <= to);
  return (
    <div
      class="cells" ref={element} tabIndex={0} role="grid" aria-label={tab.name} aria-rowcount={lastRow} aria-colcount={lastColumn} aria-multiselectable="true"
      aria-activedescendant={shown(active) && columns.includes(activeColumn) ? `cell-${nameOf(active, activeColumn)}` : undefined}
      onKeyDown={(event) => {
        if (event.target !== element.current) return;
        // The field is not there yet: fast typing goes on.
        if (sheet.editing.value !== null) {
          if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
            event.preventDefault();
            sheet.editing.value += event.key;
          }
          editorKey(sheet, event);
        } else if (onKey(sheet, event, Math.max(1, Math.floor(scroll.height / height) - 3))) {
          event.preventDefault();
          event.stopPropagation();
        }
      }}
      onPointerDown={(event) => {
        const at = cellAt(event);
        if (!at || event.button !== 0 || (event.target as HTMLElement).closest('input')) return;
        if ((event.target as HTMLElement).classList.contains('fill-handle')) return;
        if (sheet.editing.value !== null && !sheet.commit()) return;
        sheet.select(...at, event.shiftKey);
        drag(event, (to) => sheet.select(...to, true), () => undefined);
      }}
      onDblClick={(event) => (event.target as HTMLElement).closest('[data-cell]') && sheet.edit()}
      onCopy={(event) => copy(sheet, event, false)}
      onCut={(event) => copy(sheet, event, true)}
      onPaste={(event) => paste(sheet, event)}
    >
      <div class="head" role="rowgroup" style={{ width: `${lefts[lastColumn]}px` }}>
        <div class="letters" role="row" style={template}>
          <span role="columnheader" class="corner"><span class="visually-hidden">row</span></span>
          {columns.map((one) => <span key={one} role="columnheader" aria-colindex={one} class={activeColumn === one ? 'on' : ''}>{letters(one)}</span>)}
        </div>
        <Row look={look} row={1} top={0} />
      </div>
      <div class="body" role="rowgroup" style={{ height: `${lastRow * height}px`, width: `${lefts[lastColumn]}px` }}>
        {Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i).map((one) => <Row key={one} look={look} row={one} top={(one - firstRow) * height} />)}
      </div>
    </div>
  );
}

/** What the rows of one rendering have in common. */
interface Look {
  sheet: Sheet;
  tab: Tab;
  columns: number[];
  template: { gridTemplateColumns: string };
  active: number;
  activeColumn: number;
  range: Range;
  editing: boolean;
}

function Row({ look, row, top }: { look: Look; row: number; top: number }) {
  const { tab, columns, template } = look;
  return (
    <div class={`line ${row === 1 ? 'names' : ''} ${tab.entryAt(row)?.gone ? (tab.at ? 'absent' : 'gone') : ''}`} role="row" aria-rowindex={row} style={{ ...template, transform: top ? `translateY(${top}px)` : undefined }}>
      <span role="rowheader" class="number">{row}</span>
      {columns.map((column) => <Cell key={column} look={look} row={row} column={column} />)}
    </div>
  );
}

function Cell({ look: { sheet, tab, active: activeRow, activeColumn, range, editing }, row, column }: { look: Look; row: number; column: number }) {
  const active = row === activeRow && column === activeColumn;
  const selected = inRange(range, row, column);
  const key = keyOf(row, column);
  const input = tab.inputs.get(key);
  const text = tab.textAt(row, column);
  const bound = tab.isBound(row, column);
  const change = bound && input !== undefined && row > 1 ? changeOf(tab, key, input) : null;
  const value = input === undefined ? tab.valueAt(row, column) : undefined;
  const numeric = typeof value === 'number' || typeof value === 'bigint' || (input !== undefined && !input.startsWith("'") && text !== '' && Number.isFinite(Number(text)));
  const kind = [
    active && 'active', selected && 'selected', bound && tab.fixed(row, column) && 'fixed', change && 'changed', change?.problem && 'refused',
    input !== undefined && isFormula(input) && 'formula', numeric && 'number-value',
  ].filter(Boolean).join(' ');
  return (
    <span id={`cell-${nameOf(row, column)}`} data-cell={`${row},${column}`} role="gridcell" aria-colindex={column} aria-selected={selected} aria-readonly={bound && tab.fixed(row, column) !== '' ? true : undefined} class={kind} title={text.length > 14 ? text : undefined}>
      {active && editing ? <Editor sheet={sheet} /> : text}
      {row === range.bottom && column === range.right && !editing && !tab.at && <i class="fill-handle" onPointerDown={(event) => fillFrom(sheet, event)} />}
    </span>
  );
}

/** The field in the selected cell. */
function Editor({ sheet }: { sheet: Sheet }) {
  const element = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (document.activeElement?.closest('.formula-bar')) return;
    element.current!.focus({ preventScroll: true });
    const end = element.current!.value.length;
    element.current!.setSelectionRange(end, end);
  }, []);
  const name = nameOf(...sheet.cell.value);
  return <input ref={element} class="editor" aria-label={`Cell ${name}`} value={sheet.editing.value ?? ''} spellcheck={false} autocomplete="off" onInput={(e) => (sheet.editing.value = e.currentTarget.value)} onKeyDown={(e) => editorKey(sheet, e)} />;
}

/** Enter and Tab take what was typed, and go on; Esc does not. */
export function editorKey(sheet: Sheet, event: KeyboardEvent): void {
  event.stopPropagation();
  if (event.isComposing) return;
  const [row, column] = sheet.cell.value;
  if (event.key === 'Escape') {
    sheet.editing.value = null;
    sheet.refusal.value = '';
  } else if (event.key === 'Enter' || event.key === 'Tab') {
    event.preventDefault();
    const by = event.shiftKey ? -1 : 1;
    if (sheet.commit()) sheet.select(row + (event.key === 'Enter' ? by : 0), column + (event.key === 'Tab' ? by : 0));
  }
}

function reveal(element: HTMLElement, row: number, left: number, right: number, height: number): void {
  const y = (row - firstRow) * height;
  const head = 2 * height;
  if (row > 1 && y < element.scrollTop) element.scrollTop = y;
  else if (row > 1 && y + height + head > element.scrollTop + element.clientHeight) element.scrollTop = y + height + head - element.clientHeight;
  if (left - gutter < element.scrollLeft) element.scrollLeft = left - gutter;
  else if (right > element.scrollLeft + element.clientWidth) element.scrollLeft = right - element.clientWidth;
}

/** Follows the pointer over cells until it is released. */
function drag(event: PointerEvent, over: (cell: [number, number]) => void, done: () => void): void {
  const stop = new AbortController();
  const { signal } = stop;
  if (event.pointerType !== 'mouse') return; // a finger scrolls
  window.addEventListener('pointermove', ({ clientX, clientY }) => {
    const at = document.elementFromPoint(clientX, clientY)?.closest<HTMLElement>('[data-cell]')?.dataset.cell?.split(',');
    if (at) over([Number(at[0]), Number(at[1])]);
  }, { signal });
  for (const end of ['pointerup', 'pointercancel']) window.addEventListener(end, () => { stop.abort(); done(); }, { signal });
}

/** The handle fills cells down or to the right from those that are selected. */
function fillFrom(sheet: Sheet, event: PointerEvent): void {
  event.stopPropagation();
  event.preventDefault();
  const from = sheet.range;
  drag(event, ([row, column]) => {
    const down = row - from.bottom >= column - from.right;
    sheet.selectRange({ ...from, bottom: down ? Math.max(row, from.bottom) : from.bottom, right: down ? from.right : Math.max(column, from.right) });
  }, () => {
    const to = sheet.range;
    const down = to.bottom > from.bottom;
    if (down || to.right > from.right) void sheet.attempt(() => sheet.book.fill(sheet.active!, from, down ? to.bottom : to.right, down));
  });
}

function copy(sheet: Sheet, event: ClipboardEvent, cut: boolean): void {
  if (sheet.editing.value !== null || !event.clipboardData) return;
  event.preventDefault();
  copyCells(event.clipboardData, sheet.active!, sheet.range);
  if (cut) sheet.book.revert(sheet.active!, sheet.book.keysIn(sheet.active!, sheet.range));
}

function paste(sheet: Sheet, event: ClipboardEvent): void {
  if (sheet.editing.value !== null || !event.clipboardData) return;
  event.preventDefault();
  const from = pasted(event.clipboardData, sheet.book.tabs);
  const { top, left, bottom, right } = sheet.range;
  if (!Array.isArray(from)) {
    const { tab, range } = from;
    void sheet.attempt(() => sheet.book.copy(tab, range, sheet.active!, top, left));
    sheet.selectRange({ top, left, bottom: top + range.bottom - range.top, right: left + range.right - range.left });
    return;
  }
  // One value fills what is selected.
  const single = from.length === 1 && from[0].length === 1;
  const rows = single ? bottom - top + 1 : from.length;
  const width = single ? right - left + 1 : Math.max(...from.map((cells) => cells.length));
  const inputs: [number, number, string][] = [];
  for (let r = 0; r < rows; r++) for (let c = 0; c < width; c++) {
    const text = single ? from[0][0] : from[r][c];
    if (text !== undefined) inputs.push([top + r, left + c, text]);
  }
  if (sheet.type(inputs)) sheet.selectRange({ top, left, bottom: top + rows - 1, right: left + width - 1 });
}
