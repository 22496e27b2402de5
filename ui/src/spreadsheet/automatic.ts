// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Automatic mode: changes are written without asking, at most one for each object
 * and second. A formula that depends on what it writes, and does not settle, is
 * stopped.
 */

import { signal } from '@preact/signals';
import type { Applier } from './apply';
import { cellOf } from './cells';
import type { Change } from './changes';
import type { Tab } from './tab';

/** The shortest time between two changes of an object, in milliseconds. */
const interval = 1000;
/** A formula that writes more often than this within the time, in milliseconds, is stopped. */
export const maxWrites = 5;
const within = 30_000;

export class Automatic {
  readonly on = signal(false);
  /** Stopped formulas, and why: see formulaOf. */
  readonly #stopped = new Map<string, string>();
  /** When each object was written to. */
  readonly #last = new Map<string, number>();
  /** When each formula wrote. */
  readonly #writes = new Map<string, number[]>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly applier: Pick<Applier, 'apply' | 'running'>, readonly changes: () => Change[], readonly now: () => number = () => Date.now()) {}

  /** Writes what may be written now. */
  async run(): Promise<void> {
    clearTimeout(this.#timer);
    if (!this.on.value || this.applier.running) return;
    const now = this.now();
    const due: Change[] = [];
    let wait = Infinity;
    for (const change of this.changes()) {
      if (change.problem || this.stopped(change.tab, change.key)) continue;
      const of = `${change.tab.index} ${change.entry.uid}`;
      const left = (this.#last.get(of) ?? -Infinity) + interval - now;
      if (left > 0) wait = Math.min(wait, left);
      else if (!change.formula || this.#count(change, now)) due.push(change);
    }
    for (const { tab, entry } of due) this.#last.set(`${tab.index} ${entry.uid}`, now);
    if (due.length > 0) {
      await this.applier.apply(due, true);
      wait = Math.min(wait, interval);
    }
    if (wait < Infinity) this.#timer = setTimeout(() => void this.run(), wait);
  }

  /** Why a formula is stopped; empty if it is not. */
  stopped(tab: Tab, key: number): string {
    return this.#stopped.get(formulaOf(tab, key)) ?? '';
  }

  /** Lets stopped formulas write again. */
  resume(): void {
    this.#stopped.clear();
    this.#writes.clear();
    void this.run();
  }

  get anyStopped(): boolean {
    return this.#stopped.size > 0;
  }

  close(): void {
    this.on.value = false;
    clearTimeout(this.#timer);
  }

  /** Counts a write of a formula; false if it is one too many. */
  #count({ tab, key }: Change, now: number): boolean {
    const of = formulaOf(tab, key);
    const times = (this.#writes.get(of) ?? []).filter((time) => time > now - within);
    this.#writes.set(of, times);
    if (times.length >= maxWrites) {
      this.#stopped.set(of, `It wrote ${maxWrites} values within ${within / 1000} seconds and does not settle: does it depend on what it writes?`);
      return false;
    }
    times.push(now);
    return true;
  }
}

/** What tells a formula from others: its object, its column and what it is. Rows move. */
function formulaOf(tab: Tab, key: number): string {
  const [row, column] = cellOf(key);
  return `${tab.index} ${tab.entryAt(row)?.uid} ${column} ${tab.inputs.get(key)}`;
}
