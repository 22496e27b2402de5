// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// What the page shows and writes is what the API server has: the digits of integers, and
// YAML as kubectl reads it.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { clean, launch } from './browser.mjs';
import { api, apply, dir, gateway, kubectl, namespace, proxy, reads, until } from './cluster.mjs';
import { goTo, openBoard } from './page.mjs';

let browser;
let page;
let ns;
let group;

before(async () => {
  browser = await launch();
  ns = await namespace('bytes');
  group = `${ns}.example.com`;
  await apply({
    apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `things.${group}` },
    spec: {
      group, scope: 'Namespaced', names: { kind: 'Thing', plural: 'things', singular: 'thing' },
      versions: [{
        name: 'v1', served: true, storage: true, additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } } },
      }],
    },
  });
  await kubectl('wait', '--for=condition=Established', `crd/things.${group}`);
  page = await openBoard(browser, gateway, {}, { ignore: /status of (400|403|404|409|422)/ });
});

after(async () => {
  if (page) clean(page);
  await browser?.close();
});

const button = (name) => page.getByRole('button', { name, exact: true });
const dialog = () => page.getByRole('dialog');
const path = (name) => `/apis/${group}/v1/namespaces/${ns}/things/${name}`;

/** The text that the API server has for an object, from its spec on: no number is parsed. */
async function raw(of) {
  const response = await fetch(`${proxy}${of}?pretty=0`, { headers: { accept: 'application/json' } });
  assert.equal(response.status, 200);
  const text = await response.text();
  return text.slice(text.indexOf('"spec":'));
}

const thing = (name, spec, annotations = '{}') => `{"apiVersion":"${group}/v1","kind":"Thing","metadata":{"name":"${name}","namespace":"${ns}","annotations":${annotations}},"spec":${spec}}`;

/** Runs kubectl on a text, as a user does with a file. (Its apply rounds integers of custom resources that exist; create and replace do not.) */
async function applied(text, command = 'apply') {
  const file = join(dir, `${ns}.yaml`);
  writeFileSync(file, text);
  return kubectl(command, '-f', file);
}

async function ask(of, label, query = {}) {
  await goTo(page, gateway, { sel: of, ...query });
  await button('Actions').click();
  await page.getByRole('menuitem', { name: label, exact: true }).click();
  await dialog().waitFor();
}

/** Waits until the dialog shows a difference that has all of these, and applies it. */
async function press(name, words, ...parts) {
  await until(`the difference ${parts}`, async () => {
    const alert = await dialog().getByRole('alert').filter({ hasText: /./ }).allInnerTexts();
    assert.deepEqual(alert, []);
    const text = await dialog().locator('.diff').innerText();
    return parts.every((part) => text.includes(part)) && button(name).last().isEnabled();
  });
  await dialog().getByRole('button', { name, exact: true }).click();
  await says(words);
}
const says = (words) => reads(`the words ${words}`, page.locator('.said'), words);

/** Edits an object as YAML, and applies it. */
async function edit(of, change, words, ...parts) {
  await ask(of, 'Edit YAML…');
  const field = dialog().getByRole('textbox', { name: 'YAML', exact: true });
  await field.fill(change(await until('the text', () => field.inputValue())));
  await button('Check').click();
  await press('Apply', words, ...parts);
}

