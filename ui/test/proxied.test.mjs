// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Hostile pages in the browser of somebody who uses the gateway: one that comes from
// inside the cluster, through the API server, and one of another site. The first is the
// answer of an aggregated API server to its proxy subresource. The API server proxies
// to Pods, Services and Nodes in the same way, but not to those on the loopback.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTLSServer } from 'node:https';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open } from './browser.mjs';
import { apply, dir, gateway, kubectl, namespace, startGateway, until } from './cluster.mjs';

const PRIZE = 'the-prize';
let browser;
let ns;

/** Listens on a free port of the loopback until the test ends, and returns the port. */
async function listen(t, server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address().port;
}

before(async () => {
  browser = await launch();
  ns = await namespace('proxied');
  await apply({ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: ns, name: 'prize' }, stringData: { prize: PRIZE } });
});

after(() => browser?.close());

/** The hostile page. It tries what a page of the gateway could do, and notes what succeeded. */
const page = () => `<!doctype html><title>hostile</title><script src="script.js"></script><script>
  const secrets = '/api/v1/namespaces/${ns}/secrets';
  const attempt = async (what) => { try { return await what(); } catch (error) { return error.name; } };
  const attempts = {
    origin: () => origin,
    read: async () => atob((await (await fetch(secrets + '/prize')).json()).data.prize),
    list: async () => (await (await fetch(secrets + '?resourceVersion=0')).json()).kind,
    write: async () => (await fetch('/api/v1/namespaces/${ns}/configmaps', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'harm-' + Date.now() } }) })).status < 300,
    storage: () => { localStorage.setItem('a', 'b'); return 'stored'; },
    watch: () => new Promise((resolve) => { const socket = new WebSocket('ws://' + location.host + secrets + '?watch=1'); socket.onopen = () => resolve('open'); socket.onerror = () => resolve('closed'); }),
    worker: async () => (await navigator.serviceWorker.register('worker.js', { scope: '/' })).scope.replace(/.*\\d/, ''),
    script: () => window.loaded ?? 'not loaded',
  };
  (async () => {
    const found = {};
    for (const [name, what] of Object.entries(attempts)) found[name] = await attempt(what);
    window.found = found;
  })();
</script>`;

/** Starts the hostile server, and returns the path of its page at the gateway. */
async function hostile(t) {
  const pem = (name) => readFileSync(join(dir, 'pki', name));
  const api = '/apis/hostile.example.org/v1';
  const server = createTLSServer({ cert: pem('server.crt'), key: pem('server.key') }, (request, response) => {
    if (!request.url.includes('/proxy/')) {
      const resources = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'hostile.example.org/v1', resources: [] };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(resources));
      return;
    }
    const script = request.url.endsWith('.js');
    response.writeHead(200, {
      'content-type': script ? 'text/javascript' : 'text/html',
      'content-security-policy': 'sandbox allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox',
      'service-worker-allowed': '/',
    });
    response.end(script ? 'self.loaded = "loaded"' : page());
  });
  const port = await listen(t, server);
  const service = { name: 'hostile', namespace: ns, port };
  await apply(
    { apiVersion: 'v1', kind: 'Service', metadata: { namespace: ns, name: 'hostile' }, spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] } },
    {
      apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name: 'v1.hostile.example.org' },
      spec: { group: 'hostile.example.org', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 10, insecureSkipTLSVerify: true, service },
    },
  );
  t.after(() => kubectl('delete', 'apiservice', 'v1.hostile.example.org'));
  const path = `${api}/namespaces/${ns}/boxes/box/proxy/`;
  await until('the proxied page', async () => (await (await fetch(gateway + path)).text()).includes('<title>hostile</title>'));
  return path;
}

/** Opens the hostile page at a gateway, and returns what it could do. */
async function opened(url) {
  const tab = await open(browser, url);
  const handle = await tab.waitForFunction(() => window.found);
  const found = await handle.jsonValue();
  await tab.close();
  return found;
}

test('a proxied page runs without the rights of the gateway', async (t) => {
  const path = await hostile(t);
  for (const one of [path, path.replace('/proxy/', '/%70roxy/')]) {
    assert.deepEqual(await opened(gateway + one), {
      origin: 'null', read: 'TypeError', list: 'TypeError', write: 'TypeError', storage: 'SecurityError', watch: 'closed', worker: 'SecurityError', script: 'not loaded',
    });
  }
  assert.ok(!(await kubectl('-n', ns, 'get', 'configmaps', '-o', 'name')).includes('harm-'));

  // With the flag it has all of them: the attempts above are real.
  const allowed = await startGateway(['--allow-proxied-pages']);
  t.after(() => allowed.stop());
  assert.deepEqual(await opened(allowed.url + path), {
    origin: allowed.url, read: PRIZE, list: 'SecretList', write: true, storage: 'stored', watch: 'open', worker: '/', script: 'loaded',
  });
  assert.ok((await kubectl('-n', ns, 'get', 'configmaps', '-o', 'name')).includes('harm-'));
});

// localhost is another site than 127.0.0.1, and another port is another origin of the same site.
for (const host of ['localhost', '127.0.0.1']) {
  test(`a page of ${host} cannot make the gateway read, and may link to its page`, async (t) => {
    const { url, output, stop } = await startGateway(['--v', '4']); // it logs each request
    t.after(() => stop());
    const objects = `/api/v1/namespaces/${ns}/`;
    const read = [
      `${objects}secrets?resourceVersion=0`, `${objects}pods?watch=1`, `${objects}pods/p/proxy/`, `/at/1m${objects}events`,
      `/watchkeeper/v1/multiwatch?watch=${encodeURIComponent(`${objects}secrets?watch=1`)}`, '/watchkeeper/v1/history/changes', `${objects}services`,
    ];
    const [image, script, proxied, past, multiwatch, history, link] = read.map((path) => url + path);
    const html = `<!doctype html><img src="${image}"><script src="${script}"></script><img src="${proxied}"><iframe src="${past}"></iframe>
      <script>for (const url of ['${multiwatch}', '${history}']) fetch(url, { mode: 'no-cors' });</script>
      <a id="services" href="${link}">services</a><a id="root" href="${url}/">root</a><a id="ui" href="${url}/ui/">ui</a>`;
    const port = await listen(t, createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(html)));
    const elsewhere = `http://${host}:${port}/`;
    const refused = async (path) => {
      const answers = () => output.filter((line) => line.includes(`msg=request method=GET path=${path.replace(/\?.*/, '')} `));
      await until(`an answer to ${path}`, () => answers().length > 0);
      for (const line of answers()) assert.match(line, / source=filter code=403 /);
    };
    const tab = await browser.newPage();
    await tab.goto(elsewhere);
    for (const path of read.slice(0, -1)) await refused(path); // before a click ends the requests
    await tab.click('#services');
    await tab.waitForURL(link);
    assert.match(await tab.locator('body').innerText(), /"reason": "Forbidden"/);
    await refused(read.at(-1));
    for (const id of ['#root', '#ui']) {
      await tab.goto(elsewhere);
      await tab.click(id);
      await tab.waitForURL(`${url}/ui/**`);
      await until('the board', () => tab.evaluate(() => window.watchkeeper?.cluster.synced === true));
    }
    await tab.close();
  });
}
