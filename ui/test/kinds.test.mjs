// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Every kind: the opener and the tables of resources, against what the API server prints.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch, shot } from './browser.mjs';
import { api, apply, gateway, kubectl, long, namespace, reads, until } from './cluster.mjs';
import { goTo, openBoard } from './page.mjs';
import { account, grant, refused, signingIn } from './users.mjs';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
let browser;
let ns;
let page;

before(async () => {
  browser = await launch();
  ns = await namespace('kinds');
  await apply({
    apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `backups.${ns}.example.com` },
    spec: {
      group: `${ns}.example.com`, scope: 'Namespaced', names: { kind: 'Backup', plural: 'backups', singular: 'backup', shortNames: [`bk${ns.replace(/\D/g, '')}`] },
      versions: [{
        name: 'v1', served: true, storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties: { size: { type: 'integer' }, note: { type: 'string' } } } } } },
        additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }, { name: 'Note', type: 'string', jsonPath: '.spec.note' }, { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }],
      }],
    },
  });
  await kubectl('create', 'deployment', 'web', '--image=nginx:1.27', '--replicas=2', '-n', ns);
  await until('the custom resource', () => api(`/apis/${ns}.example.com/v1/backups`));
  for (const [i, size] of [9, 100, 20].entries()) await apply({ apiVersion: `${ns}.example.com/v1`, kind: 'Backup', metadata: { name: `backup-${i}`, namespace: ns, labels: { tier: i ? 'gold' : 'iron' } }, spec: { size } });
  page = await openBoard(browser, gateway);
});

after(async () => {
  if (page) clean(page);
  await browser?.close();
});

/** The rows of the table, as a screen reader sees them: the texts of their cells. */
const rows = (page) => page.locator('.table.kinds .body [role="row"]').evaluateAll((all) => all.map((row) => [...row.querySelectorAll('[role="gridcell"]')].map((cell) => cell.textContent)));
const titles = (page) => page.getByRole('columnheader').evaluateAll((all) => all.map((one) => one.textContent.replace(/ [↑↓]$/, '')));

/** Opens what the opener offers first for a text. */
async function openFirst(page, text, first) {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /Kind/ }).fill(text);
  await page.locator('.opener [role="option"][aria-selected="true"]').filter({ hasText: first }).waitFor();
  await page.keyboard.press('Enter');
}

