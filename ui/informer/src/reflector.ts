// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { type WireEvent, type Watch } from './channel.js';
import { Backoff, Pauses } from './clock.js';
import type { Phase } from './events.js';
import { get, StatusError, type Source } from './http.js';
import type { KubernetesObject } from './kinds.js';
import { before, older } from './rv.js';

/** The fields that every object has. */
export interface Wire {
  kind?: string;
  apiVersion?: string;
  metadata: { name: string; namespace?: string | null; uid: string; resourceVersion: string; managedFields?: unknown };
  /** The row, if the objects are requested as rows or in a Table. */
  row?: Row | TableRow;
}

/** An object as a row: what identifies it, then the values of the fields in their order; null for none. */
export type Row = [namespace: string | null, name: string, uid: string, resourceVersion: string, ...values: unknown[]];

/** A row of an API server's Table. */
export interface TableRow {
  /** A value for each column: see Informer.columns. */
  cells: unknown[];
  /** The metadata of the object. */
  object: KubernetesObject;
}

/** A column of a Table. */
export interface ColumnDefinition {
  name: string;
  type: string;
  format: string;
  description: string;
  /** 0: shown always; more: shown by `kubectl get -o wide`. */
  priority: number;
}

/** An answer with as=rows. */
export interface RowPage {
  columns: string[];
  /** Whole rows; with `repeated`, what each differs in from the one before. */
  rows: unknown[][];
  repeated?: 'omit';
}

/** The rows of an answer with as=rows. A value that a row repeats of the one before is the same object. */
export function rowsOf({ columns, rows, repeated }: RowPage): Row[] {
  if (!repeated) return rows as Row[];
  const row: unknown[] = Array(columns.length).fill(null);
  return rows.map((changes) => {
    // Pairs of how many values are the same until the next one that is not, and this one.
    for (let i = 0, at = 0; i < changes.length; i += 2) {
      at += changes[i] as number;
      row[at++] = changes[i + 1];
    }
    return row.slice() as Row;
  });
}

const ofTable = (row: TableRow): Wire => ({ metadata: row.object.metadata as Wire['metadata'], row });
const ofRow = (row: Row): Wire => ({ metadata: { namespace: row[0], name: row[1], uid: row[2], resourceVersion: row[3] }, row });

/** Receives the objects and the state of a reflector. */
export interface Sink {
  /**
   * Adds or updates an object. Events and lists that are not below the newest
   * known RV cannot show an older version than the known one: then it throws
   * Restored. With restored it takes any version. `list` is the number of the list
   * that has the object.
   */
  put(object: Wire, how: { initial?: boolean; restored?: boolean; list?: number }): void;
  /** Whether the object, with its uid, is known. */
  has(object: Wire): boolean;
  /** An object was deleted. */
  remove(object: Wire): void;
  columns(definitions: ColumnDefinition[]): void;
  /** A list is complete: objects that were not put with its number no longer exist. */
  synced(list: number, resourceVersion: string): void;
  flush(): void;
  phase(phase: Phase, since?: number, error?: Error): void;
  failed(error: Error): void;
}

/**
 * Thrown for an object that has gone back to an older version. The server has
 * another history then, and a list must replace whatever is known.
 */
export class Restored extends Error {
  constructor() {
    super('the API server was restored from a backup');
  }
}

/** Shared by the reflectors of a connection. */
export interface Shared {
  source: Source;
  base: string;
  /** Carries a watch until it ends. */
  carry(watch: Watch, signal: AbortSignal): Promise<void>;
  /** Pauses after failures of the network, and after error responses. */
  retries: Pauses;
  refusals: Pauses;
}

/** The part of a request that lists and watches of a collection share. */
export interface Collection {
  path: string;
  query: Record<string, string>;
  pageSize: number;
}

/** A version of an object. */
type Version = Pick<Wire['metadata'], 'uid' | 'resourceVersion'>;
const none: Version = { uid: '', resourceVersion: '1' };

/** A requested page of a list. */
interface Page {
  /** The continue token of the next page, if any. */
  next: Promise<string | undefined>;
  whole: Promise<any>;
}

/** How long to wait after a refusal, and for a page, in milliseconds. */
const refusalPause = 30_000;
const pageTimeout = 60_000;
/** A watch that lasted this long resets the backoff, in milliseconds. */
const stableTime = 30_000;
/** A watch that ends within this time without an event counts as failed, in milliseconds. */
const minWatchTime = 1000;

/** The key of an object. */
export function keyOf({ metadata: { namespace, name } }: Wire): string {
  return namespace ? namespace + '/' + name : name;
}

/** The newer one of two versions; those without a numeric RV do not count. */
const newer = (a: Version, b: Version): Version => (older(a.resourceVersion, b.resourceVersion) ? b : a);

