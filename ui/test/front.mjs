// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// A server in front of the gateway, for what cannot be had from a real cluster.

import { createServer, request } from 'node:http';
import { gateway } from './cluster.mjs';

/** Passes an answer on as it is. */
function pass(answer, outgoing) {
  outgoing.writeHead(answer.statusCode, answer.headers).flushHeaders();
  answer.pipe(outgoing);
}

/**
 * Starts one for a test and returns its URL. A request goes on to what route(url,
 * incoming, outgoing) returns, which is told its URL at the gateway; where that is
 * nothing, it has answered itself. back is how an answer is passed on.
 */
export async function front(t, route, back = pass) {
  const server = createServer((incoming, outgoing) => {
    const url = route(new URL(incoming.url, gateway), incoming, outgoing);
    if (!url) return;
    const asking = request(url, { method: incoming.method, headers: { ...incoming.headers, host: url.host } }, (answer) => back(answer, outgoing));
    asking.on('error', () => outgoing.destroy());
    outgoing.on('close', () => asking.destroy());
    incoming.pipe(asking);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}
