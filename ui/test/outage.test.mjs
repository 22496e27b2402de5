// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page while the API server or the gateway is down: it says since when its data
// is stale, and recovers without a reload.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { gateway, kubectl, namespace, signal, startComponent, startGateway, until } from './cluster.mjs';
import { connection, openBoard, settled, shownPods } from './page.mjs';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/** Marks the page. A reload would remove the mark. */
const mark = (page) => page.evaluate(() => (window.marked = true));

/** Returns the last moment that words such as 14:02:09 and 2026-01-31 14:02:09 mean: the page says the date if it is not today. */
function lastMoment(words) {
  const [, date, time] = words.match(/^(\d{4}-\d\d-\d\d )?(\d\d:\d\d:\d\d)$/);
  const [h, m, s] = time.split(':').map(Number);
  const at = date ? new Date(`${date}00:00`) : new Date();
  at.setHours(h, m, s, 999);
  if (!date && at > Date.now() + 1000) at.setDate(at.getDate() - 1); // it was read before midnight
  return at.getTime();
}

/**
 * Returns a port below those that the kernel uses for outgoing connections (32768 and up
 * on Linux): Chromium reconnects while the gateway is down, and could take its port.
 */
async function freePort() {
  let port = 32000; // clustertest, localcluster and the scripts of cmd/watchkeeper use lower ones
  await until('a free port', () => new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(++port, '127.0.0.1', () => server.close(() => resolve(true)));
  }));
  return port;
}

/** Waits until the page says that it is stale, since a moment not before notBefore. Pods stay unchanged. */
async function goesStale(page, ns, notBefore, why) {
  const before = await shownPods(page, ns);
  const words = await until('words on the board', async () => {
    const text = await page.getByRole('alert').innerText();
    if (!(/^Stale since/.test(text) && why.test(text))) throw new Error(text);
    return text; // the first error may have another cause
  });
  const since = lastMoment(words.match(/^Stale since ([^.]+)\./)[1]);
  assert.ok(since >= notBefore && since <= Date.now() + 1000, `${words}, the time is ${new Date()}, and the page was live at ${new Date(notBefore)}`);
  assert.match(await connection(page), /^stale for (\d+s|\d+m(\d+s)?)$/);
  assert.deepEqual(await shownPods(page, ns), before, 'the last known state is shown');
}

/** Waits until the page is live again, without a reload. */
async function comesBack(page, ns, count) {
  await settled(page, ns, count);
  await until('a live page', async () => (await connection(page)) === 'live' && (await page.getByRole('alert').count()) === 0);
  assert.equal(await page.evaluate(() => window.marked), true, 'the page was not reloaded');
}

test('the API server is killed and restarts', async (t) => {
  const ns = await namespace('outage');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  const page = await openBoard(browser, gateway);
  await settled(page, ns, 3);
  await until('a live page', async () => (await connection(page)) === 'live'); // the watches follow the lists
  await mark(page);
  const well = await page.evaluate(() => Date.now()) - 120_000; // bookmarks come every minute
  await signal('kube-apiserver');
  t.after(() => startComponent('kube-apiserver').catch(() => {})); // other tests need it
  await goesStale(page, ns, well, /No answer from the API server: .*refused/);
  await shot(page, 'stale');

  // A page that is opened meanwhile is stale too, and shows what the gateway has cached.
  const late = await openBoard(browser, gateway);
  await mark(late);
  await goesStale(late, ns, well, /No answer from the API server/);

  await startComponent('kube-apiserver');
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=5');
  await comesBack(page, ns, 5);
  await comesBack(late, ns, 5);
  for (const each of [page, late]) {
    clean(each);
    await each.close();
  }
});

test('the gateway is killed and restarts after many changes', async (t) => {
  const ns = await namespace('outage-gateway');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  // After the outage of the test before, the controller manager's own watches are late. Pods
  // that are deleted before it has seen them are not replaced: it waits for their creation.
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web', '--timeout=3m');
  const first = await startGateway([], undefined, await freePort());
  t.after(() => first.stop());
  // Chromium says on the console which requests have failed.
  const page = await openBoard(browser, first.url, {}, { ignore: /ERR_CONNECTION_(REFUSED|RESET|CLOSED)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING/ });
  await settled(page, ns, 3);
  await mark(page);
  const well = Date.now() - 120_000;
  await first.stop('SIGKILL');
  await goesStale(page, ns, well, /The gateway cannot be reached/);
  await kubectl('-n', ns, 'delete', 'pods', '--all', '--wait=false');
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=4');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web', '--timeout=3m');
  const second = await startGateway([], undefined, Number(new URL(first.url).port));
  t.after(() => second.stop());
  await comesBack(page, ns, 4);
  clean(page);
  await page.close();
});
