// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The URL and the browser's history: Back returns to what was shown before, and a
// moment in the URL may have any form in which times are printed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch } from './browser.mjs';
import { gateway, kubectl, namespace, until } from './cluster.mjs';
import { clickOn, connection, goTo, openBoard, settled, shownPods, stepBack } from './page.mjs';

let browser;
let ns;
let pods;

before(async () => {
  browser = await launch();
  ns = await namespace('address');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=2');
  const page = await openBoard(browser, gateway);
  pods = Object.keys(await settled(page, ns, 2));
  await page.close();
});

after(() => browser?.close());

/** The parts of the URL that say what is shown. */
const shown = (page) => {
  const { searchParams } = new URL(page.url());
  return { sel: searchParams.get('sel'), past: searchParams.has('at'), q: searchParams.get('q') };
};

/** Waits until the page shows a selection, or none, in the past or not; in the URL and on the page. */
const shows = (page, what, sel, past, q = null) =>
  until(what, async () => {
    assert.deepEqual(shown(page), { sel, past, q });
    const name = sel?.split('/').at(-1);
    assert.deepEqual(await page.locator('.panel h2').allInnerTexts(), name ? [name] : []);
    assert.equal((await connection(page)) === 'the past', past);
    return true;
  });

test('what the URL selects and can be no object is not requested, and the page says so', async () => {
  const page = await openBoard(browser, gateway);
  const requests = [];
  page.on('request', (request) => requests.push(request.url()));
  for (const sel of ['node/..', `pod/${ns}/.`, 'node/node-1%23']) {
    await goTo(page, gateway, { sel });
    await until('the reason', async () => (await page.getByRole('alert').innerText()).includes(`“${sel}”`));
  }
  assert.equal(await page.locator('.panel').count(), 0);
  clean(page);
  await goTo(page, gateway, { sel: 'node/node-1#' });
  await until('no such Node', async () => (await page.locator('.panel .failure').innerText()).includes('Not found'));
  assert.deepEqual(requests.filter((url) => /\/(nodes\/node-1|pods\/?)$/.test(url)), []);
  await page.close();
});

test('Back returns to the former state, Forward goes on', async () => {
  const page = await openBoard(browser, gateway);
  await page.evaluate(() => (window.marked = true)); // a reload would remove the mark
  const sel = pods.map((name) => `pod/${ns}/${name}`);
  await clickOn(page, ns, pods[0]);
  await shows(page, 'the first Pod', sel[0], false);
  await clickOn(page, ns, pods[1]);
  await shows(page, 'the second Pod', sel[1], false);
  await page.getByRole('tab', { name: 'Versions' }).click();
  await page.locator('.panel .pick').last().click();
  await shows(page, 'a version', sel[1], true);
  await page.goBack();
  await shows(page, 'the second Pod again', sel[1], false);
  await until('the live board', async () => Object.keys(await shownPods(page, ns)).length === 2);
  await page.goBack();
  await shows(page, 'the first Pod again', sel[0], false);
  await page.goBack();
  await shows(page, 'the board', null, false);
  await page.goForward();
  await page.goForward();
  await page.goForward();
  await shows(page, 'the version again', sel[1], true);
  assert.equal(await page.evaluate(() => window.marked), true, 'the page was not reloaded');
  clean(page);
  await page.close();
});

test('a click that selects and filters is one entry', async () => {
  await kubectl('-n', ns, 'label', 'pod', ...pods, 'localcluster.watchkeeper.dev/crash=true');
  const page = await openBoard(browser, gateway);
  const need = page.locator('.needs button').filter({ hasText: ns }).first();
  // An entry for both Pods selects one and filters by its name; meanwhile they may crash at different times.
  await until('a filter and a panel', async () => {
    if ((await need.locator('em').allInnerTexts()).join() !== '2') return false;
    await need.click();
    await until('one of the Pods', () => page.locator('.panel').count());
    if (shown(page).q?.startsWith(`ns:${ns} `)) return true;
    await page.goBack();
    return false;
  });
  await page.goBack();
  await shows(page, 'no filter and no panel', null, false);
  clean(page);
  await page.close();
});

test('steps through time are one entry', async () => {
  const page = await openBoard(browser, gateway);
  await stepBack(page, ',');
  for (let i = 0; i < 2; i++) {
    const at = page.url();
    await page.keyboard.press(',');
    await until('another moment', () => page.url() !== at);
  }
  await page.goBack();
  await shows(page, 'now', null, false);
  clean(page);
  await page.close();
});

test('a moment in the URL may have any form in which times are printed', async () => {
  const second = Math.floor(Date.now() / 1000) * 1000 - 1000;
  const iso = new Date(second).toISOString();
  const local = new Date(second + 5.5 * 3600_000).toISOString();
  for (const at of [local.slice(11, 19), local.slice(0, 19).replace('T', ' '), `${iso.slice(0, 19).replace('T', ' ')} UTC`]) {
    const page = await openBoard(browser, gateway, { at }, { timezoneId: 'Asia/Kolkata' });
    await until('the moment', async () => {
      assert.equal(new URL(page.url()).searchParams.get('at'), iso);
      assert.match(await page.locator('.moment b').innerText(), new RegExp(`${local.slice(11, 19)}\\s+UTC\\+5:30$`));
      return true;
    });
    clean(page);
    await page.close();
  }
  // An age counts back from now, once.
  const page = await openBoard(browser, gateway, { at: '1s' });
  const at = await until('a time', () => Date.parse(new URL(page.url()).searchParams.get('at')));
  assert.ok(at >= second && at < Date.now());
  clean(page);
  await page.close();
});
