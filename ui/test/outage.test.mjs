// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page while the API server or the gateway is down: it says since when its data
// is stale, reassures nobody, and recovers without a reload.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch, open, shot } from './browser.mjs';
import { apply, dir, gateway, kubectl, namespace, reads, signal, startComponent, startGateway, until } from './cluster.mjs';
import { front } from './front.mjs';
import { blockOf, clickOn, connection, goTo, openBoard, pixels, settled, shownPods, truth } from './page.mjs';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/** Marks the page. A reload would remove the mark. */
const mark = (page) => page.evaluate(() => (window.marked = true));

/** Returns the last moment that words such as 14:02:09 and 2026-01-31 14:02:09 mean: the page says the date if it is not today. */
function lastMoment(words) {
  const [, date, time] = words.match(/^(\d{4}-\d\d-\d\d )?(\d\d:\d\d:\d\d) UTC\S*$/);
  const [h, m, s] = time.split(':').map(Number);
  const at = date ? new Date(`${date}00:00`) : new Date();
  at.setHours(h, m, s, 999);
  if (!date && at > Date.now() + 1000) at.setDate(at.getDate() - 1); // it was read before midnight
  return at.getTime();
}

/**
 * Returns a port below those that the kernel uses for outgoing connections (32768 and up
 * on Linux): Chromium reconnects while the gateway is down, and could take its port.
 */
async function freePort() {
  let port = 32000; // clustertest, localcluster and the scripts of cmd/watchkeeper use lower ones
  await until('a free port', () => new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(++port, '127.0.0.1', () => server.close(() => resolve(true)));
  }));
  return port;
}

/** Whether a Pod's block has the vivid colour of a state. */
async function vivid(page, ns) {
  const [name] = Object.keys(await shownPods(page, ns));
  const block = await blockOf(page, ns, name);
  return (await pixels(page, block)).some((rgb) => Math.max(...rgb) - Math.min(...rgb) > 100);
}

/** Nothing on the page looks as if the cluster were known to be well. */
async function reassuresNobody(page, ns) {
  const needs = page.locator('.needs');
  await until('the same moment on the board and in the list', async () => {
    const [, since] = (await page.getByRole('alert').innerText()).match(/^Stale since ([^.]+)\./);
    return (await needs.innerText()).includes(`Unknown since ${since}`); // of the watch that is silent the longest, as more of them fail
  });
  assert.doesNotMatch(await needs.innerText(), /healthy/);
  assert.match(await page.title(), /^no contact/);
  await until('pale blocks', async () => !(await vivid(page, ns)));
  const counter = page.getByRole('timer');
  const first = await counter.innerText();
  await until('the counter to run', async () => (await counter.innerText()) !== first);
}

/** Waits until the page says that it is stale, since a moment not before notBefore. Pods stay unchanged. */
async function goesStale(page, ns, notBefore, why) {
  const before = await shownPods(page, ns);
  const words = await until('words on the board', async () => {
    const text = await page.getByRole('alert').innerText();
    if (!(/^Stale since/.test(text) && why.test(text))) throw new Error(text);
    return text; // the first error may have another cause
  });
  const since = lastMoment(words.match(/^Stale since ([^.]+)\./)[1]);
  assert.ok(since >= notBefore && since <= Date.now() + 1000, `${words}, the time is ${new Date()}, and the page was live at ${new Date(notBefore)}`);
  assert.match(await connection(page), /^stale\s+for (\d+s|\d+m(\d+s)?)$/);
  assert.deepEqual(await shownPods(page, ns), before, 'the last known state is shown');
  const [notice, board] = [await page.getByRole('alert').boundingBox(), await page.locator('.board').boundingBox()];
  assert.ok(notice.y + notice.height <= board.y, 'the words are not over the names of the Nodes');
  await reassuresNobody(page, ns);
}

/** Waits until the page is live again, without a reload. */
async function comesBack(page, ns, count) {
  await settled(page, ns, count);
  await until('a live page', async () => (await connection(page)) === 'live' && (await page.getByRole('alert').count()) === 0);
  assert.equal(await page.evaluate(() => window.marked), true, 'the page was not reloaded');
  assert.doesNotMatch(await page.locator('.needs').innerText(), /Unknown/);
  assert.doesNotMatch(await page.title(), /no contact/);
  await until('blocks in their colours', () => vivid(page, ns));
}

