// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from '../src/board/engine';
import { Layout, maxScale, PITCH } from '../src/board/layout';
import { rowsOf } from '../src/board/positions';
import { rolloutLines } from '../src/board/shelves';
import { workloadNamed, workloadPath, Workloads } from '../src/board/workloads';
import { GHOST } from '../src/data/cluster';
import type { PodRow } from '../src/data/rows';
import { State } from '../src/data/state';
import { Fixture, nodeOf, podOf } from './fixture';

const replica = (name: string, hash: string, more: Partial<PodRow> = {}): PodRow => podOf(`${name}-${hash}`, { labels: `app=web,pod-template-hash=${hash},tier=front`, ...more });

function boardOf(f: Fixture, width = 1200, height = 800): Engine {
  const engine = new Engine(f.cluster);
  engine.arrangement = { places: 'workloads', group: '', nodes: 'name', order: 'name' };
  engine.viewWidth = width;
  engine.viewHeight = height;
  f.rows.sync();
  f.apply();
  engine.arrange();
  return engine;
}

const step = (f: Fixture, engine: Engine, ms = 100): void => {
  f.now += ms;
  engine.apply(structuredClone(f.rows.take(f.now, f.now)), f.now);
  engine.expire(f.now);
};

/** The Pods of each group of a tile, from the top. */
const groups = (f: Fixture, layout: Layout, tile: string): [string, string[]][] =>
  layout.byName.get(tile)!.bands!.map((band) => [band.name, [...rowsOf(layout.byName.get(tile)!, band)].map((row) => f.cluster.names[row])]);

/** The position of every Pod and ghost, by name. No two overlap, each is in its tile, and a point finds it. */
function places(f: Fixture, layout: Layout): Map<string, string> {
  const out = new Map<string, string>();
  for (let row = 0; row < f.cluster.length; row++) {
    if (f.cluster.state[row] === State.none) continue;
    const tile = layout.tileOf(row);
    // A new Pod may take the slot of a ghost.
    if (!tile && !f.cluster.has(row)) continue;
    assert.ok(tile, f.cluster.names[row]);
    const [x, y, half] = [layout.x[row], layout.y[row], layout.half[row]];
    assert.ok(x - half >= tile.x && x + half <= tile.x + tile.w && y - half >= tile.y && y + half <= tile.y + tile.h, `${f.cluster.names[row]} is inside ${tile.name}`);
    for (const off of [-0.95, 0.95]) assert.equal(layout.pick(x + off * half, y + off * half)?.row, row, f.cluster.names[row]);
    out.set(f.cluster.names[row], `${x} ${y} ${half}`);
  }
  return out;
}

test('each Pod has a workload, and those of a Deployment a ReplicaSet', () => {
  const f = new Fixture().set(
    replica('web', 'abc'), podOf('db-0', { owner: 'StatefulSet/db' }), podOf('once', { owner: 'Job/once' }), podOf('alone', { owner: '' }),
    podOf('nightly-29390400-x', { owner: 'Job/nightly-29390400' }), podOf('proxy', { owner: 'DaemonSet/proxy', labels: 'pod-template-hash=odd' }),
  );
  f.apply();
  const workloads = new Workloads();
  const of = (name: string): [string, string] => [workloads.tile(f.cluster, f.row(name)), workloads.group(f.cluster, f.row(name))];
  assert.deepEqual(of('web-abc'), ['shop/Deployment/web', 'abc']);
  assert.deepEqual(of('db-0'), ['shop/StatefulSet/db', '']);
  assert.deepEqual(of('once'), ['shop/Job/once', '']);
  assert.deepEqual(of('nightly-29390400-x'), ['shop/CronJob/nightly', '']);
  assert.deepEqual(of('alone'), ['shop//', '']);
  assert.deepEqual(of('proxy'), ['shop/DaemonSet/proxy', '']);
  // After a reset the ids are those of other strings.
  f.rows.reset();
  f.set(podOf('alone', { owner: 'Job/late', namespace: 'other' }));
  f.apply();
  assert.deepEqual(of('alone'), ['other/Job/late', '']);
});

