// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The controls in the lower corner: view, grouping and order. */

import { refresh, cluster, group, kind, nodes, opener, order, places, view } from '../app/state';
import { groupings, NODE_ORDERS, type NodeOrder, type PodOrder } from '../board/order';
import type { BoardView } from '../board/view';
import { Places } from './places';

export function Controls({ board }: { board: BoardView }) {
  void refresh.value;
  return (
    <div class="controls">
      <div class="segments" role="group" aria-label="View">
        <button aria-pressed={view.value === 'board'} onClick={() => show('board')}>Board</button>
        <button aria-pressed={view.value === 'table' && !kind.value} onClick={() => show('table')}>Table</button>
        <button aria-pressed={view.value === 'table' && kind.value !== ''} aria-haspopup="dialog" title="Open any kind or object (: or Ctrl K)" onClick={() => (opener.value = true)}>Kinds…</button>
        <button aria-pressed={view.value === 'sheet'} title="The cluster as a spreadsheet" onClick={() => (view.value = 'sheet')}>Sheet</button>
      </div>
      {view.value === 'board' && (
        <>
          <Places />
          {places.value === 'nodes' && <label>Group by{' '}
            <select value={group.value} onChange={(e) => (group.value = e.currentTarget.value)}>
              <option value="">none</option>
              <option value="zone">zone</option>
              <option value="pool">pool</option>
              <optgroup label="label">
                {keys().map((key) => <option key={key} value={key}>{key}</option>)}
              </optgroup>
            </select>
          </label>}
          {places.value === 'nodes' && <label>Nodes by{' '}
            <select value={nodes.value} onChange={(e) => (nodes.value = e.currentTarget.value as NodeOrder)}>
              {NODE_ORDERS.map((name) => <option key={name}>{name}</option>)}
            </select>
          </label>}
          <label>Pods by{' '}
            <select value={order.value} onChange={(e) => (order.value = e.currentTarget.value as PodOrder)}>
              {['namespace', 'owner', 'name', 'age', 'state'].map((name) => <option key={name}>{name}</option>)}
            </select>
          </label>
          <button title="Sort again and fit to the window (0)" onClick={() => { board.engine.arrange(); board.fit(true); }}>Fit</button>
        </>
      )}
    </div>
  );
}

function show(what: 'board' | 'table'): void {
  view.value = what;
  kind.value = '';
}

let known: string[] = [];
let knownAt = -1;

/** The labels to group by; computed again only when the number of Nodes changes. */
function keys(): string[] {
  if (knownAt !== cluster.nodes.size) {
    known = groupings(cluster.nodes.values());
    if (group.value && !['zone', 'pool', ...known].includes(group.value)) known = [group.value, ...known];
    knownAt = cluster.nodes.size;
  }
  return known;
}
