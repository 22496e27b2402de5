// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from '../src/board/engine';
import { BLOCK, Layout, maxScale, PITCH, UNSCHEDULED } from '../src/board/layout';
import { NODE_ORDERS, type Arrangement } from '../src/board/order';
import { GHOST } from '../src/data/cluster';
import { State } from '../src/data/state';
import { filled, Fixture, nodeOf, podOf } from './fixture';

const plain: Arrangement = { places: 'nodes', group: '', nodes: 'name', order: 'namespace' };

function engineOf(f: Fixture): Engine {
  const engine = new Engine(f.cluster);
  engine.viewWidth = 1200;
  engine.viewHeight = 800;
  engine.arrange();
  return engine;
}

/** The position of every Pod, by name. */
function places(f: Fixture, layout: Layout): Map<string, string> {
  const out = new Map<string, string>();
  for (let row = 0; row < f.cluster.length; row++) {
    if (f.cluster.state[row] !== State.none && f.cluster.state[row] !== State.gone) out.set(f.cluster.names[row], `${layout.x[row]} ${layout.y[row]} ${layout.half[row]}`);
  }
  return out;
}

const step = (f: Fixture, engine: Engine): void => {
  f.now += 100;
  engine.apply(structuredClone(f.rows.take(f.now, f.now)), f.now);
};

test('no two Pods overlap, and each is inside the tile of its Node', () => {
  const f = filled(7, 23);
  f.set(...Array.from({ length: 9 }, (_, i) => podOf(`loose-${i}`, { node: '' })));
  f.apply();
  const { layout } = engineOf(f);
  const seen = new Set(places(f, layout).values());
  assert.equal(seen.size, 7 * 23 + 9);
  for (let row = 0; row < f.cluster.length; row++) {
    const tile = layout.tileOf(row)!;
    assert.equal(tile.name, f.cluster.nodeName(row));
    assert.ok(layout.x[row] - layout.half[row] >= tile.x && layout.x[row] + layout.half[row] <= tile.x + tile.w);
    assert.ok(layout.y[row] - layout.half[row] >= tile.y && layout.y[row] + layout.half[row] <= tile.y + tile.h);
  }
  for (const a of layout.tiles) {
    for (const b of layout.tiles) {
      if (a !== b) assert.ok(a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y, `${a.name} over ${b.name}`);
    }
  }
});

test('nothing moves when another Pod is added, changed or deleted', () => {
  const f = filled(5, 12);
  const engine = engineOf(f);
  const before = places(f, engine.layout);
  f.set(podOf('new', { node: 'node-2' }), podOf('web-1-3', { node: 'node-1', state: State.failing, text: 'Error' }));
  f.rows.deletePod('shop/web-4-4', f.now);
  f.rows.setNode(nodeOf('node-9'));
  f.set(podOf('on-9', { node: 'node-9' }));
  step(f, engine);
  const after = places(f, engine.layout);
  assert.ok(after.has('new') && after.has('on-9'));
  before.delete('web-4-4');
  for (const [name, place] of before) assert.equal(after.get(name), place, name);
});

test('nothing moves in 500 random changes', () => {
  let seed = 7;
  const random = (n: number): number => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) % n;
  const f = filled(6, 10);
  const engine = engineOf(f);
  const tiles = new Map(engine.layout.tiles.map((t) => [t.name, `${t.x} ${t.y}`]));
  for (let i = 0; i < 500; i++) {
    const before = places(f, engine.layout);
    const pitch = new Map(engine.layout.tiles.map((t) => [t.name, t.pitch]));
    const names = [...before.keys()];
    if (random(3) === 0) f.set(podOf(`n-${i}`, { node: `node-${random(6)}` }));
    else if (random(2) === 0 && names.length > 20) f.rows.deletePod(`shop/${names[random(names.length)]}`, f.now);
    else {
      const name = names[random(names.length)];
      f.set(podOf(name, { node: f.cluster.nodeName(f.row(name)), restarts: i }));
    }
    step(f, engine);
    engine.expire(f.now);
    const after = places(f, engine.layout);
    for (const [name, place] of after) {
      const tile = engine.layout.tileOf(f.row(name))!;
      // An overfull tile has smaller blocks; those of other tiles stay.
      if (before.has(name) && pitch.get(tile.name) === tile.pitch) assert.equal(place, before.get(name), `${name} after change ${i}`);
    }
    assert.equal(new Set(after.values()).size, after.size);
    for (const tile of engine.layout.tiles) assert.equal(tiles.get(tile.name) ?? `${tile.x} ${tile.y}`, `${tile.x} ${tile.y}`);
  }
});

test('a scheduled Pod moves to its Node and frees its slot', () => {
  const f = filled(2, 3);
  f.set(podOf('late', { node: '', state: State.pending, text: 'Pending' }));
  f.apply();
  const engine = engineOf(f);
  const loose = engine.layout.byName.get(UNSCHEDULED)!;
  assert.equal(loose.used, 1);
  f.set(podOf('late', { node: 'node-1' }));
  step(f, engine);
  assert.equal(loose.used, 0);
  assert.equal(engine.layout.tileOf(f.row('late'))!.name, 'node-1');
});

