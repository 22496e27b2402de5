// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node bench/page.mjs: measures the page in a Chromium, as it is told on its
// input, a command in JSON on each line, and answers each with a line of JSON:
//
//	{"do":"open","url":…}       opens the page anew: when all was painted
//	{"do":"frames","seconds":…} how often it paints, and what that costs its main thread
//	{"do":"memory"}             what it holds after a collection
//	{"do":"scrub","at":[…]}     goes to moments at these places of the strip, from 0 to 1
//	{"do":"shot","file":…}      a picture
//	{"do":"profile","seconds":…,"file":…} a profile of the main thread
//
// bench/page in Go runs it, with a gateway and Pods to look at. It ends with
// its input.

import { readFile, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
let page;
let session;
let worker; // a function that sends to the worker what session.send sends to the page
const wrong = [];

const MiB = 2 ** 20;
const metrics = async () => Object.fromEntries((await session.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

/** Attaches to the worker of the page: CDP in CDP. */
async function attach() {
  const waiting = new Map();
  let id = 0;
  session.on('Target.receivedMessageFromTarget', ({ message }) => {
    const { id, result, error } = JSON.parse(message);
    waiting.get(id)?.(error ? Promise.reject(new Error(error.message)) : result);
    waiting.delete(id);
  });
  const attached = new Promise((resolve) => session.once('Target.attachedToTarget', resolve));
  await session.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false, flatten: false });
  const { sessionId } = await attached;
  return (method, params = {}) => new Promise((resolve) => {
    waiting.set(++id, resolve);
    void session.send('Target.sendMessageToTarget', { sessionId, message: JSON.stringify({ id, method, params }) });
  });
}

const commands = {
  async open({ url }) {
    await page?.close();
    page = await browser.newPage({ viewport: { width: 1920, height: 1080 }, colorScheme: 'dark' });
    page.on('pageerror', (error) => wrong.push(String(error)));
    session = await page.context().newCDPSession(page);
    // CPU time of the thread: time in which it had to wait for a core is not the page's.
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    await page.goto(url);
    await page.waitForFunction(() => window.watchkeeper?.board.figures.painted > 0, null, { polling: 100, timeout: 120_000 });
    worker = await attach();
    const { TaskDuration: busy } = await metrics();
    const seen = await page.evaluate(() => {
      const { board, cluster } = window.watchkeeper;
      return { painted: board.figures.painted, renderer: board.figures.renderer, pods: cluster.pods, nodes: cluster.nodes.size };
    });
    return { ...seen, busy };
  },

  async frames({ seconds }) {
    const before = await metrics();
    const { times, batches } = await page.evaluate((ms) => new Promise((resolve) => {
      const { figures } = window.watchkeeper.board;
      const times = [];
      const first = figures.batches;
      const end = performance.now() + ms;
      const tick = (now) => {
        times.push(now);
        if (now < end) requestAnimationFrame(tick);
        else resolve({ times, batches: figures.batches - first });
      };
      requestAnimationFrame(tick);
    }), seconds * 1000);
    const after = await metrics();
    const took = (times.at(-1) - times[0]) / 1000;
    const gaps = times.slice(1).map((t, i) => t - times[i]).sort((a, b) => a - b);
    return {
      fps: gaps.length / took, p50: at(gaps, 0.5), p95: at(gaps, 0.95), p99: at(gaps, 0.99), most: gaps.at(-1), batches,
      busy: (after.TaskDuration - before.TaskDuration) / (after.Timestamp - before.Timestamp),
    };
  },

  async memory() {
    const held = async (send) => {
      await send('HeapProfiler.collectGarbage');
      const { usedSize, backingStorageSize = 0 } = await send('Runtime.getHeapUsage');
      return { used: usedSize / MiB, buffers: backingStorageSize / MiB };
    };
    const main = await held((method) => session.send(method));
    const inWorker = await held(worker);
    const of = await browser.newBrowserCDPSession();
    const { processInfo } = await of.send('SystemInfo.getProcessInfo');
    await of.detach();
    let footprint = 0;
    for (const { type, id } of processInfo) {
      if (type !== 'renderer') continue;
      const text = await readFile(`/proc/${id}/smaps_rollup`, 'utf8').catch(() => '');
      const kB = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
      footprint = Math.max(footprint, (kB('Private_Dirty') + kB('SwapPss')) * 1024);
    }
    return { main: main.used, worker: inWorker.used, buffers: main.buffers + inWorker.buffers, footprint: footprint / MiB };
  },

  async scrub({ at: places }) {
    const strip = page.locator('.time .u-over');
    await strip.waitFor({ timeout: 30_000 });
    const box = await strip.boundingBox();
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width / 2, y);
    for (let i = 0; i < 30; i++) await page.mouse.wheel(0, -120); // as near as it goes
    await page.waitForTimeout(3000);
    const took = [];
    for (const place of places) {
      await page.mouse.move(box.x + box.width * place, y);
      const painted = page.evaluate(() => new Promise((resolve) => {
        const { figures } = window.watchkeeper.board;
        addEventListener('pointerdown', ({ timeStamp }) => {
          const before = figures.batches;
          const tick = () => (figures.batches > before ? resolve(performance.now() - timeStamp) : requestAnimationFrame(tick));
          requestAnimationFrame(tick);
        }, { capture: true, once: true });
      }));
      await page.waitForTimeout(50);
      await page.mouse.down();
      await page.mouse.up();
      took.push(await Promise.race([painted, page.waitForTimeout(20_000).then(() => NaN)]));
      await page.waitForTimeout(500);
    }
    return { took, past: await page.evaluate(() => !!document.querySelector('.stage.past')) };
  },

  async shot({ file }) {
    await page.screenshot({ path: file });
    return {};
  },

  async profile({ seconds, file }) {
    await session.send('Profiler.enable');
    await session.send('Profiler.start');
    await page.waitForTimeout(seconds * 1000);
    const { profile } = await session.send('Profiler.stop');
    await writeFile(file, JSON.stringify(profile));
    return {};
  },
};

for await (const line of createInterface(process.stdin)) {
  if (!line) continue;
  const command = JSON.parse(line);
  try {
    const answer = await commands[command.do](command);
    console.log(JSON.stringify({ ...answer, wrong: wrong.splice(0) }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error?.stack ?? error) }));
  }
}
await browser.close();
