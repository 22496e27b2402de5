// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { absent, lost, misplaced } from '../app/contact';
import { failingSince, nodeNeeds, needsOf, type Need } from '../app/attention';
import { failingOf, type Failing } from '../app/failing';
import { refresh, cluster, filter, mode, selection, selectRow } from '../app/state';
import type { BoardView } from '../board/view';
import { besideReason } from '../data/crash';
import { age } from '../data/quantity';
import { clock } from '../data/clock';
import { recorded } from '../time/playback';
import { Unknown } from './unknown';
import { Shape } from './shape';
import { SideTabs } from './side-tabs';

/** How many entries are listed; the rest are counted. */
const maxEntries = 60;

/** Lists unhealthy Nodes and Pods. */
export function Needs({ board }: { board: BoardView }) {
  void refresh.value;
  const now = clock.now();
  // A board of another moment says nothing about the shown one.
  const other = misplaced.value || absent.value !== '';
  const nodes = other ? [] : nodeNeeds(cluster);
  const all = other ? [] : needsOf(cluster, board.engine.look, now);
  const point = (rows: number[]): void => {
    board.marks.siblings = rows.slice(0, 2000);
    board.marked();
  };
  return (
    <aside class="side needs" aria-label="Needs attention">
      <SideTabs />
      <Unknown none={nodes.length + all.length === 0} />
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
        {all.slice(0, maxEntries).map((need) => <Item key={need.key} need={need} now={now} point={point} />)}
      </ul>
      {all.length + nodes.length > maxEntries && <p class="muted">and {all.length + nodes.length - maxEntries} more</p>}
    </aside>
  );
}

function Item({ need, now, point }: { need: Need; now: number; point: (rows: number[]) => void }) {
  const { rows } = need;
  const { since, known } = failingSince(need, ask);
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
        <Shape state={need.state} size={14} />
        <b class="mono">{need.title}</b>
        <span class="muted"><span class={`words ${need.state}`}>{need.reason}</span>{need.crash && ` · ${besideReason(need.crash, need.reason)}`} · {need.namespace}</span>
        <time class="muted" title={known ? undefined : 'It failed before the recording starts'}>{rows.length > 1 && <em>{rows.length.toLocaleString('en')}</em>} {age(now - since)}{known ? '' : '+'}</time>
      </button>
    </li>
  );
}

/** What the history knows about a Pod that fails: its own status begins again with each restart. */
function ask(row: number): Failing | undefined {
  if (!recorded.value || mode.value?.speed) return undefined;
  const path = `/api/v1/namespaces/${cluster.strings[cluster.namespace[row]]}/pods/${cluster.names[row]}`;
  return failingOf(path, mode.value?.at ?? '', `${cluster.created[row]} ${cluster.readiness(row).restarts} ${cluster.strings[cluster.text[row]]}`);
}
