// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Actions on objects, by what the API server then has.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch, shot } from './browser.mjs';
import { api, apply, gateway, kubectl, long, namespace, reads, startGateway, until } from './cluster.mjs';
import { goTo, openBoard } from './page.mjs';
import { PHONE } from './phone.mjs';
import { overflowing, smallTargets } from './targets.mjs';
import { account, grant, signingIn } from './users.mjs';

/** Chromium logs the answers that the tests provoke. */
const provoked = { ignore: /status of (400|403|404|409|422|429)/ };
let browser;
let ns;
let page;

before(async () => {
  browser = await launch();
  ns = await namespace('actions');
  page = await openBoard(browser, gateway, {}, provoked);
});

after(async () => {
  // Without metrics it needs attention, which is not what other tests look for.
  await kubectl('-n', ns, 'delete', 'horizontalpodautoscaler', '--all');
  if (page) clean(page);
  await browser?.close();
});

const deployments = () => `/apis/apps/v1/namespaces/${ns}/deployments`;
const button = (page, name) => page.getByRole('button', { name, exact: true });
const dialog = (page) => page.getByRole('dialog');
const said = (page) => page.locator('.said');
const alert = (page) => dialog(page).getByRole('alert').filter({ hasText: /./ });

/** Creates a Deployment and waits for its Pods. */
async function deploy(name, replicas) {
  await kubectl('-n', ns, 'create', 'deployment', name, '--image=nginx:1.27', `--replicas=${replicas}`);
  await kubectl('-n', ns, 'rollout', 'status', `deployment/${name}`);
}

/** Selects an object by its API path, and waits for its menu. */
async function show(page, path, query = {}) {
  await goTo(page, gateway, { sel: path, ...query });
  await button(page, 'Actions').waitFor();
}

/** Opens the dialog of an action. */
async function ask(page, label) {
  await button(page, 'Actions').click();
  await page.getByRole('menuitem', { name: label, exact: true }).click();
  await dialog(page).waitFor();
}

/** Waits until the dialog shows a difference that has all of these, and may be applied with a button. */
const shows = (page, press, ...parts) =>
  until(`the difference ${parts}`, async () => {
    const text = await dialog(page).locator('.diff').innerText();
    assert.ok(await button(dialog(page), press).isEnabled());
    return parts.every((part) => text.includes(part)) || text;
  }).then((found) => assert.equal(found, true));

/** Presses a button of the dialog, and waits for what the page then says. */
async function press(page, name, words) {
  await button(dialog(page), name).click();
  await says(page, words);
}
const says = (page, words) =>
  until(`the words ${words}`, async () => {
    const text = await said(page).innerText();
    assert.match(text, words);
    return (await dialog(page).count()) === 0;
  });

/** Checks a dialog with axe, and takes a picture with dark colours. */
async function checked(page, name) {
  assert.deepEqual(await violations(page), { dark: [], light: [] });
  await shot(page, `${name}-light`);
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot(page, name);
}

