// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page explains missing rights, and treats all data of objects as text.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clean, launch, open, shot } from './browser.mjs';
import { apply, gateway, kubectl, namespace, startGateway, until } from './cluster.mjs';
import { front } from './front.mjs';
import { clickOn, connection, openBoard, pointAt, shownPods } from './page.mjs';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/** Gives a user these rules and no others. */
async function allow(user, rules) {
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: user } };
  await apply(
    { ...role, kind: 'ClusterRole', rules },
    { ...role, kind: 'ClusterRoleBinding', roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: user }, subjects: [{ kind: 'User', name: user }] },
  );
}

/** Starts a gateway that acts as a user with these rules. */
async function gatewayOf(t, name, rules) {
  const user = `${name}-${process.pid}`;
  await allow(user, rules);
  const running = await startGateway(['--as', user]);
  t.after(() => running.stop());
  return { url: running.url, user };
}

const reads = (...resources) => ({ apiGroups: [''], resources, verbs: ['list', 'watch'] });
// Chromium logs each refused request.
const refused = { ignore: /status of (403|503)/ };

/** HTML that would run a script if it were parsed. It has no slash, so that it can be a name. */
const EVIL = '<img src=x onerror=window.harmed=1>';
const MARK = 'hostile-mark';

/** A proxy that replaces MARK with EVIL in responses, since the API server would reject it, and writes it in the log. */
async function hostile(t) {
  const route = (_, incoming, outgoing) => {
    const target = new URL(gateway + decodeURIComponent(incoming.url).replaceAll(EVIL, MARK).replaceAll(' ', '%20'));
    if (target.pathname.endsWith('/log')) return void outgoing.end(`${EVIL}\n<script>window.harmed = 2</script>\n`);
    delete incoming.headers['accept-encoding'];
    return target;
  };
  return front(t, route, (answer, outgoing) => {
    const text = /json/.test(answer.headers['content-type'] ?? '');
    delete answer.headers['content-length'];
    outgoing.writeHead(answer.statusCode, answer.headers);
    outgoing.flushHeaders();
    let rest = ''; // perhaps the start of a mark
    answer.setEncoding('latin1');
    answer.on('data', (chunk) => {
      const all = rest + chunk;
      const cut = text ? Math.max(0, all.length - MARK.length + 1, all.lastIndexOf('\n') + 1) : all.length;
      rest = all.slice(cut);
      outgoing.write((text ? all.slice(0, cut).replaceAll(MARK, EVIL) : all), 'latin1');
    });
    answer.on('end', () => outgoing.end(rest, 'latin1'));
  });
}