test('workloads have the API paths of their objects, except of unknown APIs', () => {
  const path = (tile: string): string => workloadPath(workloadNamed(tile));
  assert.equal(path('shop/Deployment/web'), '/apis/apps/v1/namespaces/shop/deployments/web');
  assert.equal(path('shop/CronJob/nightly'), '/apis/batch/v1/namespaces/shop/cronjobs/nightly');
  assert.equal(path('kube-system/Node/node-1'), '/api/v1/nodes/node-1');
  assert.equal(path('shop/Rollout/web'), '');
  assert.equal(path('shop//'), '');
});

test('tiles are below their namespaces, in the order of kinds and names, and do not overlap', () => {
  const f = new Fixture();
  for (let i = 0; i < 40; i++) f.set(replica(`web-${i}`, 'abc', { owner: `Deployment/web-${i % 4}`, namespace: `ns-${i % 3}` }));
  f.set(podOf('alone', { owner: '', namespace: 'ns-1' }), podOf('db-0', { owner: 'StatefulSet/db', namespace: 'ns-1' }), podOf('odd', { owner: 'Rollout/a', namespace: 'ns-1' }));
  const { layout } = boardOf(f);
  places(f, layout);
  assert.deepEqual(layout.tiles.filter((t) => t.group === 'ns-1').map((t) => t.name), [
    'ns-1/Deployment/web-0', 'ns-1/Deployment/web-1', 'ns-1/Deployment/web-2', 'ns-1/Deployment/web-3', 'ns-1/StatefulSet/db', 'ns-1/Rollout/a', 'ns-1//',
  ]);
  assert.deepEqual([...new Set(layout.headings.map((h) => h.text))], ['ns-0', 'ns-1', 'ns-2']);
  for (const a of layout.tiles) {
    const heading = layout.headings.findLast((h) => h.text === a.group && h.y < a.y && h.x <= a.x)!;
    assert.ok(heading.x + heading.w >= a.x + a.w - 1e-6, `${a.name} is below ${heading.text}`);
    for (const b of layout.tiles) {
      if (a !== b) assert.ok(a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y, `${a.name} over ${b.name}`);
    }
  }
});

test('the blocks are as large as fit into the view', () => {
  for (const [workloads, pods] of [[3, 4], [40, 1], [40, 3], [12, 30], [5, 200]]) {
    const f = new Fixture();
    for (let w = 0; w < workloads; w++) for (let i = 0; i < pods; i++) f.set(replica(`p-${w}-${i}`, 'abc', { owner: `Deployment/w-${w}`, namespace: `ns-${w % 3}` }));
    const { layout } = boardOf(f);
    const scale = Math.floor(Math.min(1200 / layout.width, 800 / layout.height, maxScale) * PITCH) / PITCH;
    const name = `${workloads} workloads with ${pods} Pods: ${Math.round(layout.width * scale)} × ${Math.round(layout.height * scale)}, ${scale}`;
    if (scale < maxScale) assert.ok(layout.width * scale > 0.8 * 1200 && layout.height * scale > 0.75 * 800, name);
    // With heads, labels and room for the next ReplicaSets, blocks take at least an eighth of the view, or tiles have only their heads and a few.
    if (pods > 3) assert.ok(workloads * pods * (scale * PITCH) ** 2 > (scale < maxScale ? 0.125 * 1200 * 800 : 0), name);
  }
});

