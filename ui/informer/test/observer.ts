// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Checks the guarantees of an informer against every event that it emits.

import assert from 'node:assert/strict';
import type { Informer, InformerEvent, KubernetesObject } from '../src/index.js';
import { older } from '../src/rv.js';

/** Records the events of an informer in short form, and those that break a guarantee. */
export class Observer<T extends KubernetesObject> {
  /** Such as "add ns/a 101", "delete ns/a inferred", "sync", "live". */
  readonly log: string[] = [];
  readonly errors: Error[] = [];
  readonly wrong: string[] = [];
  readonly known = new Map<string, T>();

  /** restored: resourceVersions may go back, as after a restore from a backup. */
  constructor(
    readonly informer: Informer<T>,
    public restored = false,
  ) {
    informer.onBatch((events) => events.forEach((event) => this.record(event)));
  }

  /** The events about objects. */
  get changes(): string[] {
    return this.log.filter((line) => /^(add|update|delete) /.test(line));
  }

  private record(event: InformerEvent<T>): void {
    if (event.type === 'error') {
      this.errors.push(event.error);
      return;
    }
    if (event.type === 'state') {
      this.log.push(event.state.phase);
      return;
    }
    if (event.type === 'sync') {
      this.log.push('sync');
      return;
    }
    const { type, key, object } = event;
    const { uid, resourceVersion } = object.metadata;
    const before = this.known.get(key);
    const check = (good: boolean, what: string) => good || this.wrong.push(`${type} ${key}: ${what}`);
    if (type === 'add') {
      check(!before, 'it existed already');
    } else {
      check(before?.metadata.uid === uid, 'the UID differs');
      const back = older(resourceVersion, before?.metadata.resourceVersion ?? '');
      check(this.restored || !back, `${resourceVersion} after ${before?.metadata.resourceVersion}`);
    }
    if (type === 'update') check(event.old === before, 'old is not the object of the previous event');
    if (type === 'delete') {
      this.known.delete(key);
      this.log.push(`delete ${key}${event.inferred ? ' inferred' : ''}`);
    } else {
      this.known.set(key, object);
      this.log.push(`${type} ${key} ${resourceVersion}`);
    }
  }

  /** Stops the informer, and fails if it broke a guarantee. */
  finish(): void {
    this.informer.stop();
    assert.deepEqual(this.wrong, []);
    if (this.informer.state.phase === 'stopped') {
      assert.deepEqual([...this.informer.store.keys()].sort(), [...this.known.keys()].sort(), 'the store differs from the events');
    }
  }
}

/** Waits until problem returns nothing. */
export async function eventually(what: string, problem: () => unknown): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const found = problem();
    if (!found) return;
    if (Date.now() > deadline) assert.fail(`timed out waiting for ${what}: ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Waits until a value equals the expected one. */
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
