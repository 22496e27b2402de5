// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page in Firefox, on a phone, in a narrow window and on large screens: the board is
// live, a Pod's panel opens, the filter filters, and the strip leads to the past and back.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchFirefox } from './bidi.mjs';
import { clean } from './browser.mjs';
import { gateway, namespace, proxy, until } from './cluster.mjs';
import { blockOf, shownPods } from './page.mjs';
import { decode } from './png.mjs';
import { boardPart, overflowing, smallTargets } from './targets.mjs';

const SIZES = { '390x844': [390, 844], '700x900': [700, 900], '1440x900': [1440, 900], '2560x1440': [2560, 1440] };

let firefox;
let ns;
let began; // after the first Pod was created

before(async () => {
  firefox = await launchFirefox();
  ns = await namespace('firefox');
  await create('first');
  began = Date.now();
});

after(() => firefox?.close());

/** Creates a Pod. */
async function create(name) {
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [{ name: 'c', image: 'nginx' }] } });
  const response = await fetch(`${proxy}/api/v1/namespaces/${ns}/pods`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  assert.equal(response.status, 201, await response.text());
}

const connection = (page) => page.text('.connection');
const query = async (page, name) => new URLSearchParams(await page.evaluate('location.search')).get(name);
const names = async (page) => Object.keys(await shownPods(page, ns));

/** Opens the page without a panel, and waits for the first Pod and the counts of the strip. */
async function opened([width, height]) {
  const page = await firefox.open(`${gateway}/ui/?needs=hidden`, { width, height });
  await until('the first Pod', async () => (await page.evaluate('!!window.watchkeeper?.cluster.synced')) && (await names(page)).includes('first'));
  await until('a live page', async () => (await connection(page)) === 'live');
  await until('the counts of the strip', () => page.evaluate(`document.querySelector('.plot')?.getAttribute('aria-busy') === 'false'`));
  return page;
}

/** Fails if something is wider than the window, or if the picture of the page is empty. */
async function looks(page, name) {
  assert.deepEqual((await page.evaluate(overflowing)).out, []);
  const { data } = decode(await page.shot(`firefox-${name}`));
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
  assert.ok(colours.size > 20, `${name} has ${colours.size} colours`);
}

for (const [name, size] of Object.entries(SIZES)) {
  const [width] = size;
  const narrow = width < 900;
  test(`${name}: live, a panel, the filter, the past and back`, async () => {
    const page = await opened(size);
    const press = async (at) => (narrow ? page.fingers.tap(typeof at === 'string' ? await page.middle(at) : at) : page.click(at));
    assert.equal(await page.evaluate('innerWidth'), width);
    assert.ok((await page.evaluate(boardPart)) > 0.7);
    await looks(page, name);

    // Live.
    const before = await page.evaluate('Date.now()');
    const pod = `pod-${name}`;
    await create(pod);
    // Until it has a Node, its block moves.
    await until('the new Pod', async () => (await shownPods(page, ns))[pod]?.status === 'Running');

    // Its panel.
    await press(await blockOf(page, ns, pod));
    await until('its panel', async () => (await page.text('.panel h2')) === pod && (await page.text('.containers')) !== '');
    assert.equal(await query(page, 'sel'), `pod/${ns}/${pod}`);
    await looks(page, `${name}-panel`);
    const [panel, stage, strip] = [await page.box('.panel'), await page.box('.stage'), await page.box('.plot')];
    if (narrow) {
      assert.equal(panel.width, width);
      assert.ok(panel.top >= stage.bottom && panel.bottom <= strip.top + 1);
      assert.equal(strip.width, width);
      const { small, checked } = await page.evaluate(smallTargets);
      assert.ok(checked > 20, `${checked} targets`);
      assert.deepEqual(small, []);
    } else assert.ok(panel.left >= stage.right);
    assert.ok((await page.evaluate(boardPart)) > 0.35);
    await press('.panel [aria-label="Close"]');
    await until('no panel', async () => (await query(page, 'sel')) === null);

    // The filter.
    if (narrow) await press('.search .key');
    else await page.type('/');
    await until('the field', () => page.evaluate(`document.activeElement.id === 'filter'`));
    await page.type(`ns:${ns} ${pod}`);
    await until('one Pod', async () => /^1 of /.test(await page.text('.search .count')));
    await looks(page, `${name}-filter`);
    await page.type('Escape');
    if (narrow) await until('the key', async () => (await page.box('.search .field')).width <= 1);
    assert.equal(await query(page, 'q'), `ns:${ns} ${pod}`);

    // The past: before the Pod was created.
    await page.evaluate(`document.querySelector('.plot').focus()`);
    const span = () => page.evaluate(`1000 * document.querySelector('.plot').ariaValueMax`);
    await until('less time on the strip', async () => {
      if ((await span()) <= 60_000) return true;
      await page.type('+');
      return false;
    });
    const hand = narrow ? { press: (from, to) => page.fingers.press([from], [to]), move: (from, to) => page.fingers.move([from], [to]), up: page.fingers.up } : { ...page.mouse, move: (_, to) => page.mouse.move(to) };
    const y = (strip.top + strip.bottom) / 2;
    let at = { x: strip.right - 40, y };
    await hand.press({ x: strip.right - 4, y }, at);
    // In the middle of a time of at most four seconds.
    const wanted = (Math.max(began, before - 4000) + before) / 2;
    await until('the Pods before', async () => {
      const shown = Date.parse((await query(page, 'at')) ?? '') || (await page.evaluate('Date.now()'));
      // Corrects the position by what the page shows.
      if (Math.abs(shown - wanted) > (before - wanted) / 2) {
        const to = { ...at, x: at.x - ((shown - wanted) * strip.width) / (await span()) };
        await hand.move(at, to);
        at = to;
      }
      const there = await names(page);
      assert.ok(there.includes('first') && !there.includes(pod), `${there} at ${shown - before} ms`);
      return (await connection(page)) === 'the past';
    });
    await hand.up();
    await looks(page, `${name}-past`);
    await press('.transport > .now');
    await until('now', async () => (await connection(page)) === 'live' && (await names(page)).includes(pod) && (await query(page, 'at')) === null);
    clean(page);
    await page.close();
  });
}

