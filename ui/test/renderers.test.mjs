// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Both renderers show the same picture of a recording, without motion.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { startRecording, until } from './cluster.mjs';
import { apart, colour, openBoard } from './page.mjs';
import { decode } from './png.mjs';

let browser;
let recording;
let moment; // the moment with the most different states

before(async () => {
  browser = await launch();
  recording = await startRecording('demo/incident.wkr');
  moment = await eventful(recording.url);
});

after(async () => {
  await browser?.close();
  await recording?.stop();
});

/** The moment of the recording, in steps of ten seconds, with the most different states of Pods. */
async function eventful(url) {
  const json = async (path) => (await fetch(url + path)).json();
  const { resources } = await json('/watchkeeper/v1/history');
  const { span } = resources.find(({ resource }) => resource === 'pods').epochs[0];
  let best = { kinds: 0 };
  for (let at = Date.parse(span.from.time) + 1000; at < Date.parse(span.to.time); at += 10_000) {
    const time = new Date(at).toISOString();
    const { items } = await json(`/at/${time}/api/v1/pods`);
    const kinds = new Set(items.map(({ metadata, status }) => `${status.phase} ${metadata.deletionTimestamp !== undefined} ${status.containerStatuses?.[0].ready} ${Object.keys(status.containerStatuses?.[0].state ?? {})}`)).size;
    if (kinds > best.kinds) best = { kinds, time };
  }
  return best.time;
}

/** In the page: replaces the tiles by many small ones with different parts of their Pods, and zooms out. Returns the scale. */
function manyTiles() {
  const { board, engine, cluster } = window.watchkeeper;
  const { layout } = engine;
  const of = layout.tiles.filter((tile) => tile.used);
  const rows = of.flatMap((tile) => [...tile.slots]).filter((row) => row >= 0);
  layout.tiles = Array.from({ length: 700 }, (_, i) => ({
    ...of[i % of.length], gone: i % 50 === 7, x: (i % 35) * 100.3, y: Math.floor(i / 35) * 81.7, w: 94.3, h: 75.7,
    slots: new Int32Array(12).map((_, slot) => (slot > i % 13 ? -1 : rows[(i * 7 + slot * 5) % rows.length])),
  }));
  // All states, and some of the Pods have changed within the last minute.
  rows.forEach((row, i) => {
    engine.look[row] = i % 3 ? 1 : 1 + ((i / 3) % 7);
    cluster.since[row] = i % 3 ? 1 : engine.seconds - i;
  });
  Object.assign(board.camera, { scale: 0.23, x: -100, y: -150 });
  engine.repaint();
  board.steered();
  return board.camera.scale;
}

for (const [name, query, scheme] of [['near', {}, 'dark'], ['near, light', {}, 'light'], ['workloads', { in: 'workloads' }, 'dark'], ['faded', { q: 'checkout' }, 'dark'], ['far', { far: 1 }, 'dark'], ['far, light', { far: 1 }, 'light']]) {
  test(name, async () => {
    const pictures = [];
    const { far, ...rest } = query;
    for (const renderer of ['canvas', 'webgl']) {
      const page = await openBoard(browser, recording.url, { at: moment, renderer, ...rest }, { colorScheme: scheme, reducedMotion: 'reduce' });
      await until(`the renderer ${renderer}`, () => page.evaluate((name) => window.watchkeeper.board.figures.renderer === name, renderer));
      await until('Pods in several states', () => page.evaluate(() => window.watchkeeper.cluster.counts.filter(Boolean).length > 1));
      if (far) {
        const scale = await page.evaluate(manyTiles);
        assert.ok(scale < 0.29, 'tiles are painted as fields');
      }
      const clip = await page.locator('.stage').boundingBox();
      // Wait until the highlights have faded.
      let last = Buffer.alloc(0);
      await until('two equal pictures', async () => {
        const next = await page.screenshot({ clip, animations: 'disabled' });
        const same = next.equals(last);
        last = next;
        return same;
      });
      pictures.push(decode(last));
      await shot(page, `renderer-${renderer}-${name.replace(', ', '-')}`);
      clean(page);
      await page.close();
    }
    const [canvas, webgl] = pictures;
    assert.deepEqual([canvas.width, canvas.height], [webgl.width, webgl.height]);
    let differing = 0;
    let painted = 0;
    const empty = canvas.data.readUInt32LE(0);
    const ground = [...canvas.data.subarray(0, 3)];
    for (let i = 0; i < canvas.data.length; i += 4) {
      if (canvas.data.readUInt32LE(i) === webgl.data.readUInt32LE(i) && canvas.data.readUInt32LE(i) === empty) continue;
      const [a, b] = [canvas, webgl].map(({ data }) => [data[i], data[i + 1], data[i + 2]]);
      if (apart(a, ground) > 12) painted++;
      if (apart(a, b) > 48) differing++; // the renderers smooth edges differently
    }
    assert.ok(painted > 5000, `${painted} pixels are painted`);
    assert.ok(differing < painted / 50, `${differing} of ${painted} painted pixels differ`);
  });
}

for (const renderer of ['canvas', 'webgl']) {
  test(`the lines of recent changes go with the time, ${renderer}`, async () => {
    const page = await openBoard(browser, recording.url, { at: moment, renderer }, { reducedMotion: 'reduce' });
    await until('the renderer', () => page.evaluate((name) => window.watchkeeper.board.figures.renderer === name, renderer));
    await until('Pods', () => page.evaluate(() => window.watchkeeper.cluster.pods > 0));
    await page.evaluate(manyTiles);
    const clip = await page.locator('.stage').boundingBox();
    const text = await colour(page, '--text');
    /** How many pixels have the colour of a line that is not yet fading. */
    const lines = async () => {
      const { data } = decode(await page.screenshot({ clip, animations: 'disabled' }));
      let n = 0;
      for (let i = 0; i < data.length; i += 4) if (apart([data[i], data[i + 1], data[i + 2]], text) < 40) n++;
      return n;
    };
    let shown = 0;
    await until('lines', async () => (shown = await lines()) > 2000);
    // A minute later nothing but the clock is different.
    await page.evaluate(() => {
      const { board, cluster } = window.watchkeeper;
      cluster.since.fill(1);
      cluster.created.fill(1);
      board.reassess();
    });
    // Text has their colour, too.
    await until('no lines', async () => (await lines()) < shown / 4);
    clean(page);
    await page.close();
  });
}
