// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { Channel, Unsupported, type Watch } from './channel.js';
import { Pauses } from './clock.js';
import { Informer, type InformerOptions, type RowOptions, type TableOptions } from './informer.js';
import type { Kinds, KubernetesObject } from './kinds.js';
import type { Row, TableRow } from './reflector.js';

export interface ConnectOptions {
  /** Headers of each request, such as Authorization; a function is called for each one. */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /** Replaces the global fetch. */
  fetch?: typeof fetch;
  /**
   * The URL at which Watchkeeper serves several watches on one response. The
   * default is `watchkeeper/v1/multiwatch` below the base. If the server has no
   * such path, or if it is false, each watch is its own response; browsers
   * open at most six connections per host over HTTP/1.1.
   */
  multiwatch?: string | false;
  /**
   * After how many milliseconds without a byte to request a watch again. The
   * default is 150,000: API servers send a bookmark every minute. A Watchkeeper that
   * announces a heartbeat may miss three, whatever this is.
   */
  silence?: number;
  /**
   * Reads JSON instead of JSON.parse, which rounds integers beyond 2^53: `parse` of
   * `@watchkeeper/informer/json` makes them bigint. It throws a SyntaxError for other texts.
   */
  parse?: (text: string) => any;
  /** Closes the connection when it aborts. */
  signal?: AbortSignal;
}

/**
 * Connects to an API server that kubectl proxy or Watchkeeper serves. The first
 * request is that of the first informer. The base is a URL or a path; in a
 * Worker a path starts with a slash.
 */
export function connect(base = '', options: ConnectOptions = {}): Connection {
  return new Connection(base, options);
}

const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';

/** Creates informers, and carries their watches on one response if the server supports it. */
export class Connection {
  private readonly base: string;
  private readonly closing = new AbortController();
  private readonly retries = new Pauses();
  private readonly refusals = new Pauses();
  private readonly channels = new Set<Channel>();
  private readonly source;
  private readonly silence: number;
  private sharedChannel?: Channel;
  private tables?: Connection;

  /** @internal */
  constructor(base: string, private readonly options: ConnectOptions, accept = 'application/json') {
    this.base = base.replace(/\/+$/, '');
    this.silence = options.silence ?? 150_000;
    const { headers = {} } = options;
    this.source = {
      // Browsers throw if fetch is called as a method of another object.
      fetch: options.fetch ?? ((...request: Parameters<typeof fetch>) => fetch(...request)),
      headers: typeof headers === 'function' ? headers : () => headers,
      accept,
      parse: options.parse ?? JSON.parse,
    };
    const url = options.multiwatch ?? this.base + '/watchkeeper/v1/multiwatch';
    if (url !== false) {
      this.sharedChannel = this.channel((paths) => url + '?' + new URLSearchParams([['upstream', '1'], ...paths.map((path) => ['watch', path])]), true);
    }
    const wake = () => this.wake();
    const visible = () => {
      if (document.visibilityState === 'visible') wake();
    };
    const inPage = typeof document !== 'undefined';
    if (typeof addEventListener !== 'undefined') addEventListener('online', wake);
    if (inPage) document.addEventListener('visibilitychange', visible);
    this.closing.signal.addEventListener('abort', () => {
      if (typeof removeEventListener !== 'undefined') removeEventListener('online', wake);
      if (inPage) document.removeEventListener('visibilitychange', visible);
    });
    options.signal?.addEventListener('abort', () => this.close());
    if (options.signal?.aborted) this.close();
  }

  /**
   * Creates an informer for a resource, such as `v1/pods` or
   * `apps/v1/deployments`: version and plural, after the group. It starts after
   * the caller's synchronous code, so handlers set there miss nothing.
   */
  informer<T = Row>(resource: string, options: RowOptions<T>): Informer<T>;
  informer<T = TableRow>(resource: string, options: TableOptions<T>): Informer<T>;
  informer<K extends keyof Kinds, T = Kinds[K]>(resource: K, options?: InformerOptions<Kinds[K], T>): Informer<T>;
  informer<O extends KubernetesObject, T = O>(resource: string, options?: InformerOptions<O, T>): Informer<T>;
  informer<T>(resource: string, options: InformerOptions<any, T> & { rows?: boolean; table?: boolean } = {}): Informer<T> {
    if (options.table) {
      // All watches of a response have one form.
      const { table: _, ...rest } = options;
      this.tables ??= new Connection(this.base, { ...this.options, signal: this.closing.signal }, TABLE);
      return this.tables.informer(resource, rest) as Informer<T>;
    }
    const [plural, version, group, ...more] = resource.split('/').reverse();
    if (!plural || !version || more.length) throw new TypeError(`${resource} is not a resource: write it like v1/pods or apps/v1/deployments`);
    const { namespace, labelSelector, fieldSelector, fields, rows, pageSize = 500 } = options;
    if (rows && !fields?.length) throw new TypeError('rows need fields: they are the columns');
    const query: Record<string, string> = {};
    if (labelSelector) query.labelSelector = labelSelector;
    if (fieldSelector) query.fieldSelector = fieldSelector;
    if (fields) query.fields = fields.join(',');
    if (rows) Object.assign(query, { as: 'rows', repeated: 'omit' });
    const path = [group ? '/apis/' + group : '/api', version, ...(namespace ? ['namespaces', encodeURIComponent(namespace)] : []), plural].join('/');
    const informer = new Informer<T>(
      {
        source: this.source,
        base: this.base,
        carry: (watch, signal) => this.carry(watch, signal),
        retries: this.retries,
        refusals: this.refusals,
      },
      { path, query, pageSize },
      options,
    );
    const stop = () => informer.stop();
    this.closing.signal.addEventListener('abort', stop);
    if (this.closing.signal.aborted) stop();
    informer.on('state', ({ state }) => {
      if (state.phase === 'stopped') this.closing.signal.removeEventListener('abort', stop);
    });
    return informer;
  }

  /**
   * Retries at once what waits to be retried, and requests silent watches
   * again. In a page the connection does this itself when the browser comes back
   * online and when the page becomes visible. A Worker cannot see that: its page
   * has to tell it.
   */
  wake(): void {
    this.retries.wake();
    this.refusals.wake();
    for (const channel of this.channels) channel.check();
    this.tables?.wake();
  }

  /** Stops all informers. */
  close(): void {
    this.closing.abort();
  }

  private channel(url: (paths: string[]) => string, shared: boolean): Channel {
    // A server that answers one channel can be reached by the others, too.
    const channel = new Channel(this.source, url, shared, this.silence, () => this.retries.wake());
    this.channels.add(channel);
    return channel;
  }

  private async carry(watch: Watch, signal: AbortSignal): Promise<void> {
    const shared = this.sharedChannel;
    if (shared) {
      try {
        return await shared.join(watch, signal);
      } catch (error) {
        if (!(error instanceof Unsupported)) throw error;
        this.sharedChannel = undefined;
        this.channels.delete(shared);
      }
    }
    const own = this.channel(([path]) => this.base + path, false);
    try {
      await own.join(watch, signal);
    } finally {
      this.channels.delete(own);
    }
  }
}
