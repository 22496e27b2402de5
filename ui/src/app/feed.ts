// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The page's side of the worker: queues its batches, which the board applies once per frame. */

import { effect } from '@preact/signals';
import type { Batch, Message, Request } from '../data/protocol';
import { inWords } from '../time/refusals';
import { extension, root } from './api';
import { session } from './login';
import { mode, scope, status } from './state';
import { bearer } from './token';

export class Feed {
  #waiting: Batch[] = [];
  /** Called when there is a batch to apply. */
  wake: () => void = () => {};

  constructor(readonly worker: Worker) {
    worker.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.kind === 'status') status.value = { ...data.status, text: inWords(data.status.text, data.status.details) };
      else if (data.kind === 'scope') scope.value = data.scope;
      else {
        this.#waiting.push(data);
        this.wake();
      }
    };
    const wake = (): void => this.#send({ kind: 'wake' });
    window.addEventListener('online', wake);
    document.addEventListener('visibilitychange', () => document.hidden || wake());
    effect(() => {
      const { number, fresh } = session.value;
      if (number) this.#send({ kind: 'token', token: bearer(), fresh });
    });
    effect(() => this.#send({ kind: 'open', root: root().href, extension: extension().href, at: mode.value?.at ?? '', speed: mode.value?.speed ?? 0 }));
  }

  /** Returns the queued batches, and acknowledges them, so that the worker sends the next one. */
  take(): Batch[] {
    const batches = this.#waiting;
    this.#waiting = [];
    for (let i = 0; i < batches.length; i++) this.#send({ kind: 'applied' });
    return batches;
  }

  #send(request: Request): void {
    this.worker.postMessage(request);
  }
}