// Side by side: the informer waits up to 45 seconds before it retries what was denied.
describe('rights and hostile objects', { concurrency: true }, () => {
  for (const [missing, has, name, phase] of [['pods', ['nodes'], 'no-pods', 'denied'], ['nodes', ['pods'], 'no-nodes', 'live']]) {
    test(`a user who may not list ${missing}`, async (t) => {
      const { url, user } = await gatewayOf(t, name, [reads(...has)]);
      const page = await open(browser, `${url}/ui/`, refused);
      const words = await until('words', async () => {
        // Without Nodes there is still a board of Pods.
        if (missing === 'nodes') await page.locator('.chip.scope summary').click();
        const text = await page.locator('.notice, .chip').first().innerText();
        // The gateway acts as this user, and knows no namespaces, once the API server has said so.
        return text.includes('cannot list') && (missing !== 'pods' || text.includes('In which namespaces the caller may read is not known')) && text;
      }, 120);
      assert.match(words, missing === 'nodes' ? /You may not list Nodes: the Pods are grouped by the names of their Nodes/ : /You may not list and watch pods in all namespaces/);
      assert.match(words, new RegExp(`"${user}" cannot list resource "${missing}"`), 'in the API server\'s own words');
      await until('the connection', async () => (await connection(page)) === phase);
      await shot(page, `denied-${missing}`);
      // The informer retries.
      await allow(user, [reads('pods', 'nodes')]);
      await until('the board after the right was granted', async () => (await connection(page)) === 'live' && (await page.locator('.notice, .chip').count()) === 0, 120);
      clean(page);
      await page.close();
    });
  }

  test('a user who may see the board, but not Events and logs', async (t) => {
    const ns = await namespace('denied');
    await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx');
    await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
    const { url, user } = await gatewayOf(t, 'board-only', [reads('pods', 'nodes'), { apiGroups: [''], resources: ['pods'], verbs: ['get'] }]);
    const page = await openBoard(browser, url, {}, refused);
    const [pod] = await until('the Pod', async () => Object.keys(await shownPods(page, ns)));
    await page.goto(`${url}/ui/?${new URLSearchParams({ sel: `pod/${ns}/${pod}` })}`);
    const says = (resource) =>
      until(`the denial of ${resource}`, async () => {
        const text = await page.locator('.panel').innerText();
        return text.includes(`"${user}" cannot`) && text.includes(`resource "${resource}"`);
      });
    await says('events');
    assert.match(await page.locator('.panel').innerText(), /Running/, 'the rest is shown');
    await page.getByRole('tab', { name: 'Logs' }).click();
    await says('pods/log');
    await shot(page, 'denied-log');
    clean(page);
    await page.close();
  });

  test('hostile names, labels, annotations, states, Events and logs are text', async (t) => {
    const ns = await namespace('hostile');
    const metadata = { namespace: ns, name: MARK, labels: { app: MARK }, annotations: { note: `${EVIL}<script>window.harmed = 3</script>` } };
    await apply({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeSelector: { no: 'node' }, containers: [{ name: MARK, image: MARK }] } });
    const { metadata: { uid } } = JSON.parse(await kubectl('-n', ns, 'get', 'pod', MARK, '-o', 'json'));
    const waiting = { reason: EVIL, message: `<b>${EVIL}</b>` };
    const status = { containerStatuses: [{ name: MARK, image: MARK, imageID: '', ready: false, restartCount: 3, state: { waiting } }], conditions: [{ type: 'Ready', status: 'False', reason: EVIL, message: EVIL }] };
    await kubectl('-n', ns, 'patch', 'pod', MARK, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status }));
    const about = { apiVersion: 'v1', kind: 'Pod', namespace: ns, name: MARK, uid };
    await apply({ apiVersion: 'v1', kind: 'Event', metadata: { namespace: ns, name: 'e' }, involvedObject: about, reason: EVIL, message: `<iframe srcdoc="${EVIL}"></iframe>`, type: 'Warning', count: 1 });

    const url = await hostile(t);
    const page = await openBoard(browser, url);
    const harmless = async (where) => {
      const found = await page.evaluate(() => [window.harmed, document.querySelectorAll('img, iframe, object, script:not([src]), [onerror]').length]);
      assert.deepEqual(found, [undefined, 0], where);
    };
    const says = async (where, locator) => {
      await until(`the text in ${where}`, async () => (await locator.innerText()).includes(EVIL));
      await harmless(where);
    };
    await until('the Pod', async () => (await shownPods(page, ns))[EVIL]?.status === EVIL);
    await says('what needs attention', page.locator('.needs'));
    await until('the tooltip', async () => {
      await pointAt(page, ns, EVIL);
      return (await page.locator('.tooltip').allInnerTexts()).join().includes(EVIL);
    });
    await harmless('the tooltip');
    await clickOn(page, ns, EVIL);
    await until('its name', async () => (await page.locator('.panel h2').innerText()) === EVIL);
    for (const part of ['.labels', '.containers', '.events', '.conditions']) await says(part, page.locator(`.panel ${part}`));
    await page.getByRole('tab', { name: 'YAML' }).click();
    await until('the annotation', async () => (await page.locator('.yaml').innerText()).includes('<script>window.harmed = 3</script>'));
    await harmless('YAML');
    await page.getByRole('tab', { name: 'Logs' }).click();
    await says('the log', page.locator('.log'));
    await page.getByRole('tab', { name: 'Versions' }).click();
    await until('its versions', async () => (await page.getByRole('tabpanel').locator('li').count()) > 0);
    await harmless('versions');
    await page.keyboard.press('Escape');
    await page.keyboard.press('t');
    await says('the table', page.locator('.table .body'));
    await shot(page, 'hostile');
    clean(page); // no attempt either: its policy would have reported it
    await page.close();
  });
});
