// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The spreadsheet: what is typed scales Deployments, formulas follow the cluster,
// and nothing that could not be written is hidden.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { inflateRawSync } from 'node:zlib';
import { violations } from './axe.mjs';
import { clean, launch, shot, shots } from './browser.mjs';
import { api, apply, gateway, kubectl, long, namespace, reads, signal, startComponent, until } from './cluster.mjs';
import { goTo, openBoard } from './page.mjs';
import { account, grant, signingIn } from './users.mjs';

let browser;
let ns;
let page;
/** The PATCH requests of the page, as {path, dryRun, body}. */
let patches = [];

const watch = (page) => page.on('request', (request) => {
  if (request.method() !== 'PATCH') return;
  const url = new URL(request.url());
  patches.push({ path: url.pathname, dryRun: url.searchParams.get('dryRun') === 'All', manager: url.searchParams.get('fieldManager'), body: JSON.parse(request.postData()) });
});

before(async () => {
  browser = await launch();
  ns = await namespace('sheet');
  for (const [name, replicas] of [['api', 2], ['web', 1], ['worker', 1]]) await kubectl('-n', ns, 'create', 'deployment', name, '--image=nginx:1.27', `--replicas=${replicas}`);
  await kubectl('-n', ns, 'label', 'deployment', '--all', 'sheet=yes');
  page = await openBoard(browser, gateway, { q: `ns:${ns}` }, { ignore: /status of (400|403|409|422|502|503)/ });
  watch(page);
  await page.getByRole('button', { name: 'Sheet', exact: true }).click();
  await until('the Deployments', async () => (await cell(page, 'B4')) === 'worker');
});

after(async () => {
  if (page) clean(page);
  await browser?.close();
});

/** The text of a cell; null if it is not rendered. */
const cell = (page, name) => page.evaluate((id) => document.getElementById(id)?.textContent ?? null, `cell-${name}`);

/** Selects a cell or a range by its name. */
async function select(page, name) {
  const box = page.getByRole('textbox', { name: 'Selected cells' });
  await box.fill(name);
  await box.press('Enter');
  await until(`the selection of ${name}`, async () => {
    const [row, column] = await page.evaluate(() => window.spreadsheet.peek().cell.peek());
    return name.split(':')[0] === `${String.fromCharCode(64 + column)}${row}` && (await box.inputValue()) === name && page.evaluate(() => document.activeElement.matches('.cells'));
  });
}

/** Types into a cell. */
async function type(page, name, text) {
  await select(page, name);
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
  await until(`${text} in ${name}`, () => page.locator('.cells .editor').count().then((n) => n === 0));
}

/** The number of the row of an object. */
const rowOf = (page, name) => until(`the row of ${name}`, () => page.evaluate((name) => [...document.querySelectorAll('.cells .line')].find((line) => [...line.children].some((cell) => cell.id.startsWith('cell-B') && cell.textContent === name))?.getAttribute('aria-rowindex'), name));

const note = (page) => page.locator('.formula-bar .note').innerText();
const review = async (page) => {
  if (await page.locator('aside.review').count() === 0) await page.getByRole('button', { name: /^(\d+ changes?|No changes)$/ }).click();
  return page.locator('aside.review');
};
const deployment = (name) => api(`/apis/apps/v1/namespaces/${ns}/deployments/${name}`);
const replicas = async (name) => (await deployment(name)).spec.replicas;

/** Applies all changes, and waits until that is done. */
async function applyAll(page, words = /^Wrote/) {
  const button = (await review(page)).getByRole('button', { name: /^Apply (the change|all)/ });
  await page.evaluate(() => { [window.before, window.seen] = [window.spreadsheet.peek().applier.progress.peek(), '']; });
  await button.click();
  const goesOn = () => {
    const now = window.spreadsheet.peek().applier.progress.peek();
    if (now === window.before) return false;
    const [seen, is] = [window.seen, JSON.stringify(now)];
    window.seen = is;
    return now.phase === 'done' ? 'done' : is !== seen && is;
  };
  // Each step in time: how long all of them take is the machine's.
  while ((await until('the next step', () => page.evaluate(goesOn))) !== 'done');
  await reads(`${words}`, page.locator('aside.review').getByRole('status'), words);
}

