// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The present: Nodes and Pods by two informers on one connection, turned into rows as they come. */

import { connect, type Connection, type InformerEvent, type State } from '@watchkeeper/informer';
import type { NodeRow, Status } from './protocol';
import { NODE_FIELDS, nodeRow, podRow, type Node } from './objects';
import type { PodRow, Rows } from './rows';
import { POD_FIELDS, type Pod } from './state';

export class Live {
  readonly #connection: Connection;
  readonly #states: Record<'pods' | 'nodes', State> = { pods: { phase: 'connecting', since: Date.now() }, nodes: { phase: 'connecting', since: Date.now() } };
  #missing = new Set(['pods', 'nodes']);

  constructor(
    root: string, extension: string, readonly rows: Rows, readonly changed: () => void, readonly status: (status: Status) => void,
  ) {
    const shared = new Map<string, string>();
    // The labels of Pods of one owner are one string.
    const share = (text: string): string => shared.get(text) ?? (shared.size > 50_000 && shared.clear(), shared.set(text, text), text);
    this.#connection = connect(root.replace(/\/$/, ''), { multiwatch: `${extension}multiwatch` });
    const nodes = this.#connection.informer('v1/nodes', { fields: NODE_FIELDS, transform: (node: unknown) => nodeRow(node as Node) });
    const pods = this.#connection.informer('v1/pods', {
      fields: POD_FIELDS,
      pageSize: 5000,
      transform: (pod: unknown) => {
        const row = podRow(pod as Pod);
        row.labels = share(row.labels);
        row.owner = share(row.owner);
        return row;
      },
    });
    rows.restate();
    nodes.onBatch((events) => this.#take('nodes', events, (row: NodeRow) => rows.setNode(row), (row) => rows.deleteNode(row.name)));
    pods.onBatch((events) => this.#take('pods', events, (row: PodRow) => rows.setPod(row, performance.now()), (row) => rows.deletePod(`${row.namespace}/${row.name}`, performance.now())));
  }

  /** The network may be back: whatever waits tries at once. */
  wake(): void {
    this.#connection.wake();
  }

  close(): void {
    this.#connection.close();
  }

  #take<T>(of: 'pods' | 'nodes', events: InformerEvent<T>[], set: (row: T) => void, remove: (row: T) => void): void {
    let told = false;
    for (const event of events) {
      if (event.type === 'add' || event.type === 'update') set(event.object);
      else if (event.type === 'delete') remove(event.object);
      else if (event.type === 'state') {
        this.#states[of] = event.state;
        told = true;
      } else if (event.type === 'sync' && this.#missing.delete(of) && this.#missing.size === 0) {
        this.rows.settle(performance.now());
        this.rows.sync();
        told = true;
      }
    }
    this.changed();
    if (told) this.#tell();
  }

  /** The worse of the two states is the state of the board. */
  #tell(): void {
    const order = ['denied', 'stale', 'stopped', 'connecting', 'syncing', 'live'];
    const [of, state] = (Object.entries(this.#states) as ['pods' | 'nodes', State][]).sort(([, a], [, b]) => order.indexOf(a.phase) - order.indexOf(b.phase))[0];
    const text = state.error ? words(of, state) : '';
    const phase = state.phase === 'syncing' ? 'catching up' : state.phase === 'stopped' ? 'failed' : state.phase;
    this.status({ phase, text, since: state.since });
  }
}

function words(of: string, state: State): string {
  const { error } = state;
  const message = error?.message ?? '';
  if (state.phase === 'denied') return `You may not list and watch ${of} in all namespaces. ${message}`.trim();
  if (error instanceof TypeError) return 'The gateway cannot be reached.';
  return message && `${message[0].toUpperCase()}${message.slice(1)}.`;
}