test('the API server is killed and restarts', async (t) => {
  const ns = await namespace('outage');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  const held = await namespace('outage-held');
  await kubectl('-n', held, 'create', 'quota', 'none', '--hard=pods=0');
  await kubectl('-n', held, 'create', 'deployment', 'held-back', '--image=nginx');
  t.after(() => kubectl('-n', held, 'delete', 'deployment', 'held-back').catch(() => {})); // others do not expect it
  const findings = async (page) => (await page.locator('.needs').innerText()).includes('Pods cannot be created');
  const failing = await namespace('outage-failing');
  await apply({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: failing, name: 'crashing' }, spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'web', image: 'x' }] } });
  await kubectl('-n', failing, 'patch', 'pod', 'crashing', '--subresource=status', '--type=merge', '-p', JSON.stringify({ status: {
    phase: 'Running', conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: new Date().toISOString() }],
    containerStatuses: [{ name: 'web', image: 'x', imageID: '', ready: false, restartCount: 5, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: { reason: 'Error', exitCode: 3, finishedAt: new Date().toISOString() } } }],
  } }));
  t.after(() => kubectl('-n', failing, 'delete', 'pod', 'crashing', '--force', '--grace-period=0').catch(() => {}));
  // A gateway answers so in an outage for what nobody has read from it before.
  const without = (...names) => front(t, (url, _, outgoing) => {
    if (url.pathname.startsWith('/at/') || !names.some((name) => url.pathname.endsWith(`/${name}`))) return url;
    outgoing.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify({ kind: 'Status', status: 'Failure', message: `${names} cannot be served from the cache now`, reason: 'ServiceUnavailable', code: 503 }));
    return undefined;
  });
  const page = await openBoard(browser, gateway);
  await until('the Deployment without Pods', () => findings(page));
  await settled(page, ns, 3);
  await until('a live page', async () => (await connection(page)) === 'live'); // the watches follow the lists
  await mark(page);
  const well = await page.evaluate(() => Date.now()) - 120_000; // bookmarks come every minute
  await signal('kube-apiserver');
  t.after(() => startComponent('kube-apiserver').catch(() => {})); // other tests need it
  await goesStale(page, ns, well, /No answer from the API server: .*refused/);
  await shot(page, 'stale');

  // A page that is opened meanwhile is stale too, and shows what the gateway has cached.
  const late = await openBoard(browser, gateway, {}, { ignore: /status of 503/ }); // Chromium logs what the API server would have to answer
  await mark(late);
  await goesStale(late, ns, well, /No answer from the API server/);
  for (const each of [page, late]) await until('what else needed attention then', () => findings(each));
  await late.keyboard.press('c');
  await reads('since when no changes are known', late.locator('.changes'), /Nothing is known since \S/);
  await late.keyboard.press('n');

  for (const width of [1000, 1100, 1280, 1400, 1500, 1600, 1700, 1900]) {
    await late.setViewportSize({ width, height: 1000 });
    const [counts, words] = await late.evaluate(() => [Math.max(...[...document.querySelectorAll('.legend > *')].map((one) => one.getBoundingClientRect().right)), document.querySelector('.connection').getBoundingClientRect().left]);
    assert.ok(counts <= words, `at ${width} pixels the counts end at ${counts}, and the connection begins at ${words}`);
  }
  await late.setViewportSize({ width: 1600, height: 1000 });

  // So is one of a gateway that has only a part, and it says which.
  const ignore = /status of (503|404|410)/; // 410: when contact is back, now is still in the gap of some resources
  const part = await openBoard(browser, await without('nodes', 'namespaces'), { q: `ns:${failing}` }, { ignore });
  await mark(part);
  await goesStale(part, ns, well, /No answer from the API server: .*refused.* It is not everything: The Nodes could not be read\.$/);
  await blockOf(part, failing, 'crashing');
  assert.match(await part.locator('.search .count').innerText(), /^1 of /);
  assert.doesNotMatch(await part.locator('header.top').innerText(), /node/);
  await reads('the failing Pod, and that there may be more', part.locator('.needs'), /The Nodes could not be read\. This needed attention then, and more may have:.*crashing\s+CrashLoopBackOff/s);
  await shot(part, 'stale-part');
  await part.keyboard.press('Control+k');
  await reads('that the opener does not know all names', part.locator('.opener'), /Not all namespaces are known: \S.*cannot be served/);
  await part.keyboard.press('Escape');
  const table = await open(browser, `${await without('nodes', 'pods', 'deployments')}/ui/?view=table&kind=deployments.apps`, { ignore });
  await until('the last recorded state', async () => /Unknown since \S+ UTC\. This is the last recorded state\./.test(await table.locator('.kinds-bar').innerText()) && (await table.locator('.kinds .line', { hasText: 'held-back' }).count()) === 1);
  await until('the failing Pod that no board has', async () => /crashing.*CrashLoopBackOff/s.test(await table.locator('.needs').innerText()) && /more may have:/.test(await table.locator('.needs').innerText()));
  assert.doesNotMatch(await table.locator('header.top').innerText(), /failing/);
  await table.close();
  // If it has nothing, the page says since when, and leads to the last recorded state.
  const nothing = await open(browser, `${await without('nodes', 'pods')}/ui/`, { ignore });
  const noContact = await until('since when nothing is known', async () => /^No contact since (\S.*)\s+No answer from the API server: .*refused/.exec(await nothing.getByRole('alert').innerText()));
  const since = lastMoment(noContact[1]);
  assert.ok(since >= well && since < Date.now() - 5000, `${noContact[1]} is the last contact, and not when the page was opened`);
  assert.match(await connection(nothing), /^stale\s+for \d/);
  assert.ok((await nothing.locator('.needs').innerText()).includes(`Unknown since ${noContact[1]}`));
  assert.doesNotMatch(await nothing.locator('body').innerText(), /cannot be served/);
  await shot(nothing, 'stale-nothing');
  await nothing.getByRole('button', { name: 'Show the last recorded state' }).click();
  await until('the Pods of then', async () => Object.keys(await shownPods(nothing, ns)).length === 3 && (await connection(nothing)) === 'the past, no contact');
  await nothing.close();

  // The past is shown as far as it is recorded, but does not hide that the API server is gone.
  const past = await openBoard(browser, gateway, { at: new Date(well + 120_000).toISOString() }, { ignore: /status of 503/ });
  await reads('words in the past', past.getByRole('alert'), /^No contact since .*No answer from the API server/s);
  assert.equal(await connection(past), 'the past, no contact');
  await past.goto(`${await without('nodes')}/ui/?${new URLSearchParams({ at: new Date(well + 120_000).toISOString() })}`);
  await reads('the same words without Nodes', past.getByRole('alert'), /^No contact since .*No answer from the API server: .*refused/s);
  await past.close();

  // The details of a Pod are those of the last contact.
  await clickOn(late, ns, Object.keys(await shownPods(late, ns))[0]);
  await until('its containers', async () => (await late.locator('.panel .containers li').count()) === 1);
  assert.match(await late.locator('.panel .unknown-since').innerText(), /^\s*Unknown since .* This is the last known state\.$/);
  assert.equal(await late.locator('.panel .failure').count(), 0);
  await shot(late, 'stale-pod');
  await late.keyboard.press('Escape');

  await startComponent('kube-apiserver');
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=5');
  // The controller manager waits before it retries, the longer the outage was.
  await until('5 running Pods', async () => {
    const pods = Object.values(await truth(ns));
    return pods.length === 5 && pods.every(({ status }) => status === 'Running');
  }, 180);
  await comesBack(page, ns, 5);
  await comesBack(late, ns, 5);
  for (const each of [page, late, part]) {
    clean(each);
    await each.close();
  }
});

