// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The details of any object in the panel: overviews by kind, relations, the tree of owners.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { violations } from './axe.mjs';
import { clean, launch, shot } from './browser.mjs';
import { api, apply, gateway, kubectl, namespace, reads, until } from './cluster.mjs';
import { goTo, openBoard } from './page.mjs';
import { account, grant, refused, signingIn } from './users.mjs';

let browser;
let ns;
let page;
let group;
let scaled; // a moment before the Deployment was scaled

/** Some kinds are not recorded by default, and one Deployment is deleted. The panel says so, and Chromium logs each refused request. */
const notRecorded = /status of 404.*(\/at\/|deployments\/brief)/;
const labels = { app: 'web' };
const path = {
  deployment: () => `/apis/apps/v1/namespaces/${ns}/deployments/web`,
  service: () => `/api/v1/namespaces/${ns}/services/web`,
  settings: () => `/api/v1/namespaces/${ns}/configmaps/settings`,
  backup: () => `/apis/${group}/v1/namespaces/${ns}/backups/nightly`,
};

before(async () => {
  browser = await launch();
  ns = await namespace('details');
  group = `${ns}.example.com`;
  const core = (kind, name, more) => ({ apiVersion: 'v1', kind, metadata: { name, namespace: ns }, ...more });
  await apply(
    {
      apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `backups.${group}` },
      spec: {
        group, scope: 'Namespaced', names: { kind: 'Backup', plural: 'backups', singular: 'backup' },
        versions: [{
          name: 'v1', served: true, storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }, { name: 'Target', type: 'string', jsonPath: '.spec.target' }],
        }],
      },
    },
    core('ConfigMap', 'settings', { data: { 'app.yaml': Array.from({ length: 30 }, (_, i) => `key${i}: value`).join('\n'), mode: 'fast' } }),
    core('Secret', 'keys', { stringData: { token: 'do-not-show' } }),
    core('Service', 'web', { spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 8080 }] } }),
    core('PersistentVolumeClaim', 'data', { spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', volumeName: `data-${ns}`, resources: { requests: { storage: '1Gi' } } } }),
    { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `data-${ns}` }, spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' }, claimRef: { namespace: ns, name: 'data' } } },
    {
      apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: ns },
      spec: {
        replicas: 2, selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            containers: [{
              name: 'web', image: 'nginx:1.26', envFrom: [{ secretRef: { name: 'keys' } }], volumeMounts: [{ name: 'settings', mountPath: '/etc/app' }],
              resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { cpu: '100m', memory: '128Mi' } },
            }],
            volumes: [{ name: 'settings', configMap: { name: 'settings' } }, { name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
          },
        },
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'web', namespace: ns },
      spec: { rules: [{ host: 'shop.example.com', http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }] } }] },
    },
    {
      apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata: { name: 'web', namespace: ns },
      spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, minReplicas: 1, maxReplicas: 8, metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } } }] },
    },
    { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'web', namespace: ns }, spec: { minAvailable: 1, selector: { matchLabels: labels } } },
    {
      apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'nightly', namespace: ns },
      // Suspended: it would create a Job if the tests run at that time.
      spec: { schedule: '0 3 * * *', suspend: true, jobTemplate: { spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'busybox' }] } } } } },
    },
  );
  await kubectl('-n', ns, 'create', 'job', 'by-hand', '--from=cronjob/nightly');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  await kubectl('-n', ns, 'set', 'image', 'deployment/web', 'web=nginx:1.27');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  await until('the custom resource', () => api(`/apis/${group}/v1/backups`));
  await apply({ apiVersion: `${group}/v1`, kind: 'Backup', metadata: { name: 'nightly', namespace: ns }, spec: { size: 7, target: 's3' }, status: { conditions: [{ type: 'Stored', status: 'False', reason: 'NoSpace', message: 'the bucket is full', lastTransitionTime: '2026-01-01T00:00:00Z' }] } });
  const { metadata: { uid } } = await api(path.backup());
  const ownerReferences = [{ apiVersion: `${group}/v1`, kind: 'Backup', name: 'nightly', uid, controller: true }];
  await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'backup-state', namespace: ns, ownerReferences }, data: { last: 'never' } });
  scaled = await until('a recorded moment with two Pods', async () => {
    const at = new Date().toISOString();
    const past = async (what) => (await fetch(`${gateway}/at/${at}${what}`)).json();
    const { status } = await past(path.deployment());
    const { items } = await past(`/api/v1/namespaces/${ns}/pods?labelSelector=app=web`);
    return status.replicas === 2 && status.updatedReplicas === 2 && status.availableReplicas === 2 && items.length === 2 && at;
  });
  await kubectl('-n', ns, 'scale', 'deployment/web', '--replicas=4');
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  page = await openBoard(browser, gateway, {}, { ignore: notRecorded });
});

