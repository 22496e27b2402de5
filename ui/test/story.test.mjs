// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The story of an object: the page tells it in the words of the command.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { violations } from './axe.mjs';
import { clean, launch, shot } from './browser.mjs';
import { gateway, kubectl, namespace, startRecording, until, watchkeeper } from './cluster.mjs';
import { front } from './front.mjs';
import { connection, openBoard } from './page.mjs';

const deployment = '/apis/apps/v1/namespaces/shop/deployments/checkout';
const STORY = '/watchkeeper/v1/story';

let browser;
let recording;
let command; // what "watchkeeper story -v" prints: for each episode its lines

before(async () => {
  browser = await launch();
  recording = await startRecording('demo/incident.wkr');
  const { stdout } = await promisify(execFile)(watchkeeper, ['story', 'deployment/checkout', '-n', 'shop', '--server', recording.url, '-v', '--utc', '--color', 'never']);
  command = stdout.split('\n').filter((line) => line.trim());
});

after(async () => {
  await browser?.close();
  await recording?.stop();
});

/** Opens the story of an object, on a page whose zone is that of the command's output. */
const openStory = (url, query = {}, options = {}) => openBoard(browser, url, { sel: deployment, tab: 'story', ...query }, { timezoneId: 'UTC', ...options });
const panel = (page) => page.getByRole('tabpanel');
const episodes = (page) => page.locator('.episode');
const opener = (page, i) => episodes(page).nth(i).locator('> [aria-expanded]');
const words = (text) => text.replace(/\s+/g, ' ').trim();
const told = (page) => until('the story', async () => (await episodes(page).count()) > 0);
const query = (page, name) => new URL(page.url()).searchParams.get(name);

/** The parts of the panel that are wider than it. */
const cutOff = (page) => page.evaluate(() => ['.content', '.tabs'].filter((part) => {
  const { scrollWidth, clientWidth } = document.querySelector(`.panel ${part}`);
  return scrollWidth > clientWidth;
}));

test('it has the words of the command', async () => {
  const page = await openStory(recording.url);
  await told(page);
  const count = await episodes(page).count();
  for (let i = 0; i < count; i++) await opener(page, i).click();
  const shown = await page.evaluate(() => [...document.querySelectorAll('.episode')].flatMap((episode) => {
    const severity = episode.matches('.failed') ? 'failed' : episode.matches('.warning') ? 'warning' : '';
    const title = [...episode.querySelector('.pick').childNodes].filter((node) => !(node instanceof Element && node.matches('.visually-hidden, .muted'))).map((node) => node.textContent).join('');
    const entries = [...episode.querySelectorAll('.entries > li')].map((li) => ['.pick', '.object', '.what'].map((part) => li.querySelector(part).textContent).join(' '));
    return [`${severity} ${episode.querySelector('.when').textContent} ${title}`, ...entries];
  }));
  // The heading, the causes of each episode and the notes are compared below; entries have their resourceVersions as titles.
  // The command refers to its first line instead of the title of the main episode.
  const printed = command.slice(1).filter((line) => /^(failed|warning| {7}) +(since )?\d|^ {4}\d/.test(line))
    .map((line) => line.replace(/^( {4}\d\d:\d\d:\d\d) +\d+ +/, '$1 ').replace(/^(failed|warning) +.* the rollout above$/, `$1 ${command[0]}`));
  assert.ok(printed.length > 100, `${printed.length} lines`);
  assert.deepEqual(shown.map(words), printed.map(words));
  const text = words(await panel(page).innerText());
  const causes = command.filter((line) => /^ {4}[A-Z]/.test(line)).map((line) => line.replace(/ \([a-z]+\/\S+@\d+\)$/, '')); // on the page, a link
  const notes = command.filter((line) => line.startsWith('not recorded, ')); // their order in the page's form: see story.test.ts
  assert.ok(causes.length >= 4 && notes.length === 1, `${causes.length} causes, ${notes.length} notes`);
  for (const line of [...causes, ...notes]) assert.ok(text.includes(words(line)), `${text} has no ${line}`);
  assert.match(text, /not recorded before 23:49:12 UTC/);
  clean(page);
  await page.close();
});

