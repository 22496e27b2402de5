// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { type WireEvent, type Watch } from './channel.js';
import { Backoff, Sleepers } from './clock.js';
import type { Phase } from './events.js';
import { get, StatusError, type Source } from './http.js';
import { before, older } from './rv.js';

/** What any object has. */
export interface Wire {
  kind?: string;
  apiVersion?: string;
  metadata: { name: string; namespace?: string; uid: string; resourceVersion: string; managedFields?: unknown };
}

/** Takes what a reflector sees. */
export interface Sink {
  /** An object is there. anew: what was known of it proves nothing. It returns its key. */
  put(object: Wire, how: { initial?: boolean; anew?: boolean }): string;
  /** An object was deleted. */
  remove(object: Wire): void;
  /** A list is complete; what is not in it is gone. */
  synced(keys: Set<string>, resourceVersion: string): void;
  flush(): void;
  phase(phase: Phase, since?: number, error?: Error): void;
  failed(error: Error): void;
}

/** What reflectors share. */
export interface Shared {
  source: Source;
  base: string;
  /** Carries a watch until it ends. */
  carry(watch: Watch, signal: AbortSignal): Promise<void>;
  /** Those who wait for the network, and the others who wait. */
  unreached: Sleepers;
  refused: Sleepers;
}

/** What a collection's lists and watches have in common. */
export interface Collection {
  path: string;
  query: Record<string, string>;
  pageSize: number;
}

/** A page of a list, on its way. */
interface Page {
  /** The continue token of the next page, if there is one. */
  next: Promise<string | undefined>;
  whole: Promise<any>;
}

/** How long after a refusal it is asked again, and how long a page may take, in milliseconds. */
const refusalTime = 30_000;
const pageTime = 60_000;
/** A watch that stood for so long was a good one. */
const goodTime = 30_000;
/** A watch that ends within this time, and has told nothing, is not hurried back to. */
const hastyTime = 1000;

/** The key of an object. */
export function keyOf({ metadata: { namespace, name } }: Wire): string {
  return namespace ? namespace + '/' + name : name;
}

/** A reflector lists a collection and watches it, for as long as it runs. */
export class Reflector implements Watch {
  private head = ''; // all up to here is known; '' before the first list
  private heard = 0; // when the API server was last heard of
  private listing = true; // a list is due
  private consistent = false; // the list has to be of what is there now
  private suspect = false; // the last watch did not end well
  private afterDelete = false; // the last event was a deletion
  private apart = false; // whoever serves the watch has lost the API server
  private expired = 0; // times in a row that the history was lost
  private malformed = 0; // watches in a row that brought something else
  private readonly backoff = new Backoff();

