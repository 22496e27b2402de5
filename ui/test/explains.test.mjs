// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page explains itself: typing errors in the filter, the marks of the strip, the
// time zone, and moments that are typed.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { clean, launch, open, shot } from './browser.mjs';
import { few, reads, startRecording, until } from './cluster.mjs';
import { connection, openBoard, shownPods } from './page.mjs';

let browser;
let recording;
let end; // of the recording, which is the page's now

before(async () => {
  browser = await launch();
  recording = await startRecording('demo/incident.wkr');
  end = Date.parse((await (await fetch(`${recording.url}/watchkeeper/v1/history`)).json()).now);
});

after(async () => {
  await browser?.close();
  await recording?.stop();
});

test('an unknown key of the filter', async () => {
  const page = await openBoard(browser, recording.url, { q: 'stat:ready' });
  const problem = page.locator('.search .problem');
  await until('words', async () => (await problem.innerText()) === 'no such filter key stat: did you mean state:?');
  assert.equal(await page.locator('.search .count').count(), 0, 'no count of matches');
  assert.equal(await page.evaluate(() => window.watchkeeper.engine.matches), null, 'it hides no Pod');
  await shot(page, 'filter-problem');
  await page.getByRole('button', { name: 'state:' }).click();
  await until('the filter', async () => (await page.getByRole('searchbox', { name: 'Filter' }).inputValue()) === 'state:ready');
  await reads('the count', page.locator('.search .count'), / of /);
  assert.equal(await problem.count(), 0);
  clean(page);
  await page.close();
});

test('a small window shows what needs attention, as a large one does', async () => {
  const query = { at: '2026-11-21T23:52:30Z' };
  for (const view of few([{}, { in: 'workloads' }], 1)) {
    const found = [];
    // 320x256 is a window of 1280x1024 at 400 % (WCAG 1.4.10).
    for (const [width, height] of few([[1280, 1024], [320, 256], [320, 480], [667, 220]], 2)) {
      const page = await openBoard(browser, recording.url, { ...query, ...view }, { viewport: { width, height } });
      found.push(await page.evaluate(() => {
        const { board, engine, cluster } = window.watchkeeper;
        const counts = cluster.shownCounts();
        return JSON.stringify({ visible: board.camera.scale > 0, pods: cluster.pods, counts: [...counts], placed: engine.layout.tiles.reduce((sum, { slots }) => sum + slots.filter((row) => row >= 0).length, 0) });
      }));
      const needs = page.locator('.needs li');
      if (height > 200) await until(`needs at ${width}x${height}`, async () => (await needs.count()) > 0);
      assert.doesNotMatch(await page.locator('body').innerText(), /needs attention yet/);
      clean(page);
      await page.close();
    }
    assert.deepEqual(found, found.map(() => found[0]));
  }
});

test('a press on the strip before its counts are loaded goes to its moment', async () => {
  const page = await openBoard(browser, recording.url);
  await page.route('**/history/counts?*', () => {}); // no answer
  await page.reload();
  const slider = page.getByRole('slider', { name: 'Moment' });
  await slider.click();
  const at = await until('a moment', () => new URL(page.url()).searchParams.get('at'));
  assert.equal(await slider.getAttribute('aria-busy'), 'true');
  const middle = end - 500 * Number(await slider.getAttribute('aria-valuemax'));
  assert.ok(Math.abs(Date.parse(at) - middle) < 10_000, `${at} is in the middle of the strip`);
  clean(page);
  await page.close();
});

/** Serves a part of the recording, as a file of its own. */
async function part(query) {
  const dir = mkdtempSync(join(tmpdir(), 'watchkeeper-part-'));
  const file = join(dir, 'part.wkr');
  const answer = await fetch(`${recording.url}/watchkeeper/v1/history/export?${new URLSearchParams({ from: '2026-11-21T23:49:10Z', to: new Date(end).toISOString(), ...query })}`);
  assert.ok(answer.ok, `${answer.status}`);
  writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
  const { url, stop } = await startRecording(file);
  return { url, stop: () => stop().then(() => rmSync(dir, { recursive: true })) };
}

