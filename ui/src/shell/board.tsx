// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The board on the page, with the tooltip and the notice over it. */

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { refresh, cluster, pathOf, places, selection, selectionOf, selectRow } from '../app/state';
import { listen, type Hit } from '../board/input';
import { State } from '../data/state';
import { workloadNamed, workloadPath } from '../board/workloads';
import type { BoardView } from '../board/view';
import { Tooltip, type Pointed } from './tooltip';

const pointed = signal<Pointed | null>(null);
/** "renderer=canvas" or "renderer=webgl" in the URL overrides the choice of the renderer. */
const requested = new URLSearchParams(location.search).get('renderer');
const forced = requested === 'canvas' || requested === 'webgl' ? requested : '';

export function Board({ board }: { board: BoardView }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const parent = element.current!;
    board.attach(parent, forced);
    const stop = listen(parent, board, board.engine.layout, {
      hover: (hit, x, y) => hover(board, hit, x, y),
      choose: (hit) => choose(board, hit),
    });
    return () => {
      stop();
      board.detach();
    };
  }, [board]);
  // The ring follows the selected Pod when it moves.
  void refresh.value;
  const sel = selection.value;
  const row = sel?.kind === 'pod' ? cluster.rowOf(sel.namespace, sel.name) : -1;
  const inNodes = places.value === 'nodes';
  const tile = !sel || sel.kind === 'pod' ? null : inNodes ? (sel.kind === 'node' ? sel.name : null) : tileOf(board, pathOf(sel));
  if (board.marks.selected !== row || board.marks.selectedTile !== tile) {
    board.marks.selected = row;
    board.marks.selectedTile = tile;
    board.marked();
  }
  return (
    <div class="board" ref={element} tabIndex={0} role="application" aria-label={`Board of Pods ${inNodes ? 'on Nodes' : 'in workloads'}. Arrow keys move between Pods, Enter shows details, T shows a table.`}>
      {pointed.value && <Tooltip pointed={pointed.value} layout={board.engine.layout} />}
    </div>
  );
}

/** The name of the tile of the workload at an API path. */
const tileOf = (board: BoardView, path: string): string | null => board.engine.layout.tiles.find((tile) => tile.bands && workloadPath(workloadNamed(tile.name)) === path)?.name ?? null;

function hover(board: BoardView, hit: Hit | null, x: number, y: number): void {
  const { marks, engine } = board;
  const row = hit && hit.row >= 0 && cluster.state[hit.row] !== State.none ? hit.row : -1;
  const tile = hit && row < 0 && hit.tile.name ? hit.tile.name : null;
  pointed.value = row >= 0 ? { row, x, y } : tile ? { node: tile, x, y, workloads: hit!.tile.bands !== null } : null;
  if (marks.hover === row && marks.hoverTile === tile) return;
  marks.hover = row;
  marks.hoverTile = tile;
  marks.siblings = [];
  if (row >= 0 && cluster.strings[cluster.owner[row]]) {
    for (let other = 0; other < engine.length; other++) {
      if (other !== row && cluster.owner[other] === cluster.owner[row] && cluster.namespace[other] === cluster.namespace[row] && engine.look[other]) marks.siblings.push(other);
    }
    if (marks.siblings.length > 3000) marks.siblings = [];
  }
  board.marked();
}

function choose(board: BoardView, hit: Hit | null): void {
  const { marks } = board;
  if (hit && hit.row >= 0 && cluster.has(hit.row)) {
    marks.focus = hit.row;
    selectRow(hit.row);
  } else if (hit?.tile.name) {
    // Of a kind whose API is not known, nothing can be shown.
    const path = hit.tile.bands ? workloadPath(workloadNamed(hit.tile.name)) : `/api/v1/nodes/${hit.tile.name}`;
    if (path) selection.value = selectionOf(path);
  } else selection.value = null;
}
