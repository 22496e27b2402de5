// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Whether there is contact with the cluster while a moment of the past is shown: a watch of the names of Nodes, whose events are not used. */

import { connect, type Connection, type State } from '@watchkeeper/informer';
import { authorization } from './access';
import { stateWords } from './live';
import { askOutage } from './outage';

export class Silence {
  readonly #connection: Connection;
  readonly #stop = new AbortController();
  /** Why there is no contact, in words; empty with contact. */
  words = '';
  /** Since when, in milliseconds since 1970. */
  since = 0;

  constructor(root: string, extension: string, changed: () => void) {
    this.#connection = connect(root.replace(/\/$/, ''), { multiwatch: `${extension}multiwatch`, headers: authorization });
    let last: State;
    const say = (state: State, words: string, since: number): void => {
      if (state !== last) return;
      this.words = words;
      this.since = since;
      changed();
    };
    this.#connection.informer('v1/nodes', { fields: ['metadata.name'], transform: () => null }).onBatch((events) => {
      for (const event of events) {
        if (event.type !== 'state') continue;
        const state = (last = event.state);
        const words = stateWords('nodes', state) || 'The API server does not answer.';
        if (state.phase === 'live') say(state, '', state.since);
        else if (state.phase === 'stale') say(state, words, state.since);
        // In an outage the gateway may never have had Nodes. Its history says since when there is no contact.
        else if (state.phase === 'connecting' && state.error) void askOutage(extension, '', this.#stop.signal).then((outage) => say(state, outage?.words ?? words, outage?.since ?? 0));
      }
    });
  }

  wake(): void {
    this.#connection.wake();
  }

  close(): void {
    this.#stop.abort();
    this.#connection.close();
  }
}
