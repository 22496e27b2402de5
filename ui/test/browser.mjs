// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Debian's Chromium, headless, for tests.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

/** Where pictures are put; git does not take them. */
export const shots = fileURLToPath(new URL('../.test/shots/', import.meta.url));

/** Starts Chromium, with further flags. Close it in the end. */
export function launch(flags = []) {
  // There is no user namespace to be had as root, and the pages are ours.
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', ...flags] });
}

/**
 * Opens a page of a size, and watches over it: clean(page) fails where there was
 * an error in it, on its console or of its policy. ignore is a pattern of what
 * is no mistake: Chromium itself tells of each request that fails.
 */
export async function open(browser, url, { width = 1600, height = 1000, ignore = /^$/, ...options } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: 'dark', ...options });
  const wrong = [];
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('console', (message) => {
    const text = `${message.text()} (${message.location().url})`;
    if (message.type() === 'error' && !ignore.test(text)) wrong.push(text);
  });
  page.wrong = wrong;
  await page.goto(url);
  return page;
}

/** Fails where something was wrong in a page. */
export function clean(page) {
  assert.deepEqual(page.wrong, []);
}

/** Takes a picture, to be looked at. */
export async function shot(page, name) {
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: `${shots}${name}.png` });
}
