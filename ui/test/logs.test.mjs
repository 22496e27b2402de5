// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The log of a Pod. The proxy writes it, so that the test controls each line.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch } from './browser.mjs';
import { apply, namespace, until } from './cluster.mjs';
import { front } from './front.mjs';
import { openBoard } from './page.mjs';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

test('the log of the selected container or of its previous instance is followed', async (t) => {
  const ns = await namespace('logs');
  await apply({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: ns, name: 'web' }, spec: { initContainers: [{ name: 'init', image: 'x' }], containers: [{ name: 'web', image: 'x' }, { name: 'proxy', image: 'x' }] } });
  const asked = [];
  const open = new Map(); // followed logs, by container
  const url = await front(t, (target, _, outgoing) => {
    const { pathname, searchParams } = target;
    if (!pathname.endsWith('/log')) return target;
    const { container, previous, follow } = Object.fromEntries(searchParams);
    asked.push(`${container}${previous ? ' previous' : ''}${follow ? ' follow' : ''}`);
    if (previous && container === 'web') {
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: 'previous terminated container "web" in pod "web" not found', reason: 'BadRequest', code: 400 };
      outgoing.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(status));
      return undefined;
    }
    outgoing.writeHead(200, { 'content-type': 'text/plain' });
    outgoing.write(`${container} ${previous ? 'before' : 'now'}\n`);
    if (follow) open.set(container, outgoing.on('close', () => open.delete(container)));
    else outgoing.end('over');
    return undefined;
  });
  const page = await openBoard(browser, url, { sel: `pod/${ns}/web`, tab: 'logs' }, { ignore: /status of 400/ });
  const log = page.locator('.log');
  const shows = (...lines) => until(lines.join(', '), async () => (await log.innerText()) === lines.join('\n'));
  await shows('web now');
  open.get('web').write('second\nthi');
  open.get('web').write('rd: ä\n');
  await shows('web now', 'second', 'third: ä');

  const container = page.getByLabel('Container');
  assert.deepEqual(await container.locator('option').allInnerTexts(), ['web', 'proxy', 'init']);
  await container.selectOption('proxy');
  await shows('proxy now');
  await until('the other log to be closed', () => !open.has('web'));
  await page.getByLabel('previous', { exact: true }).check();
  await shows('proxy before', 'over');
  await until('this log to be closed', () => open.size === 0);
  await container.selectOption('web');
  await until('the reason', async () => (await page.locator('.panel').innerText()).includes('previous terminated container "web" in pod "web" not found'));
  await page.getByLabel('previous', { exact: true }).uncheck();
  await shows('web now');
  open.get('web').end('the end\n');
  await shows('web now', 'the end');
  await until('the end of the log', async () => (await page.locator('.panel').innerText()).includes('the log has ended'));
  await page.getByLabel('follow').uncheck();
  await shows('web now', 'over');
  assert.deepEqual(asked, ['web follow', 'proxy follow', 'proxy previous', 'web previous', 'web follow', 'web']);
  clean(page);
  await page.close();
});