describe('the table of a resource', () => {
  test('has the API server\'s columns, and follows the cluster', async () => {
    await page.locator('.board').focus();
    await openFirst(page, `deploy ns:${ns}`, 'Deployment');
    await until('the Deployment', async () => {
      const { columnDefinitions } = await api(`/apis/apps/v1/namespaces/${ns}/deployments`, TABLE);
      assert.deepEqual(await titles(page), ['Namespace', ...columnDefinitions.filter(({ priority }) => priority === 0).map(({ name }) => name)]);
      const [row] = await rows(page);
      assert.deepEqual(row?.slice(0, 5), [ns, 'web', '2/2', '2', '2']);
      return true;
    });
    await until('the address', () => /view=table/.test(page.url()) && /kind=deployments\.apps/.test(page.url()));
    await kubectl('scale', 'deployment/web', '--replicas=4', '-n', ns);
    await until('the scaled Deployment', async () => (await rows(page))[0]?.[2] === '4/4');
    await kubectl('create', 'deployment', 'brief', '--image=nginx:1.27', '-n', ns);
    await until('another Deployment', async () => (await rows(page)).map((row) => row[1]).join() === 'brief,web');
    await kubectl('delete', 'deployment', 'brief', '-n', ns);
    await until('its deletion', async () => (await rows(page)).length === 1);
    await page.getByRole('checkbox', { name: 'wide' }).check();
    assert.ok((await titles(page)).includes('Images'));
    await shot(page, 'kinds');
    await page.getByRole('checkbox', { name: 'wide' }).uncheck();
  });

  test('is sorted by a column\'s values, filtered and grouped', async () => {
    await goTo(page, gateway, { view: 'table', kind: `backups.${ns}.example.com` });
    const sizes = async () => (await rows(page)).map((row) => row[2]).join();
    await until('the custom resources', async () => (await rows(page)).length === 3);
    assert.deepEqual(await titles(page), ['Namespace', 'Name', 'Size', 'Note', 'Age']);
    await page.getByRole('columnheader', { name: /^Size/ }).getByRole('button').click();
    await until('the order', async () => (await sizes()) === '9,20,100');
    await page.getByRole('columnheader', { name: /^Size/ }).getByRole('button').click();
    await until('the other order', async () => (await sizes()) === '100,20,9');
    assert.equal(await page.getByRole('columnheader', { name: 'Size' }).getAttribute('aria-sort'), 'descending');
    await page.keyboard.press('/');
    await page.keyboard.type('tier=gold state:failing');
    await until('the filter', async () => (await sizes()) === '100,20');
    assert.match(await page.locator('.kinds-bar').innerText(), /2 of 3 objects[\s\S]*state: only of Pods/);
    await goTo(page, gateway, { view: 'table', kind: 'pods', q: `ns:${ns}` });
    await until('the Pods', async () => (await rows(page)).length === 4);
    await page.getByLabel('group').selectOption('owner');
    await until('the groups', async () => {
      const [heading, ...pods] = await rows(page);
      assert.match(heading.join(), new RegExp(`^${ns}/ReplicaSet/web-\\w+ 4$`));
      return pods.length === 4;
    });
    await shot(page, 'kinds-grouped');
  });

  test('clips the texts that are too long for their column, and no others', long, async () => {
    const backup = (i, note) => apply({ apiVersion: `${ns}.example.com/v1`, kind: 'Backup', metadata: { name: `backup-${i}`, namespace: ns }, spec: { size: 1, note } });
    const wide = ['WWWWWWWWWWWWWWWW', '@%&QMOGmw@%&QMOGmw'];
    for (const [i, note] of wide.entries()) await backup(i, note);
    await goTo(page, gateway, { view: 'table', kind: `backups.${ns}.example.com` });
    await until('the notes', async () => (await rows(page)).some((row) => row[3] === wide[1]));
    /** The cells: how wide they and their texts are, and whether a text is clipped. */
    const cells = () => page.locator('.table.kinds .body [role="gridcell"]').evaluateAll((all) => all.map((cell) => {
      const text = document.createRange();
      text.selectNodeContents(cell);
      return { text: cell.textContent, over: text.getBoundingClientRect().width - cell.getBoundingClientRect().width, clipped: getComputedStyle(cell).overflowX === 'hidden', title: cell.title };
    }));
    for (const { text, over, clipped, title } of await cells()) assert.ok(over <= 0 && !clipped && !title, `${text}: ${over} pixels too long, ${clipped} ${title}`);
    const long = 'a note that is longer than those that the column was made for';
    await backup(2, long);
    await until('the long note', async () => (await cells()).some(({ text, clipped, title }) => text === long && clipped && title === long));
    for (const { text, over, clipped } of await cells()) assert.ok(over <= 0 || clipped, text);
  });

  test('has its rows in order when it was scrolled', long, async () => {
    await goTo(page, gateway, { view: 'table', kind: 'clusterroles.rbac.authorization.k8s.io' });
    const { rows: all } = await api('/apis/rbac.authorization.k8s.io/v1/clusterroles', TABLE);
    await until('the ClusterRoles', async () => (await rows(page)).length > 20);
    const table = page.getByRole('grid');
    for (const top of [300, 170, 640]) {
      await table.evaluate((element, y) => (element.scrollTop = y), top);
      await until(`the rows at ${top} pixels`, async () => {
        const indexes = await page.locator('.table.kinds .body [role="row"]').evaluateAll((lines) => lines.map((line) => Number(line.ariaRowIndex) - 2));
        const first = Math.floor(top / 28) - 4;
        if (indexes[0] !== first || indexes.some((index, i) => index !== first + i)) return false;
        assert.deepEqual((await rows(page)).map(([name]) => name), all.slice(first, first + indexes.length).map(({ cells }) => cells[0]));
        return true;
      });
    }
  });

  test('selects with the keyboard, and the address leads back', long, async () => {
    await goTo(page, gateway, { view: 'table', kind: 'deployments.apps', q: `ns:${ns}` });
    await until('the Deployment', async () => (await rows(page)).length === 1);
    await page.getByRole('grid').focus();
    await page.keyboard.press('ArrowDown');
    await until('the panel', () => page.locator('.panel h2').filter({ hasText: 'web' }).isVisible());
    const address = await until('the address', () => page.url().includes('sel=') && page.url());
    await page.goto('about:blank');
    await page.goto(address);
    await until('the same', async () => (await rows(page)).length === 1 && (await page.locator('.panel h2').innerText()).includes('web'));
    assert.equal(await page.locator('[role="row"][aria-selected="true"]').count(), 1);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Board', exact: true }).last().click();
    await page.locator('.board').waitFor();
    await until('the address of the board', () => !page.url().includes('kind='));
    await page.goBack();
    await page.locator('.table.kinds').waitFor();
  });

  test('shows the past', long, async () => {
    await kubectl('create', 'deployment', 'later', '--image=nginx:1.27', '-n', ns);
    const { metadata: { creationTimestamp } } = await api(`/apis/apps/v1/namespaces/${ns}/deployments/later`);
    const shown = async () => (await rows(page)).map((row) => `${row[1]} ${row[2]}`).join();
    await goTo(page, gateway, { view: 'table', kind: 'deployments.apps', q: `ns:${ns}` });
    await until('both Deployments', async () => (await shown()) === 'later 1/1,web 4/4');
    await goTo(page, gateway, { view: 'table', kind: 'deployments.apps', q: `ns:${ns}`, at: new Date(Date.parse(creationTimestamp) - 1000).toISOString() });
    await until('the moment before the second one', async () => (await shown()) === 'web 4/4');
    await page.keyboard.press('Escape');
    await until('the present', async () => (await shown()) === 'later 1/1,web 4/4');
    await kubectl('delete', 'deployment', 'later', '-n', ns);
  });

  test('says what does not exist, and what is refused', long, async (t) => {
    await goTo(page, gateway, { view: 'table', kind: 'nothings.example.com' });
    await page.getByText('The cluster has no resource nothings.example.com').waitFor();
    const user = await account(ns, 'reader');
    await grant(user, 'view', ns);
    const restricted = await openBoard(browser, await signingIn(t, user), { view: 'table', kind: 'deployments.apps' }, refused).catch((error) => assert.fail(error));
    await until('the namespace that may be read', async () => {
      assert.deepEqual((await rows(restricted)).map((row) => row.slice(0, 2)), [[ns, 'web']]);
      return (await restricted.locator('.kinds-bar').innerText()).includes('in the 1 namespace that you may read');
    });
    await goTo(restricted, new URL(restricted.url()).origin, { view: 'table', kind: 'secrets' });
    await reads('the refusal', restricted.locator('.kinds-bar .failure'), /secrets is forbidden/i);
    assert.equal((await rows(restricted)).length, 0);
    clean(restricted);
  });
});

