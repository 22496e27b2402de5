// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { Engine } from '../src/board/engine';
import { bandHeights, BANDS, farLook, FRESH, patterned, PRESSING, signOf, stripHeight } from '../src/board/far';
import { Fields } from '../src/board/fields';
import { UNSCHEDULED } from '../src/board/layout';
import { DARK } from '../src/board/palette';
import { pixel } from '../src/board/sprites';
import { clock } from '../src/data/clock';
import { State } from '../src/data/state';
import { Fixture, nodeOf, podOf } from './fixture';

const { now } = clock;
afterEach(() => (clock.now = now));

/** A Node with Pods in these states, at 10,000 s. A state with a number of seconds began then. */
function boardOf(...pods: { state: number; since?: number }[]) {
  clock.now = () => 10_000;
  const f = new Fixture();
  f.rows.setNode(nodeOf('node-0'));
  pods.forEach(({ state, since = 5000 }, i) => f.set(podOf(`p-${i}`, { state, since })));
  f.rows.sync();
  f.apply();
  const engine = new Engine(f.cluster);
  engine.arrange();
  const tile = engine.layout.byName.get('node-0')!;
  const step = (): void => {
    f.now += 100;
    engine.apply(structuredClone(f.rows.take(f.now, f.now)), f.now);
  };
  return { f, engine, tile, step, look: () => farLook(tile, engine) };
}

const of = (state: number, n: number): { state: number }[] => Array.from({ length: n }, () => ({ state }));

test('the bands of a field are the shares of the states', () => {
  const { engine, tile, look } = boardOf(...of(State.ready, 6), ...of(State.failing, 3), ...of(State.succeeded, 2), ...of(State.pending, 1));
  tile.slots = new Int32Array(24).map((_, i) => tile.slots[i] ?? -1);
  const seen = look();
  assert.equal(seen.pods, 12);
  assert.equal(seen.state, State.failing);
  const { above, bands } = bandHeights(seen.parts, 240);
  const heights = Object.fromEntries(BANDS.map((state, band) => [state, bands[band]]));
  // Of 24 slots, each is 10 pixels high.
  for (const [state, height] of [[State.ready, 60], [State.failing, 30], [State.succeeded, 20], [State.pending, 10], [State.unready, 0]]) {
    assert.ok(Math.abs(heights[state] - height) <= 1, `${state}: ${heights[state]} pixels`);
  }
  assert.ok(Math.abs(above - 120) <= 1);
  // The filter leaves the matching Pods.
  engine.setFilter('p-0');
  assert.deepEqual([look().pods, look().state], [1, State.none]);
});

test('one pressing Pod of many is visible in a field of a few pixels, and the bands fit into it', () => {
  for (const state of BANDS.slice(0, PRESSING)) {
    for (let height = 6; height < 30; height++) {
      const { parts } = boardOf({ state }, ...of(State.ready, 99)).look();
      const { above, bands } = bandHeights(parts, height);
      assert.ok(bands[BANDS.indexOf(state)] >= 2);
      assert.ok(above + bands.reduce((a, b) => a + b, 0) <= height, `${height} pixels`);
    }
  }
});

test('no two pressing states have the same pattern', () => {
  const patterns = BANDS.slice(0, PRESSING).map((_, band) => Array.from({ length: 16 }, (_, i) => Number(patterned(band, i % 4, i >> 2))).join(''));
  assert.equal(new Set(patterns).size, PRESSING);
});

test('the line of recent changes has the portion of the Pods, and fades until they are a minute old', () => {
  const { look } = boardOf({ state: State.ready, since: 9990 }, { state: State.unready, since: 9950 }, ...of(State.ready, 6));
  assert.equal(look().recent, Math.round(255 / 4));
  const first = look().fresh;
  assert.ok(first > 1 && first < FRESH);
  clock.now = () => 10_020;
  assert.equal(look().recent, Math.round(255 / 8), 'the older one is no longer recent');
  clock.now = () => 10_049;
  assert.equal(look().fresh, 1);
  clock.now = () => 10_050;
  assert.deepEqual([look().recent, look().fresh], [0, 0]);
});

test('deleted Pods are recent changes, except in the past', () => {
  const { f, engine, step, look } = boardOf(...of(State.ready, 8));
  f.rows.deletePod('shop/p-0', f.now);
  f.rows.deletePod('shop/p-1', f.now);
  step();
  assert.equal(look().recent, Math.round(255 / 4));
  clock.now = () => 10_060;
  assert.equal(look().recent, 0);
  engine.live = () => false;
  f.rows.deletePod('shop/p-2', f.now);
  step();
  assert.equal(look().recent, 0);
});

test('a field has its bands, its sign and its line in whole pixels', () => {
  const { engine, tile, look } = boardOf({ state: State.failing, since: 9999 }, ...of(State.ready, 3));
  tile.slots = tile.slots.slice(0, 4);
  const [width, height] = [20, 18];
  const data = new Uint32Array(width * height);
  new Fields(DARK).paint({ data, width, height }, { left: 0, top: 0, right: width, bottom: height }, tile, look(), engine.tile(tile).edge, 1);
  const at = (x: number, y: number): number => data[y * width + x];
  const body = height - stripHeight(height);
  const { size } = signOf(width, body);
  const failing = pixel(DARK.state.failing);
  assert.ok(size >= 5);
  assert.equal(at(width - 1, 0), failing, 'the band of failing Pods is on top');
  assert.notEqual(at(width - 1, body - 1), failing);
  assert.equal(at(size >> 1, body >> 1), failing, 'the sign');
  assert.equal(at(width - 1, body), pixel(DARK.tile), 'a gap above the line');
  assert.notEqual(at(0, height - 1), pixel(DARK.tile));
  assert.equal(at(4, height - 1), at(0, height - 1), 'a quarter of the Pods has changed');
  assert.equal(at(5, height - 1), pixel(DARK.tile));
});

test('unscheduled Pods have no sign', () => {
  const { f, engine } = boardOf();
  f.set(podOf('loose', { node: '', state: State.pending, text: 'Pending' }));
  f.apply();
  engine.arrange();
  assert.equal(farLook(engine.layout.byName.get(UNSCHEDULED)!, engine).state, State.none);
});
