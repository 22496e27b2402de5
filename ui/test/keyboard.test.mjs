// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Every function works with the keyboard alone, and the focus is always visible.
// This file uses no pointer.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch } from './browser.mjs';
import { gateway, kubectl, namespace, reads, until } from './cluster.mjs';
import { connection, goTo, openBoard, settled, stepBack } from './page.mjs';

let browser;
let ns;

before(async () => {
  browser = await launch();
  ns = await namespace('keys');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=4');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
});

after(() => browser?.close());

/** Listed functions of the pointer; keys do the same. */
const pointer = new Set(['drag the strip', 'Shift drag', 'two fingers', 'wheel']);

/** The functions of the keys, by the names that the help lists. */
const functions = {
  '/': async (page) => {
    await page.keyboard.press('/');
    await until('the filter', async () => (await focused(page)) === 'Filter');
    await page.keyboard.type(`ns:${ns}`);
    await until('the matching Pods', () => page.evaluate(() => window.watchkeeper.engine.matching() === 4));
    // Enter and Esc leave the field, and the filter stays.
    const left = () => until('the focus on the board', async () => /^Board of Pods/.test(await focused(page)));
    await page.keyboard.press('Enter');
    await left();
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    await left();
    assert.equal(await page.evaluate(() => document.getElementById('filter').value), `ns:${ns}`);
    await page.keyboard.press('Escape');
    await until('no filter', () => page.evaluate(() => document.getElementById('filter').value === '' && !window.watchkeeper.engine.matches));
  },
  '← ↑ → ↓': async (page) => {
    const places = new Set();
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowDown', 'ArrowUp']) {
      await page.keyboard.press(key);
      places.add(await reached(page));
    }
    assert.ok(places.size >= 3 && !places.has(undefined), `walked to ${[...places]}`);
  },
  A: async (page) => {
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Actions', exact: true }).waitFor();
    await page.keyboard.press('a');
    await until('the focus in the menu', async () => (await focused(page)) === 'Edit YAML…');
    await page.keyboard.press('ArrowDown');
    await until('the next action', async () => (await focused(page)) === 'Delete…');
    await page.keyboard.press('Escape');
    await until('the focus on its button', async () => (await focused(page)) === 'Actions');
    await page.keyboard.press('Escape');
    await until('no panel', async () => (await page.locator('.panel').count()) === 0);
  },
  Enter: async (page) => {
    await page.keyboard.press('ArrowRight');
    const name = await reached(page);
    await page.keyboard.press('Enter');
    await until('the panel of the Pod', async () => (await page.locator('.panel h2').innerText()) === name);
    // The open panel follows.
    await page.keyboard.press('ArrowLeft');
    const next = await reached(page);
    assert.notEqual(next, name);
    await until('the panel of the next Pod', async () => (await page.locator('.panel h2').innerText()) === next);
    await tabTo(page, 'Overview');
    for (const [tab, what] of [['Story', /\d episode/], ['Relations', /what it leads to/], ['YAML', /kind: Pod/], ['Logs', /\S/], ['Versions', /created|changed/]]) {
      await page.keyboard.press('ArrowRight');
      await until(`the focus on ${tab}`, async () => (await focused(page)) === tab);
      await reads(`the content of ${tab}`, page.getByRole('tabpanel'), what);
    }
    await page.keyboard.press('Escape');
    await until('no panel', async () => (await page.locator('.panel').count()) === 0);
    await until('the focus on the board', async () => /^Board of Pods/.test(await focused(page)));
  },
  Esc: async (page) => {
    // Each Esc closes one part.
    await page.keyboard.press('/');
    await page.keyboard.type(`ns:${ns}`);
    await tabTo(page, /^Board of Pods/);
    await toThePast(page);
    await tabTo(page, /^Board of Pods/);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    const open = () => page.evaluate(() => [document.querySelector('.panel') !== null, location.search.includes('at='), document.getElementById('filter').value !== '']);
    for (const want of [[true, true, true], [false, true, true], [false, false, true], [false, false, false]]) {
      await until(`panel, past and filter to be ${want}`, async () => {
        assert.deepEqual(await open(), want);
        return true;
      });
      await page.keyboard.press('Escape');
    }
  },
  '+ −': async (page) => {
    const before = await scale(page);
    await page.keyboard.press('+');
    await until('a larger board', async () => (await scale(page)) > before * 1.2);
    await page.keyboard.press('-');
    await page.keyboard.press('-');
    await until('a smaller board', async () => (await scale(page)) < before);
  },
  0: async (page) => {
    const before = await scale(page);
    await page.keyboard.press('+');
    await until('a larger board', async () => (await scale(page)) > before);
    await page.keyboard.press('0');
    const whole = await until('the whole board', () => inView(page));
    assert.ok(whole);
  },
  T: async (page) => {
    await page.keyboard.press('t');
    await tabTo(page, 'Pods');
    await page.keyboard.press('ArrowDown');
    // With its namespace: Pods of other tests may have the same name.
    const chosen = async () => (await page.locator('[role=row][aria-selected=true]').locator('.namespace, .name').allInnerTexts()).join(' ');
    const first = await chosen();
    await page.keyboard.press('ArrowDown');
    await until('the next row', async () => (await chosen()) !== first);
    await until('the panel of the Pod', async () => (await chosen()).split(' ').includes(await page.locator('.panel h2').innerText()));
    await page.keyboard.press('Escape');
    // The columns sort.
    await tabTo(page, /^Name/);
    await page.keyboard.press('Enter');
    await until('a sorted column', () => page.evaluate(() => document.querySelector('[role=columnheader].name').ariaSort === 'ascending'));
    await page.keyboard.press('t');
    await until('the board', async () => (await page.locator('.board').count()) === 1);
  },
  ': or Ctrl K': async (page) => {
    for (const key of [':', 'Control+k']) {
      await page.keyboard.press(key);
      await until('the opener', async () => (await focused(page)) === 'Kind, name, namespace or label');
      await page.keyboard.type('nodes');
      await page.locator('.opener [aria-selected="true"]').filter({ hasText: 'Node' }).waitFor();
      await page.keyboard.press('Escape');
      await until('no opener', async () => (await page.locator('.opener').count()) === 0);
      await until('the focus on the board', async () => /^Board of Pods/.test(await focused(page)));
    }
  },
  W: async (page) => {
    const inWorkloads = () => page.evaluate(() => window.watchkeeper.engine.layout.tiles.some((tile) => tile.bands));
    await page.keyboard.press('w');
    await until('Pods in workloads', inWorkloads);
    await page.keyboard.press('w');
    await until('Pods in Nodes', async () => !(await inWorkloads()));
  },
  N: async (page) => {
    const within = () => page.evaluate(() => document.activeElement.closest('.needs') !== null);
    assert.equal(await page.locator('.needs').count(), 1);
    await page.keyboard.press('n');
    await until('the focus in the list', within);
    await page.keyboard.press('n');
    await until('the list to close', async () => (await page.locator('.needs').count()) === 0);
    await page.keyboard.press('n');
    await until('the list to open, with the focus', within);
    await page.keyboard.press('Escape');
    await until('the focus on the board', async () => /^Board of Pods/.test(await focused(page)));
    assert.equal(await page.locator('.needs').count(), 1);
  },
  ', .': async (page) => {
    await stepBack(page, ',');
    const at = page.url();
    await page.keyboard.press('.');
    await until('the next, or now', () => page.url() !== at);
    await toNow(page);
  },
  Space: async (page) => {
    await toThePast(page);
    await page.keyboard.press(' ');
    await until('the replay to start', async () => (await page.getByRole('button', { name: 'Pause' }).count()) === 1 || (await connection(page)) === 'live');
    await until('now', async () => (await connection(page)) === 'live'); // at 60× it reaches now soon
  },
  G: async (page) => {
    const at = new Date(Math.floor(Date.now() / 1000) * 1000 - 1000).toISOString();
    await page.keyboard.press('g');
    await until('the field', async () => (await page.evaluate(() => document.activeElement.id)) === 'moment');
    await page.keyboard.type(at);
    await page.keyboard.press('Enter');
    await until('the moment', () => new URL(page.url()).searchParams.get('at') === at);
    await toNow(page);
  },
  C: async (page) => {
    await toThePast(page); // the last minute soon has no changes
    await page.keyboard.press('c');
    await tabTo(page, 'status updates'); // the last change may be one
    await page.keyboard.press('Enter');
    await until('the list of changes', async () => (await page.locator('.changes-list li').count()) > 0);
    await tabTo(page, /^(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\s/); // the first one
    const had = await focused(page);
    await page.keyboard.press('ArrowRight');
    await until('the diff', async () => (await page.locator('.changes-list .diff').count()) === 1);
    await page.keyboard.press('ArrowLeft');
    await until('the diff to close', async () => (await page.locator('.changes-list .diff').count()) === 0);
    await page.keyboard.press('ArrowDown');
    await until('the focus on the next change', async () => (await focused(page)) !== had);
    await page.keyboard.press('Enter');
    await until('the board of the past', async () => (await connection(page)) === 'the past');
    await toNow(page);
    await page.keyboard.press('c');
    await until('the list to close', async () => (await page.locator('.changes').count()) === 0);
  },
  M: async (page) => {
    await toThePast(page);
    const marked = () => page.getByRole('button', { name: 'Mark this moment', pressed: true }).count();
    await page.keyboard.press('m');
    await until('a mark', async () => (await marked()) === 1);
    await page.keyboard.press('m');
    await until('no mark', async () => (await marked()) === 0);
    await toNow(page);
  },
  'in Versions: D': async (page) => {
    await tabTo(page, /^Board of Pods/);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await tabTo(page, /^(Overview|Versions)$/);
    if ((await focused(page)) === 'Overview') await page.keyboard.press('ArrowLeft');
    await until('the versions', async () => (await page.locator('.panel .changes-list .pick').count()) > 1);
    await tabTo(page, /^(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\s/);
    await page.keyboard.press('d');
    await until('the comparison', async () => (await page.getByRole('region', { name: 'Comparison' }).count()) === 1);
    await page.keyboard.press('d');
    await until('no comparison', async () => (await page.getByRole('region', { name: 'Comparison' }).count()) === 0);
    await toNow(page);
  },
  'on the strip: ← →': async (page) => {
    await toThePast(page);
    const at = page.url();
    await page.keyboard.press('ArrowLeft');
    await until('the change before that', () => page.url() !== at && page.url().includes('at='));
    for (let i = 0; i < 2; i++) {
      const before = page.url();
      await page.keyboard.press('ArrowRight');
      await until('another moment', () => page.url() !== before);
    }
    await toNow(page);
  },
  'on the strip: Shift ← →': async (page) => {
    await toThePast(page);
    await page.keyboard.press('Shift+ArrowLeft');
    await until('a range in the URL', () => /[?&](range|from)=/.test(page.url()));
    await toNow(page);
  },
  '?': async (page) => {
    await page.keyboard.press('?');
    await until('the help', () => page.getByRole('dialog').isVisible());
    // The next key counts even if it comes at once.
    await page.keyboard.press('Escape');
    await page.keyboard.press('t');
    await until('the help to close, and the table', async () => !(await page.getByRole('dialog').isVisible()) && (await page.locator('.board').count()) === 0);
    await page.keyboard.press('t');
    await until('the board', async () => (await page.locator('.board').count()) === 1);
  },
};

/** The name of the focused element. */
const focused = (page) =>
  page.evaluate(() => {
    const { activeElement: at } = document;
    if (at === document.body) return '';
    return at.ariaLabel ?? at.getAttribute('aria-label') ?? at.innerText.trim();
  });
/** The Pod that the arrow keys reached. */
const reached = (page) => page.evaluate(() => window.watchkeeper.cluster.names[window.watchkeeper.board.marks.focus]);
const scale = (page) => page.evaluate(() => window.watchkeeper.board.camera.scale);
/** Whether all tiles are visible. */
const inView = (page) =>
  page.evaluate(() => {
    const { board, engine } = window.watchkeeper;
    return engine.layout.tiles.every(({ x, y, w, h }) => board.camera.toScreenX(x) >= 0 && board.camera.toScreenY(y) >= 0 && board.camera.toScreenX(x + w) <= board.camera.width && board.camera.toScreenY(y + h) <= board.camera.height);
  });

/** How many elements Tab may reach. A list of changes grows while Tab is pressed. */
const reachable = (page) => page.locator('a[href], button, input, select, summary, [tabindex]').count();

/** Presses Tab until an element has the focus, at most twice round the page. */
async function tabTo(page, name) {
  const seen = [];
  while (seen.length < 2 * (await reachable(page))) {
    const at = await focused(page);
    if (typeof name === 'string' ? at === name : name.test(at)) return;
    seen.push(at);
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to ${name}, but to ${seen.join(', ')}`);
}

/** Presses Esc until the view is live and the panel closed. */
const toNow = (page) =>
  until('now', async () => {
    if ((await connection(page)) === 'live' && (await page.locator('.panel').count()) === 0) return true;
    await page.keyboard.press('Escape');
    return false;
  });

/** Goes to the last change. */
async function toThePast(page) {
  await tabTo(page, 'Moment');
  await stepBack(page, 'ArrowLeft');
}

test('each listed function', async (t) => {
  const page = await openBoard(browser, gateway);
  await settled(page, ns, 4);
  await page.keyboard.press('?');
  const listed = [...new Set(await page.locator('.help section').filter({ hasText: /^(Keys|Time)/ }).locator('dt').allInnerTexts())].filter((key) => !pointer.has(key));
  await page.keyboard.press('Escape');
  await until('the help to close', async () => !(await page.locator('.help').isVisible()));
  assert.ok(listed.length > 5);
  for (const key of listed) {
    await t.test(key, async () => {
      assert.ok(functions[key], 'it has a test');
      await functions[key](page);
    });
  }
  assert.deepEqual(Object.keys(functions).filter((key) => !listed.includes(key)), [], 'all tested functions are listed');
  clean(page);
  await page.close();
});

test('the focused element is visibly focused', async () => {
  for (const [view, query] of Object.entries({ board: {}, table: { view: 'table' } })) {
    const page = await openBoard(browser, gateway, query);
    const [pod] = Object.keys(await settled(page, ns, 4));
    await goTo(page, gateway, { ...query, sel: `pod/${ns}/${pod}`, q: `ns:${ns}` });
    await until('the panel', async () => (await page.locator('.panel .containers').count()) === 1);
    // The strip appears after the gateway's answer about its history. Without it the last Tab comes earlier.
    await page.getByRole('slider', { name: 'Moment' }).waitFor();
    assert.equal(await focused(page), '', 'nothing has the focus before the first Tab');
    const names = [];
    for (let i = 0; i < 80; i++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => {
        const { activeElement: element } = document;
        const style = getComputedStyle(element);
        const accent = getComputedStyle(document.documentElement).getPropertyValue('--accent').match(/\d+/g).join();
        const is = (colour) => colour.match(/\d+/g).slice(0, 3).join() === accent;
        const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && is(style.outlineColor);
        return { name: element.getAttribute('aria-label') ?? element.innerText.trim(), body: element === document.body, seen: outlined || (style.borderStyle === 'solid' && is(style.borderColor)) };
      });
      if (at.body) break;
      assert.ok(at.seen, `${view}: ${at.name}`);
      names.push(at.name);
    }
    for (const name of [view === 'board' ? 'Board' : 'Pods', 'Filter', 'Moment', 'Close', 'Overview']) {
      assert.ok(names.some((one) => one.startsWith(name)), `${view}: Tab leads to ${name}: ${names}`);
    }
    clean(page);
    await page.close();
  }
});
