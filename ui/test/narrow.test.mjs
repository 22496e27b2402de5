// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page on a phone, in a narrow window and on large screens: what fits where, and
// whether a finger can press it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch, shot } from './browser.mjs';
import { gateway, until } from './cluster.mjs';
import { connection, goTo } from './page.mjs';
import { box, fill, filled, openFilled, PHONE, stage, strip } from './phone.mjs';
import { boardPart, overflowing, smallTargets } from './targets.mjs';

/**
 * The least part of the board that is left by an open panel, and where the panel and the
 * buttons of the strip are. A low window, such as that of a phone on its side, has the panel
 * at the side.
 */
const SIZES = {
  '390x844': { width: 390, height: 844, left: 0.35, panelBelow: true, buttonsBelow: true },
  '700x900': { width: 700, height: 900, left: 0.4, panelBelow: true, buttonsBelow: true },
  '844x390': { width: 844, height: 390, left: 0.4, panelBelow: false, buttonsBelow: true },
  '1440x900': { width: 1440, height: 900, left: 0.65, panelBelow: false, buttonsBelow: false },
  '2560x1440': { width: 2560, height: 1440, left: 0.8, panelBelow: false, buttonsBelow: false },
};

let browser;
let cluster;

before(async () => {
  browser = await launch();
  cluster = await fill('narrow');
});

after(() => browser?.close());

const opened = (query, options) => openFilled(browser, cluster, query, options);

for (const [name, { left, panelBelow, buttonsBelow, ...size }] of Object.entries(SIZES)) {
  test(`${name}: the board is visible beside the panel, and nothing is wider than the window`, async () => {
    const page = await opened({ needs: 'hidden' }, size);
    const fits = async (what) => {
      const { out, checked } = await page.evaluate(overflowing);
      assert.ok(checked > 50, `${checked} elements`);
      assert.deepEqual(out, [], what);
    };
    await fits('without a panel');
    const all = await page.evaluate(boardPart);
    assert.ok(all > 0.7, `without a panel the board has ${all}`);
    await shot(page, `narrow-${name}`);

    await goTo(page, gateway, { sel: cluster.sel });
    await filled(page, cluster);
    await until('its containers', async () => (await page.locator('.containers li').count()) > 0);
    await fits('with a panel');
    const part = await page.evaluate(boardPart);
    assert.ok(part >= left, `beside a panel the board has ${part}`);
    const panel = await box(page, '.panel');
    const [board, line, transport] = await Promise.all([stage(page), strip(page), box(page, '.transport')]);
    if (panelBelow) {
      assert.equal(panel.width, size.width);
      assert.ok(panel.y >= board.y + board.height, 'the panel is below the board');
    } else assert.ok(panel.x >= board.x + board.width, 'the panel is beside the board');
    assert.ok(panel.y + panel.height <= line.y + 1, 'the panel is above the strip');
    if (buttonsBelow) {
      assert.equal(line.width, size.width);
      assert.ok(transport.y >= line.y + line.height, 'the buttons are below the strip');
    } else {
      assert.ok(line.width > size.width / 2, `the strip is ${line.width} wide`);
      assert.ok(transport.x >= line.x + line.width, 'the buttons are beside the strip');
    }
    await shot(page, `narrow-${name}-panel`);
    clean(page);
    await page.close();
  });
}

