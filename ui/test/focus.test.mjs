// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The keyboard focus survives live updates: an element that stays keeps it, and
// the focus of a removed one moves to the element that shows the same object or
// to its neighbour, never to the body.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch } from './browser.mjs';
import { apply, gateway, kubectl, namespace, reads, until } from './cluster.mjs';
import { clickOn, connection, openBoard, shownPods, stepBack } from './page.mjs';

let browser;
const namespaces = [];

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser?.close();
  // Other tests do not expect failing Pods.
  for (const ns of namespaces) await kubectl('-n', ns, 'delete', 'deployments,pods', '--all', '--force', '--grace-period=0');
});

/** Creates Pods that cannot be scheduled, so that only the test writes their status. */
async function pods(ns, ...names) {
  namespaces.push(ns);
  await apply(...names.map((name) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: ns, name }, spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'c', image: 'x' }] } })));
}

/** Sets the reason why a Pod's container waits. */
async function waits(ns, name, reason) {
  const status = { containerStatuses: [{ name: 'c', image: 'x', imageID: '', ready: false, restartCount: 0, state: { waiting: { reason } } }] };
  await kubectl('-n', ns, 'patch', 'pod', name, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status }));
}

/** Waits until the page shows a Pod with a status. */
const shows = (page, ns, name, status) => until(`${name} to be ${status}`, async () => (await shownPods(page, ns))[name]?.status === status);

/** Focuses an element as Tab does, and returns it. */
async function focus(page, locator) {
  await page.keyboard.press('Shift'); // after a key, the focus ring is visible
  await locator.focus();
  return locator.elementHandle();
}

/** Checks that an element still has the focus after an update that the page shows. */
async function keeps(page, element, what) {
  await drawn(page);
  assert.ok(await element.evaluate((one) => one === document.activeElement), `${what}: the focus is on ${await focused(page)}`);
}

/** Deletes Pods at once. */
const remove = (ns, ...names) => kubectl('-n', ns, 'delete', 'pod', ...names, '--force', '--grace-period=0');

/** The entries of a namespace in the list of what needs attention, and the one of a Pod or a workload. */
const entries = (page, ns) => page.locator('.needs li button').filter({ hasText: ns });
const entryOf = (page, ns, name) => entries(page, ns).filter({ has: page.getByText(name, { exact: true }) });
const count = (page, ns, n) => until(`${n} entries`, async () => (await entries(page, ns).count()) === n);

/** Waits for two frames: a browser takes the focus away from a hidden element when it renders. */
const drawn = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));

const focused = (page) => page.evaluate(() => {
  const { activeElement: at } = document;
  return at === document.body ? 'the body' : (at.ariaLabel ?? at.innerText.trim());
});

test('in the list of what needs attention', async () => {
  const ns = await namespace('focus-needs');
  await pods(ns, 'one', 'two', 'three');
  for (const name of ['one', 'two', 'three']) await waits(ns, name, 'ImagePullBackOff');
  const page = await openBoard(browser, gateway);
  const entry = (name) => entryOf(page, ns, name);
  await count(page, ns, 3);
  const one = await focus(page, entry('one'));
  await waits(ns, 'one', 'ErrImagePull');
  await until('the other reason', async () => (await entry('one').innerText()).includes('ErrImagePull'));
  await keeps(page, one, 'its reason changed');
  await waits(ns, 'one', 'CrashLoopBackOff'); // ranks first
  await until('the order', async () => (await entry('one').innerText()).includes('CrashLoopBackOff'));
  await keeps(page, one, 'it moved up');
  for (const name of ['two', 'three']) await waits(ns, name, 'OOMKilled'); // ranks before that
  await until('the order', async () => (await entry('three').innerText()).includes('OOMKilled'));
  await keeps(page, one, 'it moved down');
  const three = await focus(page, entry('three'));
  const neighbours = await three.evaluate((at) => [at.closest('li').previousElementSibling, at.closest('li').nextElementSibling].map((li) => li?.querySelector('button').innerText));
  await remove(ns, 'three');
  await until('the removal of the entry', async () => (await entry('three').count()) === 0);
  await drawn(page);
  const name = (text) => text?.split('\n')[0];
  assert.ok(neighbours.map(name).includes(name(await focused(page))), `the focus is on ${await focused(page)}, the neighbours were ${neighbours}`);
  clean(page);
  await page.close();
});