describe('a Deployment', () => {
  const path = () => `${deployments()}/web`;
  const spec = async () => (await api(path())).spec;

  test('is scaled with the keyboard alone, and back', async () => {
    await deploy('web', 2);
    await show(page, path());
    await page.keyboard.press('a');
    const focused = (name) => until(`the focus on ${name}`, () => page.evaluate((name) => document.activeElement?.textContent === name, name));
    await focused('Scale…');
    await page.keyboard.press('ArrowUp');
    await focused('Delete…');
    await checked(page, 'action-menu');
    await page.keyboard.press('Escape');
    await focused('Actions ');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('d');
    await focused('Delete…');
    await page.keyboard.press('Home');
    await focused('Scale…');
    await page.keyboard.press('Enter');
    await until('the field', () => page.getByRole('spinbutton', { name: /^Replicas/ }).evaluate((field) => field === document.activeElement));
    await page.keyboard.press('Control+a');
    await page.keyboard.type('5');
    await shows(page, 'Scale', 'spec.replicas', '-2', '+5');
    await checked(page, 'action-scale');
    await page.keyboard.press('Enter');
    await says(page, /^Scaled web from 2 to 5\./);
    assert.equal((await spec()).replicas, 5);
    const { metadata: { managedFields } } = await api(path() + '?', 'application/json');
    const mine = managedFields.filter(({ manager }) => manager === 'watchkeeper');
    assert.deepEqual(mine.map(({ operation, fieldsV1 }) => [operation, fieldsV1]), [['Update', { 'f:spec': { 'f:replicas': {} } }]]);
    await shot(page, 'action-said');
    await page.keyboard.press('Tab');
    await focused('Undo');
    await page.keyboard.press('Enter');
    await says(page, /^Undone: web has 2 again\./);
    assert.equal((await spec()).replicas, 2);
  });

  test('is not scaled if somebody else does it meanwhile; a new status is no conflict', long, async () => {
    await show(page, path());
    await ask(page, 'Scale…');
    await page.getByRole('spinbutton', { name: /^Replicas/ }).fill('4');
    await shows(page, 'Scale', '+4');
    await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=3');
    await button(dialog(page), 'Scale').click();
    await reads('the conflict', alert(page), /Nothing was written\. spec\.replicas was changed meanwhile: it is 3, not 2\./);
    assert.equal((await spec()).replicas, 3);
    await checked(page, 'action-conflict');
    await button(dialog(page), 'Look again').click();
    await until('the current value', async () => (await dialog(page).innerText()).includes('3 now'));
    await page.getByRole('spinbutton', { name: /^Replicas/ }).fill('2');
    await shows(page, 'Scale', '-3', '+2');
    const { metadata: { resourceVersion } } = await api(path());
    await kubectl('-n', ns, 'patch', 'deployment/web', '--subresource=status', '-p', '{"status":{"conditions":[{"type":"Seen","status":"True"}]}}');
    assert.notEqual((await api(path())).metadata.resourceVersion, resourceVersion);
    await press(page, 'Scale', /^Scaled web from 3 to 2\./);
    assert.equal((await spec()).replicas, 2);
    // What the action wrote is no longer there.
    await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=1');
    await button(page, 'Undo').click();
    await says(page, /^Undo was not possible\. spec\.replicas was changed meanwhile: it is 1, not 2\./);
    assert.equal((await spec()).replicas, 1);
  });

  test('says that an autoscaler sets its replicas', long, async () => {
    await kubectl('-n', ns, 'create', 'deployment', 'auto', '--image=nginx:1.27');
    await kubectl('-n', ns, 'autoscale', 'deployment/auto', '--min=1', '--max=9', '--cpu=50%');
    await show(page, `${deployments()}/auto`);
    await ask(page, 'Scale…');
    await until('the autoscaler', async () => (await dialog(page).innerText()).includes('HorizontalPodAutoscaler auto sets the replicas itself, from 1 to 9.'));
    await button(dialog(page), 'Cancel').click();
    await until('no dialog', async () => (await dialog(page).count()) === 0);
  });

  test('is restarted by an annotation of the template', long, async () => {
    const before = await spec();
    const sets = async () => (await api(`/apis/apps/v1/namespaces/${ns}/replicasets?labelSelector=app%3Dweb`)).items.length;
    const count = await sets();
    await show(page, path());
    await ask(page, 'Restart…');
    await shows(page, 'Restart', 'spec.template.metadata.annotations', 'kubectl.kubernetes.io/restartedAt');
    await checked(page, 'action-restart');
    await press(page, 'Restart', /^Restarting web\./);
    const { template, ...rest } = await spec();
    const { metadata: { annotations, ...metadata }, ...more } = template;
    assert.match(annotations['kubectl.kubernetes.io/restartedAt'], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.deepEqual({ template: { metadata, ...more }, ...rest }, before);
    await until('a new ReplicaSet', async () => (await sets()) === count + 1);
  });

  test('is rolled back to a recorded version, from the menu and from the list of versions', long, async () => {
    const image = async () => (await spec()).template.spec.containers[0].image;
    await kubectl('-n', ns, 'set', 'image', 'deployment/web', 'nginx=nginx:1.28');
    await show(page, path());
    await ask(page, 'Roll back…');
    await shows(page, 'Roll back', 'spec.template.spec.containers[nginx].image', '-nginx:1.28', '+nginx:1.27');
    await checked(page, 'action-rollback');
    await press(page, 'Roll back', /^Rolled web back to the version of /);
    assert.equal(await image(), 'nginx:1.27');
    await button(page, 'Undo').click();
    await says(page, /^Undone: web is as it was before\./);
    assert.equal(await image(), 'nginx:1.28');
    await show(page, path(), { tab: 'versions' });
    const created = page.locator('.changes-list li.added');
    await created.getByRole('button', { name: /^What changed at/ }).click();
    await button(created, 'Roll back to this version').scrollIntoViewIfNeeded();
    await shot(page, 'action-version');
    await button(created, 'Roll back to this version').click();
    await shows(page, 'Roll back', '-nginx:1.28', '+nginx:1.27', 'restartedAt');
    // It was created with two Pods, and now there is one.
    const replicas = page.getByLabel('Also its replicas: 2 instead of 1');
    await replicas.uncheck();
    await until('the difference without replicas', async () => !(await dialog(page).locator('.diff').innerText()).includes('replicas'));
    await press(page, 'Roll back', /^Rolled web back/);
    const { replicas: now, template } = await spec();
    assert.deepEqual([now, template.spec.containers[0].image, template.metadata.annotations], [1, 'nginx:1.27', undefined]);
  });

  test('is edited as YAML', long, async () => {
    await show(page, path());
    await ask(page, 'Edit YAML…');
    const field = dialog(page).getByRole('textbox', { name: 'YAML', exact: true });
    const text = await until('the text', () => field.inputValue());
    assert.ok(!/managedFields|\nstatus:|resourceVersion/.test(text) && text.includes('replicas: 1'));
    const refused = async (edited, words) => {
      await field.fill(edited);
      await button(dialog(page), 'Check').click();
      await reads(`the refusal ${words}`, alert(page), words);
      assert.equal(await field.inputValue(), edited);
      assert.ok(await button(dialog(page), 'Apply').isDisabled());
    };
    await refused(`${text}more: [`, /^Line \d+: did not find expected node content\.$/);
    await refused(text.replace('name: web', 'name: other'), /^metadata\.name cannot be changed: it is web\./);
    await refused(text.replace('replicas: 1', 'replicas: -1'), /spec\.replicas: Invalid value: -1: must be greater than or equal to 0/);
    await checked(page, 'action-refused');
    await refused(text.replace('replicas: 1', 'replicsa: 1'), /unknown field "spec\.replicsa"/);
    await field.fill(text.replace('image: nginx:1.27', 'image: nginx:1.27\n        env: [{name: A, value: "1"}, {name: A, value: "2"}]'));
    await button(dialog(page), 'Check').click();
    await reads('the warning', dialog(page).locator('.warnings'), /Warning: spec\.template\.spec\.containers\[0\]\.env\[1\]: hides previous definition of "A"/);
    await field.fill(text.replace('labels:', 'labels:\n    tier: gold # the best'));
    await page.keyboard.press('Control+Enter');
    await shows(page, 'Apply', 'metadata.labels.tier', '+gold');
    await checked(page, 'action-edit');
    await press(page, 'Apply', /^Changed web: metadata\.labels\.tier\./);
    assert.equal((await api(path())).metadata.labels.tier, 'gold');
    await button(page, 'Undo').click();
    await says(page, /^Undone/);
    assert.equal((await api(path())).metadata.labels.tier, undefined);
  });

  test('keeps the text of an edit that conflicts', long, async () => {
    await show(page, path());
    await ask(page, 'Edit YAML…');
    const field = dialog(page).getByRole('textbox', { name: 'YAML', exact: true });
    const text = await until('the text', () => field.inputValue());
    const mine = text.replace('replicas: 1', 'replicas: 4 # as agreed');
    await field.fill(mine);
    await button(dialog(page), 'Check').click();
    await shows(page, 'Apply', '-1', '+4');
    await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=2');
    await button(dialog(page), 'Apply').click();
    await reads('the conflict', alert(page), /^Nothing was written\. spec\.replicas was changed meanwhile: it is 2, not 1\./);
    assert.equal(await field.inputValue(), mine);
    await button(dialog(page), 'Keep mine').click();
    await shows(page, 'Apply', '-2', '+4');
    await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=3');
    await button(dialog(page), 'Apply').click();
    await reads('the next conflict', alert(page), /it is 3, not 2/);
    await button(dialog(page), "Take the other's").click();
    await until('the text with the other value', async () => (await field.inputValue()).includes('replicas: 3') && (await dialog(page).innerText()).includes('Nothing is changed.'));
    // Esc does not throw the text away at once.
    await field.focus();
    await page.keyboard.press('Escape');
    await until('the focus on a button', () => page.evaluate(() => document.activeElement?.textContent === 'Check'));
    await page.keyboard.press('Escape');
    await until('the end of the dialog', async () => (await dialog(page).count()) === 0);
    assert.equal((await spec()).replicas, 3);
  });
});

test('another object of the same name is not changed', long, async () => {
  const path = `/api/v1/namespaces/${ns}/configmaps/twice`;
  const create = () => kubectl('-n', ns, 'create', 'configmap', 'twice', '--from-literal=n=one');
  await create();
  await show(page, path);
  await ask(page, 'Edit YAML…');
  const field = dialog(page).getByRole('textbox', { name: 'YAML', exact: true });
  await field.fill((await until('the text', () => field.inputValue())).replace('"n": one', '"n": two'));
  await button(dialog(page), 'Check').click();
  await shows(page, 'Apply', 'data.n', '-one', '+two');
  await kubectl('-n', ns, 'delete', 'configmap/twice');
  await create();
  await button(dialog(page), 'Apply').click();
  await until('the refusal', async () => (await alert(page).innerText()).startsWith('Nothing was written. The object was deleted, and another one has its name.'));
  assert.deepEqual((await api(path)).data, { n: 'one' });
});

test('a deleted object is created again', long, async () => {
  const path = `/api/v1/namespaces/${ns}/services/front`;
  await kubectl('-n', ns, 'create', 'service', 'clusterip', 'front', '--tcp=80');
  const { metadata: { uid } } = await api(path);
  await show(page, path);
  await ask(page, 'Delete…');
  await until('the object', async () => (await dialog(page).locator('.diff').innerText()).includes('type: ClusterIP') && (await button(dialog(page), 'Delete').isEnabled()));
  await checked(page, 'action-delete');
  // Only the history has this label.
  await kubectl('-n', ns, 'label', 'service/front', 'late=yes');
  await press(page, 'Delete', /^Deleted front\./);
  await assert.rejects(api(path), /404/);
  await button(page, 'Undo').click();
  await says(page, /^Created front again, as a new object with another uid\./);
  const again = await api(path);
  assert.deepEqual([again.spec.type, again.metadata.labels], ['ClusterIP', { app: 'front', late: 'yes' }]);
  assert.notEqual(again.metadata.uid, uid);
  // With a namespace goes what is in it.
  await show(page, `/api/v1/namespaces/${ns}`);
  await ask(page, 'Delete…');
  await until('the warning', async () => (await dialog(page).innerText()).includes('Everything in the namespace is deleted'));
  await dialog(page).getByRole('textbox').fill(ns.slice(0, -1));
  await until('no deletion', () => button(dialog(page), 'Delete').isDisabled());
  await dialog(page).getByRole('textbox').fill(ns);
  await until('a deletion', () => button(dialog(page), 'Delete').isEnabled());
  await button(dialog(page), 'Cancel').click();
});

describe('a Node', long, () => {
  const node = `drained-${process.pid}`;
  const path = `/api/v1/nodes/${node}`;
  const cordoned = async () => (await api(path)).spec.unschedulable === true;

  before(async () => {
    await apply({
      apiVersion: 'v1', kind: 'Node', metadata: { name: node, annotations: { 'kwok.x-k8s.io/node': 'fake' }, labels: { 'kubernetes.io/hostname': node, for: 'drain' } },
      spec: { taints: [{ key: 'for', value: 'drain', effect: 'NoSchedule' }] },
    });
    await until('the Node', async () => (await api(path)).status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'));
    const pod = (more = {}) => ({ nodeSelector: { 'kubernetes.io/hostname': node }, tolerations: [{ key: 'for', operator: 'Exists' }], containers: [{ name: 'c', image: 'nginx' }], ...more });
    const template = (app, more) => ({ selector: { matchLabels: { app } }, template: { metadata: { labels: { app } }, spec: pod(more) } });
    await apply(
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'guarded', namespace: ns }, spec: { replicas: 2, ...template('guarded') } },
      { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'guard', namespace: ns }, spec: { minAvailable: 2, selector: { matchLabels: { app: 'guarded' } } } },
      { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'agent', namespace: ns }, spec: template('agent') },
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'alone', namespace: ns }, spec: pod({ volumes: [{ name: 'cache', emptyDir: {} }] }) },
    );
    await until('its Pods', async () => {
      const { items } = await api(`/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`);
      return items.length === 4 && items.every(({ status }) => status.phase === 'Running');
    });
    await until('the budget', async () => (await api(`/apis/policy/v1/namespaces/${ns}/poddisruptionbudgets/guard`)).status?.currentHealthy === 2);
  });

  // Other tests expect neither the Node nor Pods that fit nowhere.
  after(async () => {
    await kubectl('-n', ns, 'delete', 'deployment/guarded', 'daemonset/agent', 'pdb/guard');
    await kubectl('delete', 'node', node);
  });

  test('is cordoned, and uncordoned', async () => {
    await show(page, path);
    await ask(page, 'Cordon…');
    await shows(page, 'Cordon', 'spec.unschedulable', '+true');
    await checked(page, 'action-cordon');
    await press(page, 'Cordon', /^Cordoned drained-/);
    assert.ok(await cordoned());
    await button(page, 'Undo').click();
    await says(page, /^Undone: drained-\d+ takes Pods again\./);
    assert.ok(!(await cordoned()));
  });

  test('is drained as its budgets allow, and can be left half drained', async () => {
    await show(page, path);
    await ask(page, 'Drain…');
    await reads('the plan', dialog(page), /3 Pods are evicted.*1 Pod of DaemonSets remains\./s);
    assert.ok(await button(dialog(page), 'Drain').isDisabled());
    await dialog(page).getByRole('checkbox', { name: /^Delete 1 Pod without a controller, which nothing makes again: .*\/alone$/ }).check();
    await dialog(page).getByRole('checkbox', { name: /^Lose the data in the emptyDir volumes of 1 Pod/ }).check();
    await until('the button', () => button(dialog(page), 'Drain').isEnabled());
    await checked(page, 'action-drain');
    await button(dialog(page), 'Drain').click();
    await until('the budget that refuses', async () => {
      const text = await dialog(page).innerText();
      assert.match(text, /1 of 3 evicted, 1 gone/);
      return text.match(/The disruption budget guard needs 2 healthy pods and has 2 currently/g)?.length === 2;
    });
    await checked(page, 'action-draining');
    await button(dialog(page), 'Stop').click();
    await says(page, new RegExp(`^Stopped: 1 of 3 Pods evicted\\. ${node} remains cordoned\\.\\s+Uncordon`));
    assert.ok(await cordoned());

    await ask(page, 'Drain…');
    await reads('the rest', dialog(page), /cordoned already, then 2 Pods are evicted/);
    await button(dialog(page), 'Drain').click();
    await reads('the refusal', dialog(page), /The disruption budget guard/);
    await kubectl('-n', ns, 'patch', 'pdb', 'guard', '-p', '{"spec":{"minAvailable":0}}');
    await says(page, new RegExp(`^Drained ${node}: 2 Pods evicted\\. It remains cordoned\\.`));
    const { items } = await api(`/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`);
    assert.deepEqual(items.map(({ metadata }) => metadata.labels?.app), ['agent']);
    await ask(page, 'Uncordon…');
    await shows(page, 'Uncordon', 'spec.unschedulable', '-true');
    await press(page, 'Uncordon', /^Uncordoned/);
    assert.ok(!(await cordoned()));
  });
});

