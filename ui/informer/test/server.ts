// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// An API server for tests. It keeps objects and their history, and serves lists
// in pages and watches, or what a test has scripted instead.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Thing {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; uid: string; resourceVersion: string; labels?: Record<string, string> };
  text?: string;
}

interface Change {
  rv: number;
  path: string;
  type: string;
  object: Thing;
}

/** A watch that is being served. */
export interface Stream {
  path: string;
  query: URLSearchParams;
  /** Writes an event. */
  send(type: string, object: unknown): void;
  /** Writes bytes unchanged. */
  raw(bytes: string | Uint8Array): void;
  /** Ends it as a timeout does. */
  end(): void;
  /** Cuts the connection. */
  cut(): void;
  /** Ends the response, with all watches on it. */
  close(): void;
}

type Script<A extends unknown[]> = (...args: A) => void;

export class ApiServer {
  readonly objects = new Map<string, Thing>(); // by path and name
  /** Scripts for the next lists and watches, one per request. */
  readonly lists: Script<[URL, ServerResponse]>[] = [];
  readonly watches: Script<[Stream]>[] = [];
  /** Whether it serves multiwatch. */
  multiwatch = false;
  /** The URLs of all requests. */
  readonly requests: URL[] = [];
  readonly open = new Set<Stream>();
  rv = 100;
  private compactedRV = 0; // older RVs are gone
  private uids = 0;
  private history: Change[] = [];
  private snapshots = new Map<string, Thing[]>(); // of lists that were served in pages
  private http = createServer((request, response) => this.serve(request, response));
  private port = 0;

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.http.listen(this.port, '127.0.0.1', resolve));
    this.port = (this.http.address() as AddressInfo).port;
    return this;
  }

  async stop(): Promise<void> {
    if (!this.http.listening) return;
    this.http.closeAllConnections();
    await new Promise((resolve) => this.http.close(resolve));
    this.http = createServer((request, response) => this.serve(request, response));
  }

  get url(): string {
    return 'http://127.0.0.1:' + this.port;
  }

  /** Writes an object, as a new version of it or as a new object. */
  put(path: string, name: string, text = '', fresh = false): Thing {
    const key = path + '/' + name;
    const before = fresh ? undefined : this.objects.get(key);
    const object: Thing = {
      apiVersion: 'v1',
      kind: 'Thing',
      metadata: {
        name,
        namespace: 'ns',
        uid: before?.metadata.uid ?? 'uid-' + ++this.uids,
        resourceVersion: String(++this.rv),
      },
      text,
    };
    this.objects.set(key, object);
    this.dispatch({ rv: this.rv, path, type: before ? 'MODIFIED' : 'ADDED', object });
    return object;
  }

  /** Deletes objects, all at one resourceVersion. */
  remove(path: string, ...names: string[]): void {
    this.rv++;
    for (const name of names) {
      const object = this.objects.get(path + '/' + name)!;
      this.objects.delete(path + '/' + name);
      const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.rv) } };
      this.dispatch({ rv: this.rv, path, type: 'DELETED', object: last });
    }
  }

  /** Forgets the history. */
  compact(): void {
    this.history = [];
    this.snapshots.clear();
    this.compactedRV = this.rv;
  }

  /**
   * Takes a backup of etcd. The returned function restores it: other objects are
   * gone, and so is the history. bump is that of `etcdutl snapshot restore --bump-revision`.
   */
  backup(): (bump?: number) => void {
    const objects = new Map(this.objects);
    const { rv } = this;
    return (bump = 0) => {
      this.objects.clear();
      for (const [key, object] of objects) this.objects.set(key, object);
      this.rv = rv + bump;
      this.compact();
    };
  }

  bookmark(path: string): void {
    for (const stream of this.open) {
      if (stream.path === path) stream.send('BOOKMARK', { kind: 'Thing', metadata: { resourceVersion: String(this.rv) } });
    }
  }

  /** The open watches of a path. */
  watching(path: string): Stream[] {
    return [...this.open].filter((stream) => stream.path === path);
  }

  private dispatch(change: Change): void {
    this.history.push(change);
    for (const stream of this.open) if (stream.path === change.path) stream.send(change.type, change.object);
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url!, this.url);
    this.requests.push(url);
    const fail = (code: number, reason: string) => refuse(response, code, reason);
    if (url.pathname === '/watchkeeper/v1/multiwatch') {
      if (!this.multiwatch) return fail(404, 'NotFound');
      response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
      const watches = url.searchParams.getAll('watch');
      let left = watches.length;
      watches.forEach((text, i) => {
        this.watch(new URL(text, this.url), response, i, () => --left === 0 && response.end());
      });
    } else if (url.searchParams.has('watch')) {
      this.watch(url, response);
    } else if (this.lists.length > 0) {
      this.lists.shift()!(url, response);
    } else {
      this.list(url, response);
    }
  }

  list(url: URL, response: ServerResponse): void {
    const wanted = Number(url.searchParams.get('resourceVersion') ?? 0);
    if (wanted > this.rv) return refuse(response, 504, 'Timeout');
    const limit = Number(url.searchParams.get('limit') ?? 0) || Infinity;
    const [rv = this.rv, from = 0] = (url.searchParams.get('continue') ?? '').split(':').filter(Boolean).map(Number);
    const now = () => [...this.objects].filter(([key]) => key.startsWith(url.pathname + '/')).map(([, object]) => object);
    const all = from > 0 ? this.snapshots.get(url.pathname + rv) : now(); // all pages show one state
    if (!all) return refuse(response, 410, 'Expired');
    this.snapshots.set(url.pathname + rv, all);
    const more = from + limit < all.length;
    if (!response.headersSent) response.setHeader('Content-Type', 'application/json');
    response.end(
      JSON.stringify({
        kind: 'ThingList',
        apiVersion: 'v1',
        metadata: { resourceVersion: String(rv), ...(more && { continue: rv + ':' + (from + limit) }) },
        items: all.slice(from, from + limit).map(({ kind: _, apiVersion: __, ...rest }) => rest),
      }),
    );
  }

  private watch(url: URL, response: ServerResponse, number?: number, ended = () => {}): void {
    const prefix = number === undefined ? '' : '"watch":' + number + ',';
    const write = (bytes: string | Uint8Array) => {
      if (!response.writableEnded) response.write(bytes);
    };
    const stream: Stream = {
      path: url.pathname,
      query: url.searchParams,
      send: (type, object) => write('{' + prefix + JSON.stringify({ type, object }).slice(1) + '\n'),
      raw: write,
      end: () => {
        this.open.delete(stream);
        if (number === undefined) response.end();
        else {
          write('{' + prefix + '"type":"END"}\n');
          ended();
        }
      },
      cut: () => response.destroy(),
      close: () => response.end(),
    };
    const script = this.watches.shift();
    if (script) {
      if (number === undefined) response.writeHead(200).flushHeaders();
      return script(stream);
    }
    if (number === undefined) response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
    this.follow(stream);
    response.on('close', () => this.open.delete(stream));
  }

  /** Serves a watch as an API server does. */
  follow(stream: Stream): void {
    const from = Number(stream.query.get('resourceVersion'));
    if (from < this.compactedRV) {
      stream.send('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' });
      return stream.end();
    }
    for (const change of this.history) if (change.path === stream.path && change.rv > from) stream.send(change.type, change.object);
    this.open.add(stream);
  }
}

/** Answers with a Status. */
export function refuse(response: ServerResponse, code: number, reason: string, headers: Record<string, string> = {}): void {
  response.writeHead(code, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message: reason + ' it is' }));
}
