// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Pods in workloads: a rollout is two groups in the tile of its Deployment that trade
// Pods; by its URL, in the past, with the keyboard and for a screen reader.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch, shot } from './browser.mjs';
import { api, apply, gateway, kubectl, long, namespace, until } from './cluster.mjs';
import { goTo, openBoard, pointAt } from './page.mjs';

const REPLICAS = 4;
let browser;
let ns;
let page;
let began; // when one ReplicaSet had all Pods
let stalled; // when a rollout could not go on

before(async () => {
  browser = await launch();
  ns = await namespace('workloads');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx:1', `--replicas=${REPLICAS}`);
  // One Pod after the other.
  await kubectl('-n', ns, 'patch', 'deployment', 'web', '-p', JSON.stringify({ spec: { minReadySeconds: 1, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } } }));
  await kubectl('-n', ns, 'create', 'deployment', 'api', '--image=nginx', '--replicas=2');
  await kubectl('-n', ns, 'create', 'job', 'once', '--image=busybox');
  await apply({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: ns, name: 'alone' }, spec: { containers: [{ name: 'c', image: 'nginx' }] } });
  for (const name of ['web', 'api']) await kubectl('-n', ns, 'rollout', 'status', `deployment/${name}`);
  page = await openBoard(browser, gateway, { in: 'workloads' });
});

after(() => browser?.close());

/** In the page: the groups of a tile from the top, as [hash, names of Pods]; null without the tile. Ghosts are left out. */
function groupsIn(tileName) {
  const { cluster, engine } = window.watchkeeper;
  const tile = engine.layout.byName.get(tileName);
  return tile?.bands?.map(({ name, line, lines }) => [name, [...tile.slots.slice(line * tile.columns, (line + lines) * tile.columns)]
    .filter((row) => row >= 0 && cluster.has(row)).map((row) => cluster.names[row]).sort()]).filter(([, pods]) => pods.length) ?? null;
}

const web = () => `${ns}/Deployment/web`;
const groups = (of = page, tile = web()) => of.evaluate(groupsIn, tile);

/** The Pods of a Deployment in the API server by their ReplicaSets' hashes. */
async function truth(app = 'web') {
  const { items } = await api(`/api/v1/namespaces/${ns}/pods?labelSelector=app%3D${app}`);
  const found = {};
  for (const { metadata } of items) (found[metadata.labels['pod-template-hash']] ??= []).push(metadata.name);
  for (const pods of Object.values(found)) pods.sort();
  return found;
}

const shows = (what, want, of = page) => until(what, async () => {
  assert.deepEqual(Object.fromEntries(await groups(of)), await want());
  return true;
});

test('each workload has a tile in its namespace, with all of its Pods', async () => {
  await shows('the Pods of the Deployment', truth);
  const [[hash]] = await groups();
  assert.deepEqual(Object.keys(await truth()), [hash]);
  began = Date.now();
  const tiles = () => page.evaluate((ns) => window.watchkeeper.engine.layout.tiles.filter((tile) => tile.group === ns).map((tile) => [tile.name, tile.used]), ns);
  await until('the tiles of the namespace', async () => {
    assert.deepEqual(Object.fromEntries(await tiles()), { [`${ns}/Deployment/api`]: 2, [web()]: REPLICAS, [`${ns}/Job/once`]: 1, [`${ns}//`]: 1 });
    return true;
  });
  assert.ok((await page.evaluate(() => window.watchkeeper.engine.layout.headings.map((h) => h.text))).includes(ns));
});