test('the gateway is killed and restarts after many changes', async (t) => {
  const ns = await namespace('outage-gateway');
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  // After the outage of the test before, the controller manager's own watches are late. Pods
  // that are deleted before it has seen them are not replaced: it waits for their creation.
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web', '--timeout=3m');
  await kubectl('-n', ns, 'create', 'service', 'clusterip', 'lost', '--tcp=80');
  const flags = ['--data-dir', `${dir}/history-of-outage`];
  const first = await startGateway(flags, undefined, await freePort());
  t.after(() => first.stop());
  // Chromium says on the console which requests have failed. When the gateway has just started, now is still in the gap of some resources.
  const options = { ignore: /status of 410|ERR_CONNECTION_(REFUSED|RESET|CLOSED)|ERR_SOCKET_NOT_CONNECTED|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING/ };
  const page = await openBoard(browser, first.url, {}, options);
  await settled(page, ns, 3);
  await mark(page);
  const at = await until('a recording', async () => {
    const now = new Date().toISOString();
    const lists = await Promise.all(['pods', 'nodes'].map((name) => fetch(`${first.url}/at/${now}/api/v1/${name}`)));
    return lists.every(({ ok }) => ok) && now;
  });
  const past = await openBoard(browser, first.url, { at }, options);
  await mark(past);
  const well = Date.now() - 120_000;
  // So that a moment before the outage is known of all resources that are shown below.
  await kubectl('annotate', 'nodes', '--all', `${ns}=seen`);
  await kubectl('-n', ns, 'annotate', 'pods,deployments', '--all', `${ns}=seen`);
  await until('these changes in the record', async () => {
    const { items } = await (await fetch(`${first.url}/watchkeeper/v1/history/changes?since=1m&type=MODIFIED&resource=pods&resource=nodes&resource=deployments.apps`)).json();
    return ['pods', 'nodes', 'deployments.apps'].every((resource) => items.some((item) => item.resource === resource && item.summary?.some((line) => line.includes(`${ns}`))));
  });
  const killed = Date.now();
  await first.stop('SIGKILL');
  await goesStale(page, ns, well, /The gateway cannot be reached/);
  assert.deepEqual(await violations(page), { dark: [], light: [] });
  // The past is shown as far as it is recorded, but does not hide that the gateway is gone.
  await reads('words in the past', past.getByRole('alert'), /^No contact since .*The gateway cannot be reached/s);
  assert.equal(await connection(past), 'the past, no contact');
  // A board of the past is not the last known state.
  await past.keyboard.press('Escape');
  await reads('the board to be covered', past.getByRole('alert'), /^No contact since .*The gateway cannot be reached/s);
  assert.match(await past.locator('.needs').innerText(), /Unknown since (?!.*(healthy|then))/s);
  await kubectl('-n', ns, 'delete', 'pods', '--all', '--wait=false');
  await kubectl('-n', ns, 'delete', 'service', 'lost');
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=4');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web', '--timeout=3m');
  const gap = new Date((killed + Date.now()) / 2).toISOString();
  const second = await startGateway(flags, undefined, Number(new URL(first.url).port));
  t.after(() => second.stop());
  for (const each of [page, past]) await comesBack(each, ns, 4);

  // Nothing was observed meanwhile: the page says so in its own words, with the two nearest known moments.
  const inGap = await openBoard(browser, second.url, {}, { ignore: /status of 410/ });
  const go = (query) => inGap.evaluate((search) => {
    history.pushState(null, '', search);
    dispatchEvent(new PopStateEvent('popstate'));
  }, `?${new URLSearchParams(query)}`);
  for (const query of [{}, { view: 'table', kind: 'deployments.apps' }, { view: 'sheet', kind: 'pods' }]) {
    for (const button of [0, 1]) {
      await go({ ...query, at: gap });
      const notice = inGap.locator('.notice.absent');
      await until('words', async () => {
        assert.match(await notice.innerText(), /Nothing was observed of \S+ from (\S+ )?\d\d:\d\d:\d\d UTC\S* to (\S+ )?\d\d:\d\d:\d\d UTC\S*\.\s+The nearest known moments:/);
        return true;
      });
      assert.doesNotMatch(await inGap.locator('body').innerText(), /recorded history|\d{4}-\d\d-\d\dT/);
      await until('two moments', async () => (await notice.locator('.nearest button').count()) === 2);
      if (!query.view) await shot(inGap, 'gap');
      await notice.locator('.nearest button').nth(button).click();
      await until('a known moment', async () => (await notice.count()) === 0 && (await connection(inGap)) === 'the past');
      const at = Date.parse(new URL(inGap.url()).searchParams.get('at'));
      assert.ok(button ? at > Date.parse(gap) : at < Date.parse(gap), `${new Date(at).toISOString()} for the gap at ${gap}`);
    }
  }

  // The RV of a deletion in the gap is no moment of the board: it is shown as of the end of the gap.
  const lost = `/api/v1/namespaces/${ns}/services/lost`;
  const [deletion] = (await (await fetch(`${second.url}/watchkeeper/v1/history/versions${lost}`)).json()).items;
  assert.ok(deletion.type === 'DELETED' && deletion.notBefore, JSON.stringify(deletion));
  const restore = await openBoard(browser, second.url, { side: 'changes', only: 'deleted', q: `ns:${ns}` }, { ignore: /status of 4\d\d/ });
  const restorable = async () => reads('its last state', restore.locator('.panel'), /Service lost.*Deleted at \S+ UTC \(not before \S+\)\. This is its last recorded state\.\s+Create again now…/s);
  await restore.locator('.changes-list li.deleted .pick').filter({ hasText: /Service lost/ }).click();
  await restorable();
  const noticed = new URL(restore.url()).searchParams.get('at');
  assert.ok(Date.parse(noticed) >= Date.parse(deletion.time) && Date.parse(noticed) < Date.parse(deletion.time) + 10_000, `${noticed} for ${deletion.time}`);
  await until('the board', async () => (await connection(restore)) === 'the past' && (await restore.locator('.notice.absent').count()) === 0);
  await goTo(restore, second.url, { at: `rv:${deletion.resourceVersion}`, sel: lost, q: `ns:${ns}` });
  await restorable();
  for (const each of [page, past, inGap, restore]) {
    clean(each);
    await each.close();
  }
});