test('in the list of what needs attention, when several entries are removed at once', async () => {
  const ns = await namespace('focus-several');
  const names = ['one', 'two', 'three', 'four', 'five'];
  await pods(ns, ...names);
  for (const name of names) await waits(ns, name, 'ErrImagePull');
  const page = await openBoard(browser, gateway);
  await count(page, ns, 5);
  const listed = (await entries(page, ns).locator('b').allInnerTexts()).map((text) => text.trim());
  await focus(page, entryOf(page, ns, listed[2]));
  await remove(ns, ...listed.slice(1, 4));
  await count(page, ns, 2);
  await until('the focus on a neighbour', async () => [listed[0], listed[4]].includes((await focused(page)).split('\n')[0]));
  // After Esc, which closes nothing here, the focus is kept as well.
  await page.keyboard.press('Escape');
  await remove(ns, (await focused(page)).split('\n')[0]);
  await count(page, ns, 1);
  await until('the focus on an entry', () => page.evaluate(() => document.activeElement.closest('.needs li') !== null));
  clean(page);
  await page.close();
});

test('in the list of what needs attention, when two entries of a workload become one', async () => {
  const ns = await namespace('focus-workload');
  namespaces.push(ns);
  await apply({
    apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace: ns, name: 'web' },
    spec: { replicas: 2, selector: { matchLabels: { app: 'web' } }, template: { metadata: { labels: { app: 'web' } }, spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'c', image: 'x' }] } } },
  });
  const [a, b] = await until('two Pods', async () => {
    const found = (await kubectl('-n', ns, 'get', 'pods', '-o', 'name')).split('\n').filter(Boolean).map((name) => name.replace('pod/', ''));
    return found.length === 2 && found;
  });
  await pods(ns, 'after');
  for (const [name, reason] of [[a, 'CrashLoopBackOff'], [b, 'CreateContainerError'], ['after', 'ErrImagePull']]) await waits(ns, name, reason); // in this order
  const page = await openBoard(browser, gateway);
  await count(page, ns, 3);
  await focus(page, entryOf(page, ns, 'CreateContainerError'));
  await waits(ns, a, 'CreateContainerError');
  await count(page, ns, 2);
  await drawn(page);
  assert.match(await focused(page), /^web\n*CreateContainerError/);
  clean(page);
  await page.close();
});

test('on the board', async () => {
  const ns = await namespace('focus-board');
  await pods(ns, 'one', 'two', 'three');
  const page = await openBoard(browser, gateway, { q: `ns:${ns}` });
  const reached = () => page.evaluate(() => {
    const { board: { marks }, cluster } = window.watchkeeper;
    return marks.focus < 0 ? '' : `${cluster.strings[cluster.namespace[marks.focus]]}/${cluster.names[marks.focus]}`;
  });
  await until('the Pods', () => page.evaluate(() => window.watchkeeper.engine.matching() === 3));
  // A click selects a Pod and gives it the focus of the arrow keys.
  await clickOn(page, ns, 'two');
  await until('the panel', async () => (await page.locator('.panel h2').innerText()) === 'two');
  await page.keyboard.press('Escape');
  await until('no panel', async () => (await page.locator('.panel').count()) === 0);
  assert.equal(await reached(), `${ns}/two`);
  await waits(ns, 'two', 'ErrImagePull');
  await shows(page, ns, 'two', 'ErrImagePull');
  assert.equal(await reached(), `${ns}/two`, 'its status changed');
  const nearest = await page.evaluate(() => {
    const { board: { marks: { focus } }, cluster, engine: { layout } } = window.watchkeeper;
    const others = [...cluster.names.keys()].filter((row) => row !== focus && cluster.has(row));
    const distance = (row) => Math.hypot(layout.x[row] - layout.x[focus], layout.y[row] - layout.y[focus]);
    const least = Math.min(...others.map(distance));
    return others.filter((row) => distance(row) === least).map((row) => cluster.keyOf(row));
  });
  await remove(ns, 'two');
  const next = await until('another Pod', async () => (await reached()) !== `${ns}/two` && reached());
  assert.ok(nearest.includes(next), `${next} is not one of ${nearest}`);
  assert.match(await focused(page), /^Board of Pods/);
  await page.keyboard.press('Enter');
  await until('the panel of the neighbour', async () => (await page.locator('.panel h2').innerText()) === next.split('/')[1]);
  clean(page);
  await page.close();
});

