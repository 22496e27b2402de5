// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The pictures of docs/page.md, of the recorded incident. "make picture" copies them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { startRecording, until } from './cluster.mjs';
import { openBoard } from './page.mjs';

let browser;
let recording;
let rollout; // the version of the Deployment that began the incident

before(async () => {
  browser = await launch();
  recording = await startRecording('demo/incident.wkr');
  const { items } = await (await fetch(`${recording.url}/watchkeeper/v1/history/versions/apis/apps/v1/namespaces/shop/deployments/checkout?limit=1000`)).json();
  rollout = items.find(({ summary }) => /image .* → 1\.1/.test(summary?.[0]));
});

after(async () => {
  await browser?.close();
  await recording?.stop();
});

/** Opens the page small enough for a document, after the rollout. */
const openSmall = (query, seconds) =>
  openBoard(browser, recording.url, { ...query, at: new Date(Date.parse(rollout.time) + 1000 * seconds).toISOString() }, { width: 1200, height: 720, reducedMotion: 'reduce' });

async function picture(page, name) {
  await until('the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
  await shot(page, name);
  clean(page);
  await page.close();
}

test('a Pod that keeps crashing', async () => {
  const page = await openSmall({}, 40);
  const entry = page.locator('.needs li button').filter({ hasText: 'checkout' });
  await until('its entry', async () => (await entry.innerText()).includes('exit code 1'));
  await entry.click();
  await until('how it ended', async () => (await page.getByRole('tabpanel').innerText()).includes('cannot reach the database'));
  await picture(page, 'page-failing');
});

test('the story of a rollout', async () => {
  const page = await openSmall({ sel: '/apis/apps/v1/namespaces/shop/deployments/checkout', tab: 'story' }, 40);
  const episode = page.locator('.episode').filter({ hasText: 'rollout of checkout from 1.0 to 1.1' });
  await episode.locator('[aria-expanded]').click();
  await page.mouse.move(0, 0);
  await until('its entries', async () => (await episode.locator('.entries').innerText()).includes('1.0 → 1.1'));
  await picture(page, 'page-story');
});

test('the changes of a rollout', async () => {
  const page = await openSmall({ q: 'ns:shop checkout' }, 2);
  await page.keyboard.press('c');
  await until('its changes', async () => (await page.locator('.changes-list .pick').count()) > 5);
  await page.locator('.changes-list li').filter({ hasText: '1.0 → 1.1' }).locator('[aria-expanded]').click();
  await until('the difference', async () => (await page.locator('.diff').count()) === 1);
  await page.locator('.diff').scrollIntoViewIfNeeded();
  await picture(page, 'page-changes');
});

test('two versions compared', async () => {
  const page = await openSmall({ sel: '/apis/apps/v1/namespaces/shop/deployments/checkout', tab: 'versions', compare: rollout.resourceVersion }, -1);
  const difference = page.getByRole('region', { name: 'Comparison' });
  await until('the difference', async () => (await difference.locator('ins').allInnerTexts()).some((line) => line.includes('checkout:1.1')));
  assert.ok((await difference.innerText()).includes(`RV ${rollout.resourceVersion}`));
  await picture(page, 'page-versions');
});
