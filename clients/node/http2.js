// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// http2.js URL CA NAMESPACE: uses Node's own HTTP/2 client on one connection. Each step
// prints a line of JSON. Before the last event it prints {"step":"watching"}, whereupon
// the ConfigMap "event" has to be created.

import fs from 'node:fs';
import http2 from 'node:http2';

const [url, ca, namespace] = process.argv.slice(2);
const path = `/api/v1/namespaces/${namespace}/configmaps`;
const session = http2.connect(url, ca ? {ca: fs.readFileSync(ca)} : {});
session.on('error', fail);
session.on('goaway', (code) => fail(new Error(`GOAWAY ${code}`)));

function fail(err) {
  console.error(err);
  process.exit(1);
}

const print = (step, fields) => console.log(JSON.stringify({step, ...fields}));

// ask sends a request and returns the whole answer.
function ask(headers, body) {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers, {endStream: body === undefined});
    const answer = {status: 0, body: '', trailers: false};
    stream.setEncoding('utf8');
    stream.on('response', (h) => { answer.status = h[':status']; });
    stream.on('trailers', () => { answer.trailers = true; });
    stream.on('data', (text) => { answer.body += text; });
    stream.on('end', () => resolve(answer));
    stream.on('error', reject);
    if (body !== undefined) stream.end(body);
  });
}

// list returns the names of the ConfigMaps, sorted.
async function list(query = '') {
  const answer = await ask({':path': path + query});
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.body}`);
  const names = JSON.parse(answer.body).items.map((o) => o.metadata.name).sort();
  return {names, trailers: answer.trailers};
}

// watch returns the name of the first object, and cancels the stream.
function watch() {
  return new Promise((resolve, reject) => {
    const stream = session.request({':path': `${path}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Devent`});
    let text = '';
    stream.setEncoding('utf8');
    stream.on('error', reject);
    stream.on('response', () => print('watching', {}));
    stream.on('data', (more) => {
      text += more;
      if (!text.includes('\n')) return;
      resolve(JSON.parse(text.split('\n')[0]).object.metadata.name);
      stream.close(http2.constants.NGHTTP2_CANCEL);
    });
  });
}

try {
  print('list', await list());
  const all = await Promise.all(Array.from({length: 100}, (_, i) => list(`?resourceVersion=0&limit=${1000 + i}`)));
  print('parallel', {count: all.length, names: all.at(-1).names, protocol: session.alpnProtocol});
  const big = {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'big-node'}, data: {text: 'x'.repeat(1_000_000)}};
  const created = await ask({':path': path, ':method': 'POST', 'content-type': 'application/json'}, JSON.stringify(big));
  print('upload', {status: created.status});
  print('event', {name: await watch()});
  print('after', await list());
  session.close();
} catch (err) {
  fail(err);
}
