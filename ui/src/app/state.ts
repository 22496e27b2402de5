// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The state of the page as signals. Most of it is mirrored in the URL. */

import { computed, effect, signal } from '@preact/signals';
import { NODE_ORDERS, type NodeOrder, type PodOrder } from '../board/order';
import { DARK, LIGHT } from '../board/palette';
import { Cluster } from '../data/cluster';
import type { Status } from '../data/protocol';

export const cluster = new Cluster();

/** Incremented a few times per second while the cluster changes: components that read it render again. */
export const refresh = signal(0);
/** The worker's connection. */
export const status = signal<Status>({ phase: 'connecting', text: '', since: Date.now() });
/** When the last change was received, in milliseconds since 1970. */
export const received = signal(0);

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

const query = new URLSearchParams(location.search);

export const filter = signal(query.get('q') ?? '');
export const group = signal(query.get('group') ?? '');
export const nodes = signal<NodeOrder>(NODE_ORDERS.find((name) => name === query.get('nodes')) ?? 'name');
export const order = signal<PodOrder>((query.get('sort') as PodOrder) || 'namespace');
export const view = signal<'board' | 'table'>(query.get('view') === 'table' ? 'table' : 'board');
export const selection = signal<Selection>(parseSelection(query.get('sel')));
export const tab = signal(query.get('tab') ?? 'overview');
export const needs = signal(query.get('needs') !== 'hidden');
/** The side shows the list of changes instead of what needs attention. */
export const changes = signal(query.get('side') === 'changes');
export const help = signal(false);
export const mode = signal<Mode | null>(query.get('at') ? { at: query.get('at')!, time: Date.parse(query.get('t') ?? query.get('at')!) || 0, speed: 0 } : null);
/** Marked moments, in milliseconds since 1970. */
export const marks = signal<number[]>((query.get('marks') ?? '').split(',').map(Date.parse).filter((at) => at > 0));
/** The selected time range. */
export const range = signal<{ from: number; to: number } | null>(parseRange(query.get('range')));

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

/** The selection for the object at an API path. */
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

/** Mirrors the state in the URL, without adding entries to the browser's history. */
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
    // A resourceVersion has no time.
    put('t', at?.time && at.at.startsWith('rv:') ? new Date(at.time).toISOString() : '');
    const chosen = range.value;
    put('range', chosen ? `${new Date(chosen.from).toISOString()}/${new Date(chosen.to).toISOString()}` : '');
    put('marks', marks.value.map((mark) => new Date(mark).toISOString()).join(','));
    const text = params.toString().replaceAll('%2F', '/').replaceAll('%3A', ':').replaceAll('%2C', ',');
    history.replaceState(null, '', `${location.pathname}${text ? `?${text}` : ''}`);
  });
}

/** Selects the Pod of a row. */
export function selectRow(row: number): void {
  selection.value = { kind: 'pod', namespace: cluster.strings[cluster.namespace[row]], name: cluster.names[row] };
}