test('fingers on the board and on the strip', async () => {
  const page = await opened(SIZES['390x844']);
  const { fingers } = page;
  const camera = () => page.evaluate('(({ scale, x, y }) => ({ scale, x, y }))(window.watchkeeper.board.camera)');
  const board = await page.box('.board');
  const centre = await page.middle('.board');
  const under = async ({ x, y }) => {
    const { scale, ...at } = await camera();
    return { x: (x - board.x) / scale + at.x, y: (y - board.y) / scale + at.y };
  };
  const near = (a, b, off) => Math.hypot(a.x - b.x, a.y - b.y) <= off;

  const before = await camera();
  const grabbed = await under(centre);
  await fingers.drag([centre], [{ x: centre.x + 60, y: centre.y - 40 }]);
  assert.ok(near(await under({ x: centre.x + 60, y: centre.y - 40 }), grabbed, 20 / before.scale), 'what the finger grabbed is below it');
  const held = await under(centre);
  const around = (by) => [{ x: centre.x - by, y: centre.y }, { x: centre.x + by, y: centre.y }];
  await fingers.drag(around(30), around(75));
  const { scale } = await camera();
  assert.ok(Math.abs(scale / before.scale - 2.5) < 0.1, `${scale / before.scale} times as large`);
  assert.ok(near(await under(centre), held, 4 / scale), 'the point between the fingers stays');
  assert.equal(await query(page, 'sel'), null, 'nothing is selected');

  const strip = await page.box('.plot');
  const at = (part) => ({ x: strip.x + strip.width * part, y: strip.y + strip.height / 2 });
  const span = () => page.evaluate(`+document.querySelector('.plot').ariaValueMax`);
  const long = await span();
  await fingers.drag([at(0.7), at(0.9)], [at(0.55), at(0.95)]);
  await until('half the time', async () => Math.abs((await span()) / long - 0.5) < 0.03);
  const pressed = Date.now();
  await fingers.down(at(0.5));
  await until('the words of a long press', async () => /drag to select/.test(await page.text('.hint')));
  await fingers.move([at(0.5)], [at(0.8)]);
  await until('the range', async () => /release to list/.test(await page.text('.hint')));
  await page.shot('firefox-range');
  await fingers.up();
  await until('its changes', async () => (await page.text('.changes')) !== '');
  const [from, to] = (await until('the URL of the range', () => query(page, 'range'))).split('/').map((time) => Date.parse(time) / 1000);
  const [shown, went] = [await span(), (Date.now() - pressed) / 1000]; // the strip moves on below a finger that is held
  assert.ok(to - from > 0.27 * shown && to - from < 0.33 * shown + went, `the range has ${to - from} of ${shown} s, ${went} s after the press`);
  assert.equal(await query(page, 'at'), null);
  assert.deepEqual(await page.evaluate('[visualViewport.scale, scrollX, scrollY]'), [1, 0, 0], 'the browser neither scrolls nor zooms');

  // A tap selects a Pod, also where the handle of the sheet appears.
  await page.evaluate(`document.querySelector('.handle [aria-label="Close the panel"]').click()`);
  await until('the whole board', async () => (await page.box('.stage')).height > 600);
  const where = { x: 195, y: (strip.y + 48) / 2 + 20 };
  const block = await blockOf(page, ns, 'first');
  await page.evaluate(([dx, dy]) => {
    window.watchkeeper.board.camera.pan(dx, dy);
    window.watchkeeper.board.steered();
  }, [where.x - block.x, where.y - block.y]);
  await fingers.tap(where);
  await until('its panel', async () => (await page.text('.containers')) !== '');
  assert.equal(await page.evaluate(`document.querySelector('.grip').ariaExpanded`), 'false');

  // The sheet's handle.
  const { height } = await page.box('.sheet');
  const grip = await page.middle('.grip');
  await fingers.drag([grip], [{ x: grip.x, y: grip.y - 100 }]);
  await until('the full height', async () => (await page.box('.sheet')).height > 1.9 * height);
  clean(page);
  await page.close();
});
