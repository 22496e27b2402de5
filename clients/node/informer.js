// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node informer.js SERVER|KUBECONFIG NAMESPACE: holds the Pods and the Widgets of a
// namespace with two informers, restarted after errors as their documentation says. It
// prints a line of JSON per event. For each line of its input it prints the objects that
// it holds; it ends when its input ends.

import { createInterface } from 'node:readline';
import { CoreV1Api, CustomObjectsApi, KubeConfig, makeInformer } from '@kubernetes/client-node';

const [where, namespace] = process.argv.slice(2);
const config = new KubeConfig();
if (where.startsWith('http:')) {
  // Without skipTLSVerify it refuses to speak HTTP.
  config.loadFromClusterAndUser({ name: 'gateway', server: where, skipTLSVerify: true }, { name: 'nobody' });
} else {
  config.loadFromFile(where);
}
const core = config.makeApiClient(CoreV1Api);
const custom = config.makeApiClient(CustomObjectsApi);
const group = 'clients.example.com';

const print = (line) => console.log(JSON.stringify(line));

function hold(kind, path, list, labelSelector) {
  const informer = makeInformer(
    config,
    path,
    async () => {
      const held = await list();
      print({ kind, event: 'list', rv: held.metadata.resourceVersion });
      return held;
    },
    labelSelector,
  );
  for (const event of ['add', 'update', 'delete']) {
    informer.on(event, ({ metadata }) => {
      print({ kind, event, name: metadata.name, uid: metadata.uid, rv: metadata.resourceVersion });
    });
  }
  informer.on('connect', () => print({ kind, event: 'connect' }));
  informer.on('error', (err) => {
    print({ kind, event: 'error', message: String(err) });
    setTimeout(() => informer.start(), 300);
  });
  informer.start();
  return informer;
}

const labelSelector = 'color in (red,green)';
const informers = {
  Pod: hold('Pod', `/api/v1/namespaces/${namespace}/pods`, () => core.listNamespacedPod({ namespace })),
  Widget: hold(
    'Widget',
    `/apis/${group}/v1/namespaces/${namespace}/widgets`,
    () => custom.listNamespacedCustomObject({ group, version: 'v1', namespace, plural: 'widgets', labelSelector }),
    labelSelector,
  ),
};

const input = createInterface(process.stdin);
input.on('line', () => {
  for (const [kind, informer] of Object.entries(informers)) {
    print({ kind, event: 'held', objects: informer.list() });
  }
});
input.on('close', () => process.exit(0));
