// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The present: Nodes and Pods by two informers on one connection, turned into rows as they come. */

import { connect, type Connection, type InformerEvent, type State } from '@watchkeeper/informer';
import type { NodeRow, Status } from './protocol';
import { NODE_FIELDS, nodeRow, podRow, type Node } from './objects';
import type { PodRow, Rows } from './rows';
import { POD_FIELDS, type Pod } from './state';

/**
 * What the informer keeps of a Pod: nothing, once it has been told. The rows
 * have it all, and of a Pod that is gone its key is enough.
 */
interface Told {
  row: PodRow | null;
}

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
      // What is decoded of a page is to be garbage before it is moved to where garbage stays long.
      pageSize: 2000,
      transform: (pod: unknown): Told => {
        const row = podRow(pod as Pod);
        row.labels = share(row.labels);
        row.owner = share(row.owner);
        return { row };
      },
    });
    rows.restate();
    nodes.onBatch((events) => this.#take('nodes', events, (row: NodeRow) => rows.setNode(row), (name) => rows.deleteNode(name)));
    const set = (told: Told, key: string): void => {
      if (told.row) rows.setPod(told.row, performance.now(), key);
      told.row = null;
    };
    pods.onBatch((events) => this.#take('pods', events, set, (key) => rows.deletePod(key, performance.now())));
  }

  /** The network may be back: whatever waits tries at once. */
  wake(): void {
    this.#connection.wake();
  }

  close(): void {
    this.#connection.close();
  }

  #take<T>(of: 'pods' | 'nodes', events: InformerEvent<T>[], set: (object: T, key: string) => void, remove: (key: string) => void): void {
    let told = false;
    for (const event of events) {
      if (event.type === 'add' || event.type === 'update') set(event.object, event.key);
      else if (event.type === 'delete') remove(event.key);
      else if (event.type === 'state') {
        this.#states[of] = event.state;
        told = true;
        // What may not be read is not waited for: the other is worth a board.
        if (event.state.phase === 'denied' && of === 'nodes') this.#complete(of);
      } else if (event.type === 'sync') {
        this.#complete(of);
        told = true;
      }
    }
    this.changed();
    if (told) this.#tell();
  }

  #complete(of: 'pods' | 'nodes'): void {
    if (!this.#missing.delete(of) || this.#missing.size > 0) return;
    this.rows.settle(performance.now());
    this.rows.sync();
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
  if (state.phase === 'denied') return `You may not list and watch ${of}${of === 'pods' ? ' in all namespaces' : ''}: ${message}`;
  if (error instanceof TypeError) return 'The gateway cannot be reached.';
  return message && `${message[0].toUpperCase()}${message.slice(1)}.`;
}