/** Everything that can be pressed: the query, and how to open it. */
const PLACES = {
  'what needs attention': [{}, (page) => until('an entry', async () => (await page.locator('.needs li').count()) > 0)],
  'a Pod': [{ tab: 'overview' }, (page) => until('its containers', async () => (await page.locator('.containers li').count()) > 0 && (await page.locator('.crumbs').count()) > 0)],
  'its story': [{ tab: 'story' }, (page) => until('episodes', async () => (await page.locator('.episode').count()) > 0)],
  'its YAML': [{ tab: 'yaml' }, (page) => until('its YAML', async () => (await page.locator('.yaml').count()) > 0)],
  'its log': [{ tab: 'logs' }, (page) => until('its log', async () => (await page.locator('.log').count()) > 0)],
  'its versions': [{ tab: 'versions' }, async (page) => {
    await until('versions', async () => (await page.locator('.panel .changes-list .compare').count()) > 1);
    for (const version of await page.locator('.panel .changes-list .compare').elementHandles().then((all) => all.slice(0, 2))) await version.click();
    await until('their difference', async () => (await page.locator('.comparison .diff').count()) === 1);
  }],
  'a Node': [{ sel: 'node/node-0' }, (page) => until('its shares', async () => (await page.locator('meter').count()) > 0)],
  changes: [{ side: 'changes', reach: 'all' }, async (page) => {
    await page.getByRole('button', { name: 'status updates' }).click();
    await until('changes', async () => (await page.locator('.changes-list .pick').count()) > 0);
    await page.getByRole('button', { name: 'export', exact: true }).click();
    await until('the export', async () => (await page.locator('.export').count()) === 1);
  }],
  'a table': [{ view: 'table', needs: 'hidden' }, (page) => until('rows', async () => (await page.locator('.line').count()) > 0)],
  'a table of a kind': [{ view: 'table', kind: 'pods', needs: 'hidden' }, (page) => until('rows', async () => (await page.locator('.table.kinds .line').count()) > 0)],
  'the opener': [{}, async (page) => {
    await page.getByRole('button', { name: 'Kinds…' }).click();
    await page.locator('.opener [role="option"]').first().waitFor();
  }],
  'the filter': [{ q: 'stat:ready' }, async (page) => {
    await page.keyboard.press('/');
    await until('the suggestion', () => page.locator('.search .problem').isVisible());
  }],
  'a moment': [{ at: 'past' }, (page) => until('the past', async () => (await connection(page)) === 'the past')],
  'going to a moment': [{}, (page) => page.getByRole('button', { name: 'Go to a moment' }).click()],
  help: [{}, async (page) => {
    await page.getByRole('button', { name: 'Help', exact: true }).click();
    await until('the help', () => page.getByRole('dialog', { name: 'Help' }).isVisible());
  }],
};

for (const [name, size] of Object.entries({ '390x844': PHONE, '700x900': SIZES['700x900'], '1440x900 with a finger': { ...SIZES['1440x900'], hasTouch: true } })) {
  test(`${name}: what can be pressed has at least 44 × 44 pixels`, async () => {
    const page = await opened({}, { width: size.width, height: size.height, hasTouch: size.hasTouch ?? false, isMobile: size.isMobile ?? false });
    const wrong = [];
    for (const [place, [{ tab, at, ...query }, come]] of Object.entries(PLACES)) {
      await goTo(page, gateway, { ...query, ...(tab && { tab, sel: cluster.sel }), ...(at && { at: new Date(Date.now() - 1500).toISOString() }) });
      await filled(page, cluster);
      await come(page);
      const { small, checked } = await page.evaluate(smallTargets);
      assert.ok(checked > 0, place);
      const { out } = await page.evaluate(overflowing);
      wrong.push(...[...small, ...out].map((what) => `${place}: ${what}`));
    }
    assert.deepEqual(wrong, []);
    clean(page);
    await page.close();
  });
}

test('on a phone, axe finds nothing', async () => {
  const page = await opened({}, PHONE);
  const look = async (what) => assert.deepEqual(await violations(page), { dark: [], light: [] }, what);
  await look('what needs attention');
  await page.getByRole('button', { name: 'Filter', exact: true }).tap();
  await page.keyboard.type('stat:ready');
  await until('the suggestion', () => page.locator('.search .problem').isVisible());
  await look('the filter');
  await goTo(page, gateway, { sel: cluster.sel });
  await until('its containers', async () => (await page.locator('.containers li').count()) > 0);
  await look('a Pod');
  await goTo(page, gateway, { view: 'table', kind: 'deployments.apps', needs: 'hidden' });
  await until('rows', async () => (await page.locator('.table.kinds .line').count()) > 0);
  const boxes = await page.locator('.table.kinds .line').evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).sort((a, b) => a.top - b.top).map(({ top, bottom }) => [Math.round(top), Math.round(bottom)]));
  for (const [i, [top]] of boxes.entries()) assert.ok(i === 0 || top >= boxes[i - 1][1], `rows overlap: ${boxes}`);
  await shot(page, 'narrow-kinds');
  await look('a table of a kind');
  await goTo(page, gateway, { sel: cluster.sel });
  await until('its containers', async () => (await page.locator('.containers li').count()) > 0);
  await page.locator('.legend > button').tap();
  await look('the counts');
  await goTo(page, gateway, { side: 'changes', reach: 'all', at: new Date(Date.now() - 1500).toISOString() });
  await until('the past', async () => (await connection(page)) === 'the past');
  await page.getByRole('button', { name: 'status updates' }).tap();
  await until('changes', async () => (await page.locator('.changes-list .pick').count()) > 0);
  await look('changes');
  await page.emulateMedia({ colorScheme: 'light' });
  await shot(page, 'narrow-changes-light');
  clean(page);
  await page.close();
});
