// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// ServiceAccounts with rights and tokens, and a front that demands a token.

import { apply, kubectl, until } from './cluster.mjs';
import { front } from './front.mjs';

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
      open.add(outgoing);
      outgoing.on('close', () => open.delete(outgoing));
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
