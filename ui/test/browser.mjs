// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Debian's Chromium, headless, for tests. Its headless shell has no windows to paint, which
// takes a sixth less of the processors.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { short } from './cluster.mjs';

/** The folder of pictures, which git ignores. */
export const shots = fileURLToPath(new URL('../.test/shots/', import.meta.url));

/**
 * Features that Chromium starts without. The pop-ups of the address bar are two web
 * pages in each window, which cost twice as much as the page of a test; a spare
 * renderer is a process for the next page. The switch replaces that of Playwright,
 * so the features that Playwright needs disabled are listed too.
 */
const DISABLED = ['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades', 'PaintHolding', 'SpareRendererForSitePerProcess'];

const executablePath = process.env.CHROMIUM ?? ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync);

/** root has no user namespaces for the sandbox, and the pages are our own. */
const options = { executablePath, args: ['--no-sandbox', `--disable-features=${DISABLED}`] };

/**
 * Starts a Chromium for the tests of one file, which reaches it by pipes: nobody else can. One
 * for all files takes more of the processors, as all that it says passes through run.mjs.
 */
export const launch = () => chromium.launch(options);

/**
 * The page asks for each failing Pod of the cluster since when it fails. Any test may
 * delete the Pod, or create it just now, between the page's update and its request: the
 * answer is then 404, which Chromium logs. failing.test.mjs checks the answers.
 */
const gone = /status of 404.*\/history\/failing\//;

/** With --short nothing moves on the page, unless a test says otherwise: it paints less. */
const reducedMotion = short ? 'reduce' : 'no-preference';

/**
 * Opens a page of a size. clean(page) fails if there was an exception, an error
 * on its console or a violation of its policy. ignore is a pattern of expected
 * messages: Chromium logs each failed request.
 */
export async function open(browser, url, { width = 1600, height = 1000, ignore = /^$/, ...options } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: 'dark', reducedMotion, ...options });
  await slowDown(page);
  const wrong = [];
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('console', (message) => {
    const text = `${message.text()} (${message.location().url})`;
    if (message.type() === 'error' && !ignore.test(text) && !gone.test(text)) wrong.push(text);
  });
  const refusals = [];
  const putOff = new Set();
  page.on('response', async (response) => {
    if (response.status() < 400) return;
    const request = response.request();
    const answer = await response.text().catch(String);
    refusals.push(`${response.status()} ${request.method()} ${response.url()} ${request.postData() ?? ''}: ${answer}`);
    // The gateway may put off any read, such as while the API server does not prove a state: the page asks again, or in another way.
    if (response.status() === 503 && response.headers()['retry-after']) putOff.add(response.url());
  });
  Object.assign(page, { wrong, refusals, putOff });
  await page.goto(url);
  return page;
}

/** With SLOW=4 in the environment the page has a fourth of the processor, with LATENCY=200 each answer comes 200 ms later: a test fails that does not wait for what it needs. */
async function slowDown(page) {
  const { SLOW, LATENCY } = process.env;
  if (!SLOW && !LATENCY) return;
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: Number(SLOW ?? 1) });
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', { offline: false, latency: Number(LATENCY ?? 0), downloadThroughput: -1, uploadThroughput: -1 });
}

/** Fails if a page had an error, with the last answers that were one. */
export function clean({ wrong: all, refusals = [], putOff = new Set() }) {
  const wrong = all.filter((text) => ![...putOff].some((url) => text.endsWith(` status of 503 (Service Unavailable) (${url})`)));
  assert.deepEqual(wrong, [], [...wrong, ...refusals.slice(-5)].join('\n'));
}

/** Saves a picture for people to look at, and returns its PNG. "run.mjs --short" takes none. */
export function shot(page, name) {
  if (short) return undefined;
  mkdirSync(shots, { recursive: true });
  return page.screenshot({ path: `${shots}${name}.png` });
}
