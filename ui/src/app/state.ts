// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The state of the page as signals. Most of it is mirrored in the URL, see address.ts. */

import { computed, signal } from '@preact/signals';
import { NODE_ORDERS, type Arrangement, type NodeOrder, type PodOrder } from '../board/order';
import { DARK, LIGHT } from '../board/palette';
import { Cluster } from '../data/cluster';
import type { Scope, Status } from '../data/protocol';
import { ageOf, parseMoment, parseTime } from '../time/moment';
import { placeOf } from './path';

export const cluster = new Cluster();

/** Incremented a few times per second while the cluster changes: components that read it render again. */
export const refresh = signal(0);
/** The worker's connection. */
export const status = signal<Status>({ phase: 'connecting', text: '', since: Date.now() });
/** What the reader may see of the cluster. */
export const scope = signal<Scope>({ namespaces: null, omitted: 0, incomplete: false, nodes: null });
/** When the last change was received, in milliseconds since 1970. */
export const received = signal(0);

/** Incremented when the page has written: what is not on the board is asked for again. */
export const written = signal(0);

export type Selection =
  | { kind: 'pod'; namespace: string; name: string }
  | { kind: 'node'; name: string }
  /** An object that is not on the board, by its API path. */
  | { kind: 'object'; path: string; name: string }
  | null;

/** A moment of the past, as /at takes it: `rv:812` or a time. */
export interface Mode {
  at: string;
  /** The same in milliseconds since 1970. */
  time: number;
  /** The replay speed relative to real time; 0 while paused. */
  speed: number;
}

/** A story begins an hour before its end. */
export const usualStory = 3600;

/** The state that is in the URL. */
const first = readAddress(location.search);

export const filter = signal(first.filter);
/** What the tiles of the board are. */
export const places = signal<Arrangement['places']>(first.places);
export const group = signal(first.group);
export const nodes = signal<NodeOrder>(first.nodes);
export const order = signal<PodOrder>(first.order);
export const view = signal<'board' | 'table' | 'sheet'>(first.view);
/** The resource whose table is shown, such as deployments.apps; empty for the Pods of the board. */
export const kind = signal(first.kind);
/** The workbook of the spreadsheet, as spreadsheet/stored.ts writes it; empty if the kind says all. */
export const sheet = signal(first.sheet);
export const selection = signal<Selection>(first.selection);
/** What the address selects and no object can be; empty if it selects one, or none. */
export const notSelected = signal(first.notSelected);
export const tab = signal(first.tab);
/** The versions of an object that are compared, by its path: none, one with the shown moment, or two. Each is an RV. */
export const compared = signal(first.compared);
export const needs = signal(first.needs);
/** The side shows the list of changes instead of what needs attention. */
export const changes = signal(first.changes);
/** The list shows changes of the status only, too; and only deletions. */
export const statusUpdates = signal(first.statusUpdates);
export const onlyDeleted = signal(first.onlyDeleted);
/** A reach of the list of changes: everything recorded. */
export const ALL = 0;
/** How far the list of changes reaches, in seconds; null: see reachOf in time/window.ts. And its resources: all if empty. */
export const reach = signal(first.reach);
export const kinds = signal(first.kinds);
/** How long before its end the story of an object begins, in seconds. */
export const storyLength = signal(first.storyLength);
export const help = signal(false);
/** The dialog that opens any kind or object is shown. */
export const opener = signal(false);
export const mode = signal<Mode | null>(first.mode);
/** Marked moments, in milliseconds since 1970. */
export const marks = signal<number[]>(first.marks);
/** The selected time range. */
export const range = signal<{ from: number; to: number } | null>(first.range);

