// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node bench/shots.mjs OUT [NAME…]: takes pictures of the page with synthetic
// clusters. It needs the output of "npm run bench" and Chromium.

import { mkdir } from 'node:fs/promises';
import { chromium } from 'playwright-core';
import { serve } from '../test/serve.mjs';

const out = process.argv[2] ?? '.test/shots';
const only = process.argv.slice(3);
const SHOTS = {
  'small-dark': { query: 'synthetic=5x42&failing=2' },
  'small-light': { query: 'synthetic=5x42&failing=2', light: true },
  'six-dark': { query: 'synthetic=6x6', width: 1440, height: 814 },
  'large-dark': { query: 'synthetic=640x32&failing=1', wait: 2500 },
  'large-light': { query: 'synthetic=640x32&failing=1', light: true, wait: 2500 },
  'zones-dark': { query: 'synthetic=60x40&group=zone' },
  'filter-dark': { query: 'synthetic=60x40&q=checkout+ns:shop' },
  'failing-dark': { query: 'synthetic=12x40&failing=30&rate=0' },
  'empty-dark': { query: 'synthetic=0x0' },
  'denied-dark': { query: 'synthetic=1x1&denied=1' },
  'hover-dark': { query: 'synthetic=24x40', async act(page) { await page.mouse.move(500, 300); } },
  'near-dark': { query: 'synthetic=5x42&failing=4', async act(page) { await page.mouse.move(60, 100); for (let i = 0; i < 6; i++) { await page.mouse.wheel(0, -120); await page.waitForTimeout(50); } } },
  'help-dark': { query: 'synthetic=24x40', async act(page) { await page.keyboard.press('?'); } },
  'past-dark': { query: 'synthetic=24x40', async act(page) { await page.mouse.move(700, 960); await page.mouse.down(); await page.mouse.move(620, 960); await page.mouse.up(); await page.keyboard.press('m'); } },
  'table-dark': { query: 'synthetic=60x40&view=table' },
  'webgl-dark': { query: 'synthetic=24x40&renderer=webgl' },
  'webgl-light': { query: 'synthetic=640x32&renderer=webgl', light: true },
  'huge-light': { query: 'synthetic=5000x30&rate=0&failing=0.1', light: true, wait: 3000 },
  'far-dark': { query: 'synthetic=3000x30&failing=0.1&renderer=canvas', wait: 3000, async act(page) { await page.mouse.move(400, 300); for (let i = 0; i < 2; i++) { await page.mouse.wheel(0, -120); await page.waitForTimeout(50); } } },
  'huge-dark': { query: 'synthetic=5000x30&rate=1000', wait: 6000 },
};

await mkdir(out, { recursive: true });
const server = await serve('dist-bench');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--enable-unsafe-swiftshader'] });
for (const [name, shot] of Object.entries(SHOTS)) {
  if (only.length && !only.includes(name)) continue;
  const page = await browser.newPage({ viewport: { width: shot.width ?? 1600, height: shot.height ?? 1000 }, deviceScaleFactor: shot.ratio ?? 1, colorScheme: shot.light ? 'light' : 'dark' });
  page.on('console', (m) => m.type() === 'error' && console.log(name, m.text()));
  page.on('pageerror', (e) => console.log(name, String(e)));
  await page.goto(`${server.url}/bench/index.html?${shot.query}`);
  await page.waitForFunction(() => window.watchkeeper?.cluster.synced || /Not allowed/.test(document.body.innerText), null, { timeout: 120_000 });
  await page.waitForTimeout(shot.wait ?? 1500);
  await shot.act?.(page);
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${out}/${name}.png` });
  console.log(name, JSON.stringify(await page.evaluate(() => window.watchkeeper?.board.figures)));
  await page.close();
}
await browser.close();
await server.close();
