// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node bench/page.mjs: measures the page in Chromium. It reads a JSON command per
// line from its input, and answers each with a line of JSON:
//
//	{"do":"open","url":…}       opens the page; when it was painted completely
//	{"do":"frames","seconds":…} the frame rate, and its cost on the main thread
//	{"do":"memory"}             the memory after a garbage collection
//	{"do":"scrub","at":[…]}     goes to moments at these positions of the strip, from 0 to 1
//	{"do":"table","url":…,"objects":…,"seconds":…} opens a table of a kind, and scrolls through it
//	{"do":"sheet","url":…,"objects":…,"columns":[…],"formulas":[…],"seconds":…} opens a spreadsheet: how long changes took to be painted
//	{"do":"shot","file":…}      a picture
//	{"do":"profile","seconds":…,"file":…} a profile of the main thread
//
// bench/page in Go runs it, with a gateway and Pods. It ends at the end of its
// input.

import { readFile, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { deflateRawSync } from 'node:zlib';
import { sleep, start } from './chromium.mjs';

const browser = await start();
let page;
let worker; // sends a command to the page's worker

const MiB = 2 ** 20;
const metrics = async () => Object.fromEntries((await page.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

/** Counts frames, with a step of JavaScript in each. */
async function frames(seconds, step = '') {
  const before = await metrics();
  const { times, batches } = await page.evaluate(`new Promise((resolve) => {
    const { figures } = window.watchkeeper.board;
    const times = [];
    const first = figures.batches;
    const end = performance.now() + ${seconds * 1000};
    const tick = (now) => {
      times.push(now);
      ${step}
      if (now < end) requestAnimationFrame(tick);
      else resolve({ times, batches: figures.batches - first });
    };
    requestAnimationFrame(tick);
  })`);
  const after = await metrics();
  const took = (times.at(-1) - times[0]) / 1000;
  const gaps = times.slice(1).map((t, i) => t - times[i]).sort((a, b) => a - b);
  return {
    fps: gaps.length / took, p50: at(gaps, 0.5), p95: at(gaps, 0.95), p99: at(gaps, 0.99), most: gaps.at(-1), batches,
    busy: (after.TaskDuration - before.TaskDuration) / (after.Timestamp - before.Timestamp),
  };
}

const commands = {
  async open({ url }) {
    await page?.close();
    page = await browser.open(1920, 1080);
    // CPU time of the thread, without time waiting for a core.
    await page.send('Performance.enable', { timeDomain: 'threadTicks' });
    await page.goto(url);
    await page.until('window.watchkeeper?.board.figures.painted > 0');
    worker = await page.attach();
    const { TaskDuration: busy } = await metrics();
    const seen = await page.evaluate(`(() => {
      const { board, cluster } = window.watchkeeper;
      return { painted: board.figures.painted, renderer: board.figures.renderer, pods: cluster.pods, nodes: cluster.nodes.size };
    })()`);
    return { ...seen, busy };
  },

  frames: ({ seconds }) => frames(seconds),

  async memory() {
    const held = async (send) => {
      await send('HeapProfiler.collectGarbage');
      const { usedSize, backingStorageSize = 0 } = await send('Runtime.getHeapUsage');
      return { used: usedSize / MiB, buffers: backingStorageSize / MiB };
    };
    const main = await held((method) => page.send(method));
    const inWorker = await held(worker);
    const { processInfo } = await browser.send('SystemInfo.getProcessInfo');
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
    const strip = `document.querySelector('.time .u-over')`;
    await page.until(`!!${strip}`, 30_000);
    const box = await page.evaluate(`(({ x, y, width, height }) => ({ x, y, width, height }))(${strip}.getBoundingClientRect())`);
    const y = box.y + box.height / 2;
    const end = box.x + box.width - 2; // it zooms about the pointer
    await page.mouse('mouseMoved', end, y);
    for (let i = 0; i < 30; i++) await page.mouse('mouseWheel', end, y, { deltaX: 0, deltaY: -120 }); // to the shortest range
    await sleep(3000);
    const took = [];
    for (const place of places) {
      const x = box.x + box.width * place;
      await page.mouse('mouseMoved', x, y);
      // It listens before the press: a command and an input may overtake each other.
      await page.evaluate(`void (window.painted = new Promise((resolve) => {
        const { figures } = window.watchkeeper.board;
        addEventListener('pointerdown', ({ timeStamp }) => {
          const before = figures.batches;
          const tick = () => (figures.batches > before ? resolve(performance.now() - timeStamp) : requestAnimationFrame(tick));
          requestAnimationFrame(tick);
        }, { capture: true, once: true });
      }))`);
      const left = { button: 'left', buttons: 1, clickCount: 1 };
      await page.mouse('mousePressed', x, y, left);
      await page.mouse('mouseReleased', x, y, left);
      const ms = await Promise.race([page.evaluate('window.painted'), sleep(20_000)]);
      if (ms === undefined) throw new Error(`the board does not show the moment: ${await page.evaluate(`document.querySelector('.notice')?.innerText ?? ''`)}`);
      took.push(ms);
      await sleep(500);
    }
    return { took, past: await page.evaluate(`!!document.querySelector('.stage.past')`) };
  },

  async table({ url, objects, seconds }) {
    await page?.close();
    page = await browser.open(1920, 1080);
    await page.send('Performance.enable', { timeDomain: 'threadTicks' });
    await page.goto(url);
    const words = `${objects.toLocaleString('en')} objects`;
    await page.until(`document.querySelector('.kinds-bar [role=status]')?.textContent === ${JSON.stringify(words)}`);
    const complete = await page.evaluate('performance.now()');
    await sleep(5000); // the board has its own list
    // Sizes that are read in a frame have to be computed before their time.
    await page.evaluate(`(() => {
      const table = document.querySelector('.table.kinds');
      const end = table.scrollHeight - table.clientHeight;
      let top = 0;
      window.scrollOn = () => (table.scrollTop = top = (top + 700) % end);
    })()`);
    const scrolled = await frames(seconds, 'window.scrollOn();');
    const rows = await page.evaluate(`document.querySelectorAll('.table.kinds .line').length`);
    return { complete, rows, ...scrolled };
  },

  async sheet({ url, objects, columns, formulas, seconds }) {
    await page?.close();
    page = await browser.open(1920, 1080);
    await page.send('Performance.enable', { timeDomain: 'threadTicks' });
    const workbook = { tabs: [{ name: 'pods', resource: { group: '', version: 'v1', resource: 'pods' }, columns, rows: [], cells: formulas }] };
    await page.goto(`${url}?view=sheet&kind=pods&sheet=${deflateRawSync(JSON.stringify(workbook)).toString('base64url')}`);
    const words = `${objects.toLocaleString('en')} Pods`;
    await page.until(`document.querySelector('.sheet-bar [role=status]')?.textContent === ${JSON.stringify(words)}`);
    const complete = await page.evaluate('performance.now()');
    await sleep(5000); // the board has its own list
    await page.evaluate('window.spreadsheet.peek().book.painted.length = 0');
    const { busy, fps } = await frames(seconds);
    const painted = (await page.evaluate('window.spreadsheet.peek().book.painted')).sort((a, b) => a - b);
    return { complete, fps, busy, changes: painted.length, p50: at(painted, 0.5), p99: at(painted, 0.99), most: painted.at(-1) };
  },

  async shot({ file }) {
    const { data } = await page.send('Page.captureScreenshot', { format: 'png' });
    await writeFile(file, Buffer.from(data, 'base64'));
    return {};
  },

  async profile({ seconds, file }) {
    await page.send('Profiler.enable');
    await page.send('Profiler.start');
    await sleep(seconds * 1000);
    const { profile } = await page.send('Profiler.stop');
    await writeFile(file, JSON.stringify(profile));
    return {};
  },
};

for await (const line of createInterface(process.stdin)) {
  if (!line) continue;
  const command = JSON.parse(line);
  try {
    const answer = await commands[command.do](command);
    console.log(JSON.stringify({ ...answer, wrong: page.wrong.splice(0) }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error?.stack ?? error) }));
  }
}
await browser.close();