test('a rollout is two groups that trade Pods, the newest last, and nothing else moves', () => {
  const f = new Fixture();
  f.rows.setNode(nodeOf('node-0'));
  for (let i = 0; i < 6; i++) f.set(replica(`web-${i}`, 'old'), podOf(`other-${i}`, { owner: 'Deployment/api' }));
  const engine = boardOf(f);
  const tile = 'shop/Deployment/web';
  const before = places(f, engine.layout);
  for (let i = 0; i < 6; i++) {
    f.set(replica(`web-${i}`, 'new', { created: 2000, node: '', state: State.pending, text: 'Pending' }));
    step(f, engine);
    assert.equal(engine.layout.tileOf(f.row(`web-${i}-new`))!.name, tile, 'also before it is scheduled');
    f.set(replica(`web-${i}`, 'new', { created: 2000 }));
    f.rows.deletePod(`shop/web-${i}-old`, f.now);
    step(f, engine);
    step(f, engine, 2 * GHOST);
    step(f, engine);
    const now = groups(f, engine.layout, tile);
    assert.deepEqual(now.map(([name, pods]) => [name, pods.length]), i < 5 ? [['old', 5 - i], ['new', i + 1]] : [['new', 6]]);
    for (const [name, pods] of now) assert.ok(pods.every((pod) => pod.endsWith(name)), `${pods} in ${name}`);
    const after = places(f, engine.layout);
    for (const [name, place] of before) if (after.has(name)) assert.equal(after.get(name), place, name);
  }
});

test('a tile is little higher than its Pods, and its Pods begin at its top, also after a rollout', () => {
  for (const [width, height] of [[850, 580], [1120, 650], [1200, 800], [358, 400], [2200, 1200]]) {
    const f = new Fixture();
    // Deployments as small ones are, and other workloads beside them.
    for (const [name, pods] of [['cart', 3], ['checkout', 4], ['front', 12], ['pay', 1], ['search', 6]] as const) for (let i = 0; i < pods; i++) f.set(replica(`${name}-${i}`, 'old', { owner: `Deployment/${name}` }));
    f.set(podOf('db-0', { owner: 'StatefulSet/db' }), podOf('db-1', { owner: 'StatefulSet/db' }), podOf('once', { owner: 'Job/once' }));
    const engine = boardOf(f, width, height);
    const { layout } = engine;
    /** Where the Pods of a tile begin and end, as distances from its upper edge. */
    const used = (tile: string): [number, number] => {
      const { y, slots } = layout.byName.get(tile)!;
      const rows = [...slots].filter((row) => row >= 0 && f.cluster.has(row));
      return [Math.min(...rows.map((row) => layout.y[row] - layout.half[row])) - y, Math.max(...rows.map((row) => layout.y[row] + layout.half[row])) - y];
    };
    const begins = new Map<string, number>();
    for (const { name, h, columns } of layout.tiles) {
      const [first, last] = used(name);
      begins.set(name, first);
      const pods = layout.byName.get(name)!.used;
      const more = name.includes('/Deployment/') ? rolloutLines(pods, columns) - Math.ceil(pods / columns) : 1;
      assert.ok(more <= Math.max(1, Math.ceil(pods / columns)), `${name}: ${more} more lines`);
      assert.ok(h <= last + more * PITCH + 2 * layout.label + layout.pad + 1e-6, `${name} at ${width} × ${height}: ${h} for ${last}`);
    }
    const blocks = layout.half[f.row('cart-0-old')];
    // In the past, a step may lead from before a rollout to its end.
    for (const app of ['cart', 'front']) {
      for (let i = 0; i < (app === 'cart' ? 3 : 12); i++) {
        f.rows.deletePod(`shop/${app}-${i}-old`, f.now);
        f.set(replica(`${app}-${i}`, 'new', { owner: `Deployment/${app}`, created: 2000 }));
      }
      step(f, engine);
      assert.ok(Math.abs(layout.half[f.row(`${app}-0-new`)] - blocks) < 1e-6, 'the blocks are as large as before');
      step(f, engine, 2 * GHOST);
      step(f, engine);
      const tile = `shop/Deployment/${app}`;
      assert.deepEqual(groups(f, layout, tile).map(([name]) => name), ['new']);
      assert.ok(Math.abs(used(tile)[0] - begins.get(tile)!) < 1e-6, `${tile} begins at ${used(tile)[0]}, before at ${begins.get(tile)}`);
      places(f, layout);
    }
  }
});

