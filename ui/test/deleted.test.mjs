// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// One object through time: its last state after its deletion, and the keys that step
// through its changes alone.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clean, launch, shot } from './browser.mjs';
import { gateway, kubectl, namespace, reads, until } from './cluster.mjs';
import { goTo, openBoard, settled, shownPods } from './page.mjs';

let browser;
let ns;

before(async () => {
  browser = await launch();
  ns = await namespace('deleted');
});

after(() => browser?.close());

/** The significant changes of an object, the oldest first. */
async function versions(path) {
  const { items } = await (await fetch(`${gateway}/watchkeeper/v1/history/versions${path}`)).json();
  return items.filter(({ type }) => type !== 'FOLDED').reverse();
}

// Chromium logs the answer that the object is gone.
const missing = { ignore: /status of (404|409)/ };

test('a deleted Pod is shown in its last state', async () => {
  await kubectl('-n', ns, 'run', 'once', '--image=nginx', '--labels=app=once,tier=front');
  await kubectl('-n', ns, 'wait', '--for=condition=Ready', 'pod/once');
  const { spec: { nodeName } } = JSON.parse(await kubectl('-n', ns, 'get', 'pod', 'once', '-o', 'json'));
  await kubectl('-n', ns, 'delete', 'pod', 'once');
  const page = await openBoard(browser, gateway, { side: 'changes', q: `ns:${ns}` }, missing);
  await page.getByRole('combobox', { name: 'Range' }).selectOption('3600');
  const row = page.locator('.changes-list li.deleted .pick').filter({ hasText: /Pod once/ });
  await row.click();
  const panel = page.locator('.panel');
  const last = async () => {
    const words = await until('the last state', async () => {
      const text = await panel.innerText();
      return /Deleted at/.test(text) && (await page.locator('.containers li').count()) === 1 && text;
    });
    const [, time] = /Deleted at (\d\d:\d\d:\d\d) UTC/.exec(words);
    const deletion = (await versions(`/api/v1/namespaces/${ns}/pods/once`)).find(({ type }) => type === 'DELETED');
    assert.equal(time, deletion.time.slice(11, 19));
    for (const part of [nodeName, 'tier=front', 'nginx']) assert.ok(words.includes(part), `${part} in ${words}`);
    assert.equal(await panel.locator('.failure').count(), 0);
  };
  await last();
  // Nothing of it runs, and its age is that of its life.
  const words = (await panel.getByRole('tabpanel').innerText()).replace(/\s+/g, ' ');
  assert.match(words, /Created (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d, lived \d+s/);
  assert.doesNotMatch(words, /running|Terminating for/);
  assert.equal(await panel.locator('.shape.ready').count(), 0);
  await shot(page, 'deleted');
  await page.getByRole('tab', { name: 'YAML' }).click();
  await reads('its YAML', panel, /name: once/);
  clean(page);
  await page.close();

  // By a link, without a moment.
  const link = await openBoard(browser, gateway, { sel: `pod/${ns}/once` }, missing);
  await until('the panel', () => link.locator('.panel .was-deleted').count());
  assert.ok((await link.locator('.panel').innerText()).includes(nodeName));
  clean(link);
  await link.close();
});

test('the Events of a deleted Pod are those that it had, even if its namespace is gone', async () => {
  const gone = await namespace('events-gone');
  await kubectl('-n', gone, 'run', 'once', '--image=nginx');
  await kubectl('-n', gone, 'wait', '--for=condition=Ready', 'pod/once');
  await until('its Events', async () => (await kubectl('-n', gone, 'get', 'events', '-o', 'name')).includes('once'));
  await kubectl('delete', 'namespace', gone);
  const page = await openBoard(browser, gateway, { sel: `pod/${gone}/once` }, missing);
  const events = page.locator('.panel section', { hasText: 'Events' }).last();
  await reads('the Events', events, /Scheduled/);
  // Another Pod of the name has its own.
  await kubectl('-n', ns, 'run', 'twice', '--image=nginx');
  await kubectl('-n', ns, 'wait', '--for=condition=Ready', 'pod/twice');
  await kubectl('-n', ns, 'delete', 'pod', 'twice');
  await kubectl('-n', ns, 'run', 'twice', '--image=nginx');
  await kubectl('-n', ns, 'wait', '--for=condition=Ready', 'pod/twice');
  const path = `/api/v1/namespaces/${ns}/pods/twice`;
  const { resourceVersion } = await until('its deletion', async () => (await versions(path)).find(({ type }) => type === 'DELETED'));
  await goTo(page, gateway, { sel: `pod/${ns}/twice`, at: `rv:${resourceVersion}` });
  await until('one Event of its scheduling', async () => (await events.innerText()).split('Scheduled').length === 2);
  clean(page);
  await page.close();
  await kubectl('-n', ns, 'delete', 'pod', 'twice');
});

test('the Events of a Node are those of controllers and of its kubelet, not those of another one of its name', async () => {
  const name = 'node-0';
  const { metadata: { uid } } = JSON.parse(await kubectl('get', 'node', name, '-o', 'json'));
  const now = new Date().toISOString();
  for (const [reason, about] of [['OfController', uid], ['OfKubelet', name], ['OfAnother', 'another']]) {
    const event = { metadata: { generateName: `${name}.` }, involvedObject: { kind: 'Node', name, uid: about }, type: 'Normal', reason, message: reason, firstTimestamp: now, lastTimestamp: now, count: 1 };
    const answer = await fetch(`${gateway}/api/v1/namespaces/default/events`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(event) });
    assert.equal(answer.status, 201, await answer.text());
  }
  const page = await openBoard(browser, gateway, { sel: `node/${name}` });
  const events = page.locator('.panel section', { hasText: 'Events' }).last();
  await reads('both Events', events, /OfController[^]*OfKubelet|OfKubelet[^]*OfController/);
  assert.doesNotMatch(await events.innerText(), /OfAnother/);
  clean(page);
  await page.close();
});