test('an integer is shown, edited and created again with all its digits', async () => {
  await applied(thing('large', '{"size":9007199254740993,"other":1,"list":[{"x":-9007199254740995}],"max":9223372036854775807}'));
  await goTo(page, gateway, { sel: path('large') });
  await reads('the overview', page.getByRole('tabpanel'), /9007199254740993/);
  await goTo(page, gateway, { sel: path('large'), tab: 'yaml' });
  await reads('the YAML', page.locator('pre.yaml'), /x: -9007199254740995\n {2}max: 9223372036854775807\n {2}other: 1\n {2}size: 9007199254740993/);
  await goTo(page, gateway, { view: 'table', kind: `things.${group}` });
  await until('the table', async () => (await page.getByRole('gridcell').allInnerTexts()).includes('9007199254740993'));
  // Another field leaves it as it is, also in a list that is replaced.
  await edit(path('large'), (text) => text.replace('other: 1', 'other: 2').replace('  list:', '  list:\n  - x: 9007199254740997'), /^Changed large/, '9007199254740997', '+2');
  assert.match(await raw(path('large')), /"list":\[{"x":9007199254740997},{"x":-9007199254740995}\],"max":9223372036854775807,"other":2,"size":9007199254740993/);
  await edit(path('large'), (text) => text.replace('size: 9007199254740993', 'size: 9007199254740995'), /^Changed large/, '-9007199254740993', '+9007199254740995');
  assert.match(await raw(path('large')), /"size":9007199254740995/);
  await button('Undo').click();
  await says(/^Undone/);
  assert.match(await raw(path('large')), /"size":9007199254740993/);
  await ask(path('large'), 'Delete…');
  await press('Delete', /^Deleted large\./, 'size: 9007199254740993');
  await button('Undo').click();
  await says(/^Created large again/);
  assert.match(await raw(path('large')), /"x":-9007199254740995}\],"max":9223372036854775807,"other":2,"size":9007199254740993/);
});

test('a roll back writes the integers that were recorded', async () => {
  const of = `/apis/apps/v1/namespaces/${ns}/deployments/patient`;
  const deployment = (seconds) => `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"patient","namespace":"${ns}"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"nginx:1.27"}],"tolerations":[{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":${seconds}}]}}}}`;
  await applied(deployment('9223372036854775807'));
  await applied(deployment('5'));
  await ask(of, 'Roll back…');
  await press('Roll back', /^Rolled patient back/, '-5', '+9223372036854775807');
  assert.match(await raw(of), /"tolerationSeconds":9223372036854775807/);
  await button('Undo').click();
  await says(/^Undone/);
  assert.match(await raw(of), /"tolerationSeconds":5/);
  await goTo(page, gateway, { sel: of, tab: 'versions' });
  await reads('the change', page.getByRole('tabpanel'), /5 → 9223372036854775807/);
});

test('a cell has the digits that were typed', async () => {
  await applied(thing('cell', '{"size":9007199254740993}'));
  await goTo(page, gateway, { view: 'sheet', kind: `things.${group}`, q: `ns:${ns}` });
  await page.getByRole('button', { name: /Column/ }).first().click();
  await dialog().getByRole('combobox').or(dialog().getByRole('textbox')).first().fill('spec.size');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Escape');
  await until('the end of the dialog', async () => (await dialog().count()) === 0);
  const cells = () => page.locator('.cells').innerText();
  await until('the cell', async () => (await cells()).includes('9007199254740993'));
  const row = await until('its row', () => page.evaluate(() => [...document.querySelectorAll('.cells .line')].find((line) => [...line.children].some((cell) => cell.id.startsWith('cell-B') && cell.textContent === 'cell'))?.getAttribute('aria-rowindex')));
  const column = await page.evaluate(() => window.spreadsheet.peek().active.lastBound);
  const type = async (text) => {
    await page.evaluate(([row, column]) => window.spreadsheet.peek().select(row, column), [Number(row), column]);
    await page.locator('.cells').focus();
    await page.keyboard.type(text);
    await page.keyboard.press('Enter');
  };
  const name = String.fromCharCode(64 + column);
  const note = async () => {
    await page.evaluate(([row, column]) => window.spreadsheet.peek().select(row, column), [Number(row), column]);
    return page.locator('.formula-bar .note').innerText();
  };
  await type(`=${name}${row === '2' ? 3 : 2}+9007199254740000`);
  await until('the refusal of the formula', async () => /Not written: The formula gives .*, and formulas have only 15 digits/.test(await note()));
  await type('9007199254740997');
  await until('the change', async () => /9007199254740993 → 9007199254740997, not written yet/.test(await note()));
  if (await page.locator('aside.review').count() === 0) await page.getByRole('button', { name: /^(\d+ changes?|No changes)$/ }).click();
  await page.locator('aside.review').getByRole('button', { name: /^Apply/ }).click();
  await until('the write', async () => /"size":9007199254740997/.test(await raw(path('cell'))));
});

