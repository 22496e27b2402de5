// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The keyboard shortcuts of the page. Keys that a focused field or button uses are left to it. */

import { continuing } from '../app/address';
import { absent } from '../app/contact';
import { changes, cluster, filter, help, kind, mode, needs, opener, places, selection, selectRow, view } from '../app/state';
import { askMoment } from '../time/goto';
import type { History } from '../time/history';
import { recorded, step, toggleMark, togglePlay, toLive } from '../time/playback';
import { toggleChanges } from '../time/transport';
import type { BoardView } from '../board/view';

const ARROWS: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function listenKeys(board: BoardView, history: History): void {
  window.addEventListener('keydown', (event) => {
    if (document.querySelector('dialog.action')) return; // its keys are its own
    if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && !help.value) {
      event.preventDefault(); // the browser's search
      opener.value = !opener.value;
      return;
    }
    // The dialogs and popovers have their own keys.
    if (opener.value || event.ctrlKey || event.metaKey || event.altKey || help.value || document.querySelector(':popover-open, dialog[open]')) return;
    const target = event.target as HTMLElement;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
    if (event.key === 'Escape') {
      // The browser would empty the field.
      if (target.id === 'filter') event.preventDefault();
      back(target, board);
      return;
    }
    if (event.key === 'Enter' && target.id === 'filter') toView();
    if (typing || (event.key === 'Enter' && target.tagName === 'BUTTON')) return;
    if (press(event, target, board) || (recorded.value && moveInTime(event, target, history))) event.preventDefault();
  });
}

function press(event: KeyboardEvent, target: HTMLElement, board: BoardView): boolean {
  const { camera, marks } = board;
  const onBoard = target === document.body || target.classList.contains('board');
  const arrow = ARROWS[event.key];
  if (arrow && onBoard && view.value === 'board') {
    if (!absent.value) walk(board, arrow[0], arrow[1]);
    return true;
  }
  switch (event.key) {
    case '/':
      document.getElementById('filter')?.focus();
      return true;
    case '?':
      help.value = true;
      return true;
    case ':':
      opener.value = true;
      return true;
    case '0':
      // As large as fits now.
      board.engine.arrange();
      board.fit(true);
      return true;
    case '+':
    case '=':
    case '-':
      camera.zoom(event.key === '-' ? 1 / 1.3 : 1.3, camera.width / 2, camera.height / 2);
      board.steered();
      return true;
    case 't':
      view.value = view.value === 'board' ? 'table' : 'board';
      kind.value = '';
      return true;
    case 'w':
      if (view.value === 'board') places.value = places.value === 'nodes' ? 'workloads' : 'nodes';
      view.value = 'board';
      return true;
    case 'n':
      toNeeds(target);
      return true;
    case 'a':
      document.querySelector<HTMLElement>('.panel .actions')?.click();
      return true;
    case 'Enter':
      if (onBoard && marks.focus >= 0 && !absent.value) selectRow(marks.focus);
      return onBoard;
    default:
      return false;
  }
}

function moveInTime(event: KeyboardEvent, target: HTMLElement, history: History): boolean {
  switch (event.key) {
    case ' ':
      if (target.tagName === 'BUTTON') return false;
      togglePlay();
      return true;
    case ',':
    case '.':
      void step(history, event.key === ',' ? -1 : 1, true).catch((error) => console.error('the next change is not known:', error));
      return true;
    case 'g':
      askMoment();
      return true;
    case 'm':
      toggleMark();
      return true;
    case 'c':
      toggleChanges();
      return true;
    default:
      return false;
  }
}

/** Where the focus was before N moved it to the list: Esc returns there. */
let cameFrom: HTMLElement | null = null;

/** Opens what needs attention and goes to its first entry; from within it, hides it. */
function toNeeds(target: HTMLElement): void {
  if (target.closest('.needs')) {
    needs.value = false;
    toView();
    return;
  }
  cameFrom = target;
  needs.value = true;
  changes.value = false;
  selection.value = null;
  // After it was rendered.
  requestAnimationFrame(() => document.querySelector<HTMLElement>('.needs li button, .needs .sides button')?.focus());
}

/** Moves the focus to the board or the table. */
const toView = (): void => document.querySelector<HTMLElement>('.board, .table')?.focus();

/** Esc leaves the filter, and the list if N led there; otherwise it closes one thing at a time: the panel, the past, the filter. */
function back(target: HTMLElement, board: BoardView): void {
  if (target.id === 'filter') toView();
  else if (cameFrom && target.closest('.needs')) {
    if (cameFrom.isConnected && cameFrom !== document.body) cameFrom.focus();
    else toView();
    cameFrom = null;
  } else if (selection.value) {
    selection.value = null; // the focus goes back to the list or the board
  } else if (mode.value) toLive();
  else if (filter.value) filter.value = '';
  else {
    board.marks.focus = -1;
    board.marked();
  }
}

/** Moves to the next Pod in a direction. The first move goes to the Pod nearest to the upper left corner. */
function walk(board: BoardView, dx: number, dy: number): void {
  const { marks, engine, camera } = board;
  const { layout } = engine;
  if (marks.focus < 0 || !(layout.half[marks.focus] > 0)) {
    let least = Infinity;
    for (let row = 0; row < cluster.length; row++) {
      if (!(layout.half[row] > 0)) continue;
      const x = camera.toScreenX(layout.x[row]);
      const y = camera.toScreenY(layout.y[row]);
      if (x >= 0 && y >= 0 && x + y < least) [marks.focus, least] = [row, x + y];
    }
  } else {
    const next = layout.next(marks.focus, dx, dy);
    if (next >= 0) marks.focus = next;
  }
  if (marks.focus < 0) return;
  camera.reveal(layout.x[marks.focus], layout.y[marks.focus], 60, performance.now(), !engine.reducedMotion);
  if (selection.value) continuing(() => selectRow(marks.focus));
  board.touch();
}
