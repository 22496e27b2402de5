// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// A past moment shows what kubectl printed at that moment: by its URL, by steps from
// change to change, and by dragging.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { clean, launch, shot } from './browser.mjs';
import { apply, gateway, kubectl, long, namespace, until } from './cluster.mjs';
import { connection, kubectlStatuses, openBoard, recorded, shownPods, stepBack, truth } from './page.mjs';

let browser;
let ns;
let began; // before the first Pod
let then; // {pods, rv, time}: what kubectl printed

before(async () => {
  browser = await launch();
  ns = await namespace('past');
  began = Date.now();
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  await kubectl('-n', ns, 'create', 'job', 'once', '--image=busybox');
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: ns, name: 'stuck' } };
  await apply({ ...pod, spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'c', image: 'nginx' }] } });
  const page = await openBoard(browser, gateway);
  then = await until('three running Pods, a pending and a completed one', async () => {
    const pods = await truth(ns);
    const statuses = Object.values(pods).map(({ status }) => status).sort();
    assert.deepEqual(statuses, ['Completed', 'Pending', 'Running', 'Running', 'Running']);
    assert.deepEqual(await shownPods(page, ns), pods); // so the gateway has the same state
    // A moment between two equal states.
    assert.deepEqual(kubectlStatuses(await kubectl('-n', ns, 'get', 'pods', '--no-headers', '-o', 'wide')), Object.fromEntries(Object.entries(pods).map(([name, pod]) => [name, pod.status])));
    const time = Date.now();
    const { metadata, items } = JSON.parse(await kubectl('get', '--raw', `/api/v1/namespaces/${ns}/pods`));
    assert.deepEqual(await truth(ns), pods);
    return items.length === 5 && { pods, rv: metadata.resourceVersion, time };
  });
  await page.close();

  await kubectl('-n', ns, 'delete', 'pod', 'stuck', '--wait=false');
  await kubectl('-n', ns, 'delete', 'job', 'once');
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=5');
  const [first] = Object.keys(then.pods).filter((name) => name.startsWith('web'));
  await kubectl('-n', ns, 'label', 'pod', first, 'localcluster.watchkeeper.dev/crash=true');
  await until('a Pod that crashes', async () => {
    const pods = await truth(ns);
    return Object.keys(pods).length === 5 && !pods.stuck && /Crash|Error/.test(pods[first].status);
  });
  // No further changes: a test steps through all of them.
  await kubectl('-n', ns, 'label', 'pod', first, 'localcluster.watchkeeper.dev/crash-');
});

after(() => browser?.close());

/** The Pods that the gateway has recorded at the moment in the page's URL. */
const recordedAt = (page) => recorded(ns, new URL(page.url()).searchParams.get('at'));

/** Waits until the page shows the Pods that are recorded at the moment in its URL. */
const showsMoment = (page) =>
  until('the recording', async () => {
    assert.deepEqual(Object.keys(await shownPods(page, ns)).sort(), Object.keys(await recordedAt(page)).sort());
    return true;
  });

/** Whether the page shows what kubectl printed. */
async function isThen(page) {
  try {
    assert.deepEqual(await shownPods(page, ns), then.pods);
    return true;
  } catch {
    return false;
  }
}

for (const [name, at] of Object.entries({ time: () => new Date(then.time).toISOString(), resourceVersion: () => `rv:${then.rv}` })) {
  test(`the URL of a moment by its ${name}`, async () => {
    const page = await openBoard(browser, gateway, { at: at(), q: `ns:${ns}` });
    await until('the output of kubectl', async () => {
      assert.deepEqual(await shownPods(page, ns), then.pods);
      return true;
    });
    await until('the past', async () => (await connection(page)) === 'the past');
    await shot(page, `past-${name}`);
    await page.keyboard.press('Escape');
    await until('now', async () => (await connection(page)) === 'live' && !(await isThen(page)) && Object.keys(await shownPods(page, ns)).length === 5 && !page.url().includes('at='));
    clean(page);
    await page.close();
  });
}

// Events may be in another store, with RVs of its own.
test('Events at a resourceVersion are those of its time', long, async () => {
  const t = new Date(then.time).toISOString();
  const [first] = Object.keys(then.pods);
  const page = await openBoard(browser, gateway, { at: `rv:${then.rv}`, t, sel: `pod/${ns}/${first}` });
  const requested = () => page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => decodeURIComponent(new URL(name).pathname)).filter((path) => path.endsWith('/events')));
  await until('Events', async () => (await requested()).length > 0);
  assert.deepEqual([...new Set(await requested())], [`/at/${t}/api/v1/namespaces/${ns}/events`]);
  await until('their list', async () => (await page.locator('.panel .events li').count()) > 0);
  clean(page);
  await page.close();
});

test('by steps from change to change, and forward again', long, async () => {
  const page = await openBoard(browser, gateway);
  await page.getByRole('slider', { name: 'Moment' }).focus();
  const step = async (key) => {
    const before = page.url();
    await page.keyboard.press(key);
    await until('another moment', () => page.url() !== before);
    await showsMoment(page);
  };
  const moment = () => Date.parse(new URL(page.url()).searchParams.get('at'));
  await stepBack(page, 'ArrowLeft');
  await showsMoment(page);
  const times = [moment()];
  // Other changes are steps too, so the first one that shows these Pods may be after that moment.
  // The names may be those of the moment before: what is recorded tells when the step is taken.
  while (!(times.at(-1) <= then.time && isDeepStrictEqual(await recordedAt(page), then.pods))) {
    assert.ok(times.at(-1) > began, 'the steps go past that state');
    await step('ArrowLeft');
    times.push(moment());
  }
  await until('that state', () => isThen(page));
  assert.deepEqual(times, [...times].sort((a, b) => b - a), 'each step goes back');
  await step('ArrowRight');
  assert.ok(moment() > times.at(-1), 'and forward');
  clean(page);
  await page.close();
});

test('by dragging', long, async () => {
  const page = await openBoard(browser, gateway);
  const slider = page.getByRole('slider', { name: 'Moment' });
  const strip = await slider.boundingBox();
  const middle = strip.y + strip.height / 2;
  const shown = async () => 1000 * Number(await slider.getAttribute('aria-valuemax'));
  await page.mouse.move(strip.x + strip.width - 2, middle); // it zooms about the pointer
  // The moment stays on the strip, however long the test takes.
  const wanted = 3 * Math.max(60_000, Date.now() - then.time);
  await until('less time on the strip', async () => {
    if ((await shown()) <= wanted) return true;
    await page.mouse.wheel(0, -200);
    return false;
  });
  // Drags to where the moment should be, and corrects the position by what the page shows.
  let x = strip.x + strip.width - 4;
  await page.mouse.move(x, middle);
  await page.mouse.down();
  await until('the output of kubectl', async () => {
    const at = new URL(page.url()).searchParams.get('at');
    const off = at ? Date.parse(at) - then.time : Date.now() - then.time;
    x = Math.min(strip.x + strip.width - 4, Math.max(strip.x, x - (off / (await shown())) * strip.width));
    await page.mouse.move(x, middle, { steps: 3 });
    await until('the past', async () => (await connection(page)) === 'the past');
    await showsMoment(page);
    return isThen(page);
  });
  await page.mouse.up();
  assert.ok(await page.locator('.moment b').isVisible(), 'the moment is shown');
  await page.getByRole('button', { name: 'to now' }).click();
  await until('now', async () => (await connection(page)) === 'live' && !(await isThen(page)));
  clean(page);
  await page.close();
});
