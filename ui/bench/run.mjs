// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node bench/run.mjs [NODESxPODS] [RATE] [SECONDS]: measures how long the page
// takes to show a synthetic cluster, and the cost of updates. It needs the output
// of "npm run bench" and Chromium, and prints JSON.

import { chromium } from 'playwright-core';
import { serve } from '../test/serve.mjs';

const [size = '5000x30', rate = '1000', seconds = '20'] = process.argv.slice(2);
const server = await serve('dist-bench');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--enable-precise-memory-info'] });
const page = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
page.on('pageerror', (error) => console.error(String(error)));

const began = performance.now();
await page.goto(`${server.url}/bench/index.html?synthetic=${size}&rate=${rate}`);
await page.waitForFunction(() => window.watchkeeper?.cluster.synced && window.watchkeeper.board.figures.painted > 0, null, { polling: 'raf', timeout: 60_000 });
const firstPaint = performance.now() - began;

const session = await page.context().newCDPSession(page);
// CPU time of the thread, without time waiting for a core.
await session.send('Performance.enable', { timeDomain: 'threadTicks' });
const metrics = async () => Object.fromEntries((await session.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
const heap = async () => {
  await session.send('HeapProfiler.collectGarbage');
  return (await metrics()).JSHeapUsedSize / 2 ** 20;
};
await page.waitForTimeout(3000);
const heapBefore = await heap();
const before = await metrics();
const beganAt = performance.now();
const batchesBefore = await page.evaluate(() => window.watchkeeper.board.figures.batches);
const frames = await page.evaluate((ms) => new Promise((resolve) => {
  const times = [];
  const end = performance.now() + ms;
  const tick = (now) => {
    times.push(now);
    if (now < end) requestAnimationFrame(tick);
    else resolve(times);
  };
  requestAnimationFrame(tick);
}), Number(seconds) * 1000);
const after = await metrics();
const gaps = frames.slice(1).map((t, i) => t - frames[i]).sort((a, b) => a - b);
const wall = (performance.now() - beganAt) / 1000;
const figures = await page.evaluate(() => ({ ...window.watchkeeper.board.figures, pods: window.watchkeeper.cluster.pods, nodes: window.watchkeeper.cluster.nodes.size }));
console.log(JSON.stringify({
  nodes: figures.nodes, pods: figures.pods, rate: Number(rate), renderer: figures.renderer,
  firstPaintMs: Math.round(firstPaint),
  framesPerSecond: Math.round((10 * gaps.length) / wall) / 10,
  frameP50Ms: Math.round(gaps[Math.floor(gaps.length * 0.5)] * 10) / 10,
  frameP95Ms: Math.round(gaps[Math.floor(gaps.length * 0.95)] * 10) / 10,
  mainThreadPercent: Math.round(((after.TaskDuration - before.TaskDuration) / wall) * 1000) / 10,
  mainThreadMsPerFrame: Math.round(((after.TaskDuration - before.TaskDuration) * 10_000) / gaps.length) / 10,
  batches: figures.batches - batchesBefore,
  heapMiB: { before: Math.round(heapBefore), after: Math.round(await heap()) },
}));
await browser.close();
await server.close();