test('a recording without Nodes says so, and counts none', async () => {
  for (const [query, only] of few([[{ namespace: 'shop', labelSelector: 'app' }, 'namespace shop; objects with app'], [{ namespace: 'shop' }, 'namespace shop'], [{ resource: 'pods' }, 'pods']], 1)) {
    const served = await part(query);
    try {
      for (const at of [{}, { at: '2026-11-21T23:52:00Z' }]) {
        const page = await openBoard(browser, served.url, at);
        await until('words', async () => (await page.locator('.chip.scope summary').innerText()).startsWith('No Nodes are recorded: the Pods are grouped by the names of their Nodes'));
        assert.match(await page.locator('.chip.scope details p').textContent(), /^This recording has no nodes\.$/);
        const limits = `This recording has only ${only}.`;
        await until('what it is limited to', async () => (await page.locator('.chip.scope > p').innerText()) === limits);
        assert.match(await page.locator('.legend').innerText(), new RegExp(`^\\d+ pods\\s+only ${only}\\s`));
        assert.ok(await page.locator('.connection').evaluate((it) => it.getBoundingClientRect().right <= innerWidth), 'the header has room');
        assert.ok((await page.locator('.needs .calm').innerText()).endsWith(limits), 'and above the list of what needs attention');
        assert.ok(Object.keys(await shownPods(page, 'shop')).length > 0, 'the Pods');
        assert.doesNotMatch(await page.locator('body').innerText(), /You may not|\d+ nodes/i);
        await until('the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
        await shot(page, `no-nodes${at.at ? '-past' : ''}`);
        clean(page);
        await page.close();
      }
    } finally {
      await served.stop();
    }
  }
});

test('a recording without Pods says so', async () => {
  const served = await part({ resource: 'deployments.apps', namespace: 'shop' });
  try {
    const page = await open(browser, `${served.url}/ui/`, { ignore: /status of 404/ });
    await until('words', async () => {
      assert.match(await page.locator('.notice').innerText(), /^No Pods are recorded\s+This recording has no pods\. This recording has only namespace shop; deployments\.apps\.\s+Kinds… \(:\) shows what is recorded\.$/);
      assert.match(await page.locator('footer.time').innerText(), /this recording has no Pods/);
      return true;
    });
    assert.doesNotMatch(await page.locator('body').innerText(), /You may not|Not allowed|Nothing is recorded|cannot say/);
    await shot(page, 'no-pods');
    clean(page);
    await page.close();
  } finally {
    await served.stop();
  }
});

/** The sentences of the API, and its times, are not those of the page. */
const RAW = /recorded history|resources? .* recorded from|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;
const CHECKOUT = '/apis/apps/v1/namespaces/shop/deployments/checkout';

/** Where the page shows a moment. */
const VIEWS = {
  board: {},
  'the overview of a Deployment': { sel: CHECKOUT, tab: 'overview' },
  'a table of a kind': { view: 'table', kind: 'deployments.apps' },
  changes: { side: 'changes' },
  sheet: { view: 'sheet', kind: 'deployments.apps' },
  workloads: { in: 'workloads' },
  table: { view: 'table' },
  'a table of a kind without namespaces': { view: 'table', kind: 'namespaces' },
  ...Object.fromEntries(['relations', 'yaml', 'versions', 'story'].map((tab) => [`the ${tab} of a Deployment`, { sel: CHECKOUT, tab }])),
};

/** Goes to another query as the browser's Back does: a page that is loaded at a moment without a record has no board to wait for. */
const show = (page, query) => page.evaluate((search) => {
  history.pushState(null, '', search);
  dispatchEvent(new PopStateEvent('popstate'));
}, `?${new URLSearchParams(query)}`);

test('a moment that is not recorded is explained in every view, with the nearest ones that are', async () => {
  const page = await openBoard(browser, recording.url, {}, { timezoneId: 'Asia/Kolkata', ignore: /status of 4\d\d/ });
  for (const [name, query] of few(Object.entries(VIEWS), 4)) {
    const begins = [/The record of \S+ begins at (\d{4}-\d\d-\d\d )?05:19:12 UTC\+5:30/, /05:19:12 UTC\+5:30$/];
    for (const [at, words, want] of [
      ['2026-11-21T23:00:00Z', ...begins],
      ...(query.view ? [['rv:5', ...begins]] : []),
      ['2026-11-22T23:00:00Z', /The recording ends at (\d{4}-\d\d-\d\d )?05:23:48 UTC\+5:30/, /05:23:48 UTC\+5:30$/],
    ]) {
      await show(page, { ...query, at });
      await until(`words in ${name} at ${at}`, async () => {
        assert.match(await page.locator('.notice.absent').innerText(), words);
        return true;
      });
      await until('the answers', async () => (await page.locator('[aria-busy="true"]').count()) === 0 && !/\bloading\b|looking for/.test(await page.locator('body').innerText()));
      assert.doesNotMatch(await page.locator('body').innerText(), RAW);
      assert.doesNotMatch(await page.locator('main').innerText(), /checkout|payments|\b0 objects/, `${name}: nothing of another moment`);
      const nearest = page.locator('.nearest button');
      await until('the nearest moment', async () => (await nearest.allInnerTexts()).length === 1 && want.test(await nearest.innerText()));
      await shot(page, `unknown-${name}`);
      await nearest.click();
      await until(`a known moment, from ${at} in ${name}`, async () => {
        const shown = await connection(page);
        const notices = await page.locator('.notice').allInnerTexts();
        assert.ok((await page.locator('.notice.absent').count()) === 0 && /^(the past|a recording)$/.test(shown), `${shown}, at ${page.url()}: ${notices.join(' | ')}`);
        return true;
      });
    }
  }
  clean(page);
  await page.close();
});

test('objects that did not exist yet are in no view of a moment', async () => {
  // Between the two moments, a rollout has replaced the Pods.
  const [before, after] = ['2026-11-21T23:49:40Z', '2026-11-21T23:53:40Z'];
  const list = async (path, at) => (await (await fetch(`${recording.url}/at/${at}${path}`)).json()).items.map(({ metadata }) => metadata.name).sort();
  const [early, late] = [await list('/api/v1/namespaces/shop/pods', before), await list('/api/v1/namespaces/shop/pods', after)];
  const young = late.find((name) => !early.includes(name));
  assert.ok(young && early.length > 0, `${early} ${late}`);
  const views = {
    table: [{ view: 'table' }, '.table .name[role="gridcell"]'],
    'table of the kind': [{ view: 'table', kind: 'pods' }, '.table.kinds .line [role="gridcell"]:nth-child(2)'],
    sheet: [{ view: 'sheet', kind: 'pods' }, '.cells .body .line [data-cell$=",2"]'],
  };
  const page = await openBoard(browser, recording.url, {}, { height: 2000, ignore: /status of 404/ });
  for (const [name, [query, cells]] of Object.entries(views)) {
    for (const [at, want] of [[after, late], [before, early]]) {
      await show(page, { ...query, at });
      await until(`${name} at ${at}`, async () => {
        assert.deepEqual((await page.locator(cells).allInnerTexts()).filter(Boolean).sort(), want);
        return true;
      });
      assert.doesNotMatch(await page.locator('main').innerText(), /<invalid>|deleted row/);
    }
    await shot(page, `before-${name}`);
  }
  await show(page, { at: before });
  await until('the board', async () => {
    assert.deepEqual(Object.keys(await shownPods(page, 'shop')).sort(), early);
    return true;
  });
  await show(page, { at: before, sel: `pod/shop/${young}` });
  await reads('the panel', page.locator('.panel'), /did not exist yet at this moment: it was created at/);
  clean(page);
  await page.close();
});

test('the opener finds namespaces without Pods', async () => {
  const { items } = await (await fetch(`${recording.url}/api/v1/namespaces`)).json();
  const pods = (await (await fetch(`${recording.url}/api/v1/pods`)).json()).items;
  const empty = items.map(({ metadata }) => metadata.name).filter((name) => !pods.some(({ metadata }) => metadata.namespace === name));
  assert.ok(empty.length > 0);
  const page = await openBoard(browser, recording.url);
  await page.keyboard.press('Control+k');
  for (const name of [...empty, 'shop']) {
    await page.getByRole('combobox', { name: /Kind/ }).fill(name);
    await page.locator('.opener [role="option"]').filter({ hasText: `only namespace ${name}` }).waitFor();
  }
  clean(page);
  await page.close();
});

test('on a phone, the list of changes shows several entries at its first height', async () => {
  for (const query of [{ at: '2026-11-21T23:53:20Z' }, { reach: 'all' }]) {
    const page = await openBoard(browser, recording.url, { side: 'changes', ...query }, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    const list = page.locator('.changes-list li:not(.here)');
    await until('entries', async () => (await list.count()) > 10);
    await page.locator('.changes').evaluate((side) => (side.scrollTop = 0));
    const end = (await page.locator('.time').boundingBox()).y;
    const note = page.locator('.changes .gap-note', { hasText: 'Not recorded, so not listed: configmaps, secrets, ' });
    assert.ok((await note.boundingBox()).height <= 20, 'one line of what is not recorded');
    const whole = await list.evaluateAll((all, end) => all.filter((one) => one.getBoundingClientRect().bottom <= end).length, end);
    assert.ok(whole >= 3, `${whole} entries`);
    assert.ok((await page.locator('.board').boundingBox()).height > 200, 'the board stays');
    await shot(page, `changes-phone-${Object.keys(query)}`);
    await note.tap();
    assert.ok((await note.boundingBox()).height > 20, 'a tap shows the whole of it');
    clean(page);
    await page.close();
  }
});

test('the list of changes shows the moment, and Tab begins at the top of the page', async () => {
  for (const viewport of [{ width: 1280, height: 720 }, { width: 390, height: 844 }]) {
    const page = await openBoard(browser, recording.url, { side: 'changes', range: '2026-11-21T23:50:00Z/2026-11-21T23:52:40Z', at: '2026-11-21T23:52:30Z' }, { viewport });
    const here = page.locator('.changes-list .here');
    await here.waitFor();
    await until('the moment in view', () => here.evaluate((line) => {
      const scroller = [line.closest('.scroll'), line.closest('.changes')].find((one) => getComputedStyle(one).overflowY === 'auto' && one.scrollTop > 0);
      const [at, all] = [line, scroller ?? line].map((one) => one.getBoundingClientRect());
      return !!scroller && at.top > all.top && at.bottom < all.bottom;
    }));
    await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => !!document.activeElement.closest('.top')), 'Tab begins at the top');
    clean(page);
    await page.close();
  }
});

