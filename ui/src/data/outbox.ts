// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Hands batches to the page: the next one when it has applied the last, and not more often than it paints. */

import type { Batch, Message, Status } from './protocol';
import type { Rows } from './rows';

/** Until the first state is complete it takes some more at a time. In milliseconds. */
const PACE = 16;
const PACE_AT_FIRST = 120;

export class Outbox {
  #waiting = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sentAt = 0;
  #received = 0;

  constructor(readonly rows: Rows, readonly send: (message: Message, transfer: Transferable[]) => void) {}

  /** There is something new in the rows. */
  changed(synced: boolean): void {
    this.#received = Date.now();
    if (this.#waiting || this.#timer !== undefined) return;
    const wait = this.#sentAt + (synced ? PACE : PACE_AT_FIRST) - performance.now();
    this.#timer = setTimeout(() => this.#flush(), Math.max(0, wait));
  }

  /** The page has applied the last batch. */
  applied(synced: boolean): void {
    this.#waiting = false;
    if (this.rows.pending) this.changed(synced);
  }

  status(status: Status): void {
    this.send({ kind: 'status', status }, []);
  }

  #flush(): void {
    this.#timer = undefined;
    if (this.#waiting || !this.rows.pending) return;
    const batch: Batch = this.rows.take(this.#received);
    this.#waiting = true;
    this.#sentAt = performance.now();
    this.send(batch, [batch.rows.buffer, batch.gone.buffer, batch.names.rows.buffer] as ArrayBuffer[]);
  }
}