test('a string that Go escapes in JSON can be changed', async () => {
  await applied(thing('escaped', '{"list":[{"a":"<a>&b\\u2028","b":1}]}', '{"url":"https://x/?a=1&b=<2>"}'));
  await edit(path('escaped'), (text) => text.replace(/url: "https[^"]*"/, 'url: "&"').replace('b: 1', 'b: 2'), /^Changed escaped/, '+2');
  assert.equal((await api(path('escaped'))).metadata.annotations.url, '&');
  await button('Undo').click();
  await says(/^Undone/);
  assert.equal((await api(path('escaped'))).metadata.annotations.url, 'https://x/?a=1&b=<2>');
});

/** A spec in which the dialects of YAML differ, and what kubectl reads in ways of its own. */
const DIALECTS = `
  modes: [0400, 0620, 012, 08, 0o400, 0x1F, 0b11, 1_000, +5, 12:30:45]
  words: [yes, No, on, OFF, y, n, "yes", 'n', ~, Null, '', 2026-11-28]
  n: 1
  keys: {yes: 1, 0400: 2, 1.5: 3, 'on': 4}
  floats: [1.10, 1.0, .5, 5., 1e3, 1e400, 0.1000000000000000055]
  large: [9007199254740993, -9223372036854775808, 18446744073709551616]
  base: &base {mode: 0400, ok: yes}
  again: *base
  merged: {<<: *base, mode: 0644}
  text: |
    one # two
      three

  folded: >-
    a
    b
`;

test('what is typed is what kubectl makes of it', async () => {
  await applied(thing('typed', '{"old":1}'));
  await edit(path('typed'), (text) => text.replace(/spec:\n {2}old: 1\n/, `spec:${DIALECTS}`), /^Changed typed/, '256');
  await applied(`apiVersion: ${group}/v1\nkind: Thing\nmetadata: {name: applied, namespace: ${ns}}\nspec:${DIALECTS}`);
  assert.equal(await raw(path('typed')), await raw(path('applied')));
  assert.match(await raw(path('typed')), /"modes":\[256,400,10,/);
});

test('the review shows the mode that a file will have', async () => {
  const of = `/apis/apps/v1/namespaces/${ns}/deployments/files`;
  await applied(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: files, namespace: ${ns}}, spec: {replicas: 0, selector: {matchLabels: {a: f}}, template: {metadata: {labels: {a: f}}, spec: {containers: [{name: c, image: "nginx:1.27"}], volumes: [{name: s, secret: {secretName: s, defaultMode: 420}}]}}}}`);
  await edit(of, (text) => text.replace('defaultMode: 420', 'defaultMode: 0400'), /^Changed files/, '-420', '+256');
  assert.equal((await api(of)).spec.template.spec.volumes[0].secret.defaultMode, 256);
});

test('what is refused is refused with its line', async () => {
  await ask(path('typed'), 'Edit YAML…');
  const field = dialog().getByRole('textbox', { name: 'YAML', exact: true });
  const text = await until('the text', () => field.inputValue());
  for (const [edited, words] of [
    [`${text}more: [`, /^Line \d+: did not find expected node content\.$/],
    [`${text}kind: Thing\n`, /^Line \d+: key "kind" already set in map\.$/],
    [`${text}---\n${text}`, /^There is more than one document\.$/],
    [`a: &a ${'x'.repeat(100_000)}\nb: [${'*a,'.repeat(3000)}]`, /^The object has more than 4 MiB when its aliases are expanded\.$/],
  ]) {
    await field.fill(edited);
    await button('Check').click();
    await until(`the refusal ${words}`, async () => words.test((await dialog().getByRole('alert').filter({ hasText: /./ }).allInnerTexts())[0] ?? ''));
    assert.equal(await field.inputValue(), edited);
  }
  await field.fill(text);
  await button('Check').click();
  await until('nothing', async () => (await dialog().innerText()).includes('Nothing is changed.'));
});

/** Strings that a dialect of YAML does not read as strings if they are not quoted, or cannot write as lines. */
const STRINGS = ['yes', 'No', 'on', 'OFF', 'y', 'n', 'true', 'null', '~', '', '0400', '012', '0o17', '0x1F', '1_000', '_1', '1e3', '1.10', '.5', '-', '---', '.inf', '12:30:45', '2026-11-28', '=', '<<', '!!str', '&a', '*a', ' a', 'a: b', 'a:', 'a #b', 'a\nb', 'a\n', '\na', 'a\n\n\n', '\n', ' a\nb', '\ta\nb', 'a \nb', 'a\n  ', 'a\n  \nb\n', 'a\r\nb', 'a\u0085b\nc', 'a\u2028b', '\ufeffa', '\u0007', '\u007f', 'é😀', '9007199254740993'];

test('the text of an object is that object, to the page and to kubectl', async () => {
  const spec = { list: STRINGS, keys: Object.fromEntries(STRINGS.filter(Boolean).map((text) => [text, text])), nested: [[STRINGS], { a: [{ b: 'x\ny' }] }] };
  await applied(thing('strings', JSON.stringify({ ...spec }).replace(/}$/, ',"size":9007199254740993}'), JSON.stringify({ mode: '0400' })));
  await ask(path('strings'), 'Edit YAML…');
  const field = dialog().getByRole('textbox', { name: 'YAML', exact: true });
  const text = await until('the text', () => field.inputValue());
  await button('Check').click();
  await until('nothing', async () => (await dialog().innerText()).includes('Nothing is changed.'));
  const before = await raw(path('strings'));
  await applied(text, 'replace');
  assert.equal(await raw(path('strings')), before);
});

test('what kubectl applied last is left as it is, and can be applied again', async () => {
  const text = thing('again', '{"a":"0400","size":5}');
  await applied(text);
  const annotation = async () => (await api(path('again'))).metadata.annotations['kubectl.kubernetes.io/last-applied-configuration'];
  const [last, before] = [await annotation(), await raw(path('again'))];
  await edit(path('again'), (now) => now.replace('size: 5', 'size: 9223372036854775807').replace('a: "0400"', 'a: yes'), /^Changed again/, '+9223372036854775807', '+true');
  assert.match(await raw(path('again')), /"a":true,"size":9223372036854775807/);
  assert.equal(await annotation(), last);
  await applied(text);
  assert.equal(await raw(path('again')), before);
});

test('where the API server keeps the text of a number, an edit elsewhere leaves it, and one of its list says why not', async () => {
  const classes = '/apis/resource.k8s.io/v1/deviceclasses';
  const of = `${classes}/${ns}`;
  const object = `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"${ns}"},"spec":{"config":[{"opaque":{"driver":"d.example.com","parameters":{"a":1.0,"b":2}}}]}}`;
  const response = await fetch(proxy + classes, { method: 'POST', headers: { 'content-type': 'application/json' }, body: object });
  assert.equal(response.status, 201, await response.text());
  await edit(of, (text) => text.replace('metadata:', 'metadata:\n  labels: {tier: gold}'), /^Changed/, 'gold');
  assert.match(await raw(of), /"parameters":{"a":1.0,"b":2}/);
  await ask(of, 'Edit YAML…');
  const field = dialog().getByRole('textbox', { name: 'YAML', exact: true });
  await field.fill((await until('the text', () => field.inputValue())).replace('b: 2', 'b: 3'));
  await button('Check').click();
  await until('the reason', async () => /It may keep a number in another form, such as 1\.0/.test((await dialog().getByRole('alert').allInnerTexts()).join()));
  await kubectl('delete', 'deviceclass', ns);
});