/** Forgets what was typed. */
async function discard(page) {
  const button = (await review(page)).getByRole('button', { name: 'Discard', exact: true });
  if (await button.count()) await button.click();
  await reads('no changes', page.locator('aside.review h3').first(), /No changes/);
}

/** Pastes a text into the selected cells. */
const paste = (page, text) => page.evaluate((text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  document.querySelector('.cells').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
}, text);

test('a changed cell scales the Deployment, and its status follows', async () => {
  patches = [];
  await type(page, 'C2', '4');
  await until('the change', async () => /2 → 4, not written yet/.test((await select(page, 'C2'), await note(page))));
  assert.equal(await replicas('api'), 2); // review is the default
  await applyAll(page);
  await until('the status', async () => (await cell(page, 'D2')) === '4');
  const { metadata, spec } = await deployment('api');
  assert.equal(spec.replicas, 4);
  const value = { path: '/spec/replicas' };
  assert.deepEqual(patches.map(({ dryRun }) => dryRun), [true, false]);
  assert.deepEqual(patches[1].body, [{ op: 'test', path: '/metadata/uid', value: metadata.uid }, { op: 'test', ...value, value: 2 }, { op: 'replace', ...value, value: 4 }]);
  const own = metadata.managedFields.filter(({ manager }) => manager === 'watchkeeper-sheet').map(({ fieldsV1 }) => fieldsV1);
  assert.deepEqual(own, [{ 'f:spec': { 'f:replicas': {} } }]);
  await shot(page, 'sheet');
  await page.getByRole('button', { name: `Undo the change of ${ns}/api` }).click();
  await until('the undo', async () => (await replicas('api')) === 2);
  await until('its cell', async () => (await cell(page, 'D2')) === '2');
});

test('formulas use the time, other cells and other tabs, and follow the cluster', long, async () => {
  await type(page, 'F1', 'wanted');
  await type(page, 'F2', '=IF(HOUR(NOW())<24,MAX(2,CEILING(250/100,1)),0)');
  await until('a result with the time', async () => (await cell(page, 'F2')) === '3');
  await page.getByRole('button', { name: 'New tab' }).click();
  await page.getByRole('button', { name: 'Empty tab' }).click();
  await until('the tab', async () => (await page.getByRole('tab', { name: 'Sheet', exact: true }).getAttribute('aria-selected')) === 'true');
  await type(page, 'A1', 'ready');
  await type(page, 'B1', `=SUMIF(deployments!B2:B4,"web",deployments!D2:D4)*10`);
  await until('the result of another tab', async () => (await cell(page, 'B1')) === '10');
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=3');
  await until('the new result', async () => (await cell(page, 'B1')) === '30');
  // A formula in a cell of the cluster is a change while it gives another value.
  await page.getByRole('tab', { name: 'deployments', exact: true }).click();
  await type(page, 'C4', '=Sheet!B1/10-1');
  await until('the change', async () => /1 → 2, not written yet/.test((await select(page, 'C4'), await note(page))));
  await applyAll(page);
  assert.equal(await replicas('worker'), 2);
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=1');
  await until('another change', async () => /2 → 0, not written yet/.test((await select(page, 'C4'), await note(page))));
  await select(page, 'F3');
  await page.keyboard.type('=XLOOKUP(1,A:A,B:B)');
  await page.keyboard.press('Enter');
  await until('the refusal', async () => /XLOOKUP is not supported/.test(await note(page)));
  await page.keyboard.press('Escape');
});

