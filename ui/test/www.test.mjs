// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// A page written for kubectl proxy runs unchanged with --www.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, open, shot } from './browser.mjs';
import { api, gateway, kubectl, namespace, proxy, until } from './cluster.mjs';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/** The blocks on the page, by Node. */
const drawn = (page, ns) =>
  page.evaluate((ns) => {
    const blocks = [...document.querySelectorAll('i')].filter(({ title }) => title.startsWith(ns + '/'));
    return blocks.map((block) => `${block.parentElement.dataset.node} ${block.title}`).sort();
  }, ns);

async function truth(ns) {
  const { items } = await api(`/api/v1/namespaces/${ns}/pods`);
  return items.map(({ metadata, spec }) => `${spec.nodeName} ${ns}/${metadata.name}`).sort();
}

for (const [name, url] of Object.entries({ gateway, 'kubectl proxy': proxy })) {
  test(`list, then watch, through ${name}`, async () => {
    const ns = await namespace(name === 'gateway' ? 'www' : 'www-proxy');
    await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=4');
    await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
    const page = await open(browser, `${url}/static/pods.html`, { width: 800, height: 400 });
    const same = async () => {
      assert.deepEqual(await drawn(page, ns), await truth(ns));
      return true;
    };
    await until('the Pods', same);
    for (const replicas of [7, 2]) {
      await kubectl('-n', ns, 'scale', 'deployment/web', `--replicas=${replicas}`);
      await until(`${replicas} Pods`, async () => (await truth(ns)).length === replicas);
      await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
      await until('the Pods', same);
    }
    assert.equal(await page.title(), 'Pods, live', 'the watch stayed open');
    await shot(page, `www-${name.replace(' ', '-')}`);
    clean(page);
    await page.close();
  });
}