test('groups are in the order of their oldest Pods', () => {
  const f = new Fixture().set(replica('a', 'zzz', { created: 10 }), replica('b', 'aaa', { created: 20 }), replica('c', 'zzz', { created: 30 }));
  assert.deepEqual(groups(f, boardOf(f).layout, 'shop/Deployment/web'), [['zzz', ['a-zzz', 'c-zzz']], ['aaa', ['b-aaa']]]);
});

test('a Pod with another owner moves to its tile, whose place is kept when it is empty', () => {
  const f = new Fixture().set(replica('web', 'abc'), podOf('db-0', { owner: 'StatefulSet/db' }));
  const engine = boardOf(f);
  const tile = engine.layout.byName.get('shop/Deployment/web')!;
  f.set(replica('web', 'abc', { owner: '' })); // orphaned
  step(f, engine);
  assert.equal(engine.layout.tileOf(f.row('web-abc'))!.name, 'shop//');
  assert.ok(tile.gone && tile.used === 0);
  f.set(replica('web-2', 'abc'));
  step(f, engine);
  assert.equal(engine.layout.tileOf(f.row('web-2-abc')), tile);
  assert.ok(!tile.gone);
});

test('a new Job takes the place of one without Pods', () => {
  const f = new Fixture().set(podOf('first', { owner: 'Job/first' }), podOf('db-0', { owner: 'StatefulSet/db' }));
  const engine = boardOf(f);
  const tile = engine.layout.byName.get('shop/Job/first')!;
  f.rows.deletePod('shop/first', f.now);
  step(f, engine);
  step(f, engine, 2 * GHOST);
  step(f, engine);
  assert.ok(tile.gone);
  f.set(podOf('second', { owner: 'Job/second' }), podOf('third', { owner: 'Job/third', namespace: 'new' }));
  step(f, engine);
  assert.equal(engine.layout.tileOf(f.row('second')), tile);
  assert.equal(tile.name, 'shop/Job/second');
  assert.equal(engine.layout.tileOf(f.row('third'))!.group, 'new');
  places(f, engine.layout);
});

test('in 600 random changes no Pod of another workload moves, and none overlaps another', () => {
  let seed = 11;
  const random = (n: number): number => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) % n;
  const f = new Fixture();
  const pod = (i: number): PodRow => replica(`p-${i}`, `h${random(3)}`, { owner: `Deployment/web-${random(4)}`, namespace: `ns-${random(2)}` });
  for (let i = 0; i < 30; i++) f.set(pod(i));
  const engine = boardOf(f);
  engine.steered = () => true; // so that it is not arranged again
  let relaid = 0;
  for (let i = 30; i < 630; i++) {
    const before = places(f, engine.layout);
    const tiles = new Map([...before.keys()].map((name) => [name, engine.layout.tileOf(f.cluster.names.indexOf(name))]));
    const rows = [...Array(f.cluster.length).keys()].filter((row) => f.cluster.has(row));
    const row = rows[random(rows.length)];
    const added = random(5) < 4 && rows.length < 250 ? pod(i) : null;
    if (added) f.set(added);
    else f.rows.deletePod(f.cluster.keyOf(row), f.now);
    const changed = added ? null : engine.layout.tileOf(row);
    step(f, engine, 500);
    const after = places(f, engine.layout);
    const own = added ? engine.layout.tileOf(f.row(added.name)) : changed;
    for (const [name, place] of before) {
      if (!after.has(name) || after.get(name) === place) continue;
      assert.equal(tiles.get(name), own, `${name} after change ${i}`);
      relaid++;
    }
  }
  assert.ok(relaid > 0, 'some tiles were full');
});
