// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The filter: terms separated by spaces, all of which must match. `web` is part
 * of a name, `app=web` and `app!=web` are labels, and `ns:`, `node:`, `owner:`,
 * `state:` (or `phase:`), `reason:` and `restarts:` match these fields. A minus
 * negates a term. A term with any other key and a colon is unknown: it selects
 * nothing, because no name has a colon, so it is ignored and `problemOf` names it.
 */

import { stateName } from '../board/palette';
import type { Cluster } from '../data/cluster';
import { STATES } from '../data/state';
import { nearest } from './nearest';

export interface Term {
  kind: 'name' | 'ns' | 'node' | 'owner' | 'state' | 'reason' | 'restarts' | 'label' | 'unknown';
  /** In lower case, except for labels. */
  value: string;
  /** The key of a label, or the unknown key; empty for other kinds. */
  key: string;
  not: boolean;
}

const KINDS: Record<string, Term['kind']> = {
  ns: 'ns', namespace: 'ns', node: 'node', owner: 'owner', state: 'state', phase: 'state', reason: 'reason', status: 'reason', restarts: 'restarts', name: 'name',
};

export function parseFilter(text: string): Term[] {
  return text.split(/\s+/).filter(Boolean).map((word) => {
    const minus = word.startsWith('-') && word.length > 1;
    const bare = minus ? word.slice(1) : word;
    const colon = /^([a-z]+):(.*)$/i.exec(bare);
    const kind = colon && KINDS[colon[1].toLowerCase()];
    if (kind) return { kind, value: colon[2].toLowerCase(), key: '', not: minus };
    if (colon) return { kind: 'unknown', value: colon[2], key: colon[1], not: minus };
    const label = /^([^=!]+)(!?=)=?(.*)$/.exec(bare);
    if (label) return { kind: 'label', key: label[1], value: label[3], not: minus !== (label[2] === '!=') };
    return { kind: 'name', value: bare.toLowerCase(), key: '', not: minus };
  });
}

/** Writes a term as the user types it. */
export const termText = (t: Term): string =>
  t.kind === 'label' ? `${t.key}${t.not ? '!=' : '='}${t.value}` : `${t.not ? '-' : ''}${t.kind === 'name' ? '' : `${t.key || t.kind}:`}${t.value}`;

/** The kinds whose values are parts of names. */
const NAMED = new Set<Term['kind']>(['name', 'ns', 'node', 'owner']);

export interface Problem {
  /** Says what is wrong. */
  words: string;
  /** What was probably meant, and the filter with it; empty if that is not known. */
  meant: string;
  fixed: string;
}

/** The first term that cannot match: an unknown key, a state that no Pod can have, a field written as a label, a wrong value. Null if there is none. */
export function problemOf(text: string, cluster: Cluster): Problem | null {
  for (const term of parseFilter(text)) {
    const replaced = (by: Term): string => text.split(/\s+/).filter(Boolean).map((word) => (termText(parseFilter(word)[0]) === termText(term) ? termText(by) : word)).join(' ');
    if (term.kind === 'unknown') {
      const key = nearest(term.key.toLowerCase(), Object.keys(KINDS));
      return { words: `no such filter key ${term.key}`, meant: key && `${key}:`, fixed: key && replaced({ ...term, key }) };
    }
    if (term.kind === 'restarts' && !/^[>=]*\d*$/.test(term.value)) return { words: `restarts: takes a number, not ${term.value}`, meant: '', fixed: '' };
    if (NAMED.has(term.kind) && term.value.includes(',')) return { words: `no name has a comma, as in ${termText(term)}`, meant: '', fixed: '' };
    const kind = term.kind === 'label' ? KINDS[term.key.toLowerCase()] : undefined;
    if (kind && !cluster.strings.some((labels) => labels.split(',').some((label) => label.startsWith(`${term.key}=`)))) {
      const by: Term = { ...term, kind, key: '', value: term.value.toLowerCase() };
      return { words: `no Pod has a label ${term.key}`, meant: termText(by), fixed: replaced(by) };
    }
    if (term.kind !== 'state' || STATES.some((state) => state.startsWith(term.value)) || cluster.strings.some((one) => one.toLowerCase() === term.value)) continue;
    const value = nearest(term.value, STATES);
    // A part of a STATUS, such as crash, is a reason.
    const by: Term = value ? { ...term, value } : { ...term, kind: 'reason' };
    return { words: `no such state ${term.value}`, meant: termText(by), fixed: replaced(by) };
  }
  return null;
}

/** The terms of a filter that apply to all objects: names and namespaces. */
export const generalTerms = (text: string): string => parseFilter(text).filter((t) => (t.kind === 'name' || t.kind === 'ns') && t.value).map(termText).join(' ');

/** Compiles a filter. Terms that depend on one string are evaluated once per distinct string. */
export function compileFilter(text: string, cluster: Cluster): ((row: number) => boolean) | null {
  // A term without a value is incomplete: the user is typing it.
  const tests = parseFilter(text).filter((t) => (t.value !== '' || t.kind === 'label') && t.kind !== 'unknown').map((term) => {
    const test = compileTerm(term, cluster);
    return term.not ? (row: number) => !test(row) : test;
  });
  if (tests.length === 0) return null;
  if (tests.length === 1) return tests[0];
  return (row) => tests.every((test) => test(row));
}

function compileTerm({ kind, key, value }: Term, cluster: Cluster): (row: number) => boolean {
  switch (kind) {
    case 'unknown':
      return () => true;
    case 'name':
      return (row) => cluster.names[row].includes(value);
    case 'ns':
      return byString(cluster, () => cluster.namespace, (s) => s.includes(value));
    case 'node':
      return value === 'none' ? (row) => cluster.nodeName(row) === '' : byString(cluster, () => cluster.node, (s) => s.includes(value));
    case 'owner':
      return byString(cluster, () => cluster.owner, (s) => s.toLowerCase().includes(value));
    case 'reason':
      return byString(cluster, () => cluster.text, (s) => s.toLowerCase().includes(value));
    case 'state':
      return (row) => stateName(cluster.shown(row)).startsWith(value) || (cluster.strings[cluster.text[row]] ?? '').toLowerCase() === value;
    case 'restarts':
      return (row) => cluster.readiness(row).restarts >= (parseInt(value.replace(/^[>=]+/, ''), 10) || 1);
    case 'label': {
      const exact = `${key}=${value}`;
      return byString(cluster, () => cluster.labels, (s) => s.split(',').some((label) => label === exact || (value === '' && label.startsWith(exact))));
    }
  }
}

function byString(cluster: Cluster, column: () => Int32Array, test: (text: string) => boolean): (row: number) => boolean {
  const known: (boolean | undefined)[] = [];
  return (row) => {
    const id = column()[row];
    return (known[id] ??= test(cluster.strings[id] ?? ''));
  };
}
