// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The objects of a resource: followed, or listed once. */

import { connect, StatusError, type ColumnDefinition, type Connection, type Informer, type TableRow } from '@watchkeeper/informer';
import { parse } from '@watchkeeper/informer/json';
import { askJSON, extension, extensionURL, getJSON, root } from '../app/api';
import { authorization } from '../app/token';
import { sentence } from '../data/quantity';
import { inWords } from '../time/refusals';
import { collection, type Resource } from './resources';
import { lineOf, type Line } from './lines';

/** Is told what was read. */
export interface Follower<T> {
  /** `whole`: everything may have changed. */
  changed(changes: { old?: T; line?: T }[], whole: boolean): void;
}

/** How the objects of a resource are requested and kept. */
export interface Form<T> {
  /** Makes an informer, of a namespace if one is given. */
  open(connection: Connection, resource: string, of: { namespace?: string }): Informer<T>;
  /** The same without projections, which the gateway does not have for every reader. */
  plain?: Form<T>;
}

/** How many objects a page of a list has: small enough that it is read within a frame. */
export const pageSize = 250;
/** A reader who may not list all namespaces sees at most this many. */
const maxNamespaces = 90;
const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';

/** The form of a table: the API server's rows. */
const tableForm: Form<Line> = { open: (connection, resource, of) => connection.informer<Line>(resource, { ...of, table: true, pageSize, transform: lineOf }) };

/** What a table shows, and in which state that is. */
export abstract class Source<T = Line> {
  /** By key: namespace/name. */
  readonly lines = new Map<string, T>();
  columns: ColumnDefinition[] = [];
  /** Everything was received. */
  complete = false;
  /** Why nothing, or not the newest state, is shown; empty if it is. */
  problem = '';
  /** The namespaces that are shown; null for all. */
  namespaces: string[] | null = null;

  constructor(readonly resource: Resource, protected readonly follower: Follower<T>) {}

  /** The network may be back. */
  wake(): void {}
  abstract close(): void;
}

/** The live state, of a namespace if one is given. */
export class LiveSource<T> extends Source<T> {
  readonly #connection: Connection;
  readonly #stop = new AbortController();
  #informers: Informer<T>[] = [];
  #synced = 0;

  constructor(resource: Resource, follower: Follower<T>, readonly form: Form<T>, namespace = '') {
    super(resource, follower);
    this.#connection = connect(root().href.replace(/\/$/, ''), { multiwatch: `${extension()}multiwatch`, headers: authorization, parse });
    this.#open(namespace, form);
  }

  override wake(): void {
    this.#connection.wake();
  }

  close(): void {
    this.#stop.abort();
    this.#connection.close();
  }

  #open(namespace: string, form: Form<T>): void {
    const { group, version, name } = this.resource;
    const informer = form.open(this.#connection, `${group ? `${group}/` : ''}${version}/${name}`, namespace ? { namespace } : {});
    this.#informers.push(informer);
    informer.onBatch((events) => {
      if (!this.#informers.includes(informer)) return;
      const changes: { old?: T; line?: T }[] = [];
      let whole = false;
      for (const event of events) {
        if (event.type === 'add' || event.type === 'update') changes.push(this.#put(event.key, event.object));
        else if (event.type === 'delete') changes.push(this.#remove(event.key));
        else if (event.type === 'sync') {
          this.#synced++;
          this.complete = this.#synced >= this.#informers.length;
        } else if (event.type === 'state') {
          const { phase, error } = event.state;
          const code = phase === 'denied' && error instanceof StatusError ? error.code : 0;
          if (form.plain && (code === 400 || (code === 403 && namespace))) this.#replace(informer, namespace, form.plain);
          else if (code === 403 && !namespace && this.resource.namespaced) void this.#restrict(error as StatusError, form);
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

  #replace(informer: Informer<T>, namespace: string, form: Form<T>): void {
    informer.stop();
    this.#informers = this.#informers.filter((one) => one !== informer);
    this.#open(namespace, form);
  }

  #put(key: string, line: T): { old?: T; line: T } {
    const old = this.lines.get(key);
    this.lines.set(key, line);
    return { old, line };
  }

  #remove(key: string): { old?: T } {
    const old = this.lines.get(key);
    this.lines.delete(key);
    return { old };
  }

  /** Reads the namespaces in which the reader may list and watch the resource. */
  async #restrict(why: StatusError, form: Form<T>): Promise<void> {
    const { group, version, name } = this.resource;
    try {
      const { all: everywhere, namespaces } = await askJSON<{ all: boolean; namespaces: string[] }>(
        extensionURL('access', { resource: name, group, version, verb: 'watch' }), this.#stop.signal,
      );
      if (everywhere) return; // meanwhile: its informer tries again
      if (namespaces.length === 0) throw why;
      for (const informer of this.#informers) informer.stop();
      this.#informers = [];
      this.namespaces = namespaces.slice(0, maxNamespaces);
      for (const namespace of this.namespaces) this.#open(namespace, form);
      this.problem = '';
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.problem = error === why ? wordsOf(why) : `${wordsOf(why)} ${wordsOf(error)}`;
    }
    this.follower.changed([], true);
  }
}

/** The live state as a table. */
export const liveTable = (resource: Resource, follower: Follower<Line>): Source => new LiveSource(resource, follower, tableForm);

/** A page of a list, with what is kept of its objects. */
interface Page<T> {
  columns?: ColumnDefinition[];
  lines: T[];
  next: string;
}

/** The state of a moment, as /at takes it, or of now if that is empty. */
export class ListSource<T extends { key: string }> extends Source<T> {
  readonly #stop = new AbortController();

  constructor(resource: Resource, readonly at: string, follower: Follower<T>, readonly read: (query: Record<string, string>, signal: AbortSignal) => Promise<Page<T>>) {
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
        const page = await this.read({ limit: String(pageSize), ...(next && { continue: next }) }, this.#stop.signal);
        this.columns = page.columns ?? this.columns;
        for (const line of page.lines) this.lines.set(line.key, line);
        next = page.next;
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

/** The table of a moment. */
export const listedTable = (resource: Resource, at: string, follower: Follower<Line>): Source =>
  new ListSource<Line>(resource, at, follower, async (query, signal) => {
    const { metadata, columnDefinitions, rows } = await getJSON<{ metadata: { continue?: string }; columnDefinitions: ColumnDefinition[] | null; rows: TableRow[] | null }>(
      collection(resource), at, signal, { accept: TABLE, query },
    );
    return { columns: columnDefinitions ?? undefined, lines: (rows ?? []).map(lineOf), next: metadata.continue ?? '' };
  });

/** An error in a sentence. */
function wordsOf(error: unknown): string {
  if (error instanceof TypeError) return 'The gateway cannot be reached.';
  const text = error instanceof Error ? error.message : String(error ?? '');
  return text && sentence(inWords(text, error instanceof StatusError ? error.status?.details : undefined));
}
