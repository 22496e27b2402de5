// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// A server in front of the gateway, for what cannot be had from a real cluster.

import { createServer, request } from 'node:http';
import { gateway } from './cluster.mjs';

/**
 * Starts one for a test and returns its URL. Requests for which take(url,
 * incoming, outgoing) is false go through to the gateway.
 */
export async function front(t, take) {
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url, gateway);
    if (take(url, incoming, outgoing)) return;
    const asking = request(url, { method: incoming.method, headers: { ...incoming.headers, host: url.host } }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers).flushHeaders();
      answer.pipe(outgoing);
    });
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
