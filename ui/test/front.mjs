// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// A proxy in front of the gateway, for responses that a real cluster does not give.

import { createServer, request } from 'node:http';
import { request as requestTLS } from 'node:https';
import { gateway } from './cluster.mjs';

/** Forwards a response unchanged. */
function pass(answer, outgoing) {
  outgoing.writeHead(answer.statusCode, answer.headers).flushHeaders();
  answer.pipe(outgoing);
}

/**
 * Starts a proxy for a test and returns its URL. route(url, incoming, outgoing)
 * receives the URL of a request at the gateway, and returns the URL to forward it
 * to, or undefined if it has answered itself. back forwards a response.
 */
export async function front(t, route, back = pass) {
  const server = createServer((incoming, outgoing) => {
    const url = route(new URL(incoming.url, gateway), incoming, outgoing);
    if (!url) return;
    // The certificate of a gateway of the tests is self-signed.
    const [send, options] = url.protocol === 'https:' ? [requestTLS, { rejectUnauthorized: false }] : [request, {}];
    const forwarded = send(url, { ...options, method: incoming.method, headers: { ...incoming.headers, host: url.host } }, (answer) => back(answer, outgoing));
    forwarded.on('error', () => outgoing.destroy());
    outgoing.on('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}