after(async () => {
  if (page) clean(page);
  await browser?.close();
});

/** Shows an object in the panel. */
const show = (sel, more = {}, on = page, at = gateway) => goTo(on, at, { sel, ...more });
const panel = () => page.locator('.panel');
/** Waits until the panel's text has all of these. */
const says = (what, ...patterns) =>
  until(what, async () => {
    const text = await panel().innerText();
    for (const pattern of patterns) assert.match(text, pattern);
    return true;
  });

describe('overviews', () => {
  test('of a Deployment: its rollout, ReplicaSets and Pods, which follow the cluster', async () => {
    await show(path.deployment());
    await says('its parts', /4 wanted, 4 updated, 4 ready, 4 available/, /The rollout is complete\./, /revision 2 · 4 of 4 ready/, /nginx:1\.27/, /1 older ReplicaSet without Pods/, /4 pods/i);
    assert.match(await panel().getByRole('img', { name: /4 available/ }).innerHTML(), /class="available" x="0" y="0" width="100"/);
    await shot(page, 'details-deployment');
    await kubectl('-n', ns, 'set', 'image', 'deployment/web', 'web=nginx:1.28');
    await says('the end', /The rollout is complete\./, /revision 3 · 4 of 4 ready/, /nginx:1\.28/, /2 older ReplicaSets without Pods/, /4 pods/i);
    await panel().getByRole('list', { name: 'Pods' }).getByRole('button').first().click();
    await until('a Pod', () => /sel=pod\/.*\/web-/.test(page.url()));
    await page.goBack();
    await panel().getByRole('button', { name: /^web-\w+$/ }).first().click();
    await until('a ReplicaSet', () => /sel=\/apis\/apps\/v1\/.*\/replicasets\/web-/.test(page.url()));
    await says('its Pods', /4 wanted, 4 ready, 4 available/, /4 pods/i);
  });

  test('of a moment before a Deployment was scaled', async () => {
    await show(path.deployment(), { at: scaled });
    await says('two Pods', /2 of 2 ready/, /2 wanted, 2 updated, 2 ready, 2 available/, /revision 2 · 2 of 2 ready/, /2 pods/i);
    await until('no others', async () => (await panel().getByRole('list', { name: 'Pods' }).getByRole('button').count()) === 2);
  });

  test('of a deleted Deployment: as it was before its deletion', async () => {
    await kubectl('-n', ns, 'create', 'deployment', 'brief', '--image=nginx:1.27');
    await kubectl('-n', ns, 'rollout', 'status', 'deployment/brief');
    const brief = path.deployment().replace('/web', '/brief');
    await show(brief);
    await says('the Deployment', /1 wanted, 1 updated, 1 ready, 1 available/, /1 pod/i);
    await kubectl('-n', ns, 'delete', 'deployment', 'brief');
    await says('its last state', /Deleted at /, /1 of 1 were ready/, /1 wanted, 1 updated, 1 ready, 1 available/, /revision 1 · 1 of 1 ready/, /brief-\w+-\w+\s+Running 1\/1/);
  });

  test('of a Service: its endpoints and their Pods', async () => {
    await show(path.service());
    await says('its endpoints', /http 80\/TCP → 8080/, /app=web/, /endpoints: 4 of 4 ready/i, /ready, 10\.\S+ on node-\d/);
    await shot(page, 'details-service');
    const [pod] = (await kubectl('-n', ns, 'get', 'pods', '-l', 'app=web', '-o', 'name')).split('\n').map((name) => name.replace('pod/', ''));
    await panel().getByRole('list', { name: 'Endpoints' }).getByRole('button', { name: pod }).click();
    await until('the Pod', () => page.url().includes(`sel=pod/${ns}/${pod}`));
  });

  test('of what routes, scales and protects', async () => {
    await show(`/apis/networking.k8s.io/v1/namespaces/${ns}/ingresses/web`);
    await says('its rules', /shop\.example\.com\/\*/);
    await panel().getByRole('button', { name: 'web:80', exact: true }).click();
    await until('the Service', () => page.url().includes(path.service()));
    await show(`/apis/autoscaling/v2/namespaces/${ns}/horizontalpodautoscalers/web`);
    await says('its metrics', /from 1 to 8/, /cpu unknown of 70 %/, /FailedGetResourceMetric/);
    await panel().getByRole('button', { name: 'Deployment web', exact: true }).click();
    await until('the Deployment', () => page.url().includes(path.deployment()));
    await show(`/apis/policy/v1/namespaces/${ns}/poddisruptionbudgets/web`);
    await says('what it allows', /3 disruptions now/, /4 of 4, at least 1/);
  });

  test('of Jobs, claims and volumes', async () => {
    await show(`/apis/batch/v1/namespaces/${ns}/cronjobs/nightly`);
    await says('its runs', /0 3 \* \* \*/, /Complete in \d+s/);
    await panel().getByRole('list', { name: 'Last runs' }).getByRole('button', { name: 'by-hand' }).click();
    await says('the Job', /Complete/, /1 of 1/, /1 pod/i, /by-hand-\w+/);
    await show(`/api/v1/namespaces/${ns}/persistentvolumeclaims/data`);
    await says('the claim', /Bound/, /1Gi/, /4 pods/i);
    await panel().getByRole('button', { name: `data-${ns}`, exact: true }).click();
    await says('the volume', /Bound/, /Retain/, /4 pods/i);
  });

  test('of configuration: Secrets without their values', async () => {
    await show(path.settings());
    await says('its keys', /2 keys/i, /app\.yaml\s+379 bytes/, /key0: value/, /mode\s+4 bytes/);
    await until('only the beginning', async () => !(await panel().innerText()).includes('key29'));
    await panel().getByRole('button', { name: 'all of app.yaml', exact: true }).click();
    await says('all of it', /key29: value/);
    await show(`/api/v1/namespaces/${ns}/secrets/keys`);
    await says('its keys', /1 key/i, /token\s+11 bytes/);
    const html = await panel().innerHTML();
    for (const value of ['do-not-show', Buffer.from('do-not-show').toString('base64')]) assert.ok(!html.includes(value));
    await show(`/api/v1/namespaces/${ns}`);
    await says('the number of its objects', /pods\s+5/, /deployments\s+1/, /configmaps\s+3/);
  });

  test('of a Node: requests and limits', async () => {
    await show(`/api/v1/nodes/node-0`);
    await says('what is allocated', /allocated/i, /cpu\s+[\d.]+m? \d+ %\s+[\d.]+m? \d+ %\s+32/, /memory/, /ephemeral-storage/);
  });

  test('of a custom resource: its conditions and columns', async () => {
    await show(path.backup());
    await says('its columns and conditions', /Size\s+7/, /Target\s+s3/, /Stored\s+False/, /NoSpace: the bucket is full/);
    await shot(page, 'details-backup');
  });
});