test('an entry leads to its moment, and its object to its panel', async () => {
  const page = await openStory(recording.url, {}, { ignore: /404.*\/pods\// }); // of a Pod that was deleted
  await told(page);
  const all = await episodes(page).locator('> .pick').allInnerTexts();
  await opener(page, 0).click();
  const entry = episodes(page).first().locator('.entries > li').filter({ hasText: '1.0 → 1.1' });
  const before = await page.locator('.story .span b').innerText();
  await entry.locator('.pick').click();
  await until('the past', async () => (await connection(page)) === 'the past');
  assert.match(query(page, 'at'), /^rv:\d+$/);
  assert.equal(await entry.getAttribute('class'), 'current');
  await until('the whole story', async () => (await page.locator('.story').getAttribute('aria-busy')) === 'false');
  assert.equal(await page.locator('.story .span b').innerText(), before, 'it does not end at the moment that was chosen in it');
  assert.deepEqual(await episodes(page).locator('> .pick').allInnerTexts(), all);
  await shot(page, 'story-past');
  // Up to this moment, it had only begun.
  await page.getByRole('button', { name: 'clear the range' }).click();
  await until('the story up to the moment', async () => (await episodes(page).locator('> .pick').allInnerTexts()).every((title) => !title.includes('rolled back')));
  await page.goBack();
  await until('the whole story, still open', async () => (await episodes(page).locator('> .pick').allInnerTexts()).length === all.length && (await opener(page, 0).getAttribute('aria-expanded')) === 'true');
  const pod = episodes(page).first().locator('.entries .object').filter({ hasText: /^Pod / }).first();
  const name = (await pod.innerText()).replace('Pod ', '');
  await pod.click();
  await until('its Pod', async () => (await page.locator('.panel h2').innerText()) === name);
  await page.getByRole('tab', { name: 'Story' }).click();
  await until('the story of the Pod', async () => query(page, 'tab') === 'story' && (await episodes(page).locator('> .pick').allInnerTexts()).some((title) => title.includes('failed: 6 Pods CrashLoopBackOff')));
  await page.setViewportSize({ width: 400, height: 800 });
  assert.deepEqual(await cutOff(page), [], 'with the tabs of a Pod');
  await shot(page, 'story-pod');
  clean(page);
  await page.close();
});

test('the most important episode comes first', async () => {
  const page = await openStory(recording.url, { sel: 'node/node-4' }, { width: 1280, height: 900 });
  await told(page);
  const lead = page.getByRole('region', { name: 'The most important episode' });
  assert.match(await lead.innerText(), /Node node-4 NotReady \(NodeStatusUnknown/);
  assert.doesNotMatch(await episodes(page).first().innerText(), /NotReady/);
  await shot(page, 'story-node');
  await lead.locator('.title').click();
  const own = page.locator('.episode').filter({ hasText: 'Node node-4 NotReady' });
  await until('its entries', async () => (await own.locator('.entries > li').count()) > 10);
  assert.equal(await own.locator('.causes').count(), 0, 'what the objects say is above');
  await until('the focus', () => own.locator('.pick[aria-expanded=true]').evaluate((element) => element === document.activeElement));
  clean(page);
  await page.close();
});

test('how long it is can be chosen', async () => {
  const page = await openStory(recording.url);
  await told(page);
  await page.getByLabel('Length of the story').selectOption('600');
  await until('the URL', () => query(page, 'story') === '600');
  await until('ten minutes', async () => (await page.locator('.story .span b').innerText()).startsWith('23:43:48'));
  clean(page);
  await page.close();
});

test('it can be read with the keyboard, and by screen readers', async () => {
  const page = await openStory(recording.url, {}, { width: 1280, height: 900, reducedMotion: 'reduce' });
  await told(page);
  await opener(page, 0).focus();
  await page.keyboard.press('ArrowRight');
  await until('its entries', async () => (await opener(page, 0).getAttribute('aria-expanded')) === 'true');
  await page.keyboard.press('ArrowDown');
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^\d\d:\d\d:\d\d$/, 'the first entry');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowLeft');
  await until('no entries', async () => (await page.locator('.entries').count()) === 0);
  assert.equal(await opener(page, 0).evaluate((element) => element === document.activeElement), true, 'the episode of the entry');
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.evaluate(() => document.activeElement.closest('.episode').previousElementSibling !== null), true, 'the second episode');
  assert.equal(await page.getByRole('button', { name: /^failed: rollout of checkout from 1\.0 to 1\.1/ }).count(), 1, 'the severity is said, too');
  for (const open of [false, true]) {
    if (open) await opener(page, 0).click();
    for (const [width, height] of [[1280, 900], [400, 800]]) {
      await page.setViewportSize({ width, height });
      assert.deepEqual(await violations(page), { dark: [], light: [] });
      for (const colorScheme of ['dark', 'light']) {
        await page.emulateMedia({ colorScheme });
        await until(colorScheme, () => page.evaluate((scheme) => document.documentElement.dataset.theme === scheme, colorScheme));
        await shot(page, `story-${width}-${colorScheme}${open ? '-open' : ''}`);
      }
      assert.deepEqual(await cutOff(page), [], `at ${width} px`);
    }
  }
  clean(page);
  await page.close();
});

test('of what the API says instead', async (t) => {
  let answer = null;
  const url = await front(t, (target, _, outgoing) => {
    if (!target.pathname.startsWith(STORY) || !answer) return new URL(target.pathname + target.search, recording.url);
    if (!answer.code) return void outgoing.socket.destroy();
    outgoing.writeHead(answer.code, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify({ kind: 'Status', status: 'Failure', code: answer.code, message: answer.message }));
  });
  for (const [given, want] of [
    [{ code: 403, message: 'deployments.apps is forbidden: User "x" cannot list it' }, 'You may not read this story: deployments.apps is forbidden: User "x" cannot list it'],
    [{ code: 404, message: 'nothing is recorded: give watchkeeper serve a --data-dir' }, 'There is no story: nothing is recorded: give watchkeeper serve a --data-dir'],
    [{ code: 503, message: 'the API server does not answer' }, 'The story cannot be told now: the API server does not answer'],
    [{}, 'The gateway does not answer.'],
  ]) {
    answer = given;
    const page = await openStory(url, {}, { ignore: /status of \d+.*\/story\/|ERR_.*\/story\// });
    await until(want, async () => words(await panel(page).innerText()).endsWith(want));
    if (!given.code) {
      answer = null; // it asks again by itself
      await told(page);
    }
    clean(page);
    await page.close();
  }
  const page = await openStory(recording.url, { at: '2026-11-21T23:49:14Z' });
  await until('a time without changes', async () => (await panel(page).innerText()).includes('nothing has changed in that time'));
  clean(page);
  await page.close();
});

test('it goes on while the object changes, and only while it is shown', async () => {
  const ns = await namespace('story');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx:1', '--replicas=2');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  const path = `/apis/apps/v1/namespaces/${ns}/deployments/web`;
  const page = await openStory(gateway, { sel: path });
  const asked = [];
  page.on('request', (request) => new URL(request.url()).pathname.startsWith(STORY) && asked.push(Date.now()));
  await told(page);
  const first = new Date().toISOString();
  await kubectl('-n', ns, 'set', 'image', 'deployment/web', '*=nginx:2');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  await until('the rollout', async () => (await episodes(page).locator('> .pick').allInnerTexts()).some((title) => /rollout of web from 1 to 2 \(revision 2, by kubectl-set\)/.test(title)));
  await shot(page, 'story-live');
  // In the past, it ends at the shown moment.
  const past = await openStory(gateway, { sel: path, at: first });
  await told(past);
  assert.doesNotMatch(await panel(past).innerText(), /nginx:2|rollout of web from 1 to 2/);
  await page.getByRole('tab', { name: 'Overview' }).click();
  const before = asked.length;
  for (let i = 0; i < 4; i++) {
    await kubectl('-n', ns, 'annotate', '--overwrite', 'deployment/web', `n=${i}`);
    await page.waitForTimeout(2000);
  }
  assert.equal(asked.length, before, 'not while another tab is shown');
  for (const one of [page, past]) {
    clean(one);
    await one.close();
  }
});
