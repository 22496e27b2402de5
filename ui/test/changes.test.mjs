// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The list of changes: each row says what happened to the object.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { gateway, kubectl, namespace, until } from './cluster.mjs';
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
      `Service ${name} | ${ns} · label tier=front added by kubectl-label`,
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
