// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The board follows a Deployment, and the state of the page survives a reload.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { gateway, kubectl, namespace, until } from './cluster.mjs';
import { blockOf, clickOn, colour, openBoard, painted, rowNames, settled, stepBack } from './page.mjs';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

test('scaling a Deployment changes the blocks, the table and the announced counts', async () => {
  const ns = await namespace('scaled');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  const page = await openBoard(browser, gateway);
  const table = await openBoard(browser, gateway, { view: 'table', q: `ns:${ns}` });
  const ready = await colour(page, '--ready');

  /** Waits until all views have this number of Pods. The result is the positions of their blocks. */
  const shows = async (count) => {
    const names = Object.keys(await settled(page, ns, count)).sort();
    await until('the same in the table', async () => {
      assert.deepEqual((await rowNames(table)).sort(), names);
      return true;
    });
    const blocks = {};
    for (const name of names) {
      await until(`a block of ${name}`, async () => {
        blocks[name] = await blockOf(page, ns, name); // the layout may still be that of a Pod without a Node
        const share = await painted(page, blocks[name], ready); // a large block has little of its colour: 9 %, if it is 128 pixels wide
        assert.ok(share > 0.05, `${share} of it is painted at ${JSON.stringify(blocks[name])}`);
        return true;
      });
    }
    return blocks;
  };

  const three = await shows(3);
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=6');
  const six = await shows(6);
  for (const name of Object.keys(three)) assert.deepEqual(six[name], three[name], `${name} has kept its position`);
  await shot(page, 'scaled-up');

  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=2');
  const two = await shows(2);
  for (const [name, block] of Object.entries(six)) {
    if (two[name]) assert.deepEqual(two[name], block, `${name} has kept its position`);
    else await until(`an empty slot where ${name} was`, async () => (await painted(page, block, ready)) < 0.01);
  }
  await until('the count for screen readers', async () => {
    const total = await page.evaluate(() => window.watchkeeper.cluster.pods);
    const said = await page.locator('[aria-live=polite]').innerText();
    assert.ok(said.includes(`3 nodes, ${total} pods`), `“${said}” has not ${total} pods`);
    return true;
  });
  await until('the counts in the top bar', async () => {
    const counts = await page.evaluate(() => [...window.watchkeeper.cluster.shownCounts()]);
    const shown = await page.locator('.legend button').evaluateAll((all) => all.map((one) => parseInt(one.innerText.replace(/\D/g, ''), 10)));
    // By urgency: failing, unknown, unready, pending, terminating, ready, succeeded.
    assert.deepEqual(shown, [4, 7, 2, 3, 6, 1, 5].map((state) => counts[state]));
    const { nodes, pods } = await page.evaluate(({ watchkeeper: { cluster } } = window) => ({ nodes: cluster.nodes.size, pods: cluster.pods }));
    assert.equal(await page.locator('.legend .total').innerText(), `${nodes} nodes · ${pods} pods`);
    return counts[1] > 0;
  });
  for (const each of [page, table]) {
    clean(each);
    await each.close();
  }
});

test('filter, selection and moment survive a reload', async () => {
  const ns = await namespace('kept');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=2');
  const page = await openBoard(browser, gateway);
  const [name] = Object.keys(await settled(page, ns, 2));
  const matching = () => page.evaluate(() => window.watchkeeper.engine.matching());
  await page.getByRole('searchbox', { name: 'Filter' }).fill(`ns:${ns} app=web`);
  await until('the matching Pods', async () => (await matching()) === 2);
  const click = () => clickOn(page, ns, name);
  await click();
  await page.getByRole('tab', { name: 'YAML' }).click();
  await page.keyboard.press('Escape'); // it closes the panel, and a click opens it with the same tab
  await until('no panel', async () => (await page.locator('.panel').count()) === 0);
  await click();
  await page.getByLabel('Nodes by').selectOption('age');

  const same = async () => {
    assert.equal(await page.getByLabel('Nodes by').inputValue(), 'age');
    assert.equal(await page.evaluate(() => window.watchkeeper.engine.arrangement.nodes), 'age');
    await until('the matching Pods', async () => (await matching()) === 2);
    assert.equal(await page.getByRole('searchbox', { name: 'Filter' }).inputValue(), `ns:${ns} app=web`);
    assert.equal(await page.locator('.panel h2').innerText(), name);
    assert.equal(await page.getByRole('tab', { selected: true }).innerText(), 'YAML');
    await until('its YAML', async () => (await page.locator('.yaml').innerText()).includes(`name: ${name}`));
    await until('the ring around it', async () => (await page.evaluate(() => window.watchkeeper.cluster.names[window.watchkeeper.board.marks.selected])) === name);
  };
  await same();
  await page.reload();
  await until('the board', () => page.evaluate(() => window.watchkeeper?.cluster.synced));
  await same();

  // The last change: one of these Pods has become ready.
  await page.getByRole('slider', { name: 'Moment' }).focus();
  await stepBack(page, 'ArrowLeft');
  const { search } = new URL(page.url());
  assert.match(search, /at=\d{4}-/);
  const moment = await page.locator('.moment b').innerText();
  await page.reload();
  await until('the past', async () => (await page.locator('.connection').innerText()).trim() === 'the past');
  assert.equal(new URL(page.url()).search, search);
  assert.equal(await page.locator('.moment b').innerText(), moment);
  assert.equal(await page.getByRole('searchbox', { name: 'Filter' }).inputValue(), `ns:${ns} app=web`);
  clean(page);
  await page.close();
});
