// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Two versions of an object compared: any two of its list, or the shown moment with
// any of them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { gateway, kubectl, namespace, until } from './cluster.mjs';
import { openBoard } from './page.mjs';

let browser;
let path;
/** The versions that set an image, by its tag: {resourceVersion, time}. */
let versions;

before(async () => {
  browser = await launch();
  const ns = await namespace('compare');
  path = `/apis/apps/v1/namespaces/${ns}/deployments/web`;
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx:1', '--replicas=0');
  for (const tag of [2, 3, 4]) await kubectl('-n', ns, 'set', 'image', 'deployment/web', `nginx=nginx:${tag}`);
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  versions = await until('the versions', async () => {
    const { items } = await (await fetch(`${gateway}/watchkeeper/v1/history/versions${path}`)).json();
    const set = items.flatMap((item) => {
      const tag = /^image nginx:\d → (\d)$/.exec(item.summary?.[0] ?? '')?.[1];
      return tag ? [[tag, item]] : [];
    });
    return set.length === 3 && Object.fromEntries(set);
  });
});

after(() => browser?.close());

const comparison = (page) => page.getByRole('region', { name: 'Comparison' });
const rowOf = (page, tag) => page.locator('.panel .changes-list li').filter({ hasText: new RegExp(`image nginx:\\d → ${tag}`) });
const compareButton = (page, tag) => rowOf(page, tag).getByRole('button', { name: /^Compare/ });
const clock = (page, tag) => page.evaluate((time) => new Date(time).toTimeString().slice(0, 8), versions[tag].time);

/** Presses a key until a version has the focus. */
async function toRow(page, key, tag) {
  for (let i = 0; i < 10; i++) {
    if (await rowOf(page, tag).locator('.pick').evaluate((pick) => pick === document.activeElement)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`${key} does not lead to ${tag}`);
}

/** Waits until the comparison shows these bounds, and that an image was replaced. */
const compares = (page, bounds, was, is) =>
  until(`${was} and ${is} to be compared`, async () => {
    const text = await comparison(page).innerText();
    assert.ok(text.replace(/\s+/g, ' ').includes(bounds), `${text} is not ${bounds}`);
    assert.equal((await comparison(page).locator('del').allInnerTexts()).filter((line) => line.includes('nginx:')).join(), `-nginx:${was}`);
    assert.equal((await comparison(page).locator('ins').allInnerTexts()).filter((line) => line.includes('nginx:')).join(), `+nginx:${is}`);
    return true;
  });

test('any two versions, by the pointer', async () => {
  const page = await openBoard(browser, gateway, { sel: path, tab: 'versions' });
  await compareButton(page, 2).click();
  await compares(page, `${await clock(page, 2)} RV ${versions[2].resourceVersion} → now RV `, 2, 4);
  await shot(page, 'compare-now');
  // The order of the clicks is not that of time.
  await compareButton(page, 4).click();
  await compares(page, `${await clock(page, 2)} RV ${versions[2].resourceVersion} → ${await clock(page, 4)} RV ${versions[4].resourceVersion}`, 2, 4);
  await compareButton(page, 2).click();
  await compareButton(page, 3).click();
  await compares(page, `${await clock(page, 3)} RV ${versions[3].resourceVersion} → ${await clock(page, 4)} RV ${versions[4].resourceVersion}`, 3, 4);
  await shot(page, 'compare');
  await page.emulateMedia({ colorScheme: 'light' });
  await shot(page, 'compare-light');
  // The URL has the comparison.
  const other = await openBoard(browser, gateway, new URL(page.url()).searchParams);
  await compares(other, `RV ${versions[3].resourceVersion} → ${await clock(page, 4)} RV ${versions[4].resourceVersion}`, 3, 4);
  await comparison(other).getByRole('button', { name: 'Close the comparison' }).click();
  await until('no comparison', async () => (await comparison(other).count()) === 0 && !other.url().includes('compare='));
  for (const one of [page, other]) {
    clean(one);
    await one.close();
  }
});

test('a shown moment of the past with a version, by the keyboard', async () => {
  const page = await openBoard(browser, gateway, { sel: path, tab: 'versions', at: `rv:${versions[2].resourceVersion}`, t: versions[2].time });
  await rowOf(page, 3).locator('.pick').focus();
  await page.keyboard.press('d');
  await compares(page, `${await clock(page, 2)} RV ${versions[2].resourceVersion} → ${await clock(page, 3)} RV ${versions[3].resourceVersion}`, 2, 3);
  await toRow(page, 'ArrowUp', 4);
  await page.keyboard.press('d');
  await compares(page, `${await clock(page, 3)} RV ${versions[3].resourceVersion} → ${await clock(page, 4)} RV ${versions[4].resourceVersion}`, 3, 4);
  assert.equal(await compareButton(page, 4).getAttribute('aria-pressed'), 'true');
  await page.keyboard.press('d');
  await toRow(page, 'ArrowDown', 3);
  await page.keyboard.press('d');
  await until('no comparison', async () => (await comparison(page).count()) === 0);
  clean(page);
  await page.close();
});
