// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Watches over what an informer promises, whatever happens to it.

import assert from 'node:assert/strict';
import type { Informer, InformerEvent, KubernetesObject } from '../src/index.js';
import { older } from '../src/rv.js';

/** Notes what an informer tells, in short, and what it should not have told. */
export class Observer<T extends KubernetesObject> {
  /** Such as "add ns/a 101", "delete ns/a inferred", "sync", "live". */
  readonly told: string[] = [];
  readonly errors: Error[] = [];
  readonly wrong: string[] = [];
  readonly known = new Map<string, T>();

  /** anew: history may go back, as after a restore. */
  constructor(
    readonly informer: Informer<T>,
    private readonly anew = false,
  ) {
    informer.onBatch((events) => events.forEach((event) => this.see(event)));
  }

  /** What was told of objects. */
  get changes(): string[] {
    return this.told.filter((line) => /^(add|update|delete) /.test(line));
  }

  private see(event: InformerEvent<T>): void {
    if (event.type === 'error') {
      this.errors.push(event.error);
      return;
    }
    if (event.type === 'state') {
      this.told.push(event.state.phase);
      return;
    }
    if (event.type === 'sync') {
      this.told.push('sync');
      return;
    }
    const { type, key, object } = event;
    const { uid, resourceVersion } = object.metadata;
    const before = this.known.get(key);
    const check = (good: boolean, what: string) => good || this.wrong.push(`${type} ${key}: ${what}`);
    if (type === 'add') {
      check(!before, 'it was there');
    } else {
      check(before?.metadata.uid === uid, 'it is another');
      const back = older(resourceVersion, before?.metadata.resourceVersion ?? '');
      check(this.anew || !back, `${resourceVersion} after ${before?.metadata.resourceVersion}`);
    }
    if (type === 'update') check(event.old === before, 'old is not what was told before');
    if (type === 'delete') {
      this.known.delete(key);
      this.told.push(`delete ${key}${event.inferred ? ' inferred' : ''}`);
    } else {
      this.known.set(key, object);
      this.told.push(`${type} ${key} ${resourceVersion}`);
    }
  }

  /** Ends the informer, and fails where it was wrong. */
  finish(): void {
    this.informer.stop();
    assert.deepEqual(this.wrong, []);
    if (this.informer.state.phase === 'stopped') {
      assert.deepEqual([...this.informer.store.keys()].sort(), [...this.known.keys()].sort(), 'the store is not what was told');
    }
  }
}

/** Waits until problem returns none. */
export async function eventually(what: string, problem: () => unknown): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const found = problem();
    if (!found) return;
    if (Date.now() > deadline) assert.fail(`there never was ${what}: ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Waits until a value is the one wanted. */
export async function become<V>(what: string, value: () => V, want: V): Promise<void> {
  await eventually(what, () => {
    try {
      assert.deepEqual(value(), want);
      return '';
    } catch {
      return { is: value() };
    }
  });
}
