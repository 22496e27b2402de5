// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The objects of a resource as rows of the API server's Tables: followed, or listed once. */

import { connect, StatusError, type ColumnDefinition, type Connection, type Informer, type TableRow } from '@watchkeeper/informer';
import { askJSON, extension, getJSON, root } from '../app/api';
import { authorization } from '../app/token';
import { sentence } from '../data/sentence';
import { collection, type Resource } from './resources';
import { lineOf, type Line } from './lines';

export interface Follower {
  /** `whole`: everything may have changed. */
  changed(changes: { old?: Line; line?: Line }[], whole: boolean): void;
}

/** How many objects a page of a list has: small enough that it is read within a frame. */
const pageSize = 250;
/** A reader who may not list all namespaces sees at most this many. */
const maxNamespaces = 90;
const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';

/** What a table shows, and in which state that is. */
export abstract class Source {
  readonly lines = new Map<string, Line>();
  columns: ColumnDefinition[] = [];
  /** Everything was received. */
  complete = false;
  /** Why nothing, or not the newest state, is shown; empty if it is. */
  problem = '';
  /** The namespaces that are shown; null for all. */
  namespaces: string[] | null = null;

  constructor(readonly resource: Resource, protected readonly follower: Follower) {}

  /** The network may be back. */
  wake(): void {}
  abstract close(): void;
}

/** The live state. */
export class LiveSource extends Source {
  readonly #connection: Connection;
  readonly #stop = new AbortController();
  #informers: Informer<Line>[] = [];
  #synced = 0;

  constructor(resource: Resource, follower: Follower) {
    super(resource, follower);
    this.#connection = connect(root().href.replace(/\/$/, ''), { multiwatch: `${extension()}multiwatch`, headers: authorization });
    this.#open('');
  }

  override wake(): void {
    this.#connection.wake();
  }

  close(): void {
    this.#stop.abort();
    this.#connection.close();
  }

  #open(namespace: string): void {
    const { group, version, name } = this.resource;
    const informer = this.#connection.informer<Line>(`${group ? `${group}/` : ''}${version}/${name}`, { table: true, pageSize, transform: lineOf, ...(namespace && { namespace }) });
    this.#informers.push(informer);
    informer.onBatch((events) => {
      const changes: { old?: Line; line?: Line }[] = [];
      let whole = false;
      for (const event of events) {
        if (event.type === 'add' || event.type === 'update') changes.push(this.#put(event.key, event.object));
        else if (event.type === 'delete') changes.push(this.#remove(event.key));
        else if (event.type === 'sync') {
          this.#synced++;
          this.complete = this.#synced >= this.#informers.length;
        } else if (event.type === 'state') {
          const { phase, error } = event.state;
          if (phase === 'denied' && !namespace && error instanceof StatusError && error.code === 403 && this.resource.namespaced) void this.#restrict(error, informer);
          else this.problem = phase === 'live' || phase === 'syncing' || phase === 'stopped' ? '' : wordsOf(error);
          whole = true;
        }
      }
      if (informer.columns.length && informer.columns !== this.columns) {
        this.columns = informer.columns;
        whole = true;
      }
      this.follower.changed(changes, whole);
    });
  }

  #put(key: string, line: Line): { old?: Line; line: Line } {
    const old = this.lines.get(key);
    this.lines.set(key, line);
    return { old, line };
  }

  #remove(key: string): { old?: Line } {
    const old = this.lines.get(key);
    this.lines.delete(key);
    return { old };
  }

  /** Reads the namespaces in which the reader may list and watch the resource. */
  async #restrict(why: StatusError, all: Informer<Line>): Promise<void> {
    const { group, version, name } = this.resource;
    try {
      const { all: everywhere, namespaces } = await askJSON<{ all: boolean; namespaces: string[] }>(
        new URL(`access?${new URLSearchParams({ resource: name, group, version, verb: 'watch' })}`, extension()), this.#stop.signal,
      );
      if (everywhere) return; // meanwhile: its informer tries again
      if (namespaces.length === 0) throw why;
      all.stop();
      this.#informers = [];
      this.namespaces = namespaces.slice(0, maxNamespaces);
      for (const namespace of this.namespaces) this.#open(namespace);
      this.problem = '';
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.problem = error === why ? wordsOf(why) : `${wordsOf(why)} ${wordsOf(error)}`;
    }
    this.follower.changed([], true);
  }
}

/** The state of a moment, as /at takes it, or of now if that is empty. */
export class ListSource extends Source {
  readonly #stop = new AbortController();

  constructor(resource: Resource, readonly at: string, follower: Follower) {
    super(resource, follower);
    void this.#load();
  }

  close(): void {
    this.#stop.abort();
  }

  async #load(): Promise<void> {
    try {
      let next = '';
      do {
        const query = new URLSearchParams({ limit: String(pageSize), ...(next && { continue: next }) });
        const page = await getJSON<{ metadata: { continue?: string }; columnDefinitions: ColumnDefinition[] | null; rows: TableRow[] | null }>(
          `${collection(this.resource)}?${query}`, this.at, this.#stop.signal, TABLE,
        );
        this.columns = page.columnDefinitions ?? this.columns;
        for (const row of page.rows ?? []) {
          const line = lineOf(row);
          this.lines.set(line.key, line);
        }
        next = page.metadata.continue ?? '';
        this.complete = !next;
        this.follower.changed([], true);
      } while (next);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.problem = wordsOf(error);
      this.follower.changed([], true);
    }
  }
}

/** An error in a sentence. */
function wordsOf(error: unknown): string {
  if (error instanceof TypeError) return 'The gateway cannot be reached.';
  const text = error instanceof Error ? error.message : String(error ?? '');
  return text && sentence(text);
}