test('a deleted Pod leaves a ghost, which keeps its slot until it expires', () => {
  const f = filled(1, 4);
  const engine = engineOf(f);
  const row = f.row('web-0-1');
  const place = engine.layout.x[row];
  f.rows.deletePod('shop/web-0-1', f.now);
  step(f, engine);
  assert.equal(engine.look[row], State.gone);
  assert.equal(engine.layout.x[row], place);
  assert.equal(engine.matchingByTile().get('node-0'), 3, 'a ghost does not count');
  f.now += GHOST + 1;
  engine.expire(f.now);
  assert.equal(engine.look[row], State.none);
  engine.expire(f.now + 1);
  assert.equal(engine.layout.half[row], 0);
  // The slot is free for the next Pod.
  f.now += 10_000;
  f.set(podOf('next', { node: 'node-0' }));
  step(f, engine);
  assert.equal(engine.layout.x[f.row('next')], place);
});

/** Pixels per unit at which an arranged board fits, as Camera.fit has it. */
const scaleOf = (layout: Layout, width: number, height: number): number => {
  const scale = Math.min(width / layout.width, height / layout.height, maxScale);
  return Math.floor(scale * PITCH + 1e-3) / PITCH;
};

test('with few Nodes, the board fills the view, and its blocks are as large as fit', () => {
  for (const [width, height] of [[1024, 614], [1568, 820], [700, 900]]) {
    for (const nodes of [1, 2, 3, 6, 9, 14]) {
      for (const pods of [1, 3, 7, 12, 30]) {
        const layout = new Layout();
        layout.arrange(filled(nodes, pods).cluster, plain, width, height);
        const scale = scaleOf(layout, width, height);
        const name = `${nodes} Nodes with ${pods} Pods at ${width} × ${height}`;
        assert.ok(layout.width * scale > 0.88 * width && layout.height * scale > 0.88 * height, `${name}: ${layout.width * scale} × ${layout.height * scale}`);
        // Larger blocks would leave less than one slot for each Pod, with the heads and gaps: a third of the view at most.
        const tile = layout.tiles[0];
        assert.ok(tile.slots.length >= pods);
        if (scale < maxScale) assert.ok(nodes * (pods + 4) * (scale * PITCH) ** 2 > 0.36 * width * height, `${name}: blocks of ${BLOCK * scale} pixels`);
      }
    }
  }
});

test('six Nodes at 1440 × 814, beside the list of what needs attention, have room for the names', () => {
  const layout = new Layout();
  layout.arrange(filled(6, 7).cluster, plain, 1440 - 384 - 32, 814 - 120 - 80);
  assert.ok(BLOCK * scaleOf(layout, 1024, 614) >= 60);
});

test('blocks keep their size until there are more Pods than slots for them', () => {
  const f = filled(6, 7);
  const engine = engineOf(f);
  const before = places(f, engine.layout);
  const slots = engine.layout.tiles.reduce((sum, tile) => sum + tile.slots.length, 0);
  let arranged = 0;
  engine.onArranged = () => arranged++;
  for (let i = 0; f.cluster.pods < slots; i++) {
    f.set(podOf(`more-${i}`, { node: `node-${i % 6}` }));
    step(f, engine);
  }
  assert.equal(arranged, 0);
  const after = places(f, engine.layout);
  for (const [name, place] of before) if (engine.layout.tileOf(f.row(name))!.pitch === PITCH) assert.equal(after.get(name), place, name);
  f.set(...Array.from({ length: slots / 2 + 10 }, (_, i) => podOf(`many-${i}`, { node: `node-${i % 6}` })));
  step(f, engine);
  assert.equal(arranged, 1);
});

test('an overfull tile makes its blocks smaller and holds them all', () => {
  const f = filled(1, 4);
  const engine = engineOf(f);
  engine.steered = () => true;
  const tile = engine.layout.byName.get('node-0')!;
  const { pitch } = tile;
  f.set(...Array.from({ length: 200 }, (_, i) => podOf(`more-${i}`)));
  step(f, engine);
  assert.ok(tile.pitch < pitch);
  assert.equal(tile.used, 204);
  assert.equal(new Set(places(f, engine.layout).values()).size, 204);
});

test('a cluster that has grown a lot is arranged again, unless the user has panned or zoomed', () => {
  const f = filled(1, 4);
  const engine = engineOf(f);
  const { pitch } = engine.layout.byName.get('node-0')!;
  f.set(...Array.from({ length: 200 }, (_, i) => podOf(`more-${i}`)));
  step(f, engine);
  assert.equal(engine.layout.byName.get('node-0')!.pitch, pitch);
  assert.ok(engine.layout.byName.get('node-0')!.slots.length >= 204);
});

