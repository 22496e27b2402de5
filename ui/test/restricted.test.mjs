// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Users who may read Pods in some namespaces, or in none.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch, open, shot } from './browser.mjs';
import { apply, kubectl, namespace, reads, startGateway, until } from './cluster.mjs';
import { connection, goTo, shownPods } from './page.mjs';
import { account, demanding, grant, logIn, refused, revoke, shown, shows, signingIn } from './users.mjs';

let browser;
let home; // of the ServiceAccounts
const ns = {};

before(async () => {
  browser = await launch();
  home = await namespace('users');
  for (const name of ['one', 'two', 'three', 'four']) {
    ns[name] = await namespace(`restricted-${name}`);
    await kubectl('-n', ns[name], 'create', 'deployment', name, '--image=nginx');
    await kubectl('-n', ns[name], 'rollout', 'status', `deployment/${name}`);
  }
});

after(() => browser?.close());

describe('restricted users', { concurrency: true }, () => {
  test('a user of two namespaces sees their Pods, and later those of a third', async (t) => {
    const user = await account(home, 'two-namespaces');
    await grant(user, 'view', ns.one);
    await grant(user, 'view', ns.two);
    const { url, requests } = await demanding(t);
    const page = await open(browser, `${url}/ui/`, refused);
    await logIn(page, user.token);
    await shows(page, ns.one, ns.two);
    assert.match(await page.locator('.chip.scope summary').innerText(), /You may not list Nodes: the Pods are grouped by the names of their Nodes, whose states are not known/);
    await page.locator('.chip.scope summary').click();
    assert.match(await page.locator('.chip.scope').innerText(), new RegExp(`"${user.username}" cannot list resource "nodes"`));
    await page.locator('.chip.scope summary').click();
    const pods = Object.values(await shownPods(page, ns.one));
    assert.match(pods[0].node, /^node-/, 'grouped by the name of the Node');
    await reads('what needs attention', page.locator('.needs'), /1 Pod|2 Pods in 2 namespaces/);
    await reads('what is not checked', page.locator('.needs'), /All healthy: 2 Pods in 2 namespaces\. Nodes are not checked\./);
    assert.deepEqual(await violations(page), { dark: [], light: [] });
    await page.emulateMedia({ colorScheme: 'dark' });
    await shot(page, 'two-namespaces');
    const carried = requests.filter(({ url }) => url.includes('/multiwatch'));
    assert.ok(carried.length > 0);

    await kubectl('-n', ns.two, 'scale', 'deployment/two', '--replicas=2');
    await until('a change', async () => Object.keys(await shownPods(page, ns.two)).length === 2);
    await grant(user, 'view', ns.three);
    await shows(page, ns.one, ns.two, ns.three);
    await revoke(user, 'view', ns.one);
    await shows(page, ns.two, ns.three);
    // Everything, and back to one.
    await grant(user, 'cluster-admin');
    await until('the whole cluster', async () => (await page.locator('.chip.scope').count()) === 0 && (await shown(page)).includes('kube-system') === false && (await shown(page)).includes(ns.four) && (await connection(page)) === 'live', 120);
    clean(page);
    await page.close();
  });

  test('a user of two namespaces sees their past', async (t) => {
    const user = await account(home, 'past-of-two');
    const onlyPods = `only-pods-${process.pid}`;
    await kubectl('create', 'clusterrole', onlyPods, '--verb=get,list,watch', '--resource=pods');
    await grant(user, 'view', ns.one);
    await grant(user, onlyPods, ns.four);
    const url = await signingIn(t, user);
    const page = await open(browser, `${url}/ui/`, refused);
    await shows(page, ns.one, ns.four);
    const [pod] = Object.keys(await shownPods(page, ns.four));
    // The strip and the changes are those of the two namespaces.
    await until('the counts of the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
    await page.keyboard.press('c');
    await until('changes of both', async () => {
      const text = await page.locator('.changes-list').innerText();
      return text.includes(ns.one) && text.includes(ns.four);
    });
    const listed = await page.locator('.changes-list').innerText();
    assert.ok(!listed.includes(ns.two) && !listed.includes(ns.three), 'and no others');
    await reads('what is left out', page.locator('.side.changes'), /Left out, where you may not list them: .*deployments\.apps/);
    await page.getByRole('button', { name: 'export', exact: true }).click();
    assert.deepEqual((await page.getByRole('combobox', { name: 'Namespace' }).locator('option').allInnerTexts()).filter((name) => name === 'all namespaces'), []);
    await shot(page, 'changes-of-two');
    await page.keyboard.press('c');
    const at = new Date().toISOString();
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await kubectl('-n', ns.four, 'delete', 'pod', pod, '--wait=false');
    await until('the change', async () => !(pod in (await shownPods(page, ns.four))));
    await goTo(page, url, { at });
    await until('the past', async () => (await connection(page)) === 'the past' && pod in (await shownPods(page, ns.four)));
    assert.deepEqual(await shown(page), [ns.four, ns.one].sort());
    assert.match(await page.locator('.chip.scope').innerText(), /Showing 2 namespaces that you may read/);
    await page.keyboard.press(' ');
    await until('the replay, which ends live', async () => (await connection(page)) === 'live' && !(pod in (await shownPods(page, ns.four))));
    clean(page);
    await page.close();
  });

  test('nobody: the page says whom to ask, and shows what is granted later', async (t) => {
    const user = await account(home, 'nobody');
    const { url } = await demanding(t);
    const page = await open(browser, `${url}/ui/`, refused);
    await logIn(page, user.token);
    const words = await until('the words', async () => {
      const text = await page.locator('.nobody').innerText();
      return text.includes(user.username) && text;
    });
    assert.match(words, /You may not list Pods in any namespace/);
    assert.match(words, /Ask an administrator of this cluster/);
    const command = /kubectl create rolebinding .*/.exec(words)[0].trim();
    assert.equal(command, `kubectl create rolebinding read-pods --clusterrole=view --serviceaccount=${home}:nobody --namespace=NAMESPACE`);
    assert.deepEqual(await shown(page), []);
    assert.deepEqual(await violations(page), { dark: [], light: [] });
    await page.emulateMedia({ colorScheme: 'dark' });
    await shot(page, 'nobody');
    // What the page says works.
    await kubectl(...command.replace('NAMESPACE', ns.three).split(' ').slice(1));
    await shows(page, ns.three);
    assert.equal(await page.locator('.nobody').count(), 0);
    await kubectl('-n', ns.three, 'delete', 'rolebinding', 'read-pods');
    await until('nobody again', async () => (await page.locator('.nobody').count()) === 1, 90);
    // The rows follow the words within a frame.
    await until('what may not be read any more to be gone', async () => (await shown(page)).length === 0);
    await page.getByRole('button', { name: 'Log in as somebody else' }).click();
    await until('the login', async () => (await page.locator('.login').count()) === 1);
    clean(page);
    await page.close();
  });

  test('a gateway whose own credentials are those of two namespaces', async (t) => {
    const user = `restricted-${process.pid}`;
    const rbac = 'rbac.authorization.k8s.io';
    const subjects = [{ kind: 'User', name: user }];
    await apply(
      { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: user }, rules: [{ apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] }] },
      { apiVersion: `${rbac}/v1`, kind: 'ClusterRoleBinding', metadata: { name: user }, roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: user }, subjects },
      ...[ns.three, ns.four].map((namespace) => ({ apiVersion: `${rbac}/v1`, kind: 'RoleBinding', metadata: { name: user, namespace }, roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'view' }, subjects })),
    );
    const running = await startGateway(['--as', user]);
    t.after(() => running.stop());
    const page = await open(browser, `${running.url}/ui/`, refused);
    await shows(page, ns.three, ns.four);
    await kubectl('-n', ns.three, 'create', 'deployment', 'more', '--image=nginx');
    await until('a change', async () => Object.keys(await shownPods(page, ns.three)).some((name) => name.startsWith('more-')));
    clean(page);
    await page.close();
  });
});