describe('no actions', long, () => {
  const path = () => `/api/v1/namespaces/${ns}/configmaps/read`;
  before(() => kubectl('-n', ns, 'create', 'configmap', 'read', '--from-literal=a=b'));

  /** Waits until the reader's rights are known: those to patch and to delete. */
  const reviewed = (page) => until('the reviews', () => page.evaluate(() => performance.getEntriesByType('resource').filter(({ name, responseEnd }) => name.includes('selfsubjectaccessreviews') && responseEnd > 0).length >= 2 && new Promise((resolve) => setTimeout(() => resolve(true), 100))));
  const none = async (page) => {
    await until('the panel', () => page.locator('.panel h2').filter({ hasText: 'read' }).isVisible());
    await reviewed(page);
    await until('no actions', async () => (await button(page, 'Actions').count()) === 0);
  };

  test('for a user who may only read, nor those that a user may not take', async (t) => {
    const user = await account(ns, 'reader');
    await grant(user, 'view', ns);
    const url = await signingIn(t, user);
    const restricted = await openBoard(browser, url, { sel: path() }, provoked);
    await none(restricted);
    await apply({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: `deleter-${ns}` }, rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['delete'] }] });
    await grant(user, `deleter-${ns}`, ns);
    await goTo(restricted, url, { sel: path() });
    await button(restricted, 'Actions').click();
    await until('the only action', async () => (await restricted.getByRole('menuitem').allInnerTexts()).join() === 'Delete…');
    clean(restricted);
  });

  test('in the past', async () => {
    await show(page, path());
    const service = `/api/v1/namespaces/${ns}/services/front`;
    const { metadata: { resourceVersion } } = await api(service);
    await until('the version', async () => (await fetch(`${gateway}/at/rv:${resourceVersion}${service}`)).ok);
    await goTo(page, gateway, { sel: service, at: `rv:${resourceVersion}` });
    await until('the object', async () => (await page.locator('.panel').innerText()).includes('Service front'));
    await until('no actions', async () => (await button(page, 'Actions').count()) === 0);
    await page.getByRole('button', { name: 'to now', exact: true }).click();
    await button(page, 'Actions').waitFor();
  });

  test('with --read-only', async () => {
    const { url, stop } = await startGateway(['--read-only']);
    const second = await openBoard(browser, url, { sel: path() }, provoked);
    await none(second);
    clean(second);
    await second.close();
    await stop();
  });
});

