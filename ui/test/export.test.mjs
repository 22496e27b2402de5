// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The selected range as a recording: downloaded by the browser, or refused in place.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { clean, launch, shot } from './browser.mjs';
import { gateway, kubectl, namespace, startRecording, until } from './cluster.mjs';
import { front } from './front.mjs';
import { openBoard } from './page.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

let browser;
let ns;
let range;

before(async () => {
  browser = await launch();
  ns = await namespace('export');
  const from = new Date().toISOString();
  await kubectl('-n', ns, 'create', 'service', 'clusterip', 'web', '--tcp=80');
  await until('the Service in the history', async () => {
    const { items } = await (await fetch(`${gateway}/watchkeeper/v1/history/changes?${new URLSearchParams({ from, resource: 'services', namespace: ns })}`)).json();
    return items.length > 0;
  });
  range = `${from}/${new Date().toISOString()}`;
});

after(() => browser?.close());

const download = (page) => page.getByRole('link', { name: 'Download recording.wkr' });

/** The namespaces of the Services in a recording that was downloaded. */
async function namespacesIn(t, downloaded) {
  const folder = mkdtempSync(join(tmpdir(), 'watchkeeper-ui-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'recording.wkr');
  await downloaded.saveAs(file);
  const { url, stop } = await startRecording(relative(root, file));
  t.after(() => stop());
  const { items } = await (await fetch(`${url}/api/v1/services`)).json();
  return [...new Set(items.map(({ metadata }) => metadata.namespace))];
}

test('the range, in the namespace of the filter', async (t) => {
  const page = await openBoard(browser, gateway, { side: 'changes', range, q: `ns:${ns}` });
  await page.getByRole('button', { name: 'export', exact: true }).click();
  await until('the namespace of the filter', async () => (await page.getByRole('combobox', { name: 'Namespace' }).inputValue()) === ns);
  await shot(page, 'export');
  await page.emulateMedia({ colorScheme: 'light' });
  await shot(page, 'export-light');
  const [file] = await Promise.all([page.waitForEvent('download'), download(page).click()]);
  assert.equal(file.suggestedFilename(), 'recording.wkr');
  assert.deepEqual(await namespacesIn(t, file), [ns]);
  await until('that it began', async () => (await page.locator('.export').innerText()).includes('The download has begun.'));
  // Of all namespaces, by the keyboard.
  await page.getByRole('combobox', { name: 'Namespace' }).selectOption('');
  await download(page).focus();
  const [whole] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
  const all = await namespacesIn(t, whole);
  assert.ok(all.includes(ns) && all.includes('default'), `${all}`);
  clean(page);
  await page.close();
});

test('without a range, that of the marks or of the list', async () => {
  const marks = range.replace('/', ',');
  for (const [query, want] of [[{ marks }, range], [{}, null]]) {
    const page = await openBoard(browser, gateway, { side: 'changes', ...query });
    await page.getByRole('button', { name: 'export', exact: true }).click();
    const chosen = await until('a range', () => new URL(page.url()).searchParams.get('range'));
    if (want) assert.equal(chosen, want);
    const link = new URL(await download(page).getAttribute('href'), page.url());
    assert.equal(`${link.searchParams.get('from')}/${link.searchParams.get('to')}`, chosen);
    assert.equal(link.searchParams.get('namespace'), null);
    await page.close();
  }
});

test('the reason why it is refused', async (t) => {
  const url = await front(t, (url, _, outgoing) => {
    if (!url.pathname.endsWith('/export')) return url;
    outgoing.writeHead(429, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify({ kind: 'Status', code: 429, message: '2 exports are being made: try again when one of them has ended' }));
  });
  const page = await openBoard(browser, url, { side: 'changes', range }, { ignore: /status of 429/ });
  await page.getByRole('button', { name: 'export', exact: true }).click();
  await download(page).click();
  await until('the message', async () => (await page.locator('.export .failure').innerText()) === '2 exports are being made: try again when one of them has ended');
  await shot(page, 'export-refused');
  assert.ok(page.url().startsWith(url), 'the page stays');
  clean(page);
  await page.close();
});
