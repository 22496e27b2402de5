// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { useEffect } from 'preact/hooks';
import { absent, lost, misplaced } from '../app/contact';
import { beside, failingSince, othersOf, nodeNeeds, needsOf, ranked, type Finding, type Need } from '../app/attention';
import { exactly, failingOf, type Failing } from '../app/failing';
import { findings, followFindings, jobsFound } from '../app/findings';
import { refresh, cluster, filter, mode, scope, selection, selectionOf, selectRow, status } from '../app/state';
import type { BoardView } from '../board/view';
import { besideReason } from '../data/crash';
import { age } from '../data/quantity';
import { clock } from '../data/clock';
import { seconds } from '../data/state';
import { recorded } from '../time/playback';
import { Unknown } from './unknown';
import { Shape } from './shape';
import { SideTabs } from './side-tabs';
import { when } from '../time/words';

/** How many entries are listed; the rest are counted. */
const maxEntries = 60;

/** Lists unhealthy Nodes and Pods, and what else the gateway finds. */
export function Needs({ board }: { board: BoardView }) {
  void refresh.value;
  useFindings();
  const now = clock.now();
  // A board of another moment says nothing about the shown one.
  const other = misplaced.value || absent.value !== '';
  const nodes = other ? [] : nodeNeeds(cluster);
  const all = other ? [] : needsOf(cluster, board.engine.look, now, jobsFound.value);
  const found = absent.value ? [] : beside(findings.value ?? [], misplaced.value ? null : scope.value);
  const entries = ranked(cluster, all, found, findings.value ?? []);
  const more = [nodes, entries].reduce((sum, list) => sum + Math.max(0, list.length - maxEntries), 0);
  const point = (rows: number[]): void => {
    board.marks.siblings = rows.slice(0, 2000);
    board.marked();
  };
  return (
    <aside class="side needs" aria-label="Needs attention">
      <SideTabs />
      <Unknown none={nodes.length + entries.length === 0} />
      <ul class={lost.value ? 'lost' : ''}>
        {nodes.slice(0, maxEntries).map((node) => (
          <li key={node.name}>
            <button onClick={() => (selection.value = { kind: 'node', name: node.name })}>
              <Shape state="unknown" size={14} />
              <b class="mono">{node.name}</b>
              <span class="muted">{node.words}</span>
              <time class="muted">{age(now - node.since)}</time>
            </button>
          </li>
        ))}
        {entries.slice(0, maxEntries).map((entry) => ('need' in entry
          ? <Item key={entry.need.key} need={entry.need} critical={entry.critical} now={now} point={point} />
          : <Found key={`${entry.finding.rule} ${entry.finding.kind} ${entry.finding.namespace}/${entry.finding.name} ${entry.finding.title}`} finding={entry.finding} now={now} />))}
      </ul>
      {more > 0 && <p class="muted">and {more} more</p>}
    </aside>
  );
}

/** Asks for the findings while the list is shown: again and again while it is live, once at a moment of the past that is shown. */
function useFindings(): void {
  const { at, time, speed } = mode.value ?? { at: '', time: 0, speed: 0 };
  // A resourceVersion is that of one resource: its time is the moment.
  const moment = at.startsWith('rv:') ? (time ? new Date(time).toISOString() : '') : at;
  const known = recorded.value && !speed && !!moment === !!at;
  // Without contact with the cluster, the gateway knows those of the last contact.
  const shown = known && (at ? status.value.at === at : status.value.phase === 'live' || lost.value > 0);
  const names = scope.value.namespaces?.join(' ');
  useEffect(() => {
    findings.value = null;
  }, [moment, known, names]);
  useEffect(() => {
    if (shown) return followFindings(moment, names === undefined ? null : names.split(' ').filter(Boolean));
  }, [moment, shown, names]);
}

function Found({ finding, now }: { finding: Finding; now: number }) {
  const { severity, kind, namespace, name, path, title, messages, since, others, othersSince } = finding;
  const state = severity === 'critical' ? 'failing' : 'pending';
  return (
    <li>
      <button disabled={!path} title={messages?.join('\n')} onClick={() => path && (selection.value = selectionOf(path))}>
        <Shape state={state} size={14} />
        <b class="mono">{name}</b>
        <span class="muted"><span class={`words ${state}`}>{title}</span> · {kind}{namespace && ` · ${namespace}`}</span>
        {since && <time class="muted" title={inexact(finding)}>{age(Math.max(0, now - seconds(since)))}{exactly(finding) ? '' : '+'}{others && othersSince ? `, ${others} ${age(Math.max(0, now - seconds(othersSince)))}` : ''}</time>}
      </button>
    </li>
  );
}

function Item({ need, critical, now, point }: { need: Need; critical: boolean; now: number; point: (rows: number[]) => void }) {
  const { rows } = need;
  const sinceOf = (row: number): number => cluster.since[row];
  const { since, from } = failingSince(need, sinceOf, ask);
  const later = need.state === 'failing' ? null : othersOf(rows.map(sinceOf));
  return (
    <li>
      <button
        data-shows={need.of}
        onMouseEnter={() => point(rows)} onMouseLeave={() => point([])} onFocus={() => point(rows)} onBlur={() => point([])}
        onClick={() => {
          if (rows.length > 1) filter.value = `ns:${need.namespace} name:${need.title}`;
          selectRow(rows[0]);
        }}
      >
        <Shape state={critical ? 'failing' : need.state} size={14} />
        <b class="mono">{need.title}</b>
        <span class="muted"><span class={`words ${need.state}`}>{need.reason}</span>{need.crash && ` · ${besideReason(need.crash, need.reason)}`} · {need.namespace}</span>
        <time class="muted" title={from && inexact(from)}>{later && <>{rows.length - later.others === 1 ? 'the first' : rows.length - later.others} {age(now - since)}, <em>{later.others.toLocaleString('en')}</em> {age(now - later.since)}</>}{!later && rows.length > 1 && <em>{rows.length.toLocaleString('en')}</em>}{!later && ` ${age(now - since)}${!from || exactly(from) ? '' : '+'}`}</time>
      </button>
    </li>
  );
}

/** Explains the + after an age. */
const inexact = ({ since = '', sinceKnown, notBefore }: Pick<Failing, 'since' | 'sinceKnown' | 'notBefore'>): string | undefined =>
  !sinceKnown ? 'It began before, when nothing was recorded' : notBefore ? `Since ${when({ time: since, notBefore })}` : undefined;

/** What the history knows about a Pod that fails: its own status begins again with each restart. */
function ask(row: number): Failing | undefined {
  if (!recorded.value || mode.value?.speed) return undefined;
  const path = `/api/v1/namespaces/${cluster.strings[cluster.namespace[row]]}/pods/${cluster.names[row]}`;
  return failingOf(path, mode.value?.at ?? '', `${cluster.created[row]} ${cluster.readiness(row).restarts} ${cluster.strings[cluster.text[row]]}`);
}