test('on a phone, a finger reaches everything', long, async () => {
  const phone = await openBoard(browser, gateway, { sel: `${deployments()}/web` }, { ...PHONE, ...provoked });
  await button(phone, 'Actions').click();
  await until('the menu', async () => (await phone.getByRole('menuitem').count()) > 3);
  assert.deepEqual((await phone.evaluate(overflowing)).out, []);
  assert.deepEqual((await phone.evaluate(smallTargets)).small, []);
  await shot(phone, 'action-phone-menu');
  await button(phone, 'Actions').click();
  await until('no menu', async () => (await phone.getByRole('menuitem').count()) === 0);
  await button(phone, 'Actions').click();
  await phone.getByRole('menuitem', { name: 'Scale…', exact: true }).click();
  await phone.getByRole('spinbutton', { name: /^Replicas/ }).fill('7');
  await shows(phone, 'Scale', '+7');
  assert.deepEqual((await phone.evaluate(smallTargets)).small, []);
  assert.deepEqual((await phone.evaluate(overflowing)).out, []);
  await shot(phone, 'action-phone');
  await button(dialog(phone), 'Cancel').click();
  await ask(phone, 'Edit YAML…');
  await dialog(phone).getByRole('textbox').waitFor();
  assert.deepEqual((await phone.evaluate(smallTargets)).small, []);
  await shot(phone, 'action-phone-edit');
  clean(phone);
});
