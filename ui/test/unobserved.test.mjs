// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// What changed in a time that was not observed: nothing on the page has only the end of that
// time. Each change of a recording gets another time, 40 years later, with its own as the
// begin; wherever the page has a year of then, it has to say "not before".

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, shot } from './browser.mjs';
import { reads, startRecording, until } from './cluster.mjs';

const deployment = '/apis/apps/v1/namespaces/shop/deployments/checkout';

let browser;
let recording;

before(async () => {
  browser = await launch();
  recording = await startRecording('demo/incident.wkr');
});

after(async () => {
  await browser?.close();
  await recording?.stop();
});

const later = (time) => time.replace(/^20(\d\d)/, (_, year) => `20${Number(year) + 40}`);

/** Puts each change, episode and failure of an answer at the end of a gap. */
function move(value) {
  if (Array.isArray(value)) return value.forEach(move);
  if (!value || typeof value !== 'object') return;
  const { time, since, from, to, episodes, type, title, sinceKnown, oldest } = value;
  if (time && type) Object.assign(value, { notBefore: time, time: later(time) });
  if (oldest) oldest.time = later(oldest.time);
  if (since && sinceKnown !== undefined) value.notBefore = new Date(Date.parse(since) - 60_000).toISOString();
  if (from && title && !episodes) Object.assign(value, { notBefore: from, endNotBefore: to, from: later(from), to: later(to) });
  for (const [key, child] of Object.entries(value)) if (!['object', 'before', 'changes'].includes(key)) move(child);
}

/** Opens the page, with all that happened at the end of a gap. */
async function openMoved(query) {
  const page = await open(browser, 'about:blank', { timezoneId: 'UTC' });
  await page.route('**/watchkeeper/v1/**', async (route) => {
    if (!/\/(history\/(changes|versions|failing|diff)|story|findings)/.test(route.request().url())) return route.fallback();
    const response = await route.fetch();
    const json = await response.json();
    if (/\/diff/.test(response.url())) for (const side of ['from', 'to']) if (json[side]) json[side].time = later(json[side].time);
    move(json);
    await route.fulfill({ response, json });
  });
  const { close } = page;
  page.close = async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await close.call(page);
  };
  await page.goto(`${recording.url}/ui/?${new URLSearchParams(query)}`);
  return page;
}

/** The times of then, each with the smallest part of the page that is about it, or with the attribute that has it. */
const found = (page) => page.evaluate(() => {
  const out = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && /206\d-/.test(node.textContent));
    if (own) out.push((element.closest('li, p, dd, option, [role="status"]') ?? element).innerText);
    for (const { name, value } of element.attributes) if (!['datetime', 'id'].includes(name) && /206\d-/.test(value)) out.push(value);
  }
  return out;
});

/** Checks a view, once it has such a time. */
async function check(page, view, least = 1) {
  const times = await until(`times in ${view}`, async () => {
    const all = await found(page);
    return all.length >= least && all;
  });
  for (const text of times) assert.match(text, /not before/, `${view}: ${text}`);
}

test('a list of changes, and versions that are compared', async () => {
  const page = await openMoved({ side: 'changes' });
  await page.getByRole('combobox', { name: 'Range' }).selectOption('3600');
  await check(page, 'changes', 10);
  await page.close();

  const versions = await openMoved({ sel: deployment, tab: 'versions' });
  await check(versions, 'versions', 5);
  await versions.getByRole('button', { name: 'status updates', exact: true }).click();
  await check(versions, 'status updates', 10);
  const buttons = versions.getByRole('button', { name: /^Compare the version of/ });
  for (const button of [buttons.nth(0), buttons.last()]) await button.click();
  await until('the comparison', async () => (await versions.locator('.comparison .bound').allInnerTexts()).every((text) => /not before/.test(text)));
  await check(versions, 'comparison', 10);
  await shot(versions, 'unobserved-versions');
  await versions.close();
});

test('a story', async () => {
  const page = await openMoved({ sel: deployment, tab: 'story' });
  await until('episodes', async () => (await page.locator('.episode').count()) > 0);
  for (const opener of await page.locator('.episode > [aria-expanded]').all()) await opener.click();
  await check(page, 'story', 10);
  await shot(page, 'unobserved-story');
  await page.close();
});

test('a deleted Pod', async () => {
  const query = new URLSearchParams({ from: '2026-11-21T20:00:00Z', to: '2026-11-22T00:00:00Z', resource: 'pods', type: 'DELETED' });
  const { items } = await (await fetch(`${recording.url}/watchkeeper/v1/history/changes?${query}`)).json();
  const { namespace, name } = items.at(-1);
  const page = await openMoved({ sel: `pod/${namespace}/${name}` });
  await check(page, 'a deleted Pod');
  assert.match(await page.locator('.was-deleted').innerText(), /^ *Deleted at 206.*\(not before .*\)\./);
  assert.match(await page.locator('.panel').innerText(), /lived at least .*s?/);
  for (const words of (await page.locator('.containers .words').allInnerTexts()).filter((text) => /\bran for\b/.test(text))) assert.match(words, /at (least|most)/);
  await shot(page, 'unobserved-deleted');
  await page.close();
});

test('a Pod that fails, and what needs attention', async () => {
  const page = await openMoved({ at: '2026-11-21T23:50:55Z' });
  await until('an entry', async () => {
    const ages = await page.locator('.needs li:has(.words.failing) time').evaluateAll((all) => all.map((time) => `${time.textContent} ${time.title}`));
    assert.ok(ages.some((text) => /\+.*not before/.test(text)), ages.join('; '));
    return true;
  });
  await page.locator('.needs li:has(.words.failing) button').first().click();
  await reads('since when', page.locator('.panel .state').first(), /failing for at least \d+[^]*Since [^]* \(not before /);
  await page.close();
});