test('in a full tile a new Pod replaces a ghost', () => {
  const f = filled(1, 8);
  const engine = engineOf(f);
  const tile = engine.layout.byName.get('node-0')!;
  f.set(...Array.from({ length: tile.slots.length - 8 }, (_, i) => podOf(`fill-${i}`)));
  step(f, engine);
  const { pitch } = tile;
  f.rows.deletePod('shop/web-0-3', f.now);
  step(f, engine);
  f.set(podOf('next'));
  step(f, engine);
  assert.equal(tile.pitch, pitch);
  assert.equal(engine.layout.tileOf(f.row('next')), tile);
});

test('groups have headings, and their Nodes are together', () => {
  const f = filled(9, 2);
  const layout = new Layout();
  layout.arrange(f.cluster, { places: 'nodes', group: 'zone', nodes: 'name', order: 'name' }, 1000, 700);
  assert.deepEqual(layout.headings.map((h) => h.text), ['z0', 'z1', 'z2']);
  assert.deepEqual(layout.tiles.filter((t) => t.group === 'z1').map((t) => t.name), ['node-1', 'node-4', 'node-7']);
});

test('Nodes are in the selected order', () => {
  const f = new Fixture();
  f.rows.setNode(nodeOf('node-0', { created: 30 }));
  f.rows.setNode(nodeOf('node-1', { created: 10, cpu: 100_000, pods: 1000 })); // large
  f.rows.setNode(nodeOf('node-2', { created: 20, ready: 'False' }));
  f.rows.setNode(nodeOf('node-10', { created: 40 }));
  for (let i = 0; i < 3; i++) f.set(podOf(`a-${i}`, { node: 'node-0', cpu: 1000, memory: 1 }));
  for (let i = 0; i < 5; i++) f.set(podOf(`b-${i}`, { node: 'node-1', cpu: 2000, state: i ? State.ready : State.failing }));
  f.set(podOf('c', { node: 'node-10', cpu: 1, memory: 2 ** 20, state: State.failing }), podOf('d', { node: 'node-10', state: State.failing }));
  f.rows.sync();
  f.apply();
  const layout = new Layout();
  const wanted = {
    name: ['node-0', 'node-1', 'node-2', 'node-10'],
    pods: ['node-0', 'node-10', 'node-1', 'node-2'],
    cpu: ['node-0', 'node-1', 'node-10', 'node-2'],
    memory: ['node-10', 'node-1', 'node-0', 'node-2'],
    failing: ['node-2', 'node-10', 'node-1', 'node-0'],
    age: ['node-1', 'node-2', 'node-0', 'node-10'],
  };
  for (const nodes of NODE_ORDERS) {
    layout.arrange(f.cluster, { places: 'nodes', group: '', nodes, order: 'name' }, 1000, 700);
    assert.deepEqual(layout.tiles.filter((t) => t.name !== UNSCHEDULED).map((t) => t.name), wanted[nodes], nodes);
  }
});

test('a deleted Node keeps its tile until another Node takes it', () => {
  const f = filled(3, 0);
  const engine = engineOf(f);
  const tile = engine.layout.byName.get('node-1')!;
  f.rows.deleteNode('node-1');
  step(f, engine);
  assert.ok(tile.gone);
  f.rows.setNode(nodeOf('node-8'));
  step(f, engine);
  assert.equal(engine.layout.byName.get('node-8'), tile);
  assert.ok(!tile.gone);
});

test('picking finds Pods in tiles of any pitch, and next finds their neighbours', () => {
  const f = filled(4, 30);
  f.set(...Array.from({ length: 90 }, (_, i) => podOf(`more-${i}`, { node: 'node-3' })));
  f.apply();
  const layout = new Layout();
  layout.arrange(f.cluster, plain, 1200, 800);
  for (let row = 0; row < f.cluster.length; row++) {
    for (const off of [-0.95, 0, 0.95]) assert.equal(layout.pick(layout.x[row] + off * layout.half[row], layout.y[row] + off * layout.half[row])?.row, row);
  }
  assert.equal(layout.pick(-5, -5), null);
  const tile = layout.tiles[0];
  assert.equal(layout.pick(tile.x + 1, tile.y + 1)?.row, -1);
  const right = layout.next(f.row('web-0-0'), 1, 0);
  assert.equal(layout.next(right, -1, 0), f.row('web-0-0'));
});

test('before the first list is complete, the look of a Pod is that of its state', () => {
  const f = new Fixture().set(podOf('web', { state: State.failing }));
  const engine = new Engine(f.cluster);
  const take = (): void => engine.apply(structuredClone(f.rows.take(f.now, f.now)), f.now);
  take();
  assert.equal(engine.look[f.row('web')], State.failing);
  engine.setFilter('ns:other');
  f.set(podOf('web-2'));
  take();
  assert.equal(engine.matching(), 0);
});