test('a rollout is two groups that trade Pods, and at its end one group', long, async () => {
  const [old] = Object.keys(await truth());
  const others = await groups(page, `${ns}/Deployment/api`);
  // What the tile has after each batch that changes it.
  await page.evaluate(([source, tile]) => {
    const groupsIn = new Function(`return (${source})`)();
    const { board } = window.watchkeeper;
    const before = board.onData;
    window.seen = [];
    board.onData = () => {
      before();
      const now = JSON.stringify(groupsIn(tile));
      if (now !== window.seen.at(-1)) window.seen.push(now);
    };
  }, [groupsIn.toString(), web()]);
  // New Pods are available only in the last step, so that each other step stops, however slow the page is.
  const rollout = (minReadySeconds, maxSurge, maxUnavailable) => kubectl('-n', ns, 'patch', 'deployment', 'web', '-p', JSON.stringify({
    spec: { minReadySeconds, strategy: { rollingUpdate: { maxSurge, maxUnavailable } }, template: { spec: { containers: [{ name: 'nginx', image: 'nginx:2' }] } } },
  }));
  const traded = [];
  for (const [surge, unavailable, want] of [[1, 0, [4, 1]], [2, 0, [4, 2]], [2, 2, [2, 4]]]) {
    await rollout(500, surge, unavailable);
    await until(`${want} Pods`, async () => {
      const now = await truth();
      const next = Object.keys(now).find((hash) => hash !== old);
      return now[old]?.length === want[0] && now[next]?.length === want[1];
    });
    await shows('both ReplicaSets', truth);
    traded.push((await groups()).map(([, pods]) => pods.length));
  }
  assert.deepEqual(traded, [[4, 1], [4, 2], [2, 4]]);
  await rollout(1, 1, 0);
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  const end = await until('one ReplicaSet', async () => {
    const now = await truth();
    return Object.keys(now).length === 1 && !now[old] && now;
  });
  await shows('its Pods', () => end);
  const [next] = Object.keys(end);
  const seen = (await page.evaluate(() => window.seen)).map((text) => JSON.parse(text));
  for (const one of seen) {
    assert.ok(one.length === 1 || (one.length === 2 && one[0][0] === old && one[1][0] === next), `the newest is last: ${JSON.stringify(one)}`);
    for (const [hash, pods] of one) for (const pod of pods) assert.ok(pod.startsWith(`web-${hash}-`), `${pod} in ${hash}`);
  }
  assert.deepEqual(await groups(page, `${ns}/Deployment/api`), others);
});