test('the opener waits for the resources when Enter comes first', long, async () => {
  await page.route(/\/apis$/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    await route.continue();
  });
  await goTo(page, gateway);
  await page.locator('.board').focus();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /Kind/ }).fill('backup');
  await page.keyboard.press('Enter');
  await until('the table', () => page.url().includes('kind=backups.'));
  await page.unroute(/\/apis$/);
});

test('the opener finds objects and namespaces, with the keyboard alone', async () => {
  await goTo(page, gateway);
  await page.locator('.board').focus();
  await openFirst(page, 'backup', 'Backup');
  await until('the table', () => page.url().includes('kind=backups.'));
  await page.locator('.table.kinds').focus();
  await page.keyboard.press(':');
  await page.getByRole('combobox', { name: /Kind/ }).fill(`deploy web ns:${ns}`);
  await page.locator('.opener [role="option"]').filter({ hasText: `Deployment in ${ns}` }).waitFor();
  await shot(page, 'opener');
  assert.deepEqual(await violations(page), { dark: [], light: [] });
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await until('the panel', () => page.locator('.panel h2').filter({ hasText: 'web' }).isVisible());
  await until('its address', () => page.url().includes(`/apis/apps/v1/namespaces/${ns}/deployments/web`));
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /Kind/ }).fill('no such thing at all');
  await page.locator('.opener [role="option"]').first().waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k'); // opens it again
  await page.getByRole('combobox', { name: /Kind/ }).fill(ns);
  await page.locator('.opener [role="option"]').filter({ hasText: 'only namespace' }).click();
  await until('the filter', () => page.url().includes(`q=ns:${ns}`));
});

test('axe finds no violations in the tables', long, async () => {
  await goTo(page, gateway, { view: 'table', kind: 'pods', q: `ns:${ns}` });
  await until('the Pods', async () => (await rows(page)).length === 4);
  await page.getByLabel('group').selectOption('namespace');
  assert.deepEqual(await violations(page), { dark: [], light: [] });
  await shot(page, 'kinds-light');
});
