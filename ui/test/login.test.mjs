// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page asks for a bearer token when the API answers 401, and keeps it to itself.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { violations } from './axe.mjs';
import { clean, launch, open, shot } from './browser.mjs';
import { kubectl, namespace, reads, startRecording, until } from './cluster.mjs';
import { connection, shownPods } from './page.mjs';
import { account, demanding, grant, logIn, refused, signingIn } from './users.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

let browser;
let ns;
let admin;

before(async () => {
  browser = await launch();
  ns = await namespace('login');
  admin = await account(ns, 'admin');
  await grant(admin, 'cluster-admin');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=2');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
});

after(() => browser?.close());

const title = (page) => page.locator('.login h1').innerText();
const live = (page) => until('the board', async () => (await connection(page)) === 'live' && Object.keys(await shownPods(page, ns)).length > 0);

describe('login', { concurrency: true }, () => {
  test('a pasted token opens the board, and is nowhere but in memory', async (t) => {
    const { url, requests } = await demanding(t);
    const context = await browser.newContext({ viewport: { width: 1600, height: 1000 }, colorScheme: 'dark', permissions: ['clipboard-read', 'clipboard-write'] });
    const page = await context.newPage();
    const said = [];
    page.on('console', (message) => said.push(`${message.text()} ${message.location().url}`));
    page.on('pageerror', (error) => said.push(String(error)));
    await page.goto(`${url}/ui/?q=web`);
    await until('the login', async () => (await title(page)) === 'Log in');
    assert.equal(await page.locator('.notice, .chip').count(), 0, 'it is the only thing that the page says');
    assert.equal(await connection(page), 'not logged in');
    assert.match(await page.locator('.login').innerText(), /kubectl create token NAME/);
    const field = page.getByLabel('Token');
    assert.deepEqual(
      await field.evaluate((f) => [f.type, f.autocomplete, f.name, document.activeElement === f, f.form.autocomplete]),
      ['password', 'off', '', true, 'off'],
    );
    assert.deepEqual(await violations(page), { dark: [], light: [] });
    await page.emulateMedia({ colorScheme: 'dark' });
    await shot(page, 'login');

    const problem = page.getByRole('alert');
    for (const [given, words] of [['', 'Paste a token'], ['two words', 'not a token'], ['garbage', 'does not accept this token'], [`${admin.token}x`, 'does not accept this token']]) {
      await logIn(page, given);
      await until(`words about ${given}`, async () => (await problem.innerText()).includes(words));
      assert.equal(await field.inputValue(), '', 'a token that was refused is not kept');
    }
    await shot(page, 'login-refused');
    assert.deepEqual(await violations(page), { dark: [], light: [] });

    // Pasted, with what a terminal adds.
    await page.evaluate((text) => navigator.clipboard.writeText(text), ` ${admin.token}\n`);
    await field.focus();
    await page.keyboard.press('Control+V');
    await page.keyboard.press('Enter');
    await live(page);
    await until('the panel is gone', async () => (await page.locator('.login').count()) === 0);
    assert.match(page.url(), /\?q=web$/, 'the view is the one of the URL');
    assert.match(await page.locator('.logout').getAttribute('title'), new RegExp(admin.username));
    // The strip, the panel, the log: all of them send it.
    const [pod] = Object.keys(await shownPods(page, ns));
    await page.locator('.board').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await until('a panel', async () => (await page.locator('.panel .containers li').count()) > 0);
    await page.getByRole('tab', { name: 'Logs' }).click();
    await until('the log', async () => (await page.locator('.log').innerText()) !== '');
    await until('the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
    assert.ok(pod);
    await page.emulateMedia({ colorScheme: 'dark' });
    await shot(page, 'logged-in');
    for (const width of [1700, 1600, 1440, 1280, 1024, 800, 480]) {
      await page.setViewportSize({ width, height: 1000 });
      const [bar, ...parts] = await page.evaluate(() => [document.querySelector('.top'), ...document.querySelectorAll('.top > *')].map((e) => e.getBoundingClientRect()).map(({ left, right }) => [Math.round(left), Math.round(right)]));
      const shown = parts.filter(([left, right]) => right > left);
      assert.ok(shown.every(([, right]) => right <= bar[1]), `${width}: ${JSON.stringify(shown)}`);
      assert.ok(shown.every(([left], i) => i === 0 || left >= shown[i - 1][1]), `${width}: ${JSON.stringify(shown)}`);
    }
    await page.setViewportSize({ width: 1600, height: 1000 });
    const after = requests.filter(({ authorization }) => authorization === `Bearer ${admin.token}`);
    assert.ok(after.length > 5, `${after.length} requests`);
    for (const part of ['/watchkeeper/v1/multiwatch', '/watchkeeper/v1/history', '/log?', '/api/v1/pods']) assert.ok(after.some(({ url }) => url.includes(part)), part);
    // The page checks the token before the informers have it: their last requests without it may arrive after that check. So each path counts from
    // its own first request with it; what is never requested with it, from the check on.
    const path = ({ url }) => url.split('?')[0];
    const begun = (request) => requests.indexOf(after.find((other) => path(other) === path(request)) ?? after[0]);
    assert.deepEqual(requests.filter((request, i) => !request.authorization && i > begun(request)).map(({ url }) => url), [], 'no request is without it after the login');

    // It is nowhere else.
    const [secret] = admin.token.split('.').slice(-1);
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML, history.state, document.title]));
    assert.ok(!stored.includes(secret), 'in the document or the storage');
    assert.deepEqual(await context.cookies(), []);
    assert.ok(!requests.some(({ url }) => url.includes(secret)), 'in a URL');
    assert.ok(!said.join('\n').includes(secret), 'in the console');
    assert.deepEqual((await page.evaluate(async () => (await indexedDB.databases()).length + (await caches.keys()).length)), 0);

    await page.getByRole('button', { name: 'Log out' }).click();
    await until('the login', async () => (await title(page)) === 'Log in');
    assert.equal(await page.evaluate(() => window.watchkeeper.cluster.pods), 0);
    assert.equal(await page.locator('.panel .containers').count(), 0);
    await page.goBack().catch(() => {});
    await until('still the login', async () => (await title(page)) === 'Log in');
    await context.close();
  });

  test('a token that expires: the page asks again, and goes on with the same view', async (t) => {
    const { url, expire } = await demanding(t);
    const second = (await kubectl('-n', ns, 'create', 'token', 'admin')).trim();
    assert.notEqual(second, admin.token);
    const page = await open(browser, `${url}/ui/?q=ns:${ns}`, refused);
    const first = (await kubectl('-n', ns, 'create', 'token', 'admin', '--duration=2h')).trim();
    await logIn(page, first);
    await live(page);
    const [pod] = Object.keys(await shownPods(page, ns));
    await page.evaluate(() => (window.same = true));
    await page.goto(`${page.url()}#`); // the same document
    const before = await shownPods(page, ns);
    await page.locator('.board').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await until('a panel', async () => (await page.locator('.panel .containers li').count()) > 0);
    const at = page.url();
    expire(first);
    await until('the words', async () => (await title(page)) === 'Your login has expired');
    assert.equal(await connection(page), 'login expired');
    await reads('since when', page.locator('.login'), /known at/);
    assert.deepEqual(await shownPods(page, ns), before, 'the board is still there');
    assert.deepEqual(await violations(page), { dark: [], light: [] });
    await page.emulateMedia({ colorScheme: 'dark' });
    await shot(page, 'login-expired');
    assert.equal(page.url(), at);
    await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=3');
    await logIn(page, second);
    await until('the new Pod', async () => Object.keys(await shownPods(page, ns)).length === 3 && (await connection(page)) === 'live');
    assert.equal(await page.evaluate(() => window.same), true, 'the page was not loaded again');
    assert.equal(page.url(), at, 'the selection and the filter are the same');
    await until('the panel', async () => (await page.locator('.panel .containers li').count()) > 0);
    assert.ok(pod in (await shownPods(page, ns)));
    clean(page);
    await page.close();
  });

  test('a proxy that logs in: nobody is asked', async (t) => {
    const url = await signingIn(t, admin);
    const page = await open(browser, `${url}/ui/`, refused);
    await live(page);
    assert.equal(await page.locator('.login').count(), 0);
    assert.equal(await page.locator('.logout').count(), 0);
    assert.equal(await page.locator('.chip.scope').count(), 0, 'an administrator sees everything');
    clean(page);
    await page.close();
  });

  test('an export is downloaded with the token', async (t) => {
    const { url, requests } = await demanding(t);
    const page = await open(browser, `${url}/ui/?side=changes`, refused);
    await logIn(page, admin.token);
    await live(page);
    await page.getByRole('button', { name: 'export', exact: true }).click();
    const link = page.getByRole('link', { name: 'Download recording.wkr' });
    await until('the form', () => link.isVisible());
    assert.ok(!(await link.getAttribute('href')).includes(admin.token.split('.')[2]));
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    assert.equal(download.suggestedFilename(), 'recording.wkr');
    const folder = mkdtempSync(join(tmpdir(), 'watchkeeper-ui-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'recording.wkr');
    await download.saveAs(file);
    const recording = await startRecording(relative(root, file));
    t.after(() => recording.stop());
    const { items } = await (await fetch(`${recording.url}/api/v1/namespaces/${ns}/pods`)).json();
    assert.ok(items.length >= 2, 'a recording of the Pods');
    const versions = await (await fetch(`${recording.url}/watchkeeper/v1/history/changes?from=1h&objects=true&limit=1000`)).text();
    assert.ok(!versions.includes(admin.token.split('.')[2]) && !readFileSync(file).includes(admin.token));
    assert.ok(requests.some(({ url, authorization }) => url.includes('/history/export') && authorization));
    clean(page);
    await page.close();
  });
});