test('a rollout that stalls shows its pending Pod in the tile; its URL leads there, and W back to the Nodes', async () => {
  const [good] = Object.keys(await truth());
  await kubectl('-n', ns, 'patch', 'deployment', 'web', '-p', JSON.stringify({ spec: { template: { spec: { nodeSelector: { no: 'node' } } } } }));
  await until('a Pod of the new ReplicaSet', async () => Object.keys(await truth()).length === 2);
  await shows('both ReplicaSets', truth);
  stalled = Date.now();
  const now = await groups();
  assert.equal(now[0][0], good);
  const [pending] = now[1][1];
  assert.equal(await page.evaluate((name) => window.watchkeeper.cluster.nodeName(window.watchkeeper.cluster.names.indexOf(name)), pending), '');

  // Its block is in the tile, and the tooltip and the panel describe the workload.
  await page.keyboard.press('0');
  const tooltip = async () => (await page.locator('.tooltip').allInnerTexts()).join();
  await until('the tooltip of the Pod', async () => {
    await pointAt(page, ns, pending);
    return (await tooltip()).includes(pending);
  });
  const head = () => page.evaluate((name) => {
    const { board, engine } = window.watchkeeper;
    const tile = engine.layout.byName.get(name);
    const box = document.querySelector('.board').getBoundingClientRect();
    return { x: box.left + board.camera.toScreenX(tile.x + tile.w / 2), y: box.top + board.camera.toScreenY(tile.y + engine.layout.head / 2) };
  }, web());
  const { x, y } = await until('the tooltip of the Deployment', async () => {
    const { x, y } = await head();
    await page.mouse.move(x, y);
    return (await tooltip()).includes(`ReplicaSet ${good}: ${now[0][1].length} pods`) && { x, y };
  });
  await page.mouse.click(x, y);
  await until('its panel', async () => (await page.locator('.panel h2').innerText()).replaceAll('\n', ' ') === 'Deployment web');
  await until('its URL', () => new URL(page.url()).searchParams.get('sel') === `/apis/apps/v1/namespaces/${ns}/deployments/web`);
  assert.equal(await page.evaluate(() => window.watchkeeper.board.marks.selectedTile), web());
  await shot(page, 'workloads');
  await page.keyboard.press('Escape');

  // The same by its URL, with the filter.
  await goTo(page, gateway, { in: 'workloads', q: `ns:${ns}` });
  await shows('both ReplicaSets by the URL', truth);
  await until('the filter', () => page.evaluate((tile) => window.watchkeeper.engine.matchingByTile().get(tile) === 5, web()));

  const pressed = async () => [await page.getByRole('button', { name: 'Nodes', exact: true }).getAttribute('aria-pressed'), await page.getByRole('button', { name: 'Workloads', exact: true }).getAttribute('aria-pressed')];
  assert.deepEqual(await pressed(), ['false', 'true']);
  await page.locator('.board').focus();
  await page.keyboard.press('w');
  await until('Pods in Nodes', () => page.evaluate(() => window.watchkeeper.engine.layout.byName.has('node-0')));
  assert.deepEqual(await pressed(), ['true', 'false']);
  await until('the URL of the Nodes', () => !new URL(page.url()).searchParams.has('in'));
  await page.keyboard.press('w');
  await shows('both ReplicaSets again', truth);
  await until('the URL of the workloads', () => new URL(page.url()).searchParams.get('in') === 'workloads');
  await page.goBack();
  await until('Pods in Nodes', () => page.evaluate(() => window.watchkeeper.engine.layout.byName.has('node-0')));
  await page.goForward();
  await shows('both ReplicaSets after Back and Forward', truth);
});

test('the arrow keys move between Pods of the workload, and Enter shows one', async () => {
  await page.locator('.board').focus();
  const reached = () => page.evaluate(() => window.watchkeeper.cluster.names[window.watchkeeper.board.marks.focus]);
  await page.keyboard.press('ArrowRight');
  const first = await reached();
  await page.keyboard.press('ArrowRight');
  assert.notEqual(await reached(), first);
  await page.keyboard.press('Enter');
  await until('the panel', async () => (await page.locator('.panel h2').innerText()) === (await reached()));
  await page.keyboard.press('Escape');
});

test('axe finds nothing with dark and light colours', long, async () => {
  for (const scheme of ['dark', 'light']) {
    await page.emulateMedia({ colorScheme: scheme });
    await until(scheme, () => page.evaluate((name) => document.documentElement.dataset.theme === name, scheme));
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await shot(page, `workloads-${scheme}`);
  }
  assert.deepEqual(await violations(page), { dark: [], light: [] });
  assert.match(await page.locator('.board').getAttribute('aria-label'), /^Board of Pods in workloads/);
});

test('past moments have the groups of that time, with both renderers', long, async () => {
  const then = await truth();
  await kubectl('-n', ns, 'rollout', 'undo', 'deployment/web');
  await until('one ReplicaSet', async () => Object.keys(await truth()).length === 1);
  await shows('its end', truth);
  for (const renderer of ['canvas', 'webgl']) {
    const past = await openBoard(browser, gateway, { in: 'workloads', renderer, at: new Date(stalled).toISOString() });
    await until(renderer, () => past.evaluate((name) => window.watchkeeper.board.figures.renderer === name, renderer));
    await shows('both ReplicaSets', () => then, past);
    await goTo(past, gateway, { in: 'workloads', renderer, at: new Date(began).toISOString() });
    await until('the first ReplicaSet', async () => {
      const [[hash, pods], ...rest] = await groups(past);
      return rest.length === 0 && pods.length === REPLICAS && !then[hash];
    });
    clean(past);
    await past.close();
  }
  clean(page);
  await page.close();
});
