// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// WCAG 2.2 A and AA, as far as axe can check it, in every view, dark and light.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch } from './browser.mjs';
import { apply, gateway, kubectl, namespace, reads, until } from './cluster.mjs';
import { connection, goTo, openBoard, shownPods } from './page.mjs';

let browser;
let page; // one for all views: a new one costs more than what axe does
let ns;
let pod;

before(async () => {
  browser = await launch();
  ns = await namespace('axe');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  // A pending Pod, so that more colours of text are checked.
  await apply({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: ns, name: 'stuck' }, spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'c', image: 'nginx' }] } });
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  [pod] = (await kubectl('-n', ns, 'get', 'pods', '-l', 'app=web', '-o', 'name')).split('\n').map((name) => name.replace('pod/', ''));
  await kubectl('-n', ns, 'label', 'pod', pod, 'localcluster.watchkeeper.dev/crash=true');
  page = await openBoard(browser, gateway);
});

after(async () => {
  await browser?.close();
  // A Pod that goes on crashing would add to what other tests of the cluster read.
  await kubectl('-n', ns, 'label', 'pod', pod, 'localcluster.watchkeeper.dev/crash-');
});

/** The views: the query, and how to open them. */
const views = {
  board: [{}],
  filtered: [{ q: 'matches-nothing' }],
  'a typing error in the filter': [{ q: 'stat:ready' }, (page) => until('words', () => page.locator('.search .problem').isVisible())],
  'a Pod': [{ pod: 'overview' }, (page) => until('its containers', async () => (await page.locator('.containers li').count()) > 0)],
  'its YAML': [{ pod: 'yaml' }, (page) => until('its YAML', async () => (await page.locator('.yaml').count()) > 0)],
  'its log': [{ pod: 'logs' }, (page) => until('its log', async () => (await page.locator('.log').count()) > 0)],
  'its versions': [{ pod: 'versions' }, (page) => until('its versions', async () => (await page.getByRole('tabpanel').locator('li').count()) > 0)],
  'two versions': [{ pod: 'versions' }, async (page) => {
    const newest = (await page.locator('.panel .changes-list .compare').elementHandles()).slice(0, 2); // a new version may come between the clicks
    for (const version of newest) await version.click();
    await until('their difference', async () => (await page.locator('.comparison .diff').count()) === 1);
  }],
  'a Node': [{ sel: 'node/node-0' }, (page) => until('its shares', async () => (await page.locator('meter').count()) > 0)],
  table: [{ view: 'table' }, (page) => until('rows', async () => (await page.locator('.line').count()) > 0)],
  'the legend of the strip': [{}, async (page) => {
    await page.getByRole('button', { name: 'Legend' }).click();
    await until('the legend', () => page.locator('#legend').isVisible());
  }],
  'a typing error in a moment': [{}, async (page) => {
    await page.getByRole('button', { name: 'Go to a moment' }).click();
    await page.keyboard.type('soon');
    await page.keyboard.press('Enter');
    await reads('words', page.locator('#moment-message'), /soon/);
  }],
  help: [{}, (page) => page.keyboard.press('?')],
  'the past': [{ at: 'past' }, (page) => until('the past', async () => (await connection(page)) === 'the past' && (await page.locator('.moment').count()) === 1)],
  'what changed': [{ at: 'past', status: 'shown' }, async (page) => {
    await page.keyboard.press('c');
    await page.getByLabel('Range').selectOption({ label: '10 min' });
    await until('the list of changes', async () => (await page.locator('.changes-list .pick').count()) > 0);
    await page.locator('.changes-list [aria-expanded]').first().click();
    await until('the diff', async () => (await page.locator('.diff').count()) > 0);
  }],
  'an export': [{ side: 'changes' }, async (page) => {
    await page.getByRole('button', { name: 'status updates' }).click();
    await page.getByRole('button', { name: 'export', exact: true }).click();
    await until('its form', async () => (await page.locator('.export').count()) === 1);
  }],
};

for (const [name, [{ pod: tab, at, ...query }, come]] of Object.entries(views)) {
  test(name, async () => {
    await goTo(page, gateway, {
      ...query, ...(tab && { sel: `pod/${ns}/${pod}`, tab }), ...(at && { at: new Date(Date.now() - 1500).toISOString() }),
    });
    await until('the Pods', async () => Object.keys(await shownPods(page, ns)).length === 4);
    await come?.(page);
    assert.deepEqual(await violations(page), { dark: [], light: [] });
    clean(page);
  });
}