/** Reads the query of a URL. */
export function readAddress(search: string) {
  const query = new URLSearchParams(search);
  const sel = query.get('sel') ?? '';
  const selected = parseSelection(sel);
  return {
    filter: query.get('q') ?? '',
    places: query.get('in') === 'workloads' ? ('workloads' as const) : ('nodes' as const),
    group: query.get('group') ?? '',
    nodes: NODE_ORDERS.find((name) => name === query.get('nodes')) ?? 'name',
    order: (query.get('sort') as PodOrder | null) || 'namespace',
    view: (['table', 'sheet'] as const).find((name) => name === query.get('view')) ?? ('board' as const),
    kind: /^[a-z0-9.-]+$/.exec(query.get('kind') ?? '')?.[0] ?? '',
    sheet: /^[\w-]+$/.exec(query.get('sheet') ?? '')?.[0] ?? '',
    selection: selected,
    notSelected: selected ? '' : sel,
    tab: query.get('tab') ?? 'overview',
    compared: { path: selected ? pathOf(selected) : '', versions: (query.get('compare') ?? '').split(',').filter((rv) => /^\d+$/.test(rv)).slice(0, 2) },
    needs: query.get('needs') !== 'hidden',
    changes: query.get('side') === 'changes',
    statusUpdates: query.get('status') === 'shown',
    onlyDeleted: query.get('only') === 'deleted',
    reach: query.get('reach') === 'all' ? 0 : Number(/^\d{1,7}$/.exec(query.get('reach') ?? '')?.[0]) || null,
    storyLength: Number(/^\d{1,7}$/.exec(query.get('story') ?? '')?.[0]) || usualStory,
    kinds: (query.get('kinds') ?? '').split(',').filter((name) => /^[a-z0-9.-]+$/.test(name)),
    mode: parseMode(query.get('at') ?? '', query.get('t') ?? ''),
    marks: (query.get('marks') ?? '').split(',').map((text) => parseTime(text, Date.now())).filter((at) => at > 0),
    range: parseRange(query.get('range')),
  };
}

const darkScheme = matchMedia('(prefers-color-scheme: dark)');
const reducedMotionQuery = matchMedia('(prefers-reduced-motion: reduce)');
const chosenTheme = signal<'dark' | 'light' | ''>(readTheme());
const systemDark = signal(darkScheme.matches || !matchMedia('(prefers-color-scheme: light)').matches);
export const theme = computed(() => ((chosenTheme.value || (systemDark.value ? 'dark' : 'light')) === 'dark' ? DARK : LIGHT));
/** The system asks for reduced motion. */
export const reducedMotion = signal(reducedMotionQuery.matches);
darkScheme.addEventListener('change', () => (systemDark.value = darkScheme.matches));
reducedMotionQuery.addEventListener('change', () => (reducedMotion.value = reducedMotionQuery.matches));

/** Switches between dark and light, and stores the choice. */
export function switchTheme(): void {
  chosenTheme.value = theme.value === DARK ? 'light' : 'dark';
  try {
    localStorage.setItem('watchkeeper-theme', chosenTheme.value);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}

function readTheme(): 'dark' | 'light' | '' {
  try {
    const kept = localStorage.getItem('watchkeeper-theme');
    return kept === 'dark' || kept === 'light' ? kept : '';
  } catch {
    return '';
  }
}

/** The selection for the object at an API path; null if there can be none. */
export function selectionOf(path: string): Selection {
  const place = placeOf(path);
  if (!place) return null;
  const { namespace, name } = place;
  const collection = path.slice(0, path.lastIndexOf('/'));
  if (namespace && collection === `/api/v1/namespaces/${namespace}/pods`) return { kind: 'pod', namespace, name };
  return collection === '/api/v1/nodes' ? { kind: 'node', name } : { kind: 'object', path, name };
}

function parseSelection(text: string): Selection {
  if (text.startsWith('/')) return selectionOf(text);
  const [kind, a, ...b] = text.split('/');
  return selectionOf(kind === 'node' ? ['/api/v1/nodes', a, ...b].join('/') : kind === 'pod' ? [`/api/v1/namespaces/${a}/pods`, ...b].join('/') : '');
}

/** Writes a selection as the URL has it. */
export const selectionText = (sel: NonNullable<Selection>): string =>
  sel.kind === 'node' ? `node/${sel.name}` : sel.kind === 'pod' ? `pod/${sel.namespace}/${sel.name}` : sel.path;

/** The API path of a selected object. */
export function pathOf(sel: NonNullable<Selection>): string {
  return sel.kind === 'pod' ? `/api/v1/namespaces/${sel.namespace}/pods/${sel.name}` : sel.kind === 'node' ? `/api/v1/nodes/${sel.name}` : sel.path;
}

/** `t` is the time of a resourceVersion. A text that is no moment is left to the gateway, whose error the page shows. */
function parseMode(at: string, t: string): Mode | null {
  if (!at) return null;
  // An age counts back from the end of a recording, which is not known yet: see settleAge.
  const known = ageOf(at) === null ? parseMoment(at, Date.now()) : null;
  return { at: known?.at ?? at, time: parseTime(t, Date.now()) || (known?.time ?? 0), speed: 0 };
}

function parseRange(text: string | null): { from: number; to: number } | null {
  const [from, to] = (text ?? '').split('/').map((end) => parseTime(end, Date.now()));
  return from > 0 && from < to ? { from, to } : null;
}

/** Selects the Pod of a row. */
export function selectRow(row: number): void {
  selection.value = { kind: 'pod', namespace: cluster.strings[cluster.namespace[row]], name: cluster.names[row] };
}
