// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The table of a resource that the page shows, and when it is rendered. */

import { signal } from '@preact/signals';
import { inFrame } from '../app/frame';
import { clock } from '../data/clock';
import { Lines, NAMESPACE, type Grouping, type Line, type Sorting } from './lines';
import type { Resource } from './resources';
import { listedTable, liveTable, type Source } from './source';

export class KindTable {
  readonly lines = new Lines();
  /** Incremented when it should be rendered, at most once per frame. */
  readonly version = signal(0);
  sorting: Sorting;
  grouping: Grouping = '';
  filter = '';
  source!: Source;
  /** The times of the shown moment and of the one that loads, in seconds since 1970; 0 for the live state. */
  #time = 0;
  #loadingTime = 0;
  #due = false;
  #stale = true;
  #loading: Source | null = null;

  constructor(readonly resource: Resource, at: string) {
    this.sorting = { by: resource.namespaced ? NAMESPACE : 0, down: false };
    this.show(at);
  }

  /**
   * Shows a moment, as /at takes it; empty for the live state. What was shown stays until all of
   * the moment is there. `patient`: a moment that loads is not given up for this one.
   */
  show(at: string, patient = false): void {
    if (patient && this.#loading) return;
    this.#loading?.close();
    const next: Source = at || !this.resource.watched
      ? listedTable(this.resource, at, { changed: () => this.#changed(next, [], true) })
      : liveTable(this.resource, { changed: (changes, whole) => this.#changed(next, changes, whole) });
    this.#loading = next;
    this.#loadingTime = at ? clock.now() : 0;
    if (!this.source) this.#take();
  }

  close(): void {
    this.#loading?.close();
    this.source.close();
  }

  /** The time as of which ages are shown: that of what is shown. */
  now(): number {
    return this.#time || clock.now();
  }

  /** Sorts, groups and filters anew with the next rendering. */
  rearrange(): void {
    this.#stale = true;
    this.#render();
  }

  /** Brings the lines up to date. */
  arranged(): Lines {
    if (this.#stale) this.lines.arrange(this.source.lines.values(), this.source.columns, this.sorting, this.grouping, this.filter);
    this.#stale = false;
    return this.lines;
  }

  #take(): void {
    if (this.source && this.source !== this.#loading) this.source.close();
    this.source = this.#loading!;
    this.#loading = null;
    this.#time = this.#loadingTime;
    this.#stale = true;
  }

  #changed(of: Source, changes: { old?: Line; line?: Line }[], whole: boolean): void {
    if (of === this.#loading && (of.complete || of.problem)) this.#take();
    if (of !== this.source) return;
    // Until the lines are read, they are arranged as a whole.
    if (whole) this.#stale = true;
    else if (!this.#stale) this.lines.change(changes);
    this.#render();
  }

  #render(): void {
    if (this.#due) return;
    this.#due = true;
    const render = (): void => {
      this.#due = false;
      this.version.value++;
    };
    // A hidden page has no frames.
    if (document.hidden) setTimeout(render, 1000);
    else inFrame(render);
  }
}
