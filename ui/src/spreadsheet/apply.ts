// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Writes the changes of a workbook: one JSON Patch for each object, which tests
 * the values that the cells showed. All are validated by a dry run before the
 * first is written. What was written can be undone.
 */

import { signal } from '@preact/signals';
import { ApiError, getJSON, messageOf } from '../app/api';
import { sentence } from '../data/quantity';
import { collection } from '../kinds/resources';
import type { Edit, Path } from '../write/patch';
import { Conflict, write, type Stored, type Target } from '../write/write';
import type { Book } from './book';
import { changeOf, type Change } from './changes';
import { isFormula } from './cells';
import { locate, searches, valueOf, type Step } from './path';
import type { Entry, Tab } from './tab';

/** By which managedFields tell what the spreadsheet wrote. */
export const manager = 'watchkeeper-sheet';
/** How many objects are written at a time. */
const parallel = 8;
/** How often a request that the API server puts off (429) is made again. */
const maxRetries = 5;

export interface Progress {
  phase: 'checking' | 'writing' | 'done';
  done: number;
  total: number;
  /** Of objects. */
  refused: number;
  written: number;
}

/** What was written to an object, and how it is undone. */
export interface Applied {
  id: number;
  when: number;
  tab: Tab;
  key: string;
  edits: Edit[];
  target: Target;
  state: '' | 'undoing' | 'undone';
  problem: string;
}

/** The changes of one object. */
interface Group {
  tab: Tab;
  entry: Entry;
  changes: Change[];
  target?: Target;
  edits?: Edit[];
}

export class Applier {
  readonly progress = signal<Progress | null>(null);
  /** The newest first. */
  readonly applied = signal<Applied[]>([]);
  #running = false;
  #last = 0;

  constructor(readonly book: Book) {}

  get running(): boolean {
    return this.#running;
  }

  /**
   * Writes changes. If some cannot be written, or the dry run refuses them, nothing is
   * written, unless only the others are wanted (`others`). Why is in their cells then.
   */
  async apply(changes: Change[], others = false): Promise<Progress> {
    const groups = grouped(changes.filter(({ writable, problem }) => writable && (!others || !problem)));
    const wrong = others ? 0 : new Set(changes.filter(({ writable }) => !writable).map(({ entry }) => entry)).size;
    const progress: Progress = { phase: 'checking', done: 0, total: groups.length, refused: wrong, written: 0 };
    const step = (more: Partial<Progress>): void => {
      Object.assign(progress, more);
      this.progress.value = { ...progress };
    };
    this.#running = true;
    try {
      step({});
      const sound: Group[] = [];
      await each(groups, async (group) => {
        for (const { tab, key } of group.changes) tab.failures.delete(key);
        try {
          await patient(() => this.#check(group));
          sound.push(group);
        } catch (error) {
          this.#refuse(group, error, false);
          progress.refused++;
        }
        step({ done: progress.done + 1 });
      });
      if (progress.refused > 0 && !others) return progress;
      step({ phase: 'writing', done: 0, total: sound.length });
      await each(sound, async (group) => {
        try {
          this.#wrote(group, await patient(() => write(group.target!, group.edits!)));
          progress.written++;
        } catch (error) {
          this.#refuse(group, error, true);
          progress.refused++;
        }
        step({ done: progress.done + 1 });
      });
      return progress;
    } finally {
      this.#running = false;
      step({ phase: 'done' });
      this.book.touch();
    }
  }

  /** Writes the values from before, if the object still has those that were written. */
  async undo(one: Applied): Promise<void> {
    const set = (more: Partial<Applied>): void => {
      this.applied.value = this.applied.value.map((other) => (other.id === one.id ? { ...other, ...more } : other));
    };
    set({ state: 'undoing', problem: '' });
    try {
      const stored = await patient(() => write(one.target, one.edits.map((edit) => ({ ...edit, old: edit.value, value: edit.old }))));
      this.#take(one.tab, one.key, stored);
      set({ state: 'undone' });
    } catch (error) {
      set({ state: '', problem: messageOf(error) });
    }
  }

  async #check(group: Group): Promise<void> {
    const { tab, entry, changes } = group;
    const path = `${collection(tab.selected!.resource, entry.namespace)}/${entry.name}`;
    const steps = changes.map(({ column }) => tab.columnAt(column)!.steps);
    const object = steps.some(searches) ? await getJSON<Stored>(path) : null;
    group.edits = changes.map(({ old, value }, i) => {
      const at = locate(object, steps[i]) ?? missing(steps[i]);
      return { path: at.path, old, value, ...(at.found.length > 0 && { beside: at.found }) };
    });
    group.target = { path, uid: entry.uid, manager };
    await write(group.target, group.edits, true);
  }

  #wrote({ tab, entry, changes, target, edits }: Group, stored: Stored): void {
    this.#take(tab, entry.key, stored);
    // A typed value is done; a formula remains. What was typed meanwhile remains, too.
    this.book.settle(tab, changes.filter(({ key, formula }) => !formula && changeOf(tab, key, tab.inputs.get(key) ?? '') === null && !isFormula(tab.inputs.get(key) ?? '')).map(({ key }) => key));
    this.applied.value = [{ id: ++this.#last, when: Date.now(), tab, key: entry.key, edits: edits!, target: target!, state: '', problem: '' } as Applied, ...this.applied.value].slice(0, 1000);
  }

  #take(tab: Tab, key: string, stored: Stored): void {
    const entry = tab.entries.find((one) => one.key === key);
    if (entry) tab.wrote(entry, stored.metadata.resourceVersion, tab.columns.map(({ steps }) => valueOf(stored, steps)));
    this.book.touch();
  }

  #refuse({ tab, changes }: Group, error: unknown, writing: boolean): void {
    const unknown = writing && (!(error instanceof ApiError || error instanceof Conflict) || (error instanceof ApiError && error.code >= 500));
    const message = unknown ? `${sentence(messageOf(error))} It is not known whether the change was written.` : messageOf(error);
    const of = (change: Change): boolean => {
      if (!(error instanceof Conflict) || error.edits.length === 0) return true;
      return error.edits.some(({ edit }) => edit.old === change.old && edit.value === change.value);
    };
    for (const change of changes) tab.failures.set(change.key, of(change) ? message : `Not written, because of ${nameOfOther(error, change)}: ${message}`);
    this.book.touch();
  }
}

const nameOfOther = (error: unknown, change: Change): string => (error instanceof Conflict && error.edits.length > 0 ? 'another cell of the object' : change.entry.name);

function missing(steps: Step[]): { path: Path; found: { path: Path; value: string }[] } {
  if (searches(steps)) throw new Error('The object has no such element.');
  return { path: steps as Path, found: [] };
}

/** The changes by object, in the order of the rows. */
function grouped(changes: Change[]): Group[] {
  const groups = new Map<Entry, Group>();
  for (const change of changes) {
    const group = groups.get(change.entry) ?? { tab: change.tab, entry: change.entry, changes: [] };
    group.changes.push(change);
    groups.set(change.entry, group);
  }
  return [...groups.values()];
}

/** Runs something for each, some at a time. */
async function each<T>(all: T[], run: (one: T) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(parallel, all.length) }, async () => {
    while (next < all.length) await run(all[next++]);
  }));
}

/** Makes a request again that the API server puts off. */
async function patient<T>(request: () => Promise<T>): Promise<T> {
  for (let retry = 0; ; retry++) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 429 || retry === maxRetries) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}
