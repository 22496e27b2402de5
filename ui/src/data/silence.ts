// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Whether there is contact with the cluster while a moment of the past is shown: a watch of the names of Nodes, whose events are not used. */

import { connect, type Connection } from '@watchkeeper/informer';
import { authorization } from './access';
import { stateWords } from './live';

export class Silence {
  readonly #connection: Connection;
  /** Why there is no contact, in words; empty with contact. */
  words = '';
  /** Since when, in milliseconds since 1970. */
  since = 0;

  constructor(root: string, extension: string, changed: () => void) {
    this.#connection = connect(root.replace(/\/$/, ''), { multiwatch: `${extension}multiwatch`, headers: authorization });
    this.#connection.informer('v1/nodes', { fields: ['metadata.name'], transform: () => null }).onBatch((events) => {
      for (const event of events) {
        if (event.type !== 'state') continue;
        const { phase, since, error } = event.state;
        // In an outage the gateway may never have had Nodes: it is not known since when then.
        if (phase !== 'stale' && phase !== 'live' && !(phase === 'connecting' && error)) continue;
        this.words = phase === 'live' ? '' : stateWords('nodes', event.state) || 'The API server does not answer.';
        this.since = phase === 'connecting' ? 0 : since;
        changed();
      }
    });
  }

  wake(): void {
    this.#connection.wake();
  }

  close(): void {
    this.#connection.close();
  }
}