  constructor(
    private readonly shared: Shared,
    private readonly collection: Collection,
    private readonly sink: Sink,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const began = Date.now();
      const head = this.head;
      try {
        if (this.suspect && !this.listing) await this.probe(signal);
        if (this.listing) await this.list(signal);
        await this.shared.carry(this, signal);
        if (signal.aborted) return;
        if (Date.now() - began < hastyTime && this.head === head) {
          throw new Error('the watch ended as soon as it had begun');
        }
        this.backoff.reset(); // an ordinary end: go on at once
      } catch (why) {
        if (signal.aborted) return;
        const wait = this.failed(why instanceof Error ? why : new Error(String(why)));
        if (Date.now() - began > goodTime) this.backoff.reset();
        if (wait) await wait(signal);
      }
    }
  }

  /** Notes why a list or a watch has ended, and returns what to wait for. */
  private failed(error: Error): ((signal: AbortSignal) => Promise<void>) | undefined {
    const status = error instanceof StatusError ? error : undefined;
    if (status?.code === 410) {
      this.listing = true;
      if (this.expired++ === 0) return undefined;
    }
    if (status?.code === 504 && this.listing) this.consistent = true; // it has not come so far, and may never
    if (error instanceof SyntaxError && ++this.malformed % 3 === 0) this.listing = true;
    this.suspect = true;
    this.sink.failed(error);
    if (status?.refusal) {
      this.sink.phase('denied', undefined, error);
      return (signal) => this.shared.refused.sleep(refusalTime * (1 + Math.random() / 2), signal);
    }
    this.sink.phase(this.head ? 'stale' : 'connecting', this.head ? this.heard : undefined, error);
    const pause = Math.max(this.backoff.next(), status?.retryAfter ?? 0);
    return (signal) => this.shared[status ? 'refused' : 'unreached'].sleep(pause, signal);
  }

  /**
   * Finds out whether the API server's history still is the one known here. That
   * of an etcd restored from a backup goes on at lower RVs, and a watch from a
   * future one is silent until they come by.
   */
  private async probe(signal: AbortSignal): Promise<void> {
    const page = await this.page({ limit: '1' }, signal).whole;
    this.suspect = false;
    if (older(page.metadata.resourceVersion, this.head)) this.listing = this.consistent = true;
  }

  private async list(signal: AbortSignal): Promise<void> {
    const initial = this.head === '';
    const limit = String(this.collection.pageSize);
    // Any state will do that is not older than what is known: the watch goes
    // on from there. From 1 on that is any, and yet in pages, as 0 is not.
    const from: Record<string, string> = this.consistent
      ? {}
      : { resourceVersion: this.head || '1', resourceVersionMatch: 'NotOlderThan' };
    const keys = new Set<string>();
    let anew: boolean | undefined;
    let page: any;
    for (let coming: Page | undefined = this.page({ limit, ...from }, signal); coming; ) {
      let next: Page | undefined;
      try {
        // The next page comes while this one is taken in.
        const token = await coming.next;
        if (token) next = this.page({ limit, continue: token }, signal);
        page = await coming.whole;
      } catch (error) {
        if (!page || !(error instanceof StatusError) || error.code !== 410) throw error;
        keys.clear(); // too slow for pages
        page = await this.page(from, signal).whole;
      }
      if (anew === undefined) {
        this.sink.phase('syncing');
        anew = older(page.metadata.resourceVersion, this.head);
        if (anew && !this.consistent) {
          this.consistent = true;
          throw new Error('the API server is behind what is known');
        }
      }
      const how = { initial, anew };
      const { apiVersion } = page;
      const kind = page.kind?.replace(/List$/, '');
      for (const item of page.items ?? []) {
        // The items of a list do not tell what they are.
        const object: Wire = item.kind ? item : { kind, apiVersion, ...item };
        keys.add(this.sink.put(object, how));
      }
      this.sink.flush();
      coming = next;
    }
    this.head = page.metadata.resourceVersion; // that of each page, as they are of one state
    this.listing = this.consistent = this.suspect = this.afterDelete = false;
    this.malformed = 0;
    this.sink.synced(keys, this.head);
    this.sink.flush();
  }

  private page(query: Record<string, string>, signal: AbortSignal): Page {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(new Error('no answer to a list')), pageTime);
    const stop = () => limit.abort(signal.reason);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    // API servers indent what browsers ask for, to nearly twice the size.
    const response = get(this.shared.source, this.shared.base + this.path_({ ...query, pretty: '0' }), limit.signal);
    const whole = response
      .then((answer) => answer.json())
      .then((page) => {
        if (!page?.metadata?.resourceVersion) throw new Error('the answer is not a list that can be watched');
        this.heard = Date.now();
        return page;
      })
      .finally(() => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
      });
    whole.catch(() => {}); // whoever wants it is told
    // Watchkeeper tells it before the page.
    const next = response.then(async ({ headers }) => /[?&]continue=([^&>]+)/.exec(headers.get('Link') ?? '')?.[1] ?? (await whole).metadata.continue);
    next.catch(() => {});
    return { next, whole };
  }

  private path_(query: Record<string, string>): string {
    return this.collection.path + '?' + new URLSearchParams({ ...this.collection.query, ...query });
  }

  path(timeoutSeconds: number): string {
    return this.path_({
      watch: '1',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(timeoutSeconds),
      // Deletions may share an RV, and the stream may have ended between two.
      resourceVersion: this.afterDelete ? before(this.head) : this.head,
    });
  }

  opened(): void {
    this.apart = false; // or it is told at once
    this.flush();
  }

  take({ type, object }: WireEvent): void {
    if (type === 'ERROR') throw new StatusError(object?.code ?? 500, 'the watch failed', object);
    // Watchkeeper keeps a watch open while it is itself without the API server.
    this.apart = type === 'STALE' || (this.apart && type !== 'CURRENT');
    if (type === 'STALE') this.sink.phase('stale', Date.parse(object.since), new Error(object.message));
    if (type === 'STALE' || type === 'CURRENT') return;
    const rv = object?.metadata?.resourceVersion;
    if (!rv) throw new SyntaxError('this is no event of a watch: ' + type);
    if (older(rv, this.head)) return; // told already
    if (type === 'ADDED' || type === 'MODIFIED') this.sink.put(object, {});
    else if (type === 'DELETED') this.sink.remove(object);
    else if (type !== 'BOOKMARK') throw new SyntaxError('this is no event of a watch: ' + type);
    this.head = rv;
    this.afterDelete = type === 'DELETED';
    this.expired = this.malformed = 0;
  }

  flush(): void {
    this.heard = Date.now();
    if (!this.apart) this.sink.phase('live');
    this.sink.flush();
  }

  doubt(error: unknown, heard: number): void {
    const why = error instanceof Error ? error : new Error(String(error));
    this.sink.failed(why);
    this.sink.phase('stale', heard, why);
  }
}