test('the address has the workbook', long, async () => {
  await until('the address', () => {
    const text = new URL(page.url()).searchParams.get('sheet') ?? '';
    const workbook = text && JSON.parse(inflateRawSync(Buffer.from(text, 'base64url')));
    return workbook && workbook.tabs.flatMap(({ cells }) => cells.map(({ cell }) => cell)).join() === 'F1,F2,C4,A1,B1';
  });
  const second = await openBoard(browser, gateway, Object.fromEntries(new URL(page.url()).searchParams));
  await until('its formula', async () => (await cell(second, 'F2')) === '3');
  assert.equal(await cell(second, 'F1'), 'wanted');
  await second.getByRole('tab', { name: 'Sheet', exact: true }).click();
  await until('the other tab', async () => (await cell(second, 'B1')) === '10');
  clean(second);
  await second.close();
  // And a ConfigMap.
  await page.getByRole('button', { name: 'Files…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Files' });
  await dialog.getByRole('textbox', { name: 'Namespace' }).fill(ns);
  await dialog.getByRole('button', { name: 'Keep', exact: true }).click();
  await reads('it is kept', dialog.getByRole('status'), /Kept in/);
  await page.keyboard.press('Escape');
  await discard(page);
  await type(page, 'F1', 'other');
  await page.getByRole('button', { name: 'Files…' }).click();
  await dialog.getByRole('textbox', { name: 'Namespace' }).fill(ns);
  // What the address becomes meanwhile, the page sees only after the next frame: here after the answer.
  const before = await page.evaluate(() => {
    const [frame, timeout] = [window.requestAnimationFrame, window.setTimeout];
    window.requestAnimationFrame = (then) => timeout(() => frame(then), 2000);
    window.setTimeout = (then, after, ...rest) => timeout(then, after < 200 ? 2000 : after, ...rest);
    window.resume = () => Object.assign(window, { requestAnimationFrame: frame, setTimeout: timeout, resume: null });
    window.spreadsheet.peek().type([[1, 6, 'another']]);
    return window.spreadsheet.peek().addressed;
  });
  await until('its address', async () => (await page.evaluate(() => window.spreadsheet.peek().addressed)) !== before);
  await dialog.getByRole('button', { name: 'Open it' }).click();
  await until('the kept workbook', async () => (await cell(page, 'F1')) === 'wanted');
  await page.evaluate(() => window.resume());
  await page.waitForTimeout(2500);
  await until('the kept workbook', async () => (await cell(page, 'F1')) === 'wanted' && (await cell(page, 'B4')) === 'worker');
});

test('an .xlsx file has the workbook, and can be opened again', long, async () => {
  await page.getByRole('button', { name: 'Files…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Files' });
  const [download] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('button', { name: 'Download', exact: true }).click()]);
  const file = `${shots}workbook.xlsx`;
  await download.saveAs(file);
  await page.keyboard.press('Escape');
  await until('it is closed', () => dialog.count().then((n) => n === 0));
  await type(page, 'F1', 'changed');
  await page.getByRole('button', { name: 'Files…' }).click();
  await dialog.getByLabel('Open', { exact: true }).setInputFiles({ name: 'bad.xlsx', mimeType: 'application/zip', buffer: Buffer.from('no workbook') });
  await until('the refusal', async () => (await dialog.getByRole('alert').innerText()).length > 10);
  await dialog.getByLabel('Open', { exact: true }).setInputFiles({ name: 'workbook.xlsx', mimeType: 'application/zip', buffer: await readFile(file) });
  await until('the workbook', async () => (await cell(page, 'F1')) === 'wanted' && (await cell(page, 'F2')) === '3' && (await cell(page, 'B4')) === 'worker');
  await page.getByRole('tab', { name: 'Sheet', exact: true }).click();
  await until('the other tab', async () => /^\d+$/.test(await cell(page, 'B1')));
  await page.getByRole('tab', { name: 'deployments', exact: true }).click();
  await until('the first one', async () => (await cell(page, 'F1')) === 'wanted');
});

test('a conflict is shown in the cell, and is not one with the status', long, async () => {
  await select(page, 'C4');
  await page.keyboard.press('Delete');
  await discard(page);
  await type(page, 'C2', '5');
  await until('the change', async () => /not written yet/.test((await select(page, 'C2'), await note(page))));
  await kubectl('-n', ns, 'scale', 'deployment/api', '--replicas=3');
  await until('the other\'s value', async () => /it is 3 now/.test(await note(page)));
  await applyAll(page, /refused/);
  await until('the reason', async () => /was changed meanwhile: it is 3, not 2/.test(await note(page)));
  assert.equal(await replicas('api'), 3);
  await shot(page, 'sheet-conflict');
  await page.getByRole('button', { name: 'Replace that' }).click();
  await until('the status of three', async () => (await cell(page, 'D2')) === '3');
  await kubectl('-n', ns, 'patch', 'deployment/api', '--subresource=status', '--type=merge', '-p', '{"status":{"observedGeneration":1}}');
  await applyAll(page, /^Wrote 1/);
  assert.equal(await replicas('api'), 5);
});