/** Something in the graph: a link to an object, or the button of a group. */
const inGraph = (name, role = 'link') => page.locator('.graph').getByRole(role, { name });

describe('relations', () => {
  test('a ConfigMap that a Deployment mounts, there and back, with the keyboard', async () => {
    await show(path.deployment(), { tab: 'relations' });
    for (const name of [/^Service web: selects Deployment web$/, /^PodDisruptionBudget web: selects Deployment web$/, /^HorizontalPodAutoscaler web: scales Deployment web$/, /^Ingress web: routes Service web$/, /^Secret keys: Deployment web reads it$/, /^PersistentVolumeClaim data: Deployment web mounts it$/, /^ReplicaSet web-\w+, 4 of 4 ready: Deployment web owns it$/]) await inGraph(name).waitFor();
    await shot(page, 'relations-deployment');
    const settings = inGraph('ConfigMap settings: Deployment web mounts it');
    assert.match(await settings.getAttribute('href'), /^\?.*sel=.*settings/);
    await settings.focus();
    await page.keyboard.press('Enter');
    await until('the ConfigMap', () => page.url().includes(path.settings()) && page.url().includes('tab=relations'));
    await inGraph(/^4 Pods: mounts ConfigMap settings$/, 'button').waitFor();
    await shot(page, 'relations-configmap');
    await inGraph(/^Deployment web, 4 of 4 ready: mounts ConfigMap settings$/).click();
    await until('the Deployment', () => page.url().includes(path.deployment()) && page.url().includes('tab=relations'));
    const address = page.url();
    await page.goto('about:blank');
    await page.goto(address);
    await until('the same after a reload', async () => (await inGraph(/^ConfigMap settings/).count()) === 1);
  });

  test('many Pods are one group, which opens and folds with keys; enlarged, too', async () => {
    const pods = inGraph(/^4 Pods: ReplicaSet web-\w+ owns it$/, 'button');
    await pods.focus();
    await page.keyboard.press('Enter');
    await until('the Pods', async () => (await inGraph(/^Pod web-\w+-\w+, Running: ReplicaSet web-\w+ owns it$/).count()) === 4);
    await until('the state of the button', async () => (await pods.getAttribute('aria-expanded')) === 'true');
    await page.keyboard.press(' ');
    await until('the group', async () => (await inGraph(/^Pod web/).count()) === 0);
    await panel().getByRole('button', { name: 'enlarge', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Relations of Deployment web' });
    await dialog.waitFor();
    await until('all of it in the window', async () => {
      const { x, width } = await dialog.locator('.graph > svg').boundingBox();
      return x >= 0 && x + width <= 1600;
    });
    await shot(page, 'relations-enlarged');
    await inGraph(/^Service web/).click();
    await until('the Service', () => page.url().includes(path.service()));
    await page.getByRole('dialog', { name: 'Relations of Service web' }).waitFor();
    await page.keyboard.press('Escape');
    await until('the panel', async () => (await page.getByRole('dialog').count()) === 0 && (await panel().count()) === 1);
    await inGraph(/^EndpointSlice web-\w+: Service web owns it$/).waitFor();
  });

  test('the tree of owners and owned, up and down', async () => {
    await show(path.deployment(), { tab: 'relations' });
    await says('what it owns', /ReplicaSet web-\w+ Desired 4, Ready 4\s+Pod web-\w+-\w+ 1\/1, Running/);
    await panel().locator('.tree').getByRole('button', { name: /^Pod web-.* 1\/1, Running$/ }).first().click();
    await until('a Pod', () => /sel=pod\/.*tab=relations/.test(page.url()));
    await says('its owners', /owned\s+Deployment web\s+ReplicaSet web-\w+\s+Pod web-\w+-\w+/i);
    await inGraph(/^Node node-\d: Pod web-\w+-\w+ runs on it$/).waitFor();
    await inGraph(/^PersistentVolume data-\S+: PersistentVolumeClaim data binds it$/).waitFor();
    await shot(page, 'relations-pod');
    await show(path.backup(), { tab: 'relations' });
    await says('what a custom resource owns', /Backup nightly\s+ConfigMap backup-state/);
    await panel().locator('.tree').getByRole('button', { name: 'ConfigMap backup-state', exact: true }).click();
    await says('its owner', /Backup nightly\s+ConfigMap backup-state/);
    await inGraph('Backup nightly: owns ConfigMap backup-state').waitFor();
  });

  test('of a moment of the past', async () => {
    await show(path.deployment(), { tab: 'relations', at: scaled });
    await says('two Pods', /ReplicaSet web-\w+ Desired 2, Ready 2/);
    await until('two Pods in the graph', async () => (await inGraph(/^Pod web-\w+-\w+, Running: ReplicaSet/).count()) === 2);
    await inGraph(/^ReplicaSet web-\w+, 2 of 2 ready: Deployment web owns it$/).waitFor();
    await reads('what is not recorded', panel().getByRole('region', { name: 'What could not be read' }), /Not recorded, so not shown of the past: .*networkpolicies/);
  });
});

test('versions and YAML of any kind', async () => {
  await kubectl('-n', ns, 'patch', 'service', 'web', '--type=json', '-p', JSON.stringify([{ op: 'replace', path: '/spec/ports/0/targetPort', value: 9090 }]));
  await show(path.service(), { tab: 'versions' });
  await until('two versions', async () => (await panel().locator('.changes-list .pick').count()) === 2);
  await panel().locator('.changes-list [aria-expanded]').first().click();
  await reads('the difference', panel().locator('.diff'), /8080[\s\S]*9090/);
  await show(`/api/v1/namespaces/${ns}/secrets/keys`, { tab: 'yaml' });
  const yaml = panel().locator('.yaml');
  await until('the YAML without values', async () => /token: "•••"/.test(await yaml.innerText()) && !/managedFields/.test(await yaml.innerText()));
  assert.ok(!(await page.locator('body').innerHTML()).includes('do-not-show'));
  await panel().getByRole('checkbox', { name: 'values' }).check();
  await until('the values', async () => (await yaml.innerText()).includes(Buffer.from('do-not-show').toString('base64')));
  await panel().getByRole('checkbox', { name: 'managedFields' }).check();
  await reads('managedFields', yaml, /managedFields/);
  await panel().getByRole('checkbox', { name: 'managedFields' }).uncheck();
});

test('a user who may not read Secrets', async (t) => {
  const user = await account(ns, 'reader');
  await grant(user, 'view', ns);
  const url = await signingIn(t, user);
  const restricted = await openBoard(browser, url, { sel: `/api/v1/namespaces/${ns}/secrets/keys` }, refused);
  const text = () => restricted.locator('.panel').innerText();
  await until('the refusal', async () => /secrets "keys" is forbidden: User "system:serviceaccount:.*:reader" cannot get resource "secrets"/.test(await text()));
  await show(path.deployment(), {}, restricted, url);
  await until('the rest', async () => /4 wanted/.test(await text()) && /4 pods/i.test(await text()));
  await show(path.deployment(), { tab: 'relations' }, restricted, url);
  await restricted.locator('.graph').getByRole('link', { name: 'Secret keys: Deployment web reads it' }).click();
  await until('the refusal of its relations', async () => /secrets "keys" is forbidden/.test(await text()));
  await show(`/api/v1/namespaces/${ns}`, {}, restricted, url);
  await until('what is allowed', async () => assert.match(await text(), /pods\s+5/) ?? true);
  await show(`/api/v1/nodes/node-0`, { tab: 'relations' }, restricted, url);
  await until('the refusal of a Node', async () => /nodes "node-0" is forbidden/.test(await text()));
  const pv = { sel: `/api/v1/namespaces/${ns}/persistentvolumeclaims/data`, tab: 'relations' };
  await show(pv.sel, pv, restricted, url);
  await restricted.locator('.graph').getByRole('link', { name: 'Deployment web, 4 of 4 ready: mounts PersistentVolumeClaim data' }).waitFor();
  await restricted.close();
  clean(restricted);
});

test('axe finds no violations; a narrow window scrolls the graph', async () => {
  for (const query of [{ sel: path.deployment() }, { sel: path.deployment(), tab: 'relations' }]) {
    await goTo(page, gateway, query);
    await until('the details', async () => (await panel().locator(query.tab ? '.graph a' : '.rollout, .sets, .allocated').count()) > 0);
    assert.deepEqual(await violations(page), { dark: [], light: [] });
  }
  await shot(page, 'details-light');
  const phone = await openBoard(browser, gateway, { sel: path.deployment(), tab: 'relations' }, { width: 390, height: 844 });
  const graph = phone.locator('.graph');
  await until('the shown object in the middle', async () => {
    const [outer, inner] = [await graph.boundingBox(), await graph.locator('.shown rect').boundingBox()];
    return inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width && outer.width <= 390;
  });
  await shot(phone, 'relations-phone');
  clean(phone);
  await phone.close();
});
