// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page of serve --shared: a cluster admin, a user of two namespaces, and nobody.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { clean, launch, open, shot } from './browser.mjs';
import { apply, dir, kubectl, namespace, reads, startGateway, until } from './cluster.mjs';
import { connection, shownPods } from './page.mjs';
import { account, grant, logIn, refused, revoke, shown, shows, signingIn } from './users.mjs';

let browser;
let gateway;
let home;
let past; // a ClusterRole
const ns = {};

before(async () => {
  browser = await launch();
  home = await namespace('shared-users');
  for (const name of ['one', 'two', 'three']) {
    ns[name] = await namespace(`shared-${name}`);
    await kubectl('-n', ns[name], 'create', 'deployment', name, '--image=nginx');
    await kubectl('-n', ns[name], 'rollout', 'status', `deployment/${name}`);
  }
  past = `past-${process.pid}`;
  const rules = [{ nonResourceURLs: ['/at', '/watchkeeper/v1/history'], verbs: ['get'] }];
  await apply({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: past }, rules });
  gateway = await startGateway(['--shared', '--cert-dir', join(dir, `certs-${process.pid}`), '--data-dir', join(dir, `shared-${process.pid}`)]);
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** Opens the page, and logs in. The result has the requests of the page and its worker. */
async function loggedIn(user, query = '') {
  const page = await open(browser, `${gateway.url}/ui/${query}`, { ...refused, ignoreHTTPSErrors: true });
  page.asked = [];
  page.on('request', (request) => page.asked.push(request.url()));
  await logIn(page, user.token);
  return page;
}

/** The page reads only the fields that it needs, from the cache. */
const projected = (page) => {
  const lists = page.asked.filter((url) => /\/api\/v1\/(namespaces\/[^/]+\/)?pods\?/.test(url));
  assert.ok(lists.length > 0);
  for (const url of lists) assert.match(url, /fields=/);
};
/** No request has a token in its URL. */
const discreet = (page, { token }) => assert.ok(!page.asked.some((url) => url.includes(token.split('.')[2])));

describe('shared mode', { concurrency: true }, () => {
  test('a cluster admin sees everything', async () => {
    const user = await account(home, 'admin');
    await grant(user, 'cluster-admin');
    const page = await loggedIn(user);
    await until('the board', async () => (await connection(page)) === 'live' && (await shown(page)).includes(ns.three));
    await until('the Nodes', () => page.evaluate(() => [...window.watchkeeper.cluster.nodes.values()].some(({ row }) => row)));
    assert.equal(await page.locator('.chip').count(), 0);
    projected(page);
    const [pod] = Object.keys(await shownPods(page, ns.two)); // other tests replace Pods in the other namespaces
    await page.goto(`${gateway.url}/ui/?sel=pod/${ns.two}/${pod}&tab=logs`);
    await logIn(page, user.token); // the token went with the document
    await until('its log', async () => (await page.locator('.log').innerText()) !== '');
    await until('the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
    await shot(page, 'shared-admin');
    discreet(page, user);
    clean(page);
    await page.close();
  });

  test('a user of two namespaces', async () => {
    const user = await account(home, 'developer');
    await grant(user, 'view', ns.one);
    await grant(user, 'view', ns.two);
    const page = await loggedIn(user);
    await shows(page, ns.one, ns.two);
    projected(page);
    assert.match(await page.locator('.chip.scope summary').innerText(), /You may not list Nodes/);
    await reads('the refusal of the history', page.locator('footer.time'), /You may not read the history: .*cannot get path "\/watchkeeper\/v1\/history"/);
    await shot(page, 'shared-two-namespaces');
    await kubectl('-n', ns.two, 'scale', 'deployment/two', '--replicas=2');
    await until('a change', async () => Object.keys(await shownPods(page, ns.two)).length === 2);
    // The gateway ends the watch.
    await revoke(user, 'view', ns.two);
    await shows(page, ns.one);
    await grant(user, 'view', ns.three);
    await shows(page, ns.one, ns.three);
    for (const name of ['one', 'three']) await kubectl('-n', ns[name], 'set', 'image', `deployment/${name}`, 'nginx=nginx:1.27');
    // The past is a right of its own.
    await grant(user, past);
    await page.reload();
    await logIn(page, user.token);
    await shows(page, ns.one, ns.three);
    await until('the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
    await page.keyboard.press('c');
    await until('changes', async () => {
      const text = await page.locator('.changes-list').innerText();
      return text.includes(ns.one) && text.includes(ns.three) && !text.includes(ns.two);
    });
    const [pod] = Object.keys(await shownPods(page, ns.one));
    const at = new Date().toISOString();
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await kubectl('-n', ns.one, 'delete', 'pod', pod, '--wait=false');
    await until('the change', async () => !(pod in (await shownPods(page, ns.one))));
    await page.goto(`${gateway.url}/ui/?at=${at}`);
    await logIn(page, user.token);
    await until('the past', async () => (await connection(page)) === 'the past' && pod in (await shownPods(page, ns.one)));
    assert.deepEqual(await shown(page), [ns.one, ns.three].sort());
    await reads('the words', page.locator('.chip.scope'), /Showing 2 namespaces/);
    await shot(page, 'shared-past');
    discreet(page, user);
    clean(page);
    await page.close();
  });

  test('a proxy that logs in: nobody is asked', async (t) => {
    const user = await account(home, 'behind-a-proxy');
    await grant(user, 'view', ns.three);
    const page = await open(browser, `${await signingIn(t, user, gateway.url)}/ui/`, refused);
    await shows(page, ns.three);
    assert.equal(await page.locator('.login, .logout').count(), 0);
    // It goes on with what the proxy sends, and says who is refused.
    await revoke(user, 'view', ns.three);
    await until('nobody', async () => (await page.locator('.nobody').innerText()).includes(user.username), 90);
    assert.equal(await page.getByRole('button', { name: 'Log in as somebody else' }).count(), 0, 'that is up to the proxy');
    clean(page);
    await page.close();
  });

  test('nobody is told whom to ask, and a deleted account has to log in again', async () => {
    const user = await account(home, 'nobody');
    const page = await loggedIn(user);
    await until('the words', async () => (await page.locator('.nobody').innerText()).includes(user.username));
    assert.deepEqual(await shown(page), []);
    await shot(page, 'shared-nobody');
    await grant(user, 'view', ns.three);
    await shows(page, ns.three);
    // The API server does not accept its token any more, and neither does the gateway.
    await kubectl('-n', home, 'delete', 'serviceaccount', 'nobody');
    await until('the login', async () => (await page.locator('.login h1').innerText()) === 'Your login has expired', 90);
    assert.ok((await shown(page)).includes(ns.three), 'the board stays');
    await shot(page, 'shared-expired');
    await logIn(page, user.token);
    await until('the refusal', async () => (await page.locator('#login-problem').innerText()).includes('does not accept this token'));
    discreet(page, user);
    clean(page);
    await page.close();
  });
});