test('what the dry run refuses is not written, and neither are the others until it is said', long, async () => {
  await type(page, 'C2', '-1');
  await type(page, 'C3', '2');
  await applyAll(page, /refused/);
  await until('the reason', async () => /must be greater than or equal to 0/.test((await select(page, 'C2'), await note(page))));
  assert.deepEqual([await replicas('api'), await replicas('web')], [5, 1]);
  await page.getByRole('button', { name: 'Apply the other 1' }).click();
  await until('the other', async () => (await replicas('web')) === 2);
  assert.equal(await replicas('api'), 5);
  await discard(page);
  await type(page, 'C2', 'many');
  await until('no number', async () => /is no number/.test((await select(page, 'C2'), await note(page))));
  await type(page, 'C3', '3');
  await applyAll(page, /^1 object refused. Nothing was written/);
  assert.match(await page.locator('aside.review').innerText(), /spec\.replicas: 5 → many/);
  assert.equal(await replicas('web'), 2);
  await discard(page);
  // What cannot be written is not edited.
  await select(page, 'D2');
  await page.keyboard.type('7');
  await until('the reason', async () => /written by controllers/.test(await note(page)));
});

test('texts of the cluster are never formulas', long, async () => {
  const texts = { equals: '=1+1', plus: '+1', minus: '-1', at: '@SUM(A1)', tab: '\t=1', quote: "'=1", cmd: '=cmd|\' /C calc\'!A0' };
  await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'hostile', namespace: ns, annotations: texts }, data: { a: '1' } });
  await goTo(page, gateway, { view: 'sheet', kind: 'configmaps', q: `ns:${ns}` });
  await page.getByRole('button', { name: 'Close', exact: true }).first().waitFor();
  const hostile = await rowOf(page, 'hostile');
  await page.getByRole('button', { name: 'Columns…' }).click();
  for (const key of Object.keys(texts)) {
    await page.getByRole('textbox', { name: 'Path' }).or(page.getByRole('combobox', { name: 'Path' })).fill(`metadata.annotations.${key}`);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: `Remove metadata.annotations.${key}` }).waitFor();
  }
  await page.keyboard.press('Escape');
  const columns = ['D', 'E', 'F', 'G', 'H', 'I', 'J'];
  for (const [i, text] of Object.values(texts).entries()) {
    await select(page, `${columns[i]}${hostile}`); // scrolls it into view
    await until(text, async () => (await cell(page, `${columns[i]}${hostile}`)) === text);
  }
  for (const [i, column] of columns.entries()) {
    await type(page, `${column}30`, `=${column}${hostile}&"!"`);
    await until('its text', async () => (await cell(page, `${column}30`)) === `${Object.values(texts)[i]}!`);
  }
  // Copied elsewhere, they are texts there, too.
  await select(page, `D${hostile}:J${hostile}`);
  const copied = await page.evaluate(() => {
    const clipboardData = new DataTransfer();
    document.querySelector('.cells').dispatchEvent(new ClipboardEvent('copy', { clipboardData, bubbles: true, cancelable: true }));
    return clipboardData.getData('text/plain');
  });
  assert.deepEqual(copied.split(/\t(?!=1")/), ["'=1+1", "'+1", "'-1", "'@SUM(A1)", '"\'\t=1"', "'=1", "'=cmd|' /C calc'!A0"]);
  await type(page, `D${hostile}`, '=2+3');
  await until('a formula that was typed', async () => (await cell(page, `D${hostile}`)) === '5');
  await applyAll(page);
  const { metadata } = await api(`/api/v1/namespaces/${ns}/configmaps/hostile`);
  const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...annotations } = metadata.annotations;
  assert.deepEqual(annotations, { ...texts, equals: '5' });
});

