// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Assembles the page and starts it. */

import { effect } from '@preact/signals';
import { Fragment, render } from 'preact';
import { keepAddress } from '../app/address';
import { absent, lost } from '../app/contact';
import { Feed } from '../app/feed';
import { refresh, changes, cluster, filter, group, help, kind, mode, needs, nodes, notSelected, opener, order, places, received, reducedMotion, scope, selection, theme, view } from '../app/state';
import { clock } from '../data/clock';
import { State } from '../data/state';
import { asked, session, watchLogin } from '../app/login';
import { now } from '../app/now';
import { playhead, recorded } from '../time/playback';
import { Engine } from '../board/engine';
import { applyTheme } from '../board/palette';
import { BoardView } from '../board/view';
import './plain';
import { ActionDialogs } from './actions';
import { Board } from './board';
import { Controls } from './controls';
import { keepFocus } from './focus';
import { allLoaded, later, loadLater } from './later';
import { Kinds, Opener, Spreadsheet } from './kinds';
import { listenKeys } from './keys';
import { Login } from './login';
import { LiveRegion } from './live';
import { Needs } from './needs';
import { Notice } from './notice';
import { Sheet } from './sheet';
import { history, type History } from '../time/history';
import { Moment } from '../time/transport';
import { matchCount, TopBar } from './topbar';

/** How often the components outside the board render while data changes, in milliseconds. */
const refreshInterval = 250;

const Help = later(async () => (await import('./help')).Help);
const side = (words: string) => <aside class="side"><p class="muted">{words}</p></aside>;
const Panel = later(async () => (await import('../panel/panel')).Panel, side);
const Table = later(async () => (await import('./table')).Table);
const Changes = later(async () => (await import('../time/changes')).Changes, side);
/** Its space is reserved, so that the board is arranged only once. */
const reserved = (words: string) => (words === 'loading' ? <footer class="time" /> : <footer class="time off"><p class="muted">{words}</p></footer>);
const Strip = later(async () => (await import('../time/strip')).Strip, reserved);

const App = ({ board, source }: { board: BoardView; source: History }) => (
  <>
    <TopBar />
    <main class={`stage ${mode.value ? 'past' : lost.value ? 'lost' : ''}`}>
      {view.value === 'board' ? <Board board={board} /> : view.value === 'sheet' ? <Spreadsheet /> : kind.value ? <Kinds /> : <Table board={board} />}
      {/* A table of a kind and the spreadsheet say themselves what is missing. */}
      {(view.value === 'board' || (view.value === 'table' && !kind.value)) && <Notice />}
      {notSelected.value && !selection.value && <p class="chip calm" role="alert">Nothing is selected: “{notSelected.value}” in the address can be no object.</p>}
      <Controls board={board} />
      <Moment />
      <Login />
    </main>
    {/* After a login they ask again. */}
    <Fragment key={session.value.number}>
      <Sheet>
        {selection.value && <Panel />}
        {changes.value && recorded.value ? <div class={selection.value ? 'side-hidden' : 'side-shown'}><Changes history={source} /></div> : !selection.value && needs.value && <Needs board={board} />}
      </Sheet>
      {/* Its history is that of the namespaces. */}
      <Strip key={scope.value.namespaces?.join()} history={source} />
    </Fragment>
    {help.value && <Help />}
    {opener.value && <Opener />}
    <ActionDialogs />
    <LiveRegion />
  </>
);

/** Starts the page with the data of a worker. */
export function start(worker: Worker, source: History = history): void {
  const engine = new Engine(cluster);
  const board = new BoardView(engine, new Feed(worker));
  let due = false;
  board.onData = () => {
    received.value = Date.now();
    if (due) return;
    due = true;
    setTimeout(() => {
      due = false;
      refresh.value++;
    }, cluster.length > 20_000 ? 2 * refreshInterval : cluster.synced ? refreshInterval : 60);
  };
  effect(() => {
    applyTheme(theme.value);
    engine.theme = theme.value;
    engine.reducedMotion = reducedMotion.value;
    engine.repaint();
    board.touch();
  });
  effect(() => {
    engine.setFilter(filter.value);
    board.marked();
  });
  let first = true;
  effect(() => {
    engine.arrangement = { places: places.value, group: group.value, nodes: nodes.value, order: order.value };
    if (!first) engine.arrange();
    first = false;
  });
  engine.live = () => mode.peek() === null;
  matchCount.value = () => engine.matching();
  // Without contact, ages stop at the last one, as everything on the board does.
  clock.now = () => (playhead.peek() || lost.peek() || now()) / 1000;
  clock.received = () => (playhead.peek() || now()) / 1000;
  // Ages and some states change even if the data does not.
  setInterval(() => {
    if (document.hidden) return;
    board.reassess();
    refresh.value++;
  }, 1000);
  effect(() => {
    void mode.value;
    board.reassess();
  });
  effect(() => {
    void refresh.value;
    const failing = cluster.counts[State.failing];
    const title = `${asked.value ? 'not logged in · ' : lost.value ? 'no contact · ' : failing && !absent.value ? `${failing} failing · ` : ''}Watchkeeper`;
    if (document.title !== title) document.title = title;
  });
  keepAddress();
  watchLogin();
  listenKeys(board, source);
  keepFocus();
  loadLater();
  render(<App board={board} source={source} />, document.body);
  // For tests and benchmarks.
  (window as unknown as { watchkeeper: unknown }).watchkeeper = { board, cluster, engine, allLoaded };
}
