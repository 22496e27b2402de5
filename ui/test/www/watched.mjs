// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { connect } from './informer.mjs';

/** Informers of Pods, Deployments and Nodes, and their events. */
export function watch(base, namespace) {
  const connection = connect(base);
  const fields = ['spec.nodeName', 'status.phase', 'metadata.deletionTimestamp'];
  const informers = {
    pods: connection.informer('v1/pods', { namespace, fields }),
    deployments: connection.informer('apps/v1/deployments', { namespace }),
    nodes: connection.informer('v1/nodes'),
    nothings: connection.informer('nowhere.example.com/v1/nothings'),
  };
  const log = [];
  const phases = {};
  for (const [name, informer] of Object.entries(informers)) {
    phases[name] = [];
    informer.onBatch((events) => {
      for (const event of events) {
        if (event.type === 'state') phases[name].push(event.state.phase);
        else if (event.type === 'error') log.push(`${name} error ${event.error.code ?? event.error.message}`);
        else log.push(`${name} ${event.type} ${event.key ?? ''}`);
      }
    });
  }
  return {
    connection,
    /** The stores, the events and the phases. */
    look: () => ({
      events: log,
      phases,
      held: Object.fromEntries(
        Object.entries(informers).map(([name, { store }]) => [
          name,
          [...store].map(([key, { metadata }]) => `${key} ${metadata.uid} ${metadata.resourceVersion}`).sort(),
        ]),
      ),
    }),
  };
}