/** A reflector lists a collection and watches it, for as long as it runs. */
export class Reflector implements Watch {
  private head = ''; // the newest RV of an event or a list, complete or not; '' before the first list
  private synced = false; // a list was complete
  private lists = 0; // the number of the newest list
  private lastReceived = 0; // when the API server last sent something
  private listDue = true;
  private consistent = false; // the next list must be of the newest state
  private restored = false; // the next list may have older versions than the known ones
  private suspect = false; // the watch failed or was silent: the server may have been restored since
  private last = none; // the newest known version; a suspect server has to send it again
  private afterDelete = false; // the last event was a deletion
  private upstreamLost = false; // the gateway has no contact with the API server
  private expired = 0; // consecutive 410 Expired
  private malformed = 0; // consecutive watches with something other than events
  private unauthorized = 0; // consecutive 401 at the end of a watch
  private refusedAt = 0; // when the first of consecutive refusals came
  private readonly backoff = new Backoff();
  private readonly rows: boolean;

  constructor(
    private readonly shared: Shared,
    private readonly collection: Collection,
    private readonly sink: Sink,
  ) {
    this.rows = collection.query.as === 'rows';
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const began = Date.now();
      const head = this.head;
      try {
        if (this.suspect && !this.listDue) await this.probe(signal);
        if (this.listDue) await this.list(signal);
        await this.shared.carry(this, signal);
        if (signal.aborted) return;
        if (Date.now() - began < minWatchTime && this.head === head) {
          throw new Error('the watch ended immediately');
        }
        this.backoff.reset(); // a normal end: continue at once
      } catch (why) {
        if (signal.aborted) return;
        const wait = this.failed(why instanceof Error ? why : new Error(String(why)), Date.now() - began);
        if (Date.now() - began > stableTime) this.backoff.reset();
        if (wait) await wait(signal);
      }
    }
  }

  /** Records why a list or a watch failed after a time, and returns the pause before the next one. */
  private failed(error: Error, lasted: number): ((signal: AbortSignal) => Promise<void>) | undefined {
    const status = error instanceof StatusError ? error : undefined;
    if (lasted > stableTime) this.unauthorized = 0;
    // The credentials of the request have ended. The next request may have newer ones: those
    // of `headers`, or of a proxy that renews a login.
    if (status?.code === 401 && this.synced && lasted >= minWatchTime && this.unauthorized++ === 0) return undefined;
    if (status?.code === 410) {
      this.listDue = true;
      if (this.expired++ === 0) return undefined;
    }
    if (error instanceof Restored) this.listDue = this.consistent = this.restored = true;
    if (status?.code === 504 && this.listDue) this.consistent = true; // the server has not reached this RV, and may never
    if (error instanceof SyntaxError && ++this.malformed % 3 === 0) this.listDue = true;
    this.suspect = true;
    this.sink.failed(error);
    if (status?.refusal) {
      this.sink.phase('denied', undefined, error);
      if (lasted > stableTime || !this.refusedAt) this.refusedAt = Date.now();
      // An API server that has just started refuses what it allows later.
      const early = this.synced && Date.now() - this.refusedAt < refusalPause;
      const pause = early ? this.backoff.next() : refusalPause * (1 + Math.random() / 2);
      return (signal) => this.shared.refusals.sleep(pause, signal);
    }
    this.refusedAt = 0;
    this.sink.phase(this.synced ? 'stale' : 'connecting', this.synced ? this.lastReceived : undefined, error);
    const pause = Math.max(this.backoff.next(), status?.retryAfter ?? 0);
    return (signal) => this.shared[status ? 'refusals' : 'retries'].sleep(pause, signal);
  }

  /**
   * Checks whether the API server was restored from a backup: then its RVs are
   * lower, and a watch from the known RV would be silent until they reach it.
   */
  private async probe(signal: AbortSignal): Promise<void> {
    const page = await this.page({ limit: '1' }, signal).whole;
    if (older(page.metadata.resourceVersion, this.head)) this.listDue = this.consistent = true;
  }

  private async list(signal: AbortSignal): Promise<void> {
    const limit = String(this.collection.pageSize);
    // Any state that is not older than the known one will do: the watch continues
    // from there. RV 1 accepts any state, and, unlike 0, is served in pages.
    const from: Record<string, string> = this.consistent
      ? {}
      : { resourceVersion: this.head || '1', resourceVersionMatch: 'NotOlderThan' };
    const how = { initial: !this.synced, restored: this.restored, list: ++this.lists };
    let last = none;
    let page: any;
    for (let coming: Page | undefined = this.page({ limit, ...from }, signal); coming; ) {
      let next: Page | undefined;
      try {
        // The next page loads while this one is processed.
        const token = await coming.next;
        if (token) next = this.page({ limit, continue: token }, signal);
        page = await coming.whole;
      } catch (error) {
        if (!page || !(error instanceof StatusError) || error.code !== 410) throw error;
        how.list = ++this.lists; // the token expired before the last page
        page = await this.page(from, signal).whole;
      }
      this.sink.phase('syncing');
      const { apiVersion, metadata: { resourceVersion } } = page;
      if (older(resourceVersion, this.head)) {
        if (!this.consistent) {
          this.consistent = true;
          throw new Error('the list is older than what is known');
        }
        how.restored = this.restored = true;
      }
      this.head = resourceVersion;
      if (page.columnDefinitions) this.sink.columns(page.columnDefinitions);
      if (this.rows && !page.rows) throw new StatusError(400, 'the server has no rows: leave out rows');
      const kind = page.kind?.replace(/List$/, '');
      for (const item of this.rows ? rowsOf(page) : (page.rows ?? page.items ?? [])) {
        // The items of a list have no kind.
        const object: Wire = this.rows ? ofRow(item) : item.cells ? ofTable(item) : item.kind ? item : { kind, apiVersion, ...item };
        this.sink.put(object, how);
        last = newer(last, object.metadata);
      }
      this.sink.flush();
      coming = next;
    }
    this.listDue = this.consistent = this.restored = this.suspect = this.afterDelete = false;
    this.synced = true;
    this.last = last;
    this.malformed = 0;
    this.sink.synced(how.list, this.head);
    this.sink.flush();
  }

  private page(query: Record<string, string>, signal: AbortSignal): Page {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(new Error('no response to a list')), pageTimeout);
    const stop = () => limit.abort(signal.reason);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    // API servers indent JSON for browsers, to nearly twice the size.
    const response = get(this.shared.source, this.shared.base + this.urlPath({ ...query, pretty: '0' }), limit.signal);
    const whole = response
      .then((answer) => answer.text())
      .then((text) => {
        const page = this.shared.source.parse(text);
        if (!page?.metadata?.resourceVersion) throw new Error('the response is not a list that can be watched');
        this.lastReceived = Date.now();
        return page;
      })
      .finally(() => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
      });
    whole.catch(() => {}); // list() handles it
    // Watchkeeper sends it in a header, before the page.
    const next = response.then(async ({ headers }) => /[?&]continue=([^&>]+)/.exec(headers.get('Link') ?? '')?.[1] ?? (await whole).metadata.continue);
    next.catch(() => {});
    return { next, whole };
  }

  private urlPath(query: Record<string, string>): string {
    return this.collection.path + '?' + new URLSearchParams({ ...this.collection.query, ...query });
  }

  path(timeoutSeconds: number, doubtful: boolean): string {
    const { head, last, suspect, afterDelete } = this;
    return this.urlPath({
      watch: '1',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(timeoutSeconds),
      // Deletions may share an RV, and the stream may have ended between two of them.
      resourceVersion: (doubtful || suspect) && last.uid ? before(last.resourceVersion) : afterDelete ? before(head) : head,
    });
  }

  opened(doubtful: boolean): void {
    this.suspect ||= doubtful;
    this.upstreamLost = false; // if contact is lost, the gateway says so again at once
    this.flush();
  }

  take({ type, object }: WireEvent): void {
    if (type === 'ERROR') throw new StatusError(object?.code ?? 500, 'the watch failed', object);
    // Watchkeeper keeps a watch open while it has no contact with the API server.
    this.upstreamLost = type === 'STALE' || (this.upstreamLost && type !== 'CURRENT');
    if (type === 'STALE') this.sink.phase('stale', Date.parse(object.since), new Error(object.message));
    if (type === 'STALE' || type === 'CURRENT') return;
    if (this.rows && Array.isArray(object)) object = ofRow(object as Row);
    if (object?.kind === 'Table') {
      if (object.columnDefinitions) this.sink.columns(object.columnDefinitions);
      object = ofTable(object.rows[0]);
    }
    const rv = object?.metadata?.resourceVersion;
    if (!rv || (this.rows && !object.row && type !== 'BOOKMARK')) throw new SyntaxError('not a watch event: ' + type);
    const { last } = this;
    // The server may have been restored and have passed the known RV with other events.
    if (this.suspect && last.uid && !older(rv, last.resourceVersion)) {
      if (type === 'DELETED' || rv !== last.resourceVersion || object.metadata.uid !== last.uid) throw new Restored();
      this.suspect = false;
    }
    if (older(rv, this.head)) {
      // Received already: no object is newer than `last`, so these are deletions. One of an
      // object that is still known is of another history, such as that of a gateway that has
      // missed what is known, and reports the difference to a later list.
      if (type === 'DELETED' && this.sink.has(object)) throw new Restored();
      return;
    }
    if (type === 'ADDED' || type === 'MODIFIED') this.sink.put(object, {});
    else if (type === 'DELETED') this.sink.remove(object);
    else if (type !== 'BOOKMARK') throw new SyntaxError('not a watch event: ' + type);
    if (type === 'ADDED' || type === 'MODIFIED') this.last = newer(last, object.metadata);
    this.head = rv;
    this.afterDelete = type === 'DELETED';
    this.expired = this.malformed = this.unauthorized = 0;
  }

  flush(): void {
    this.lastReceived = Date.now();
    if (!this.upstreamLost) this.sink.phase('live');
    this.sink.flush();
  }

  unreachable(error: unknown, lastReceived: number): void {
    const why = error instanceof Error ? error : new Error(String(error));
    this.sink.failed(why);
    this.sink.phase('stale', lastReceived, why);
  }
}
