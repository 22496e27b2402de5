// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What the page shows, as signals; most of it is in its address, too. */

import { computed, effect, signal } from '@preact/signals';
import { NODE_ORDERS, type NodeOrder, type PodOrder } from '../board/order';
import { DARK, LIGHT } from '../board/palette';
import { Cluster } from '../data/cluster';
import type { Status } from '../data/protocol';

export const cluster = new Cluster();

/** Counts up when the cluster has changed: for what is drawn from it a few times a second. */
export const beat = signal(0);
/** How things stand with what the worker reads. */
export const status = signal<Status>({ phase: 'connecting', text: '', since: Date.now() });
/** When the last change was received, in milliseconds since 1970. */
export const received = signal(0);

export type Selection =
  | { kind: 'pod'; namespace: string; name: string }
  | { kind: 'node'; name: string }
  /** What is not on the board, by its path in the API. */
  | { kind: 'object'; path: string; name: string }
  | null;

/** A moment of the past as the API takes it (`rv:812`, a time), or the present. */
export interface Mode {
  at: string;
  /** The moment in milliseconds since 1970, for the strip and the words. */
  time: number;
  /** 0 while it stands still, or how many times faster than the clock it goes on. */
  speed: number;
}

const query = new URLSearchParams(location.search);

export const filter = signal(query.get('q') ?? '');
export const group = signal(query.get('group') ?? '');
export const nodes = signal<NodeOrder>(NODE_ORDERS.find((name) => name === query.get('nodes')) ?? 'name');
export const order = signal<PodOrder>((query.get('sort') as PodOrder) || 'namespace');
export const view = signal<'board' | 'table'>(query.get('view') === 'table' ? 'table' : 'board');
export const selection = signal<Selection>(parseSelection(query.get('sel')));
export const tab = signal(query.get('tab') ?? 'overview');
export const needs = signal(query.get('needs') !== 'hidden');
/** The list of what changed is shown, in the place of what needs attention. */
export const changes = signal(query.get('side') === 'changes');
export const help = signal(false);
export const mode = signal<Mode | null>(query.get('at') ? { at: query.get('at')!, time: Date.parse(query.get('t') ?? query.get('at')!) || 0, speed: 0 } : null);
/** What was marked, in milliseconds since 1970. */
export const marks = signal<number[]>((query.get('marks') ?? '').split(',').map(Date.parse).filter((at) => at > 0));
/** A range of time that was chosen. */
export const range = signal<{ from: number; to: number } | null>(parseRange(query.get('range')));

const darkScheme = matchMedia('(prefers-color-scheme: dark)');
const stillness = matchMedia('(prefers-reduced-motion: reduce)');
const chosenTheme = signal<'dark' | 'light' | ''>(readTheme());
const systemDark = signal(darkScheme.matches || !matchMedia('(prefers-color-scheme: light)').matches);
export const theme = computed(() => ((chosenTheme.value || (systemDark.value ? 'dark' : 'light')) === 'dark' ? DARK : LIGHT));
/** The reader has asked for no motion. */
export const still = signal(stillness.matches);
darkScheme.addEventListener('change', () => (systemDark.value = darkScheme.matches));
stillness.addEventListener('change', () => (still.value = stillness.matches));

/** Changes between dark and light, and remembers it. */
export function switchTheme(): void {
  chosenTheme.value = theme.value === DARK ? 'light' : 'dark';
  try {
    localStorage.setItem('watchkeeper-theme', chosenTheme.value);
  } catch {
    // A page that may store nothing forgets it.
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

/** What to select for an object at a path of the API. */
export function selectionOf(path: string): Selection {
  const pod = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)$/.exec(path);
  if (pod) return { kind: 'pod', namespace: pod[1], name: pod[2] };
  const node = /^\/api\/v1\/nodes\/([^/]+)$/.exec(path);
  if (node) return { kind: 'node', name: node[1] };
  return /^\/apis?\//.test(path) ? { kind: 'object', path, name: path.slice(path.lastIndexOf('/') + 1) } : null;
}

function parseSelection(text: string | null): Selection {
  if (text?.startsWith('/')) return selectionOf(text);
  const [kind, a, b] = (text ?? '').split('/');
  if (kind === 'node' && a) return { kind, name: a };
  return kind === 'pod' && a && b ? { kind, namespace: a, name: b } : null;
}

const selectionText = (sel: NonNullable<Selection>): string =>
  sel.kind === 'node' ? `node/${sel.name}` : sel.kind === 'pod' ? `pod/${sel.namespace}/${sel.name}` : sel.path;

function parseRange(text: string | null): { from: number; to: number } | null {
  const [from, to] = (text ?? '').split('/').map(Date.parse);
  return from < to ? { from, to } : null;
}

/** Keeps the address in step, without a new entry in the browser's history for each letter. */
export function keepAddress(): void {
  effect(() => {
    const params = new URLSearchParams(location.search);
    const put = (key: string, value: string): void => (value ? params.set(key, value) : params.delete(key));
    const sel = selection.value;
    put('q', filter.value);
    put('group', group.value);
    put('nodes', nodes.value === 'name' ? '' : nodes.value);
    put('sort', order.value === 'namespace' ? '' : order.value);
    put('view', view.value === 'table' ? 'table' : '');
    put('sel', sel ? selectionText(sel) : '');
    put('tab', sel && tab.value !== 'overview' ? tab.value : '');
    put('needs', needs.value ? '' : 'hidden');
    put('side', changes.value ? 'changes' : '');
    const at = mode.value;
    put('at', at?.at ?? '');
    // A resourceVersion does not say when that was.
    put('t', at?.time && at.at.startsWith('rv:') ? new Date(at.time).toISOString() : '');
    const chosen = range.value;
    put('range', chosen ? `${new Date(chosen.from).toISOString()}/${new Date(chosen.to).toISOString()}` : '');
    put('marks', marks.value.map((mark) => new Date(mark).toISOString()).join(','));
    const text = params.toString().replaceAll('%2F', '/').replaceAll('%3A', ':').replaceAll('%2C', ',');
    history.replaceState(null, '', `${location.pathname}${text ? `?${text}` : ''}`);
  });
}

/** The row of a Pod, -1 if there is none. */
export function rowOf(namespace: string, name: string): number {
  for (let row = 0; row < cluster.length; row++) {
    if (cluster.names[row] === name && cluster.state[row] !== 0 && cluster.strings[cluster.namespace[row]] === namespace) return row;
  }
  return -1;
}

/** Selects the Pod of a row. */
export function selectRow(row: number): void {
  selection.value = { kind: 'pod', namespace: cluster.strings[cluster.namespace[row]], name: cluster.names[row] };
}
