// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The live state: two informers, for Nodes and Pods, on one connection, whose events become rows. */

import { connect, type Connection, type InformerEvent, type State } from '@watchkeeper/informer';
import type { NodeRow, Status } from './protocol';
import { NODE_FIELDS, nodeRow, podRow, type Node } from './objects';
import type { PodRow, Rows } from './rows';
import { POD_FIELDS, type Pod } from './state';

/**
 * What the informer stores of a Pod. It is emptied after the first event, since
 * the rows have all data, and a deletion needs only the key.
 */
interface Entry {
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
    // Pods of one owner share one string of labels.
    const share = (text: string): string => shared.get(text) ?? (shared.size > 50_000 && shared.clear(), shared.set(text, text), text);
    this.#connection = connect(root.replace(/\/$/, ''), { multiwatch: `${extension}multiwatch` });
    const nodes = this.#connection.informer('v1/nodes', { fields: NODE_FIELDS, transform: (node: unknown) => nodeRow(node as Node) });
    const pods = this.#connection.informer('v1/pods', {
      fields: POD_FIELDS,
      // Small enough that the decoded page dies in the young generation of the garbage collector.
      pageSize: 2000,
      transform: (pod: unknown): Entry => {
        const row = podRow(pod as Pod);
        row.labels = share(row.labels);
        row.owner = share(row.owner);
        return { row };
      },
    });
    rows.restate();
    nodes.onBatch((events) => this.#take('nodes', events, (row: NodeRow) => rows.setNode(row), (name) => rows.deleteNode(name)));
    const set = (entry: Entry, key: string): void => {
      if (entry.row) rows.setPod(entry.row, performance.now(), key);
      entry.row = null;
    };
    pods.onBatch((events) => this.#take('pods', events, set, (key) => rows.deletePod(key, performance.now())));
  }

  /** The network may be back: retries at once. */
  wake(): void {
    this.#connection.wake();
  }

  close(): void {
    this.#connection.close();
  }

  #take<T>(of: 'pods' | 'nodes', events: InformerEvent<T>[], set: (object: T, key: string) => void, remove: (key: string) => void): void {
    let stateChanged = false;
    for (const event of events) {
      if (event.type === 'add' || event.type === 'update') set(event.object, event.key);
      else if (event.type === 'delete') remove(event.key);
      else if (event.type === 'state') {
        this.#states[of] = event.state;
        stateChanged = true;
        // Without the right to list Nodes, the board shows the Pods.
        if (event.state.phase === 'denied' && of === 'nodes') this.#complete(of);
      } else if (event.type === 'sync') {
        this.#complete(of);
        stateChanged = true;
      }
    }
    this.changed();
    if (stateChanged) this.#reportStatus();
  }

  #complete(of: 'pods' | 'nodes'): void {
    if (!this.#missing.delete(of) || this.#missing.size > 0) return;
    this.rows.settle(performance.now());
    this.rows.sync();
  }

  /** Reports the worse of the two states. */
  #reportStatus(): void {
    const order = ['denied', 'stale', 'stopped', 'connecting', 'syncing', 'live'];
    const [of, state] = (Object.entries(this.#states) as ['pods' | 'nodes', State][]).sort(([, a], [, b]) => order.indexOf(a.phase) - order.indexOf(b.phase))[0];
    const text = state.error ? stateWords(of, state) : '';
    const phase = state.phase === 'syncing' ? 'catching up' : state.phase === 'stopped' ? 'failed' : state.phase;
    this.status({ phase, text, since: state.since });
  }
}

/** The error of a state in words. */
export function stateWords(of: string, state: State): string {
  const { error } = state;
  const message = error?.message ?? '';
  if (state.phase === 'denied') return `You may not list and watch ${of}${of === 'pods' ? ' in all namespaces' : ''}: ${message}`;
  if (error instanceof TypeError) return 'The gateway cannot be reached.';
  return message && `${message[0].toUpperCase()}${message.slice(1)}.`;
}
