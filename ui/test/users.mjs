// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// ServiceAccounts with rights and tokens, and a front that demands a token.

import assert from 'node:assert/strict';
import { apply, kubectl, until } from './cluster.mjs';
import { front } from './front.mjs';
import { connection } from './page.mjs';

const group = 'rbac.authorization.k8s.io';
const subject = (user) => [{ kind: 'ServiceAccount', namespace: user.namespace, name: user.name }];

/** Creates a ServiceAccount. The result is {namespace, name, username, token}. */
export async function account(namespace, name) {
  await kubectl('-n', namespace, 'create', 'serviceaccount', name);
  const token = (await kubectl('-n', namespace, 'create', 'token', name)).trim();
  return { namespace, name, username: `system:serviceaccount:${namespace}:${name}`, token };
}

/** Gives a user a ClusterRole in a namespace, or everywhere without one. */
export async function grant(user, role, namespace) {
  const kind = namespace ? 'RoleBinding' : 'ClusterRoleBinding';
  const metadata = { name: `${role}-${user.namespace}-${user.name}`, ...(namespace && { namespace }) };
  await apply({ apiVersion: `${group}/v1`, kind, metadata, roleRef: { apiGroup: group, kind: 'ClusterRole', name: role }, subjects: subject(user) });
}

/** Takes it away. */
export async function revoke(user, role, namespace) {
  const where = namespace ? ['-n', namespace, 'delete', 'rolebinding'] : ['delete', 'clusterrolebinding'];
  await kubectl(...where, `${role}-${user.namespace}-${user.name}`);
}

/** The messages that Chromium logs for the answers that a front or the rights of a user cause. */
export const refused = { ignore: /status of (400|401|403)/ };

const UNAUTHORIZED = JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: 'Unauthorized', reason: 'Unauthorized', code: 401 });

/**
 * Starts a proxy that demands a token of each request but those for the page's files,
 * as serve --shared does. The result is {url, requests, expire}: expire(token) refuses
 * the token from now on, and ends what is open.
 */
export async function demanding(t) {
  const requests = [];
  const expired = new Set();
  const open = new Set();
  const url = await front(t, (target, incoming, outgoing) => {
    const { authorization } = incoming.headers;
    if (!target.pathname.startsWith('/ui/')) {
      requests.push({ url: incoming.url, authorization });
      if (!authorization || expired.has(authorization.replace('Bearer ', ''))) {
        outgoing.writeHead(401, { 'content-type': 'application/json' }).end(UNAUTHORIZED);
        return undefined;
      }
      // Only streams outlive their token. A destroyed answer would be an error of the page.
      if (/multiwatch|[?&](watch|follow)=/.test(incoming.url)) {
        open.add(outgoing);
        outgoing.on('close', () => open.delete(outgoing));
      }
    }
    return target;
  });
  const expire = (token) => {
    expired.add(token);
    for (const outgoing of open) outgoing.destroy();
  };
  return { url, requests, expire };
}

/** Starts a proxy that logs everybody in as a user, as oauth2-proxy does with --pass-authorization-header, in front of the tests' gateway or another. */
export const signingIn = (t, user, gateway) =>
  front(t, (target, incoming) => {
    incoming.headers.authorization = `Bearer ${user.token}`;
    return gateway ? new URL(incoming.url, gateway) : target;
  });

/** Waits for the login, and logs in with a token. */
export async function logIn(page, token) {
  const field = page.getByLabel('Token');
  await until('the login', () => field.isVisible());
  await field.fill(token);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
}

/** The namespaces of the Pods that the page has. */
export const shown = (page) =>
  page.evaluate(() => {
    const { cluster } = window.watchkeeper;
    const found = new Set();
    for (let row = 0; row < cluster.length; row++) if (cluster.has(row)) found.add(cluster.strings[cluster.namespace[row]]);
    return [...found].sort();
  });

/** Waits until the page shows the Pods of these namespaces, and says so. */
export const shows = (page, ...names) =>
  until(`the namespaces ${names}`, async () => {
    assert.deepEqual(await shown(page), [...names].sort());
    const words = await page.locator('.chip.scope').innerText();
    return words.includes(`Showing ${names.length} namespace${names.length === 1 ? '' : 's'} that you may read: ${[...names].sort().join(', ')}.`) && (await connection(page)) === 'live';
  }, 90);
