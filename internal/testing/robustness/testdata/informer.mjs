// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// informer.mjs URL RESOURCE…: follows resources, such as v1/pods, with the informer for
// browsers, and prints a line of JSON for each thing that it emits. It ends with its input.
// INFORMER_TOKEN is the bearer token; none is sent if it is not set.

import { connect } from '../../../../ui/informer/src/index.ts';

const [base, ...resources] = process.argv.slice(2);
const refused = {}; // the last answer that was an error, by path
const token = process.env.INFORMER_TOKEN;
const connection = connect(base, {
  headers: token ? { Authorization: `Bearer ${token}` } : {},
  async fetch(url, init) {
    const began = new Date();
    const response = await fetch(url, init);
    if (!response.ok) refused[new URL(url).pathname] = { url, began, at: new Date(), code: response.status, headers: Object.fromEntries(response.headers) };
    return response;
  },
});

for (const resource of resources) {
  const informer = connection.informer(resource, { managedFields: true, pageSize: 20 });
  const print = (line) => process.stdout.write(JSON.stringify({ resource, ...line }) + '\n');
  informer.on('add', ({ object }) => print({ type: 'ADDED', object }));
  informer.on('update', ({ object }) => print({ type: 'MODIFIED', object }));
  informer.on('delete', ({ object }) => print({ type: 'DELETED', object }));
  informer.on('sync', ({ resourceVersion }) => print({ type: 'sync', resourceVersion, objects: [...informer.store.values()] }));
  informer.on('state', ({ state }) => print({ type: 'state', phase: state.phase }));
  informer.on('error', ({ error: { code, message, status } }) => {
    const path = Object.keys(refused).find((path) => path.endsWith(`/${resource}`));
    print({ type: 'error', code, message, status, refused: refused[path] });
  });
}

process.stdin.on('end', () => process.exit()).resume();
