// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The informer with a real cluster: in Node, in a page and in a Worker, through
// the gateway and through kubectl proxy.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open } from './browser.mjs';
import { api, gateway, kubectl, namespace, proxy, signal, startComponent, until, www } from './cluster.mjs';

const { watch } = await import(`${www}/watched.mjs`);
let browser;
let ns;
const connections = [];
const places = {}; // by name: functions that return the state of the informers there

before(async () => {
  browser = await launch();
  ns = await namespace('informer');
  for (const [name, url] of Object.entries({ gateway, proxy })) {
    // Chromium logs each failed request.
    const page = await open(browser, `${url}/static/informer.html?namespace=${ns}`);
    await page.waitForFunction(() => window.look);
    places[`page, ${name}`] = () => page.evaluate(() => window.look());
    places[`worker, ${name}`] = () => page.evaluate(() => window.lookInWorker());
    const own = watch(url, ns);
    places[`Node, ${name}`] = async () => own.look();
    connections.push(own.connection);
  }
});

after(async () => {
  for (const connection of connections) connection.close();
  await browser?.close();
});

const pods = () => `/api/v1/namespaces/${ns}/pods`;

/** The objects of the API server, in the form of look. */
async function truth(path) {
  const { items } = await api(path);
  return items
    .map(({ metadata: { namespace: of, name, uid, resourceVersion } }) => `${of ? of + '/' : ''}${name} ${uid} ${resourceVersion}`)
    .sort();
}

/** Waits until there is this number of Pods, and each informer has the state of the API server. */
async function settle(count) {
  await until('the current objects', async () => {
    const want = [await truth(pods()), await truth(`/apis/apps/v1/namespaces/${ns}/deployments`), await truth('/api/v1/nodes')];
    assert.equal(want[0].length, count);
    for (const [place, look] of Object.entries(places)) {
      const { held } = await look();
      assert.deepEqual([held.pods, held.deployments, held.nodes], want, place);
    }
    return true;
  });
}

test('informers follow a Deployment that scales up and down', async () => {
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=5');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  await settle(5);
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=2');
  await settle(2);
  for (const [place, look] of Object.entries(places)) {
    const { events, phases } = await look();
    const count = (type) => events.filter((line) => line.startsWith(`pods ${type} `)).length;
    assert.deepEqual([count('add'), count('delete')], [5, 3], place);
    assert.deepEqual(phases.pods.slice(-2), ['syncing', 'live'], place);
  }
});

test('a resource that does not exist is an error', async () => {
  for (const [place, look] of Object.entries(places)) {
    const { events, phases } = await look();
    assert.equal(phases.nothings.at(-1), 'denied', place);
    assert.ok(events.includes('nothings error 404'), place);
  }
});

test('informers continue after the API server was killed', async () => {
  await signal('kube-apiserver');
  await until('the informer to notice', async () => (await places['Node, proxy']()).phases.pods.includes('stale'));
  await startComponent('kube-apiserver');
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=4');
  await settle(4);
  for (const [place, look] of Object.entries(places)) {
    const { events } = await look();
    const known = new Set();
    for (const line of events) {
      const [kind, type, key] = line.split(' ');
      if (kind !== 'pods' || !key) continue;
      if (type === 'add') assert.ok(!known.has(key), `${place}: ${line} twice`);
      if (type === 'delete') assert.ok(known.delete(key), `${place}: ${line} twice`);
      if (type !== 'delete') known.add(key);
    }
  }
});

test('watches share a connection through the gateway', async () => {
  const page = await open(browser, `${gateway}/static/informer.html?namespace=${ns}`);
  await until('the current objects', async () => (await page.evaluate(() => window.look?.().phases.nodes.at(-1))) === 'live');
  const asked = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname));
  const lists = asked.filter((path) => path.startsWith('/api'));
  assert.equal(lists.length, new Set(lists).size, `want one list of each and no watch: ${lists}`);
  await page.close();
});

test('going offline and coming back', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${gateway}/static/informer.html?namespace=${ns}`);
  const phases = () => page.evaluate(() => window.look?.().phases.pods ?? []);
  await until('a live page', async () => (await phases()).at(-1) === 'live');
  await page.route('**/*', (route) => route.abort());
  await context.setOffline(true);
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=1');
  await until('one Pod', async () => (await truth(pods())).length === 1);
  await page.unroute('**/*');
  await context.setOffline(false);
  await until('the current objects', async () => {
    assert.deepEqual((await page.evaluate(() => window.look())).held.pods, await truth(pods()));
    return (await phases()).at(-1) === 'live';
  });
  await context.close();
});

test('the example page of the package follows Deployments', async () => {
  await kubectl('create', 'deployment', 'example', '--image=nginx:1.27', '--replicas=2', '-n', ns);
  for (const url of [gateway, proxy]) {
    const page = await open(browser, `${url}/static/example/index.html`);
    await page.getByRole('row', { name: `${ns} example 2/2 nginx:1.27` }).waitFor({ timeout: 60_000 });
    await kubectl('set', 'image', 'deployment/example', '*=nginx:1.28', '-n', ns);
    await page.getByRole('row', { name: `${ns} example 2/2 nginx:1.28` }).waitFor({ timeout: 60_000 });
    assert.equal(await page.getByRole('status').textContent(), 'live ');
    await kubectl('set', 'image', 'deployment/example', '*=nginx:1.27', '-n', ns);
  }
});
