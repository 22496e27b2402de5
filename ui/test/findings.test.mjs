// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// What fails without being on the board is listed with the words of "watchkeeper diagnose".

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch, shot } from './browser.mjs';
import { gateway, kubectl, namespace, reads, until } from './cluster.mjs';
import { openBoard } from './page.mjs';

let browser;
let ns;

before(async () => {
  browser = await launch();
  ns = await namespace('findings');
  await kubectl('-n', ns, 'create', 'quota', 'none', '--hard=pods=0');
  await kubectl('-n', ns, 'create', 'deployment', 'held-back', '--image=nginx', '--replicas=2');
});

after(async () => {
  await browser?.close();
  await kubectl('-n', ns, 'delete', 'deployment', 'held-back', '--ignore-not-found'); // others do not expect it
});

test('a Deployment whose quota allows no Pods is listed, until it is gone', async () => {
  const asked = async (at = '') => (await fetch(`${gateway}/watchkeeper/v1/findings?namespace=${ns}${at && `&at=${at}`}`)).json();
  const { items: [finding] } = await until('the finding', async () => {
    const answer = await asked();
    return answer.items.length === 1 && answer;
  });
  assert.match(finding.title, /^Pods cannot be created: 0 of 2 exist$/);
  const page = await openBoard(browser, gateway);
  const entry = page.locator('.needs li button').filter({ hasText: 'held-back' });
  await until('the entry', async () => (await entry.count()) === 1);
  assert.match((await entry.innerText()).replace(/\s+/g, ' '), new RegExp(`held-back .*${finding.title} · Deployment · ${ns}`));
  assert.match(await entry.getAttribute('title'), /FailedCreate: .*exceeded quota: none/);
  assert.deepEqual(await violations(page), { dark: [], light: [] });
  await shot(page, 'findings');
  await entry.click();
  await reads('the Deployment', page.getByRole('tabpanel'), /held-back/);
  await page.keyboard.press('Escape'); // the panel would ask for what is gone
  const then = new Date().toISOString();
  await new Promise((resolve) => setTimeout(resolve, 1000)); // a moment in which nothing changes

  await kubectl('-n', ns, 'delete', 'deployment', 'held-back', '--wait');
  await until('no entry', async () => (await entry.count()) === 0, 60);
  // At the time before, it is listed again.
  const past = await openBoard(browser, gateway, { at: then });
  await until('the entry of the past', async () => (await past.locator('.needs li button').filter({ hasText: 'held-back' }).count()) === 1);
  clean(page);
  clean(past);
  await page.close();
  await past.close();
});
