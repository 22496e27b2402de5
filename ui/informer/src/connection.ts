// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { Channel, Unsupported, type Watch } from './channel.js';
import { Sleepers } from './clock.js';
import { Informer, type InformerOptions } from './informer.js';
import type { Kinds, KubernetesObject } from './kinds.js';

export interface ConnectOptions {
  /** Headers of each request, such as Authorization; a function is asked each time. */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /** In place of the global fetch. */
  fetch?: typeof fetch;
  /**
   * Where Watchkeeper serves several watches on one response. The default is
   * `watchkeeper/v1/multiwatch` below the base. Where there is none, and where
   * it is false, each watch is a response of its own; browsers keep no more
   * than six open over HTTP/1.1.
   */
  multiwatch?: string | false;
  /**
   * After how many milliseconds without a byte a watch is asked for again. The
   * default is 150,000: API servers send a bookmark every minute.
   */
  silence?: number;
  /** Closes the connection when it aborts. */
  signal?: AbortSignal;
}

/**
 * Connects to an API server, as kubectl proxy or Watchkeeper serve it. Nothing is
 * asked before there is an informer. The base is a URL or a path; in a Worker a
 * path begins with a slash.
 */
export function connect(base = '', options: ConnectOptions = {}): Connection {
  return new Connection(base, options);
}

/** Makes informers, and carries their watches together where that can be had. */
export class Connection {
  private readonly base: string;
  private readonly closing = new AbortController();
  private readonly unreached = new Sleepers();
  private readonly refused = new Sleepers();
  private readonly channels = new Set<Channel>();
  private readonly source;
  private readonly silence: number;
  private together?: Channel;

  /** @internal */
  constructor(base: string, options: ConnectOptions) {
    this.base = base.replace(/\/+$/, '');
    this.silence = options.silence ?? 150_000;
    const { headers = {} } = options;
    this.source = {
      // Called as a function of its own: browsers want no other receiver.
      fetch: options.fetch ?? ((...request: Parameters<typeof fetch>) => fetch(...request)),
      headers: typeof headers === 'function' ? headers : () => headers,
    };
    const url = options.multiwatch ?? this.base + '/watchkeeper/v1/multiwatch';
    if (url !== false) {
      this.together = this.channel((paths) => url + '?' + new URLSearchParams([['upstream', '1'], ...paths.map((path) => ['watch', path])]), true);
    }
    const wake = () => this.wake();
    const seen = () => {
      if (document.visibilityState === 'visible') wake();
    };
    const inPage = typeof document !== 'undefined';
    if (typeof addEventListener !== 'undefined') addEventListener('online', wake);
    if (inPage) document.addEventListener('visibilitychange', seen);
    this.closing.signal.addEventListener('abort', () => {
      if (typeof removeEventListener !== 'undefined') removeEventListener('online', wake);
      if (inPage) document.removeEventListener('visibilitychange', seen);
    });
    options.signal?.addEventListener('abort', () => this.close());
    if (options.signal?.aborted) this.close();
  }

  /**
   * Makes an informer of a resource, such as `v1/pods` or
   * `apps/v1/deployments`: version and plural, with the group in front. It
   * begins when the caller's code has run.
   */
  informer<K extends keyof Kinds, T = Kinds[K]>(resource: K, options?: InformerOptions<Kinds[K], T>): Informer<T>;
  informer<O extends KubernetesObject, T = O>(resource: string, options?: InformerOptions<O, T>): Informer<T>;
  informer<T>(resource: string, options: InformerOptions<any, T> = {}): Informer<T> {
    const [plural, version, group, ...more] = resource.split('/').reverse();
    if (!plural || !version || more.length) throw new TypeError(`${resource} is no resource: it is to be such as v1/pods or apps/v1/deployments`);
    const { namespace, labelSelector, fieldSelector, fields, pageSize = 500 } = options;
    const query: Record<string, string> = {};
    if (labelSelector) query.labelSelector = labelSelector;
    if (fieldSelector) query.fieldSelector = fieldSelector;
    if (fields) query.fields = fields.join(',');
    const path = [group ? '/apis/' + group : '/api', version, ...(namespace ? ['namespaces', namespace] : []), plural].join('/');
    const informer = new Informer<T>(
      {
        source: this.source,
        base: this.base,
        carry: (watch, signal) => this.carry(watch, signal),
        unreached: this.unreached,
        refused: this.refused,
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
   * Has whatever waits tried at once, and what has been silent asked again. It
   * is called when a browser is online again and when its page is seen again;
   * a Worker does not see that and has to be told.
   */
  wake(): void {
    this.unreached.wake();
    this.refused.wake();
    for (const channel of this.channels) channel.check();
  }

  /** Stops all informers. */
  close(): void {
    this.closing.abort();
  }

  private channel(url: (paths: string[]) => string, shared: boolean): Channel {
    // Who answers one can be reached by the others, too.
    const channel = new Channel(this.source, url, shared, this.silence, () => this.unreached.wake());
    this.channels.add(channel);
    return channel;
  }

  private async carry(watch: Watch, signal: AbortSignal): Promise<void> {
    const together = this.together;
    if (together) {
      try {
        return await together.join(watch, signal);
      } catch (error) {
        if (!(error instanceof Unsupported)) throw error;
        this.together = undefined;
        this.channels.delete(together);
      }
    }
    const alone = this.channel(([path]) => this.base + path, false);
    try {
      await alone.join(watch, signal);
    } finally {
      this.channels.delete(alone);
    }
  }
}
