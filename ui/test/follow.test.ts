// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from '../src/board/engine';
import { follow } from '../src/board/follow';
import { PITCH } from '../src/board/layout';
import { GHOST } from '../src/data/cluster';
import { State } from '../src/data/state';
import { filled, podOf, type Fixture } from './fixture';

/** A board with the focus on a Pod. update applies the changes, and returns the Pod that has the focus then. */
function focused(f: Fixture, name: string): { engine: Engine; update: (ms?: number) => string } {
  const engine = new Engine(f.cluster);
  engine.viewWidth = 1200;
  engine.viewHeight = 800;
  engine.arrange();
  let row = f.row(name);
  const update = (ms = 100): string => {
    f.now += ms;
    engine.apply(structuredClone(f.rows.take(f.now, f.now)), f.now);
    engine.expire(f.now);
    row = follow(row, f.cluster, engine.layout);
    return row < 0 ? '' : `${f.cluster.names[row]} on ${f.cluster.nodeName(row)}`;
  };
  return { engine, update };
}

test('the focus stays on a Pod that changes or is scheduled', () => {
  const f = filled(3, 5);
  f.set(podOf('loose', { node: '' }));
  f.apply();
  const { update } = focused(f, 'loose');
  f.set(podOf('loose', { node: '', state: State.failing, text: 'Error' }));
  assert.equal(update(), 'loose on ');
  f.set(podOf('loose', { node: 'node-1' }));
  assert.equal(update(), 'loose on node-1');
});

test('the focus follows a Pod that is created again on another Node', () => {
  for (const together of [true, false]) {
    const f = filled(3, 5);
    const { update } = focused(f, 'web-0-2');
    f.rows.deletePod('shop/web-0-2', f.now);
    if (!together) assert.equal(update(), 'web-0-2 on node-0', 'its ghost is shown');
    f.set(podOf('web-0-2', { node: 'node-2', created: 2000 }));
    assert.equal(update(), 'web-0-2 on node-2');
    assert.equal(update(2 * GHOST), 'web-0-2 on node-2');
  }
});

test('the focus of a deleted Pod moves to the nearest one, and not to the next Pod of its row', () => {
  const f = filled(3, 5);
  const { engine, update } = focused(f, 'web-1-2');
  const row = f.row('web-1-2');
  const [x, y] = [engine.layout.x[row], engine.layout.y[row]];
  f.rows.deletePod('shop/web-1-2', f.now);
  assert.equal(update(), 'web-1-2 on node-1', 'its ghost is shown');
  assert.equal(engine.layout.half[row] > 0, true);
  const at = update(2 * GHOST);
  const to = f.row(at.replace(' on node-1', ''));
  assert.equal(Math.hypot(engine.layout.x[to] - x, engine.layout.y[to] - y), PITCH, at);
  for (let i = 0; i < 3; i++) update(10_000); // the row may be used again
  f.set(podOf('other', { node: 'node-2' }));
  assert.equal(update(), at);
  for (const name of f.cluster.names) f.rows.deletePod(`shop/${name}`, f.now);
  update();
  assert.equal(update(2 * GHOST), '');
});
