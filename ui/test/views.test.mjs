// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Pictures of the page for people to look at, dark and light: of a busy cluster
// and of an empty one. "make picture" copies board.png to the README.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, open, shot } from './browser.mjs';
import { api, apply, gateway, kubectl, load, startRecording, until } from './cluster.mjs';
import { front } from './front.mjs';
import { openBoard } from './page.mjs';
import { decode } from './png.mjs';

const NODES = 24;
let browser;
const stopping = [];

before(async () => {
  browser = await launch();
  const { items } = await api('/api/v1/nodes');
  const { labels, ...metadata } = items.find((node) => node.metadata.name === 'node-0').metadata;
  const node = (i) => ({
    apiVersion: 'v1', kind: 'Node',
    metadata: { name: `node-${i}`, labels: { ...labels, 'kubernetes.io/hostname': `node-${i}`, 'topology.kubernetes.io/zone': `zone-${'abc'[i % 3]}` }, annotations: metadata.annotations },
    status: { allocatable: items[0].status.allocatable, capacity: items[0].status.capacity },
  });
  await apply(...Array.from({ length: NODES - 3 }, (_, i) => node(i + 3)));
  for (let i = 0; i < 3; i++) await kubectl('label', '--overwrite', 'node', `node-${i}`, `topology.kubernetes.io/zone=zone-${'abc'[i]}`);
  await load(700);
  const pods = await kubectl('get', 'pods', '-A', '-l', 'app.kubernetes.io/name=checkout', '-o', 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\\n"}{end}');
  for (const line of pods.trim().split('\n').slice(0, 4)) {
    const [ns, name] = line.split(' ');
    await kubectl('-n', ns, 'label', 'pod', name, 'localcluster.watchkeeper.dev/crash=true');
  }
});

after(async () => {
  await browser?.close();
  for (const one of stopping) await one.stop();
});

/** Takes a picture, dark and light, and checks that it is not blank. */
async function both(page, name) {
  for (const colorScheme of ['dark', 'light']) {
    await page.emulateMedia({ colorScheme });
    await until(colorScheme, () => page.evaluate((scheme) => document.documentElement.dataset.theme === scheme, colorScheme));
    // Two frames: one to apply the theme, one to paint.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const { data } = decode(await shot(page, colorScheme === 'dark' ? name : `${name}-light`));
    const colours = new Set();
    for (let i = 0; i < data.length; i += 4) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    assert.ok(colours.size > 20, `${name} has ${colours.size} colours`);
  }
}

test('the board, a Pod, its versions, the table and the help', async () => {
  const page = await openBoard(browser, gateway, { group: 'zone' });
  const counts = () => page.evaluate(() => ({ nodes: window.watchkeeper.cluster.nodes.size, pods: window.watchkeeper.cluster.pods, failing: window.watchkeeper.cluster.counts[4], ready: window.watchkeeper.cluster.counts[1] }));
  await until('a busy cluster', async () => {
    const { nodes, ready, failing } = await counts();
    return nodes === NODES && ready > 400 && failing > 0;
  });
  await page.getByRole('button', { name: 'Fit' }).click();
  await both(page, 'board');

  await page.getByLabel('Needs attention').locator('li button').first().click();
  await until('details', async () => (await page.locator('.containers li').count()) > 0);
  await both(page, 'details');
  await page.getByRole('tab', { name: 'Versions' }).click();
  await until('versions', async () => (await page.getByRole('tabpanel').locator('li').count()) > 0);
  await both(page, 'versions');
  await page.keyboard.press('Escape');
  await page.keyboard.press('t');
  await until('the table', async () => (await page.locator('.line').count()) > 10);
  await both(page, 'table');
  await page.keyboard.press('t');
  await page.keyboard.press('?');
  await until('help', () => page.getByRole('dialog').isVisible());
  await both(page, 'help');
  clean(page);
  await page.close();
});

test('the strip, of a recording', async () => {
  const recording = await startRecording('demo/incident.wkr');
  stopping.push(recording);
  const page = await openBoard(browser, recording.url);
  const strip = await page.getByRole('slider', { name: 'Moment' }).boundingBox();
  await until('the past', async () => {
    await page.mouse.click(strip.x + strip.width * 0.7, strip.y + strip.height / 2);
    return page.url().includes('at=');
  });
  await page.keyboard.press('c');
  await until('the list of changes', async () => (await page.locator('.changes-list .pick').count()) > 0);
  await both(page, 'strip');
  clean(page);
  await page.close();
});

test('no connection at first, and then an empty cluster', async (t) => {
  let there = false;
  // The gateway serves the page. The API first fails, and then has an empty cluster.
  const url = await front(t, (target, incoming, outgoing) => {
    const { pathname } = target;
    if (!/^\/(api|watchkeeper)\//.test(pathname)) return target;
    if (!there) incoming.socket.destroy();
    else if (pathname.endsWith('/history')) outgoing.end(JSON.stringify({ recording: { state: 'off' }, resources: [] }));
    else if (pathname.endsWith('/multiwatch')) outgoing.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    else outgoing.end(JSON.stringify({ kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items: [] }));
    return undefined;
  });
  const page = await open(browser, `${url}/ui/`, { ignore: /ERR_EMPTY_RESPONSE|ERR_CONNECTION|ERR_SOCKET/ });
  const says = (words) => until(words, async () => (await page.locator('.notice').innerText()).includes(words));
  const footer = (words) => until(words, async () => (await page.locator('footer.time').innerText()).includes(words));
  await says('No connection');
  await footer('The history cannot be read: ');
  await both(page, 'no-connection');
  there = true;
  await says('An empty cluster');
  await footer('Nothing is recorded');
  await both(page, 'empty');
  clean(page);
  await page.close();
});
