// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The list of changes: each row says what happened to the object.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { apply, gateway, kubectl, namespace, until } from './cluster.mjs';
import { openBoard } from './page.mjs';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/** The rows of the list, the newest first, as "Service web deleted | shop". */
const rows = (page) => page.locator('.changes-list .pick').evaluateAll((picks) =>
  picks.map((pick) => ['.what', '.line'].map((part) => (pick.querySelector(part)?.innerText ?? '').replace(/\s+/g, ' ').trim()).join(' | ')));

test('each change has a description', async () => {
  const ns = await namespace('changes');
  const name = `${ns}-web`;
  await kubectl('-n', ns, 'create', 'service', 'clusterip', name, '--tcp=80');
  await kubectl('-n', ns, 'label', 'service', name, 'tier=front');
  await kubectl('-n', ns, 'delete', 'service', name);
  const page = await openBoard(browser, gateway, { side: 'changes', q: `name:${ns}` });
  await page.getByRole('combobox', { name: 'Range' }).selectOption('3600');
  await until('the changes', async () => {
    const list = await rows(page);
    assert.deepEqual(list.filter((row) => row.startsWith('Service')), [
      `Service ${name} deleted | ${ns}`,
      `Service ${name} | ${ns} · label tier=front added · by kubectl-label`,
      `Service ${name} created | ${ns} · by kubectl-create`,
    ]);
    return true;
  });
  await shot(page, 'changes');

  // Also of those that the cluster's components change.
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  await kubectl('-n', ns, 'delete', 'deployment', 'web');
  await page.getByRole('searchbox', { name: 'Filter' }).fill(`ns:${ns}`);
  const all = await until('all changes', async () => {
    const list = await rows(page);
    return list.some((row) => row.startsWith('Pod web') && row.includes(' deleted ')) && list;
  });
  await shot(page, 'changes-all');
  assert.ok(all.some((row) => row.includes('deletion grace period 30 s → 0 s')), 'of a Pod whose containers have ended');
  for (const row of all) assert.doesNotMatch(row, /· *$/);
  const undescribed = page.locator('.changes-list .pick:not(:has(.type)):has(.summary:empty)');
  assert.deepEqual(await undescribed.allInnerTexts(), []);
  clean(page);
  await page.close();
});

test('the filter applies to all changes, and to their numbers', async () => {
  const [ns, other] = [await namespace('changes-few'), await namespace('changes-many')];
  const service = (namespace, i) => ({ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: `svc-${i}` }, spec: { clusterIP: 'None', ports: [{ port: 80 }] } });
  await apply(service(ns, 0));
  // More than a page of newer changes.
  await apply(...Array.from({ length: 120 }, (_, i) => service(other, i)));
  const page = await openBoard(browser, gateway, { side: 'changes', q: `ns:${ns} svc` });
  await page.getByRole('combobox', { name: 'Range' }).selectOption('3600');
  const chips = page.getByRole('group', { name: 'Filter by resource' }).getByRole('button');
  await until('the only change', async () => {
    assert.deepEqual(await rows(page), [`Service svc-0 created | ${ns} · by kubectl-client-side-apply`]);
    assert.deepEqual(await chips.allInnerTexts(), ['services 1']);
    return true;
  });
  assert.equal(await page.getByRole('button', { name: 'older' }).count(), 0);
  await page.getByRole('searchbox', { name: 'Filter' }).fill(`ns:${other} svc -svc-1`);
  await until('those of the other namespace', async () => {
    const list = await rows(page);
    return list.length > 0 && list.every((row) => row.includes(other)) && !list.some((row) => row.startsWith('Service svc-1'));
  });
  await page.getByRole('searchbox', { name: 'Filter' }).fill('svc nothing-has-this-name');
  await until('that there is none', async () => (await page.locator('.changes').innerText()).includes('No changes match svc nothing-has-this-name in the last 2 h. Status updates are not listed. Look at all that is recorded.'));
  await shot(page, 'changes-none');
  clean(page);
  await page.close();
});

test('status updates are listed on request', async () => {
  const ns = await namespace('changes-status');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=1');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  const page = await openBoard(browser, gateway, { side: 'changes', q: `ns:${ns}` });
  await page.getByRole('combobox', { name: 'Range' }).selectOption('3600');
  const ready = /^Pod web-\S+ \| .*Ready/;
  await until('the Pod', async () => (await rows(page)).some((row) => row.startsWith('Pod web-') && row.includes(' created ')));
  assert.deepEqual((await rows(page)).filter((row) => ready.test(row)), []);
  await shot(page, 'changes-spec');
  await page.getByRole('button', { name: 'status updates' }).click();
  await until('its status', async () => (await rows(page)).some((row) => ready.test(row)));
  await shot(page, 'changes-status');
  await until('the URL', () => new URL(page.url()).searchParams.get('status') === 'shown');
  const other = await openBoard(browser, gateway, new URL(page.url()).searchParams);
  assert.equal(await other.getByRole('button', { name: 'status updates' }).getAttribute('aria-pressed'), 'true');
  for (const one of [page, other]) {
    clean(one);
    await one.close();
  }
});

test('what was deleted is found by its name', async () => {
  const ns = await namespace('changes-deleted');
  for (const name of ['kept', 'lost']) await kubectl('-n', ns, 'create', 'service', 'clusterip', name, '--tcp=80');
  await kubectl('-n', ns, 'delete', 'service', 'lost');
  const page = await openBoard(browser, gateway, { side: 'changes', q: `ns:${ns}` });
  await page.getByRole('button', { name: 'only deleted' }).focus();
  await page.keyboard.press('Enter');
  await until('the deletion', async () => {
    assert.deepEqual((await rows(page)).filter((row) => row.startsWith('Service')), [`Service lost deleted | ${ns}`]);
    return true;
  });
  await shot(page, 'changes-deleted');
  await page.getByRole('searchbox', { name: 'Filter' }).fill(`ns:${ns} kept`);
  assert.equal(await page.getByRole('combobox', { name: 'Range' }).inputValue(), '0', 'deletions are looked for in everything recorded');
  await until('no other', async () => (await page.locator('.changes').innerText()).includes(`No deletions match ns:${ns} kept in all that is recorded.`));
  clean(page);
  await page.close();
});
