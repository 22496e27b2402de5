// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page on a phone, in a narrow window and on large screens: what fits where, and
// fingers on the board and on the strip.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch, shot } from './browser.mjs';
import { apply, gateway, kubectl, namespace, until } from './cluster.mjs';
import { blockOf, connection, goTo, openBoard, shownPods } from './page.mjs';
import { boardPart, overflowing, smallTargets } from './targets.mjs';
import { fingersOf } from './touch.mjs';

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
const PHONE = { width: 390, height: 844, hasTouch: true, isMobile: true };

let browser;
let ns;
let pods;

before(async () => {
  browser = await launch();
  ns = await namespace('narrow');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  await apply({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: ns, name: 'stuck' }, spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'c', image: 'nginx' }] } });
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  pods = (await kubectl('-n', ns, 'get', 'pods', '-l', 'app=web', '-o', 'name')).trim().split('\n').map((name) => name.replace('pod/', ''));
});

after(() => browser?.close());

/** Opens the page, and waits for the Pods and the strip. */
async function opened(query, options) {
  const page = await openBoard(browser, gateway, query, options);
  await ready(page);
  return page;
}

async function ready(page) {
  await until('the Pods', async () => Object.keys(await shownPods(page, ns)).length === 4);
  await until('the counts of the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
}

const box = (page, selector) => page.locator(selector).boundingBox();
const strip = (page) => box(page, '.plot');
const stage = (page) => box(page, '.stage');
const picked = (page) => page.evaluate(() => new URLSearchParams(location.search).get('sel'));
const camera = (page) => page.evaluate(() => (({ scale, x, y }) => ({ scale, x, y }))(window.watchkeeper.board.camera));
const middleOf = ({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 });

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

    await goTo(page, gateway, { sel: `pod/${ns}/${pods[0]}` });
    await ready(page);
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
  changes: [{ side: 'changes' }, async (page) => {
    await page.getByRole('button', { name: 'status updates' }).click();
    await until('changes', async () => (await page.locator('.changes-list .pick').count()) > 0);
    await page.getByRole('button', { name: 'export', exact: true }).click();
    await until('the export', async () => (await page.locator('.export').count()) === 1);
  }],
  'a table': [{ view: 'table', needs: 'hidden' }, (page) => until('rows', async () => (await page.locator('.line').count()) > 0)],
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
      await goTo(page, gateway, { ...query, ...(tab && { tab, sel: `pod/${ns}/${pods[0]}` }), ...(at && { at: new Date(Date.now() - 1500).toISOString() }) });
      await until('the Pods', async () => Object.keys(await shownPods(page, ns)).length === 4);
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

test('the sheet has three heights, for fingers and keys', async () => {
  const page = await opened({}, PHONE);
  const fingers = await fingersOf(page);
  const grip = page.getByRole('button', { name: 'Full height' });
  const room = (await strip(page)).y - 48;
  const sheetIs = (part) => until(`the sheet at ${part}`, async () => {
    const sheet = part ? (await box(page, '.sheet')).height : (await page.locator('.sheet > *').count());
    const board = (await stage(page)).height;
    assert.ok(Math.abs(sheet / room - part) < 0.01 && Math.abs(board / room - (1 - part)) < 0.01, `the sheet has ${sheet}, the board ${board} of ${room}`);
    return true;
  });
  const edge = async () => {
    const { x, y } = middleOf(await grip.boundingBox());
    return { x, y };
  };
  const dragBy = async (by) => {
    const from = await edge();
    await fingers.drag([from], [{ x: from.x, y: from.y + by }]);
  };
  await sheetIs(0.5);
  await fingers.tap(await edge());
  await sheetIs(1);
  assert.equal(await grip.getAttribute('aria-expanded'), 'true');
  await fingers.tap(await edge());
  await sheetIs(0.5);
  await dragBy(-100);
  await sheetIs(1);
  await dragBy(100);
  await sheetIs(0.5);
  await dragBy(20);
  await sheetIs(0.5);
  // It follows the finger, and the board waits.
  const from = await edge();
  await fingers.down(from);
  await fingers.move([from], [{ x: from.x, y: from.y + 90 }]);
  await until('a lower sheet', async () => Math.abs((await box(page, '.sheet')).height - (room / 2 - 90)) < 2);
  assert.ok(Math.abs((await stage(page)).height - room / 2) < 2);
  await shot(page, 'narrow-sheet-dragged');
  await fingers.up();
  await sheetIs(0);

  await page.getByRole('button', { name: 'Needs attention' }).tap();
  await sheetIs(0.5);
  await grip.focus();
  for (const [key, part] of [['ArrowUp', 1], ['ArrowDown', 0.5], ['Enter', 1], ['Enter', 0.5], ['ArrowDown', 0]]) {
    await page.keyboard.press(key);
    await sheetIs(part);
  }
  assert.equal(await page.evaluate(() => document.activeElement.className), 'board', 'the focus goes to the board');
  await page.getByRole('button', { name: 'Needs attention' }).tap();
  await sheetIs(0.5);
  await page.getByRole('button', { name: 'Close the panel' }).tap();
  await sheetIs(0);
  // The next one is half as high again.
  const block = await blockOf(page, ns, pods[0]);
  await fingers.tap(block);
  await until('the panel', async () => (await page.locator('.panel').count()) === 1);
  await sheetIs(0.5);
  clean(page);
  await page.close();
});

test('the filter folds into its key', async () => {
  const page = await opened({ needs: 'hidden' }, PHONE);
  const field = page.getByRole('searchbox', { name: 'Filter' });
  const key = page.getByRole('button', { name: 'Filter', exact: true });
  const folded = async () => (await box(page, '.search .field')).width <= 1;
  assert.ok(await folded());
  await shot(page, 'narrow-filter-folded');
  await key.tap();
  await until('the field', async () => !(await folded()));
  assert.ok((await field.boundingBox()).width > 300);
  await page.keyboard.type(`ns:${ns} stuck`);
  await until('the count', async () => /^1 of /.test(await page.locator('.search .count').innerText()));
  await shot(page, 'narrow-filter');
  for (const leave of ['Escape', 'Enter']) {
    await page.keyboard.press(leave);
    await until('its key', folded);
    assert.equal(await page.evaluate(() => document.activeElement.className), 'board');
    assert.equal(await field.inputValue(), `ns:${ns} stuck`, 'the filter stays in effect');
    assert.match(await key.getAttribute('title'), /stuck/);
    await page.keyboard.press('/');
    await until('the field', async () => !(await folded()));
  }
  // With a filter the field stays while the board is used.
  await page.locator('.stage').tap({ position: { x: 20, y: 200 } });
  assert.ok(!(await folded()));
  await page.getByRole('button', { name: 'Clear the filter' }).tap();
  await until('its key', folded);
  assert.equal(await field.inputValue(), '');
  assert.ok(await key.evaluate((button) => button === document.activeElement), 'the focus is on the key');
  await key.tap();
  await until('the field', async () => !(await folded()));
  await page.getByRole('slider', { name: 'Moment' }).focus();
  await until('its key', folded);
  clean(page);
  await page.close();
});

test('the counts fold into one button', async () => {
  const page = await opened({ needs: 'hidden' }, PHONE);
  const counts = await page.evaluate(() => window.watchkeeper.cluster.counts[1]);
  const button = page.locator('.legend > button');
  await until('what is ready', async () => (await button.textContent()).includes(`${counts} ready`));
  await button.tap();
  const all = page.getByRole('dialog', { name: 'Pods by state' });
  await until('all counts', () => all.isVisible());
  assert.equal(await all.getByRole('button').count(), 7);
  const { small, checked } = await page.evaluate(smallTargets);
  assert.equal(checked, 7);
  assert.deepEqual(small, []);
  await shot(page, 'narrow-counts');
  await all.getByRole('button', { name: 'pending' }).tap();
  await until('the filter', () => new URL(page.url()).searchParams.get('q') === 'state:pending');
  assert.ok(!(await all.isVisible()));
  clean(page);
  await page.close();
});

test('fingers on the board move it, zoom it between them, and select', async () => {
  const page = await opened({ needs: 'hidden' }, PHONE);
  const fingers = await fingersOf(page);
  const board = await box(page, '.board');
  const centre = middleOf(board);
  // What is at a point of the window.
  const under = async ({ x, y }) => {
    const { scale, ...at } = await camera(page);
    return { x: (x - board.x) / scale + at.x, y: (y - board.y) / scale + at.y };
  };
  const near = (a, b, off) => Math.hypot(a.x - b.x, a.y - b.y) <= off;

  const before = await camera(page);
  const grabbed = await under(centre);
  const to = { x: centre.x + 60, y: centre.y - 40 };
  await fingers.drag([centre], [to]);
  const after = await camera(page);
  assert.equal(after.scale, before.scale);
  assert.ok(near(await under(to), grabbed, 20 / after.scale), 'what the finger grabbed is below it');
  assert.ok(!near(await under(centre), grabbed, 40 / after.scale), 'the board has moved');
  assert.equal(await picked(page), null, 'a drag selects nothing');

  const middle = { x: centre.x - 30, y: centre.y + 50 };
  const held = await under(middle);
  const around = ({ x, y }, by) => [{ x: x - by, y: y - by / 2 }, { x: x + by, y: y + by / 2 }];
  await fingers.drag(around(middle, 30), around(middle, 75));
  const zoomed = await camera(page);
  assert.ok(Math.abs(zoomed.scale / after.scale - 2.5) < 0.1, `${zoomed.scale / after.scale} times as large`);
  assert.ok(near(await under(middle), held, 4 / zoomed.scale), 'the point between the fingers stays');
  await fingers.drag(around(middle, 75), around({ x: middle.x + 40, y: middle.y }, 30));
  assert.ok(Math.abs((await camera(page)).scale / after.scale - 1) < 0.1);
  assert.ok(near(await under({ x: middle.x + 40, y: middle.y }), held, 6 / after.scale), 'and follows them');
  assert.equal(await picked(page), null, 'two fingers select nothing');
  assert.deepEqual(await page.evaluate(() => [visualViewport.scale, visualViewport.offsetTop, scrollX, scrollY]), [1, 0, 0, 0], 'the browser neither scrolls nor zooms');

  await page.keyboard.press('0');
  await until('the whole board', async () => Math.abs((await camera(page)).scale - before.scale) < 1e-6);
  const block = await blockOf(page, ns, pods[1]);
  await fingers.tap(block);
  await until('the Pod', async () => (await picked(page)) === `pod/${ns}/${pods[1]}`);
  clean(page);
  await page.close();
});

test('fingers on the strip go to a moment, zoom the time range, and select a range', async () => {
  const page = await opened({ needs: 'hidden' }, PHONE);
  const fingers = await fingersOf(page);
  const line = await strip(page);
  const y = line.y + line.height / 2;
  const at = (part) => ({ x: line.x + line.width * part, y });
  const slider = page.getByRole('slider', { name: 'Moment' });
  const length = async () => Number(await slider.getAttribute('aria-valuemax'));
  const moment = () => Date.parse(new URL(page.url()).searchParams.get('at'));

  // Two fingers: twice the distance shows half the time.
  const long = await length();
  await fingers.drag([at(0.7), at(0.9)], [at(0.55), at(0.95)]);
  await until('half the time', async () => Math.abs((await length()) / long - 0.5) < 0.03);
  assert.equal(await connection(page), 'live', 'two fingers go to no moment');
  await fingers.drag([at(0.55), at(0.95)], [at(0.65), at(0.85)]);
  await until('all of it', async () => Math.abs((await length()) / long - 1) < 0.06);

  // A drag goes to a moment.
  await fingers.press([at(0.9)], [at(0.5)]);
  await until('the past', async () => (await connection(page)) === 'the past');
  await shot(page, 'narrow-scrubbing');
  const middle = moment();
  await fingers.move([at(0.5)], [at(0.4)]);
  await until('an earlier moment', () => moment() < middle);
  await fingers.up();
  assert.equal(await page.evaluate(() => new URLSearchParams(location.search).get('range')), null);
  await page.getByRole('button', { name: 'to now' }).tap();
  await until('now', async () => (await connection(page)) === 'live');
  // A tap does too.
  await fingers.tap(at(0.6));
  await until('the past', async () => (await connection(page)) === 'the past');
  await page.getByRole('button', { name: 'to now' }).tap();
  await until('now', async () => (await connection(page)) === 'live');

  // A long press, and then a drag, select a range.
  await fingers.down(at(0.5));
  await until('the words of a long press', async () => /drag to select/.test(await page.locator('.hint').innerText({ timeout: 1000 })));
  assert.equal(await connection(page), 'live', 'a long press goes to no moment');
  await fingers.move([at(0.5)], [at(0.8)]);
  await until('the range', async () => /release to list/.test(await page.locator('.hint').innerText()));
  await shot(page, 'narrow-range');
  await fingers.up();
  await until('its changes', async () => (await page.locator('.changes').count()) === 1);
  const [from, to] = new URL(page.url()).searchParams.get('range').split('/').map((time) => Date.parse(time) / 1000);
  const span = await length();
  assert.ok(Math.abs((to - from) / span - 0.3) < 0.03, `the range has ${to - from} of ${span} s`);
  assert.deepEqual(await page.evaluate(() => [visualViewport.scale, scrollX, scrollY]), [1, 0, 0]);
  clean(page);
  await page.close();
});

test('on a phone, axe finds nothing', async () => {
  const page = await opened({}, PHONE);
  const look = async (what) => assert.deepEqual(await violations(page), { dark: [], light: [] }, what);
  await look('what needs attention');
  await page.getByRole('button', { name: 'Filter', exact: true }).tap();
  await page.keyboard.type('stat:ready');
  await until('the suggestion', () => page.locator('.search .problem').isVisible());
  await look('the filter');
  await goTo(page, gateway, { sel: `pod/${ns}/${pods[0]}` });
  await until('its containers', async () => (await page.locator('.containers li').count()) > 0);
  await look('a Pod');
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
