// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * A workbook as JSON, as the gateway reads and writes it for .xlsx (internal/serve/sheet):
 * its tabs, which objects keep which rows, and what was typed. It is kept in an
 * .xlsx file, in the address, or in a ConfigMap.
 */

import { parse, stringify } from '@watchkeeper/informer/json';
import { apiError, apiURL, extension, getJSON, jsonOf, request } from '../app/api';
import type { Resource } from '../kinds/resources';
import { cellOf, isFormula, keyOf, nameOf, numberOf, parseName, textOf } from './cells';
import type { Book } from './book';
import { firstRow, type Tab } from './tab';

export interface StoredTab {
  name: string;
  resource?: { group: string; version: string; resource: string };
  kind?: string;
  namespace?: string;
  selector?: string;
  columns?: string[];
  rows?: { namespace: string; name: string; uid?: string; values?: unknown[] }[];
  cells?: { cell: string; formula?: string; value?: unknown }[];
}

export interface Workbook {
  tabs: StoredTab[];
  /** What of it cannot be used as it is, such as a formula with a function that is not supported. */
  problems?: string[];
}

/** The workbook; with the objects' values if asked. */
export function stored(book: Book, values: boolean): Workbook {
  return { tabs: book.tabs.map((tab) => storedTab(tab, values)) };
}

function storedTab(tab: Tab, values: boolean): StoredTab {
  const cells = [...tab.inputs].sort(([a], [b]) => a - b).map(([key, input]) => {
    const [row, column] = cellOf(key);
    const cell = nameOf(row, column);
    return isFormula(input) ? { cell, formula: input } : { cell, value: literal(input) };
  });
  if (!tab.selected) return { name: tab.name, cells };
  const { resource: { group, version, name, kind }, namespace, selector } = tab.selected;
  // Without values, rows matter only if something was typed next to or over them.
  const last = values ? Infinity : Math.max(0, ...[...tab.inputs.keys()].map((key) => cellOf(key)[0]));
  const rows = tab.entries.slice(0, Math.max(0, last - firstRow + 1)).map((entry) => ({
    namespace: entry.namespace, name: entry.name, ...(values && { uid: entry.uid, values: tab.columns.map((_, i) => (entry.gone ? null : (entry.values[i] ?? null))) }),
  }));
  return { name: tab.name, resource: { group, version, resource: name }, kind, namespace, selector, columns: tab.columns.map(({ text }) => text), rows, cells };
}

/** What was typed, as a value of JSON. */
function literal(input: string): unknown {
  if (input.startsWith("'")) return input.slice(1);
  if (input.trim() !== '' && /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(input.trim())) return numberOf(input.trim());
  return /^(true|false)$/i.test(input) ? input.toLowerCase() === 'true' : input;
}