test('a deleted object is created again from its panel, also from the past', async () => {
  await kubectl('-n', ns, 'create', 'service', 'clusterip', 'back', '--tcp=80:8080');
  const find = async () => JSON.parse(await kubectl('-n', ns, 'get', 'services', '-o', 'json')).items.find(({ metadata }) => metadata.name === 'back');
  const { metadata: { uid }, spec } = await find();
  await kubectl('-n', ns, 'delete', 'service', 'back');
  const page = await openBoard(browser, gateway, { side: 'changes', q: `ns:${ns} back` }, missing);
  await page.locator('.changes-list li.deleted .pick').filter({ hasText: 'Service back' }).click();
  await until('the past', () => new URL(page.url()).searchParams.has('at'));
  const create = page.locator('.was-deleted').getByRole('button', { name: 'Create again now…' });
  await create.waitFor();
  await shot(page, 'deleted-past');
  await create.click();
  assert.equal(new URL(page.url()).searchParams.get('at'), null, 'what it is about is shown');
  const dialog = page.getByRole('dialog', { name: 'Create again Service back' });
  await until('the API server accepts it', async () => (await dialog.getByRole('status').textContent()) === 'The API server accepts this.');
  assert.match(await dialog.innerText(), /\+ *name: back/);
  assert.doesNotMatch(await dialog.innerText(), /uid:|resourceVersion:/);
  await shot(page, 'create-again');
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  await reads('words', page.locator('.said'), /^Created back again, as a new object/);
  const again = await find();
  assert.notEqual(again.metadata.uid, uid);
  assert.deepEqual(again.spec, spec);
  await until('the panel', async () => (await page.locator('.was-deleted').count()) === 0 && (await page.getByRole('button', { name: 'Actions' }).count()) === 1);
  // Of the past deletion, it says that another one exists.
  await page.goBack();
  await until('its deletion', () => create.count());
  await create.click();
  await reads('why not', dialog.getByRole('alert'), /services "back" already exists/);
  assert.equal(await dialog.getByRole('button', { name: 'Create', exact: true }).isDisabled(), true);
  clean(page);
  await page.close();
});

test('an object that did not exist yet', async () => {
  const before = new Date().toISOString();
  const later = await namespace('later');
  await kubectl('-n', later, 'run', 'later', '--image=nginx');
  const page = await openBoard(browser, gateway, { sel: `pod/${later}/later`, at: before }, missing);
  await reads('words', page.locator('.panel .failure'), /^It did not exist yet at this moment: it was created at \d\d:\d\d:\d\d UTC\.$/);
  clean(page);
  await page.close();
});

test('an object that is not recorded', async () => {
  const page = await openBoard(browser, gateway, { sel: `pod/${ns}/never` }, missing);
  await reads('words', page.locator('.panel .failure'), /^Not found, and nothing of it is recorded: check the name\.$/);
  clean(page);
  await page.close();
});

test('keys step through the changes of the selected object', async () => {
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=2');
  const page = await openBoard(browser, gateway);
  const [mine, other] = Object.keys(await settled(page, ns, 2));
  for (const [name, label] of [[mine, 'a=1'], [other, 'a=1'], [mine, 'b=1'], [other, 'b=1'], [other, 'c=1']]) await kubectl('-n', ns, 'label', 'pod', name, label);
  const path = `/api/v1/namespaces/${ns}/pods/${mine}`;
  const changes = await until('the changes', async () => {
    const all = (await versions(path)).filter(({ type }) => type !== 'FOLDED'); // which a step passes over
    return all.filter(({ summary }) => summary.some((line) => /^label [ab]=1 added/.test(line))).length === 2 && all;
  });
  await page.goto(`${gateway}/ui/?sel=pod/${ns}/${mine}`);
  await until('the board', async () => mine in (await shownPods(page, ns)));
  await until('the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
  assert.equal(await page.getByRole('button', { name: 'Previous change' }).getAttribute('title'), `Previous change of ${mine} (,)`);
  const at = () => new URL(page.url()).searchParams.get('at');
  const press = async (key, want) => {
    await page.keyboard.press(key);
    await until(`rv:${want}`, () => at() === `rv:${want}`);
  };
  const rvs = changes.map(({ resourceVersion }) => resourceVersion);
  for (const rv of [...rvs].reverse()) await press(',', rv);
  await page.keyboard.press(',');
  await until('words', async () => (await page.locator('.transport .message').innerText()) === `No earlier change of ${mine} is recorded`);
  for (const rv of rvs.slice(1)) await press('.', rv);
  await page.keyboard.press('.');
  await until('now', () => at() === null);
  clean(page);
  await page.close();
});