test('on the table', async () => {
  const ns = await namespace('focus-table');
  await pods(ns, 'one', 'two', 'three', 'four');
  // The panel may still be loading the Pod when it is deleted.
  const page = await openBoard(browser, gateway, { q: `ns:${ns}`, view: 'table' }, { ignore: /status of 404/ });
  const chosen = () => page.locator('[role=row][aria-selected=true] .name').innerText();
  await until('the rows', async () => (await page.locator('[role=row] .name[role=gridcell]').count()) === 4);
  const listed = await page.locator('[role=row] .name[role=gridcell]').allInnerTexts();
  await page.getByRole('grid').focus();
  for (const name of listed.slice(0, 3)) {
    await page.keyboard.press('ArrowDown');
    await until(`the row of ${name}`, async () => (await chosen()) === name);
  }
  await remove(ns, listed[2]);
  await until('the removal of the row', async () => (await page.locator('[role=row] .name[role=gridcell]').count()) === 3);
  assert.equal(await focused(page), 'Pods');
  await page.keyboard.press('ArrowDown');
  await until('the row that followed', async () => (await chosen()) === listed[3]);
  clean(page);
  await page.close();
});

test('in the panel', async () => {
  const ns = await namespace('focus-panel');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=2');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  const [pod] = (await kubectl('-n', ns, 'get', 'pods', '-o', 'name')).split('\n').map((name) => name.replace('pod/', ''));
  const { spec: { nodeName: node } } = JSON.parse(await kubectl('-n', ns, 'get', 'pod', pod, '-o', 'json'));
  const page = await openBoard(browser, gateway, { sel: `pod/${ns}/${pod}` });
  const panel = page.locator('.panel');
  const link = await focus(page, panel.locator('.facts').getByRole('button', { name: node }));
  await kubectl('-n', ns, 'label', 'pod', pod, 'localcluster.watchkeeper.dev/crash=true');
  await reads('a crashed Pod', panel.locator('.state'), /Crash|Error/);
  await keeps(page, link, 'the Pod crashed');
  const label = await focus(page, panel.locator('.labels').getByRole('button', { name: /crash/ }));
  await kubectl('-n', ns, 'label', 'pod', pod, 'another=label');
  await until('the label', async () => (await panel.locator('.labels button').filter({ hasText: 'another' }).count()) === 1);
  await keeps(page, label, 'another label was added');
  await kubectl('-n', ns, 'label', 'pod', pod, 'localcluster.watchkeeper.dev/crash-');
  await until('the removal of the label', async () => (await panel.locator('.labels button').filter({ hasText: 'crash' }).count()) === 0);
  await until('the focus on the neighbour', async () => /^(app|another|pod-template-hash)=/.test(await focused(page)));
  // Another moment of the same object.
  const back = await focus(page, panel.locator('.facts').getByRole('button', { name: node }));
  await stepBack(page, ',');
  await until('the Pod as it was', async () => (await panel.locator('.content').getAttribute('aria-busy')) === 'false');
  await keeps(page, back, 'another moment is shown');
  await page.keyboard.press('.');
  await until('another moment', async () => !(await panel.locator('.content').getAttribute('aria-busy')).includes('true'));
  await keeps(page, back, 'the next moment is shown');

  // The Pods of a Node, sorted by state.
  await page.goto(`${gateway}/ui/?${new URLSearchParams({ sel: `node/${node}` })}`);
  const inNode = panel.locator('.pods').getByRole('button', { name: pod });
  const entry = await focus(page, inNode);
  await kubectl('-n', ns, 'label', 'pod', pod, 'localcluster.watchkeeper.dev/crash=true');
  await until('the Pod to be first', async () => (await panel.locator('.pods button').first().innerText()).includes(pod));
  await keeps(page, entry, 'it moved up');
  await kubectl('-n', ns, 'delete', 'pod', pod, '--force', '--grace-period=0');
  await until('the removal of the Pod', async () => (await inNode.count()) === 0);
  await until('the focus on the neighbour', () => page.evaluate(() => document.activeElement.closest('.pods, .panel h3') !== null));
  clean(page);
  await page.close();
});