/** A value of JSON as it is typed. */
function typed(value: unknown): string {
  if (typeof value !== 'string') return textOf(value);
  return value !== '' && (literal(value) !== value || /^[=+@'\d$-]/.test(value)) ? `'${value}` : value;
}

/** Fills a workbook. Throws for a resource that the cluster does not have. */
export function restore(book: Book, workbook: Workbook, resources: Resource[]): void {
  const tabs = workbook.tabs.map((tab) => {
    if (!tab.resource?.resource) return { tab, resource: null };
    const { group, resource: name } = tab.resource;
    const resource = resources.find((one) => one.group === group && one.name === name);
    if (!resource) throw new Error(`The cluster has no resource ${group ? `${name}.${group}` : name} that can be listed, which the tab ${tab.name} shows.`);
    return { tab, resource };
  });
  for (const { tab, resource } of tabs) {
    book.add(tab.name, resource && { resource, namespace: tab.namespace ?? '', selector: tab.selector ?? '' }, tab.columns ?? [], (to) => {
      to.keepRows((tab.rows ?? []).map(({ namespace, name, uid = '' }) => ({ namespace, name, uid })));
      for (const { cell, formula, value } of tab.cells ?? []) {
        const at = parseName(cell);
        if (!at) throw new Error(`${cell} is no cell.`);
        const key = keyOf(...at);
        to.inputs.set(key, formula ? `=${formula.replace(/^=/, '')}` : typed(value));
        // What was read when a value was typed over it.
        const read = tab.rows?.[at[0] - firstRow]?.values?.[at[1] - 3];
        if (!formula && read !== undefined) to.bases.set(key, read ?? undefined);
      }
    });
  }
}

/** Addresses longer than this are refused by some servers. */
const maxAddress = 8000;

/** The workbook for the address; empty if it is too long for one. */
export async function toAddress(book: Book): Promise<string> {
  const text = stringify(stored(book, false));
  const packed = await through(new TextEncoder().encode(text), new CompressionStream('deflate-raw'));
  const encoded = btoa(String.fromCharCode(...packed.slice(0, maxAddress))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return encoded.length > maxAddress || packed.length > maxAddress ? '' : encoded;
}

export async function fromAddress(text: string): Promise<Workbook> {
  try {
    const packed = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    return checked(parse(new TextDecoder().decode(await through(packed, new DecompressionStream('deflate-raw'), 4 << 20))));
  } catch (error) {
    throw new Error(`The address has no workbook: it may have been cut off. ${(error as Error).message}`, { cause: error });
  }
}

async function through(bytes: Uint8Array, stream: GenericTransformStream, max = Infinity): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for (const reader = (new Blob([bytes as BlobPart]).stream().pipeThrough(stream) as ReadableStream<Uint8Array>).getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
    size += value.length;
    if (size > max) throw new Error(`It is larger than ${max} bytes.`);
    parts.push(value);
  }
}

/** The shape of a workbook from elsewhere. */
function checked(value: unknown): Workbook {
  const { tabs } = (value ?? {}) as Partial<Workbook>;
  if (!Array.isArray(tabs) || !tabs.every((tab) => typeof tab?.name === 'string' && (tab.cells ?? []).every(({ cell }) => typeof cell === 'string'))) throw new Error('It is no workbook.');
  return value as Workbook;
}

const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';

/** The workbook as a file of Excel and LibreOffice. */
export async function toFile(book: Book): Promise<Blob> {
  const response = await request(new URL('workbook', extension()), { method: 'POST', headers: { 'content-type': 'application/json', accept: XLSX }, body: stringify(stored(book, true)) });
  if (!response.ok) throw await apiError(response);
  return response.blob();
}

export async function fromFile(file: Blob): Promise<Workbook> {
  const response = await request(new URL('workbook', extension()), { method: 'POST', headers: { 'content-type': XLSX, accept: 'application/json' }, body: await file.arrayBuffer() });
  if (!response.ok) throw await apiError(response);
  return checked(await jsonOf(response));
}

/** ConfigMaps with a workbook have this label. */
const label = 'watchkeeper.dev/spreadsheet';
const mapPath = (namespace: string, name = ''): string => `/api/v1/namespaces/${namespace}/configmaps${name && `/${name}`}`;

/** Keeps the workbook in a ConfigMap: a new one, or one that has a workbook. */
export async function toConfigMap(book: Book, namespace: string, name: string): Promise<void> {
  const data = { 'workbook.json': stringify(stored(book, false)) };
  const write = (method: string, path: string, type: string, body: unknown): Promise<Response> =>
    request(apiURL(path, '', { fieldManager: 'watchkeeper-sheet' }), { method, headers: { 'content-type': type, accept: 'application/json' }, body: stringify(body) });
  let response = await write('POST', mapPath(namespace), 'application/json', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, labels: { [label]: 'true' } }, data });
  if (response.status === 409) {
    // Only over a workbook.
    response = await write('PATCH', mapPath(namespace, name), 'application/json-patch+json', [
      { op: 'test', path: `/metadata/labels/${label.replace('/', '~1')}`, value: 'true' }, { op: 'add', path: '/data', value: data },
    ]);
    if (response.status === 422) throw new Error(`The ConfigMap ${namespace}/${name} exists and is no workbook: choose another name.`);
  }
  if (!response.ok) throw await apiError(response);
}

export async function fromConfigMap(namespace: string, name: string): Promise<Workbook> {
  const { data } = await getJSON<{ data?: Record<string, string> }>(mapPath(namespace, name));
  if (!data?.['workbook.json']) throw new Error(`The ConfigMap ${namespace}/${name} has no workbook.`);
  return checked(parse(data['workbook.json']));
}
