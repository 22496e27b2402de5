// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Mirrors the state of the page in the URL. What moves the reader to another
 * place (a selection, a moment, the view, the side) becomes an entry of the
 * browser's history, so that Back returns; everything else replaces the entry.
 */

import { batch, effect } from '@preact/signals';
import { ALL, changes, compared, filter, group, kind, kinds, marks, mode, needs, nodes, notSelected, onlyDeleted, order, pathOf, places, range, reach, readAddress, selection, selectionText, sheet, statusUpdates, storyLength, tab, usualStory, view } from './state';

/** The changes that the next write of the address has continue a move: see continuing. */
let continued = false;

/**
 * Runs a change that continues a move, such as one step of a drag: from one moment
 * to another, or from one object to the next, it replaces the browser's entry.
 */
export function continuing(change: () => void): void {
  continued = true;
  change();
  // After the write, if the change caused one.
  queueMicrotask(() => (continued = false));
}

/** Keeps the address until the page is closed. */
export function keepAddress(): void {
  let due = false;
  let last = place();
  const write = (): void => {
    due = false;
    const next = place();
    const url = address();
    const here = `${location.pathname}${location.search}`;
    // A move that is continued began with its own entry.
    const same = last.view === next.view && last.side === next.side && (continued ? !last.sel === !next.sel && !last.at === !next.at : last.sel === next.sel && last.at === next.at);
    if (url !== here) history[same ? 'replaceState' : 'pushState'](null, '', url);
    last = next;
  };
  effect(() => {
    if (selection.value) notSelected.value = '';
  });
  effect(() => {
    address();
    if (due) return;
    due = true;
    // Once per click, however many signals it changes.
    queueMicrotask(write);
  });
  window.addEventListener('popstate', () => {
    restore();
    last = place();
  });
}

/** The part of the state that makes an entry of the browser's history. */
const place = () => ({ sel: selection.peek() ? selectionText(selection.peek()!) : '', at: mode.peek()?.at ?? '', view: `${view.peek()} ${kind.peek()} ${places.peek()}`, side: changes.peek() });

function address(): string {
  const params = new URLSearchParams(location.search);
  const put = (key: string, value: string): void => (value ? params.set(key, value) : params.delete(key));
  const sel = selection.value;
  put('q', filter.value);
  put('in', places.value === 'workloads' ? 'workloads' : '');
  put('group', group.value);
  put('nodes', nodes.value === 'name' ? '' : nodes.value);
  put('sort', order.value === 'namespace' ? '' : order.value);
  put('view', view.value === 'board' ? '' : view.value);
  put('kind', view.value === 'board' ? '' : kind.value);
  put('sheet', view.value === 'sheet' ? sheet.value : '');
  put('sel', sel ? selectionText(sel) : '');
  put('tab', sel && tab.value !== 'overview' ? tab.value : '');
  put('compare', sel && tab.value === 'versions' && compared.value.path === pathOf(sel) ? compared.value.versions.join(',') : '');
  put('needs', needs.value ? '' : 'hidden');
  put('side', changes.value ? 'changes' : '');
  put('status', statusUpdates.value ? 'shown' : '');
  put('only', onlyDeleted.value ? 'deleted' : '');
  put('reach', reach.value === null ? '' : reach.value === ALL ? 'all' : String(reach.value));
  put('kinds', kinds.value.join(','));
  put('story', storyLength.value === usualStory ? '' : String(storyLength.value));
  const at = mode.value;
  put('at', at?.at ?? '');
  // A resourceVersion has no time.
  put('t', at?.time && at.at.startsWith('rv:') ? new Date(at.time).toISOString() : '');
  const chosen = range.value;
  put('range', chosen ? `${new Date(chosen.from).toISOString()}/${new Date(chosen.to).toISOString()}` : '');
  put('marks', marks.value.map((mark) => new Date(mark).toISOString()).join(','));
  const text = params.toString().replaceAll('%2F', '/').replaceAll('%3A', ':').replaceAll('%2C', ',');
  return `${location.pathname}${text ? `?${text}` : ''}`;
}

/** Shows the state of the entry that the browser went to. Marks stay: they were set on purpose. */
function restore(): void {
  const to = readAddress(location.search);
  const before = place();
  batch(() => {
    filter.value = to.filter;
    places.value = to.places;
    group.value = to.group;
    nodes.value = to.nodes;
    order.value = to.order;
    view.value = to.view;
    kind.value = to.kind;
    sheet.value = to.sheet;
    tab.value = to.tab;
    needs.value = to.needs;
    changes.value = to.changes;
    compared.value = to.compared;
    statusUpdates.value = to.statusUpdates;
    onlyDeleted.value = to.onlyDeleted;
    reach.value = to.reach;
    storyLength.value = to.storyLength;
    if (kinds.peek().join() !== to.kinds.join()) kinds.value = to.kinds;
    range.value = to.range;
    notSelected.value = to.notSelected;
    // An equal object would load again.
    if ((to.selection ? selectionText(to.selection) : '') !== before.sel) selection.value = to.selection;
    if ((to.mode?.at ?? '') !== before.at || mode.peek()?.speed) mode.value = to.mode;
  });
}
