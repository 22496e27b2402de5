// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Fingers on a phone: on the sheet, the folded filter and counts, the board and the strip.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { reads, until } from './cluster.mjs';
import { blockOf, connection } from './page.mjs';
import { box, fill, middleOf, openFilled, PHONE, stage, strip } from './phone.mjs';
import { smallTargets } from './targets.mjs';
import { fingersOf } from './touch.mjs';

let browser;
let cluster;

before(async () => {
  browser = await launch();
  cluster = await fill('fingers');
});

after(() => browser?.close());

const opened = (query, options) => openFilled(browser, cluster, query, options);
const picked = (page) => page.evaluate(() => new URLSearchParams(location.search).get('sel'));
const camera = (page) => page.evaluate(() => (({ scale, x, y }) => ({ scale, x, y }))(window.watchkeeper.board.camera));

test('the sheet has three heights, for fingers and keys', async () => {
  const page = await opened({}, PHONE);
  const fingers = await fingersOf(page);
  const grip = page.getByRole('button', { name: 'Full height' });
  const room = (await stage(page)).height + (await box(page, '.sheet')).height;
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
  // The next one is half as high again, also if its handle appears below the finger that taps.
  const block = await blockOf(page, cluster.ns, cluster.pods[0]);
  const { x, y } = { x: PHONE.width / 2, y: 48 + room / 2 + 20 };
  await page.evaluate(([dx, dy]) => {
    window.watchkeeper.board.camera.pan(dx, dy);
    window.watchkeeper.board.steered();
  }, [x - block.x, y - block.y]);
  await fingers.tap({ x, y });
  await until('the panel', async () => (await page.locator('.containers li').count()) === 1);
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
  await page.keyboard.type(`ns:${cluster.ns} stuck`);
  await reads('the count', page.locator('.search .count'), /^1 of /);
  await shot(page, 'narrow-filter');
  for (const leave of ['Escape', 'Enter']) {
    await page.keyboard.press(leave);
    await until('its key', folded);
    assert.equal(await page.evaluate(() => document.activeElement.className), 'board');
    assert.equal(await field.inputValue(), `ns:${cluster.ns} stuck`, 'the filter stays in effect');
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
  await until('the whole board', async () => {
    const now = await camera(page);
    return Math.abs(now.scale / before.scale - 1) < 1e-6 && near(now, before, 0.5 / before.scale);
  });
  const block = await blockOf(page, cluster.ns, cluster.pods[1]);
  await fingers.tap(block);
  await until('the Pod', async () => (await picked(page)) === `pod/${cluster.ns}/${cluster.pods[1]}`);
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
  assert.ok(!page.url().includes('at='), 'two fingers go to no moment');
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
  // A mouse: Chromium often makes no tap of a touch that follows such a fast movement.
  await page.getByRole('button', { name: 'to now' }).click();
  await until('now', async () => (await connection(page)) === 'live');
  // A tap does too.
  await fingers.tap(at(0.6));
  await until('the past', async () => (await connection(page)) === 'the past');
  await page.getByRole('button', { name: 'to now' }).click();
  await until('now', async () => (await connection(page)) === 'live');

  // A long press, and then a drag, select a range.
  const pressed = Date.now();
  await fingers.down(at(0.5));
  await until('the words of a long press', async () => /drag to select/.test(await page.locator('.hint').innerText({ timeout: 1000 })));
  assert.ok(!page.url().includes('at='), 'a long press goes to no moment');
  await fingers.move([at(0.5)], [at(0.8)]);
  await reads('the range', page.locator('.hint'), /release to list/);
  await shot(page, 'narrow-range');
  await fingers.up();
  await until('its changes', async () => (await page.locator('.changes').count()) === 1);
  const [from, to] = (await until('the URL of the range', () => new URL(page.url()).searchParams.get('range'))).split('/').map((time) => Date.parse(time) / 1000);
  const span = await length();
  const went = (Date.now() - pressed) / 1000; // the strip moves on below a finger that is held
  assert.ok(to - from > 0.27 * span && to - from < 0.33 * span + went, `the range has ${to - from} of ${span} s, ${went} s after the press`);
  assert.deepEqual(await page.evaluate(() => [visualViewport.scale, scrollX, scrollY]), [1, 0, 0]);
  clean(page);
  await page.close();
});
