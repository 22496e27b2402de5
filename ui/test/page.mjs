// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Reads what the page shows: its data, the table as a screen reader sees it, and
// the pixels of the board.

import assert from 'node:assert/strict';
import { open } from './browser.mjs';
import { api, gateway, until } from './cluster.mjs';
import { decode } from './png.mjs';

const address = (gateway, query) => `${gateway}/ui/?${new URLSearchParams(query)}`;

/** Waits for the first complete list, for the parts that are loaded later, and for the strip: before that the keys that move in time do nothing. */
const loaded = (page) => until('a board', () => page.evaluate(() => window.watchkeeper?.cluster.synced === true && window.watchkeeper.allLoaded() && document.querySelector('footer.time')?.children.length !== 0));

/** Opens the page with a query. */
export async function openBoard(browser, gateway, query = {}, options = {}) {
  const page = await open(browser, address(gateway, query), options);
  await loaded(page);
  return page;
}

/**
 * Goes to another query in the same tab, as the browser's Back does: the page is not loaded
 * again, which takes a second of a processor, unless something is open that would remain.
 */
export async function goTo(page, gateway, query = {}) {
  const url = address(gateway, query);
  const within = new URL(page.url()).origin === new URL(url).origin && (await page.evaluate((url) => {
    if (!window.watchkeeper?.allLoaded() || document.querySelector('dialog[open], [role="dialog"], [aria-expanded="true"], .sheet-main')) return false;
    document.activeElement.blur();
    history.pushState(null, '', url);
    window.dispatchEvent(new PopStateEvent('popstate'));
    return true;
  }, url));
  if (!within) await page.goto(url);
  await loaded(page);
}

/** The Pods of a namespace on the board, as name → {node, status}. */
export const shownPods = (page, ns) =>
  page.evaluate((ns) => {
    const { cluster } = window.watchkeeper;
    const found = {};
    for (let row = 0; row < cluster.length; row++) {
      if (cluster.strings[cluster.namespace[row]] !== ns || cluster.state[row] === 0 || cluster.state[row] === 8) continue;
      found[cluster.names[row]] = { node: cluster.nodeName(row), status: cluster.strings[cluster.text[row]] };
    }
    return found;
  }, ns);

/** The names and the STATUS column of the Pods that kubectl prints. */
export const kubectlStatuses = (table) => Object.fromEntries(table.trim().split('\n').map((line) => line.trim().split(/ {2,}/)).map(([name, , status]) => [name, status]));

/** The centre of a Pod's block and half its size, in pixels of the window, once it is in the layout. */
export const blockOf = (page, ns, name) =>
  until(`a block of ${name}`, () => page.evaluate(
    ([ns, name]) => {
      const { cluster, engine, board } = window.watchkeeper;
      const box = document.querySelector('.board').getBoundingClientRect();
      for (let row = 0; row < cluster.length; row++) {
        if (cluster.names[row] !== name || cluster.strings[cluster.namespace[row]] !== ns || !(engine.layout.half[row] > 0)) continue;
        return {
          x: box.left + board.camera.toScreenX(engine.layout.x[row]),
          y: box.top + board.camera.toScreenY(engine.layout.y[row]),
          half: engine.layout.half[row] * board.camera.scale,
        };
      }
      return null;
    },
    [ns, name],
  ));

/**
 * Moves the pointer to the block of a Pod, and waits until the board has it there: a block moves
 * when Pods come and go, and while the camera moves. The result is its point.
 */
export const pointAt = (page, ns, name) =>
  until(`the pointer on ${name}`, async () => {
    const { x, y } = await blockOf(page, ns, name);
    await page.mouse.move(x, y);
    const there = await page.evaluate(([ns, name]) => {
      const { board: { marks: { hover } }, cluster } = window.watchkeeper;
      return cluster.names[hover] === name && cluster.strings[cluster.namespace[hover]] === ns;
    }, [ns, name]);
    return there && { x, y };
  });

/** Clicks the block of a Pod. */
export async function clickOn(page, ns, name) {
  const { x, y } = await pointAt(page, ns, name);
  await page.mouse.click(x, y);
}

/** The distance of two colours: the largest difference of red, green or blue. */
export const apart = (a, b) => Math.max(...a.map((v, i) => Math.abs(v - b[i])));

/** A colour of the page's style, such as --tile. */
export const colour = (page, name) =>
  page.evaluate((name) => getComputedStyle(document.documentElement).getPropertyValue(name).match(/\d+/g).slice(0, 3).map(Number), name);

/** The colours of the pixels of a Pod's block. */
export async function pixels(page, { x, y, half }) {
  const clip = { x: Math.round(x - half), y: Math.round(y - half), width: Math.round(2 * half), height: Math.round(2 * half) };
  const { data } = decode(await page.screenshot({ clip, animations: 'disabled' }));
  return Array.from({ length: data.length / 4 }, (_, i) => [data[4 * i], data[4 * i + 1], data[4 * i + 2]]);
}

/** The part of a Pod's block that has a colour or one of its shades, from 0 to 1. */
export async function painted(page, block, want) {
  const all = await pixels(page, block);
  return all.filter((rgb) => apart(rgb, want) < 45).length / all.length;
}

/** The names in the table's rows, as a screen reader sees them. */
export const rowNames = (page) => page.getByRole('row').locator('.name[role="gridcell"]').allInnerTexts();

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/** The Pods of a namespace in the API server, in the form of shownPods. Its tables are what kubectl prints. */
export const truth = async (ns) => podsOf(await api(`/api/v1/namespaces/${ns}/pods?includeObject=Object`, table));

/** The Pods of a namespace that the gateway has recorded at a moment, in the same form. */
export async function recorded(ns, at) {
  const response = await fetch(`${gateway}/at/${at}/api/v1/namespaces/${ns}/pods?includeObject=Object`, { headers: { Accept: table } });
  return podsOf(await response.json());
}

function podsOf({ columnDefinitions, rows }) {
  const status = columnDefinitions.findIndex(({ name }) => name === 'Status');
  return Object.fromEntries((rows ?? []).map(({ cells, object: { metadata, spec } }) => [metadata.name, { node: spec.nodeName ?? '', status: cells[status] }]));
}

/** Waits until a namespace has this number of Pods, all Running, and the page shows them. Returns them. */
export async function settled(page, ns, count) {
  return until(`${count} running Pods in ${ns}`, async () => {
    const pods = await truth(ns);
    assert.deepEqual(await shownPods(page, ns), pods);
    const all = Object.values(pods);
    return all.length === count && all.every(({ status }) => status === 'Running') && pods;
  });
}

/** The connection that the page shows, such as live. */
export const connection = async (page) => (await page.locator('.connection').innerText()).trim();

/** Presses a key that goes to the last change, once the strip can answer it, and waits for the past. */
export async function stepBack(page, key) {
  await until('the counts of the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
  await page.keyboard.press(key);
  await until('the past', async () => {
    const shown = await connection(page);
    assert.ok(page.url().includes('at=') && shown === 'the past', `${shown}, at ${page.url()}`);
    return true;
  });
}
