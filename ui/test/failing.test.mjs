// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// A Pod that keeps crashing: since when and why it fails, also while it briefly runs.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { apply, gateway, kubectl, namespace, reads, until } from './cluster.mjs';
import { front } from './front.mjs';
import { openBoard } from './page.mjs';

let browser;
let ns;

before(async () => {
  browser = await launch();
  ns = await namespace('failing');
  // No Node has them, so that only the test writes their status.
  await apply(...['crashing', 'recovered', 'completed'].map((name) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: ns, name }, spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'web', image: 'x' }] } })));
});

after(async () => {
  await browser?.close();
  // Other tests do not expect failing Pods.
  await kubectl('-n', ns, 'delete', 'pods', '--all', '--force', '--grace-period=0');
});

const ago = (seconds) => new Date(Date.now() - 1000 * seconds).toISOString();

/** Sets the status of a Pod's container. */
async function set(name, container) {
  const ready = container.state.running ? 'True' : 'False';
  const status = {
    phase: 'Running',
    conditions: [{ type: 'Initialized', status: 'True' }, { type: 'Ready', status: ready, lastTransitionTime: ago(0) }],
    containerStatuses: [{ name: 'web', image: 'x', imageID: '', ready: ready === 'True', ...container }],
  };
  await kubectl('-n', ns, 'patch', 'pod', name, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status }));
}

const error = { terminated: { reason: 'Error', exitCode: 3, message: 'cannot open /data/orders: no such file\n', startedAt: ago(10), finishedAt: ago(5) } };
const path = (name) => `/api/v1/namespaces/${ns}/pods/${name}`;
const failing = async (name) => (await fetch(`${gateway}/watchkeeper/v1/history/failing${path(name)}`)).json();

/** The state of a Pod on the board. */
const state = (page, name) =>
  page.evaluate(([ns, name]) => {
    const { cluster, engine } = window.watchkeeper;
    const row = cluster.rowOf(ns, name);
    return row < 0 ? '' : ['none', 'ready', 'unready', 'pending', 'failing'][engine.look[row]];
  }, [ns, name]);

test('it fails between two crashes, too', async () => {
  await set('crashing', { restartCount: 5, state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 2m40s restarting failed container' } }, lastState: error });
  const { since } = await until('the failing Pod', async () => {
    const answer = await failing('crashing');
    return answer.failing && answer;
  });
  const page = await openBoard(browser, gateway, { q: `ns:${ns}` });
  const panel = page.getByRole('tabpanel');
  const clock = await page.evaluate((since) => new Date(since).toTimeString().slice(0, 8), since);
  const says = (...parts) => until(`the panel to say ${parts}`, async () => {
    const text = (await panel.innerText()).replace(/\s+/g, ' ');
    for (const part of parts) assert.ok(text.includes(part), `${text} has no ${part}`);
    return true;
  });
  await until('a failing Pod', async () => (await state(page, 'crashing')) === 'failing');
  const entry = page.locator('.needs li button').filter({ hasText: ns }).filter({ hasText: 'crashing' });
  await until('its reason', async () => /crashing CrashLoopBackOff · Error, exit code 3 · /.test((await entry.innerText()).replace(/\s+/g, ' ')));
  await entry.click();
  await says('CrashLoopBackOff, failing for', `Since ${clock} · 5 restarts`, 'web Error, exit code 3', 'cannot open /data/orders: no such file');

  // It starts again, and is ready for less than its back-off.
  await set('crashing', { restartCount: 6, state: { running: { startedAt: ago(0) } }, lastState: error });
  await says('Running, failing for', `Since ${clock} · 6 restarts`, 'web Error, exit code 3');
  assert.equal(await state(page, 'crashing'), 'failing');
  await shot(page, 'failing');
  await page.emulateMedia({ colorScheme: 'light' });
  await shot(page, 'failing-light');
  await page.keyboard.press('Escape');
  await until('the entry', async () => /crashing Running after a crash · Error, exit code 3 · /.test((await entry.innerText()).replace(/\s+/g, ' ')));
  await shot(page, 'failing-list');
  clean(page);
  await page.close();
});

test('it may have failed before the recording starts', async (t) => {
  const since = ago(3700);
  const url = await front(t, (url, _, outgoing) => {
    if (!url.pathname.includes('/history/failing/')) return url;
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify({ failing: true, since, restarts: 6, containers: [] }));
  });
  const page = await openBoard(browser, url, { q: `ns:${ns}` });
  const entry = page.locator('.needs li button').filter({ hasText: ns }).filter({ hasText: 'crashing' });
  await until('at least an hour', async () => /^\d+m\+$/.test((await entry.locator('time').innerText()).trim()));
  await entry.click();
  await reads('since when', page.getByRole('tabpanel'), /Before .*, when the recording starts · 6 restarts/);
  clean(page);
  await page.close();
});

test('it has recovered when it was ready for its back-off', async () => {
  await set('recovered', { restartCount: 6, state: { running: { startedAt: ago(400) } }, lastState: error });
  await set('completed', { restartCount: 6, state: { running: { startedAt: ago(0) } }, lastState: { terminated: { reason: 'Completed', exitCode: 0, startedAt: ago(2), finishedAt: ago(1) } } });
  const page = await openBoard(browser, gateway, { sel: `pod/${ns}/recovered` });
  for (const name of ['recovered', 'completed']) await until(`${name} to be ready`, async () => (await state(page, name)) === 'ready');
  await until('its last crash', async () => /Restarts 6 · last Error, exit code 3/.test((await page.getByRole('tabpanel').innerText()).replace(/\s+/g, ' ')));
  clean(page);
  await page.close();
});