test('500 pasted edits are written, some at a time', long, async () => {
  const many = await namespace('many');
  const names = Array.from({ length: 500 }, (_, i) => `map-${String(i).padStart(3, '0')}`);
  await apply({ apiVersion: 'v1', kind: 'List', items: names.map((name) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: many }, data: { a: 'old' } })) });
  await page.getByRole('button', { name: 'New tab' }).click();
  await page.getByRole('combobox', { name: 'Kind' }).or(page.getByRole('textbox', { name: 'Kind' })).fill('configmaps');
  await page.getByRole('textbox', { name: 'Namespace' }).fill(many);
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await until('the ConfigMaps', () => page.getByText('501 ConfigMaps', { exact: true }).isVisible());
  await page.getByRole('button', { name: 'Columns…' }).click();
  await page.getByRole('combobox', { name: 'Path' }).fill('data.a');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Remove data.a' }).waitFor();
  await page.keyboard.press('Escape');
  await until('their values', async () => (await cell(page, 'D10')) === 'old');
  patches = [];
  let open = 0;
  let most = 0;
  page.on('request', (request) => request.method() === 'PATCH' && (most = Math.max(most, ++open)));
  for (const event of ['requestfinished', 'requestfailed']) page.on(event, (request) => request.method() === 'PATCH' && open--);
  const first = (await cell(page, 'B2')) === 'kube-root-ca.crt' ? 3 : 2;
  await select(page, `D${first}`);
  await paste(page, names.map((_, i) => `new ${i}`).join('\r\n'));
  await until('the changes', () => page.getByRole('button', { name: '500 changes' }).isVisible());
  await applyAll(page, /^Wrote 500 objects\.$/);
  const { items } = await api(`/api/v1/namespaces/${many}/configmaps`);
  assert.deepEqual(items.filter(({ metadata }) => metadata.name.startsWith('map-')).map(({ data }) => data.a), names.map((_, i) => `new ${i}`));
  assert.equal(patches.filter(({ dryRun }) => !dryRun).length, 500);
  assert.equal(patches.filter(({ dryRun }) => dryRun).length, 500);
  assert.ok(most <= 8, `${most} at a time`);
});

test('the keyboard alone moves, fills, copies and undoes', long, async () => {
  await goTo(page, gateway, { view: 'sheet', kind: 'deployments.apps', q: `ns:${ns}` });
  await until('the Deployments', async () => (await cell(page, 'B4')) === 'worker');
  await type(page, 'G1', '1');
  await type(page, 'G2', '=G1*2');
  await select(page, 'G2:G5');
  await page.keyboard.press('Control+d');
  await until('the filled cells', async () => (await cell(page, 'G5')) === '16');
  await page.keyboard.press('Control+z');
  await until('the undo', async () => (await cell(page, 'G5')) === '');
  await until('what was before it', async () => (await cell(page, 'G2')) === '2');
  await select(page, 'G2');
  await page.keyboard.press('Control+c');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Control+v');
  await until('the moved reference', async () => /=H1\*2/.test(await page.getByRole('textbox', { name: 'Content of the cell' }).inputValue()));
  await page.keyboard.press('Home');
  await page.keyboard.press('Control+ArrowDown');
  await until('the last row of the objects', async () => (await page.getByRole('textbox', { name: 'Selected cells' }).inputValue()) === 'A4');
  await page.keyboard.press('F2');
  await until('no editor', async () => /name of an object/.test(await note(page)));
  assert.deepEqual(await violations(page), { dark: [], light: [] });
  await type(page, 'C2', '9');
  await review(page);
  assert.deepEqual(await violations(page), { dark: [], light: [] });
  for (const dialog of ['Columns…', 'Files…', 'New tab']) {
    await page.getByRole('button', { name: dialog, exact: true }).click();
    await page.getByRole('dialog').waitFor();
    assert.deepEqual(await violations(page), { dark: [], light: [] }, dialog);
    await shot(page, `sheet-${dialog.replace(/\W/g, '').toLowerCase()}`);
    await page.keyboard.press('Escape');
    await until('it is closed', () => page.getByRole('dialog').count().then((n) => n === 0));
  }
  await discard(page);
});

test('the past is read only, and a column has the value of a moment', long, async () => {
  const moment = new Date().toISOString();
  const before = await replicas('worker');
  await kubectl('-n', ns, 'scale', 'deployment/worker', `--replicas=${before + 2}`);
  await until('the new value', async () => (await cell(page, 'C4')) === String(before + 2));
  await page.getByRole('button', { name: 'Columns…' }).click();
  await page.getByRole('combobox', { name: 'Path' }).fill(`spec.replicas @ ${moment}`);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /^Remove spec.replicas @/ }).waitFor();
  await page.keyboard.press('Escape');
  await until('the value of then, beside that of now', async () => (await cell(page, 'F4')) === String(before) && (await cell(page, 'C4')) === String(before + 2));
  await goTo(page, gateway, { view: 'sheet', kind: 'deployments.apps', q: `ns:${ns}`, at: moment });
  await until('the past', async () => (await cell(page, 'C4')) === String(before));
  await select(page, 'C4');
  await page.keyboard.type('7');
  await until('the refusal', async () => /past cannot be changed/.test(await note(page)));
  assert.equal(await page.getByRole('button', { name: /^(No changes|\d+ changes?)$/ }).count(), 0);
  await goTo(page, gateway, { view: 'sheet', kind: 'deployments.apps', q: `ns:${ns}` });
  await until('now', async () => (await cell(page, 'C4')) === String(before + 2));
});

