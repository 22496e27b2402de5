// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Sends batches to the page: the next one after the page has applied the last, at most one per frame. */

import type { Batch, Message, Scope, Status } from './protocol';
import type { Rows } from './rows';

/** The minimum time between batches, and before the first list is complete, in milliseconds. */
const minInterval = 16;
const minInitialInterval = 500;

export class Outbox {
  #waiting = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer is due, and when the last batch was sent, as of performance.now(). */
  #due = 0;
  #sentAt = -minInitialInterval;
  #received = 0;

  constructor(readonly rows: Rows, readonly send: (message: Message, transfer: Transferable[]) => void) {}

  /** The rows have changed. */
  changed(synced: boolean): void {
    this.#received = Date.now();
    const due = this.#sentAt + (synced ? minInterval : minInitialInterval);
    if (this.#waiting || (this.#timer !== undefined && this.#due <= due)) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => this.#flush(), Math.max(0, due - performance.now()));
  }

  /** The page has applied the last batch. */
  applied(synced: boolean): void {
    this.#waiting = false;
    if (this.rows.pending) this.changed(synced);
  }

  status(status: Status): void {
    this.send({ kind: 'status', status }, []);
  }

  scope(scope: Scope): void {
    this.send({ kind: 'scope', scope }, []);
  }

  #flush(): void {
    this.#timer = undefined;
    if (this.#waiting || !this.rows.pending) return;
    const batch: Batch = this.rows.take(this.#received, performance.now());
    this.#waiting = true;
    this.#sentAt = performance.now();
    this.send(batch, [batch.rows.buffer, batch.gone.buffer, batch.names.rows.buffer] as ArrayBuffer[]);
  }
}
