// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page is served below any path, compressed and cached, and does not violate
// its policy.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, open, shot } from './browser.mjs';
import { gateway, startGateway, until } from './cluster.mjs';
import { front } from './front.mjs';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

const nodes = (page) => until('the Nodes on the page', () => page.evaluate(() => /\b3 nodes\b/.test(document.body.innerText)));

/** Opens the page and waits until it shows the Nodes of the cluster. */
async function shows(url) {
  const page = await open(browser, url);
  await nodes(page);
  return page;
}

test('the root redirects to the page, which does not violate its policy', async () => {
  const page = await shows(gateway);
  assert.equal(page.url().replace(/[?#].*/, ''), `${gateway}/ui/`);
  await shot(page, 'serving');
  clean(page);
  await page.close();
});

test('hashed files are compressed and cached', async () => {
  const page = await shows(`${gateway}/ui/`);
  // Some parts of the page are loaded after it was painted.
  const assets = async () => {
    await until('all parts', () => page.evaluate(() => window.watchkeeper?.allLoaded()));
    return page.evaluate(() =>
      performance
        .getEntriesByType('resource')
        .filter(({ name }) => name.includes('/assets/'))
        .map(({ encodedBodySize, decodedBodySize, transferSize }) => ({ encodedBodySize, decodedBodySize, transferSize })),
    );
  };
  const first = await assets();
  assert.ok(first.length > 1 && first.every(({ encodedBodySize, decodedBodySize }) => encodedBodySize < decodedBodySize), JSON.stringify(first));
  await page.reload();
  await nodes(page);
  const again = await assets();
  assert.deepEqual(again.map(({ transferSize }) => transferSize), first.map(() => 0));
  clean(page);
  await page.close();
});

test('the page works below the path of a proxy, and with an API prefix', async (t) => {
  const prefixed = await startGateway(['--api-prefix', '/k8s/']);
  t.after(() => prefixed.stop());
  // A proxy that serves the gateway below /clusters/one/.
  const below = '/clusters/one/';
  const proxy = await front(t, (_, incoming, outgoing) => {
    if (incoming.url.startsWith(below)) return new URL(prefixed.url + '/' + incoming.url.slice(below.length));
    outgoing.writeHead(404).end();
    return undefined;
  });
  const url = proxy + below;
  for (const way of [url, `${url}ui`, `${prefixed.url}/ui`]) {
    const page = await shows(way);
    clean(page);
    await page.close();
  }
});