test('automatic mode writes at once, and stops a formula that does not settle', long, async () => {
  await page.getByRole('button', { name: 'Automatic', exact: true }).click();
  await type(page, 'C3', '1');
  await until('it is written', async () => (await replicas('web')) === 1);
  await until('its status', async () => (await cell(page, 'D3')) === '1');
  await type(page, 'C3', '=D3+1');
  await until('the end of the loop', async () => /does not settle/.test((await select(page, 'C3'), await note(page))), 90);
  const stopped = await replicas('web');
  assert.ok(stopped <= 6, `${stopped} replicas`);
  await review(page);
  await shot(page, 'sheet-loop');
  assert.equal(await replicas('web'), stopped);
  await page.getByRole('button', { name: 'Review', exact: true }).click();
  await select(page, 'C3');
  await page.keyboard.press('Delete');
});

test('a deleted object keeps its row until it is removed', long, async () => {
  await type(page, 'G4', '=C4+1');
  await type(page, 'G3', '=C3+1');
  await kubectl('-n', ns, 'delete', 'deployment', 'web');
  await until('the deletion', () => page.locator('.cells .line.gone').count().then((n) => n === 1));
  await until('its empty value', async () => (await cell(page, 'G3')) === '1');
  await page.getByRole('button', { name: 'Remove 1 deleted row' }).click();
  await until('the removal', async () => (await cell(page, 'B3')) === 'worker' && /=C3\+1/.test((await select(page, 'G3'), await page.getByRole('textbox', { name: 'Content of the cell' }).inputValue())));
});

test('a user without rights sees, and is refused', long, async (t) => {
  const user = await account(ns, 'reader');
  await grant(user, 'view', ns);
  const own = await openBoard(browser, await signingIn(t, user, gateway), { view: 'sheet', kind: 'deployments.apps' }, { ignore: /status of (400|401|403)/ });
  await until('the Deployments', async () => (await cell(own, 'B2')) === 'api');
  await until('what they may not', () => own.getByText(/You may not change Deployment/).isVisible());
  const had = await replicas('api');
  await type(own, 'C2', '1');
  await applyAll(own, /Nothing was written/);
  await until('the refusal', async () => /cannot patch resource/.test((await select(own, 'C2'), await note(own))));
  assert.equal(await replicas('api'), had);
  clean(own);
  await own.close();
});

test('the API server ends in the middle: what was not written stays a change', long, async (t) => {
  const worker = `C${await rowOf(page, 'worker')}`;
  await kubectl('-n', ns, 'scale', 'deployment/worker', '--replicas=2');
  await until('two workers', async () => (await cell(page, worker)) === '2');
  await type(page, 'C2', '1');
  await type(page, worker, '1');
  await page.route(/\/deployments\/worker\?(?!.*dryRun)/, async (route) => {
    if (route.request().method() !== 'PATCH') return route.continue();
    await until('the first one', async () => (await replicas('api')) === 1);
    await signal('kube-apiserver');
    return route.continue();
  });
  t.after(() => startComponent('kube-apiserver').catch(() => {})); // other tests need it
  await applyAll(page, /Wrote 1 object; 1 refused/);
  await select(page, worker);
  await until('the other one', async () => {
    assert.match(await note(page), /not known whether/);
    return true;
  });
  await page.unroute(/\/deployments\/worker\?(?!.*dryRun)/);
  await startComponent('kube-apiserver');
  await until('the API server', () => replicas('worker'));
  await until('contact', async () => !/stale|no contact/i.test(await page.locator('.connection').innerText()));
  await applyAll(page, /^Wrote 1 object\./);
  assert.equal(await replicas('worker'), 1);
});