test('in the list of changes', async () => {
  const ns = await namespace('focus-changes');
  await pods(ns, 'one', 'two');
  const page = await openBoard(browser, gateway, { q: `ns:${ns}`, side: 'changes' });
  const changes = page.locator('.changes-list .pick');
  await until('changes', async () => (await changes.count()) >= 2);
  const first = await focus(page, changes.last());
  const count = await changes.count();
  await waits(ns, 'two', 'ErrImagePull');
  await pods(ns, 'three', 'four', 'five');
  await until('more changes', async () => (await changes.count()) >= count + 4);
  await keeps(page, first, 'changes were added');
  // Enter opens the panel and hides the list; Esc returns to it.
  await page.keyboard.press('Enter');
  await until('the panel', async () => (await page.locator('.panel h2').count()) === 1);
  await until('the focus in the panel', async () => (await focused(page)) === 'Overview');
  await page.keyboard.press('Escape');
  await until('the focus in the list', () => first.evaluate((one) => one === document.activeElement));
  // The other list at the side.
  await focus(page, page.locator('.sides').getByRole('button', { name: 'Changes' }));
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await until('what needs attention', async () => (await page.locator('.needs').count()) === 1);
  await until('the focus on its button', async () => (await focused(page)) === 'Needs attention');
  clean(page);
  await page.close();
});

test('in the strip and the top bar', async () => {
  const ns = await namespace('focus-strip');
  const page = await openBoard(browser, gateway, {}, { width: 960 });
  await pods(ns, 'one');
  await stepBack(page, ',');
  const next = await focus(page, page.getByRole('button', { name: 'Next change' }));
  await until('now', async () => {
    await page.keyboard.press('Enter');
    await keeps(page, next, 'a change later');
    return (await connection(page)) === 'live';
  });
  await keeps(page, next, 'there is no next change');
  // On narrow windows, states without Pods are hidden.
  await waits(ns, 'one', 'ErrImagePull');
  await shows(page, ns, 'one', 'ErrImagePull');
  const failing = await focus(page, page.locator('.legend button').first());
  await failing.evaluate((button) => button.classList.add('none')); // as if no Pod failed; Pods of other tests may
  await keeps(page, failing, 'no Pod fails');
  await failing.evaluate((button) => button.blur());
  assert.equal(await failing.isVisible(), false, 'it is hidden without the focus');
  clean(page);
  await page.close();
});

test('when parts of the page open and close', async () => {
  const ns = await namespace('focus-parts');
  await pods(ns, 'one');
  await waits(ns, 'one', 'ErrImagePull');
  const page = await openBoard(browser, gateway);
  const entry = page.locator('.needs li button').filter({ hasText: ns });
  await focus(page, entry);
  await page.keyboard.press('Enter');
  await until('the focus in the panel', async () => (await focused(page)) === 'Overview');
  await focus(page, page.getByRole('button', { name: 'Close' }));
  await page.keyboard.press('Enter');
  await until('the focus on the board', async () => /^Board of Pods/.test(await focused(page)));
  await page.keyboard.press('t');
  await until('the focus on the table', async () => (await focused(page)) === 'Pods');
  await page.keyboard.press('t');
  await until('the focus on the board', async () => /^Board of Pods/.test(await focused(page)));
  // A click on the background removes the focus, and updates do not restore it.
  await page.locator('.connection').click();
  await waits(ns, 'one', 'ImagePullBackOff');
  await until('the other reason', async () => (await entry.innerText()).includes('ImagePullBackOff'));
  await drawn(page);
  assert.equal(await focused(page), 'the body');
  clean(page);
  await page.close();
});