test('the legend of the strip, near it and in the help', async () => {
  const page = await openBoard(browser, recording.url);
  const words = [/a Warning Event/, /a gap: nothing was observed/, /not recorded/];
  await page.getByRole('button', { name: 'Legend' }).click();
  const legend = page.getByRole('dialog', { name: 'Legend of the strip' });
  await legend.waitFor();
  for (const one of words) assert.match(await legend.innerText(), one);
  // It is beside the strip, inside the window.
  const [box, strip] = [await legend.boundingBox(), await page.locator('.strip').boundingBox()];
  assert.ok(box.y > 0 && box.y + box.height <= strip.y, JSON.stringify([box, strip]));
  await shot(page, 'legend');
  await page.keyboard.press('Escape');
  await legend.waitFor({ state: 'hidden' });
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', { name: 'Help' });
  for (const one of words) assert.match(await help.innerText(), one);
  await shot(page, 'help');
  clean(page);
  await page.close();
});

test('the zone of times, and moments that are typed', async () => {
  const page = await openBoard(browser, recording.url, {}, { timezoneId: 'Asia/Kolkata' });
  const zone = page.locator('.transport .zone');
  await until('the zone', async () => (await zone.innerText()) === 'UTC+5:30');
  const second = Math.floor(end / 1000) * 1000 - 1000;
  const typed = async (text) => {
    await page.keyboard.press('g');
    await page.getByRole('textbox', { name: /^Go to a moment/ }).waitFor();
    await page.keyboard.type(text);
    await page.keyboard.press('Enter');
  };
  await typed(new Date(second + 5.5 * 3600_000).toISOString().slice(11, 19));
  await until('the moment', () => new URL(page.url()).searchParams.get('at') === new Date(second).toISOString());
  await until('the past', async () => (await connection(page)) === 'the past');
  const moment = page.locator('.moment b');
  assert.match(await moment.innerText(), /\d\d:\d\d:\d\d\s+UTC\+5:30$/);
  await zone.click();
  await until('UTC', async () => new RegExp(`${new Date(second).toISOString().slice(11, 19)}\\s+UTC$`).test(await moment.innerText()));
  await typed('soon');
  await reads('a message', page.locator('#moment-message'), /“soon” is not a moment: enter a time/);
  await shot(page, 'go-to');
  await page.keyboard.press('Escape');
  await page.getByRole('textbox', { name: /^Go to a moment/ }).waitFor({ state: 'hidden' });
  assert.equal(await connection(page), 'the past', 'Esc closes only the field');
  clean(page);
  await page.close();
});

test('on a screen at 200 %, nothing is cut off', async () => {
  const page = await openBoard(browser, recording.url, {}, { width: 720, height: 450 });
  await until('the end of the recording', async () => (await connection(page)) === 'a recording');
  for (const part of ['.connection', '.top .icon[aria-label="Help"]', '.controls', '.search']) {
    const { x, width } = await page.locator(part).boundingBox();
    assert.ok(x >= 0 && x + width <= 720, `${part} is at ${x} – ${x + width}`);
  }
  // The controls are one line, below what the board is fitted to.
  const stage = await page.locator('.stage').boundingBox();
  assert.ok(stage.y + stage.height - (await page.locator('.controls').boundingBox()).y <= 64);
  await shot(page, 'zoom-200');
  await page.keyboard.press('t');
  await until('the table', async () => (await page.locator('.table').count()) === 1);
  const [table, controls] = [await page.locator('.table').boundingBox(), await page.locator('.controls').boundingBox()];
  assert.ok(table.y + table.height <= controls.y, 'the controls are not over the last rows');
  clean(page);
  await page.close();
});
