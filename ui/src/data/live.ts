// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The live state: informers for Nodes and Pods, whose events become rows. A reader who
 * may not list Pods in all namespaces gets one informer for each namespace in which the
 * gateway says that they may; the gateway is asked again every half minute, and when a
 * watch is refused.
 */

import { connect, StatusError, type Connection, type Informer, type Row, type State } from '@watchkeeper/informer';
import { askAccess, authorization, maxNamespaces, Refused, type Access } from './access';
import { boardRow, NODE_FIELDS, nodeOf, POD_FIELDS } from './columns';
import type { NodeRow, Scope, Status, Unread } from './protocol';
import { nodeRow, podRow, type Node } from './objects';
import { askOutage, type Outage } from './outage';
import type { PodRow, Rows } from './rows';
import { sentence } from './quantity';
import type { Pod } from './state';

/** What the informer stores of each object: nothing, since the rows have all data. */
const stored = null;

/** An informer, as far as its rows are concerned. */
interface Source {
  informer: Informer<unknown>;
  connection: Connection;
  /** '' for all namespaces, and for Nodes. */
  namespace: string;
  /** It reads whole objects: the gateway has no projections for this reader. */
  plain: boolean;
  state: State;
  synced: boolean;
}

/** Whether a source could not be read so far: in an outage, the gateway does not have everything. */
const isUnread = ({ synced, state: { phase, error } }: Source): boolean => !synced && phase === 'connecting' && error !== undefined;

/** How many watches a connection has. A multiwatch has up to 100; each takes about 2.4 kB of the URL. */
const maxWatches = 90;
/** How often the rights are asked for, and the shortest time between two questions, in milliseconds. */
const askInterval = 30_000;
const minAskInterval = 5000;

export class Live {
  readonly #connections: { connection: Connection; watches: number }[] = [];
  /** By namespace; '' for all. */
  readonly #pods = new Map<string, Source>();
  #nodes: Source;
  /** Why Nodes cannot be read; null if they can. */
  #noNodes: Unread | null = null;
  /** Where the reader may list Pods; null before that is asked, and if it is everywhere. */
  #access: Access | null = null;
  /** Why it is not known where. */
  #unknown = '';
  /** Projections of namespaces are refused, so that whole objects are read. */
  #plain = false;
  /** The list of all namespaces was refused. */
  #restricted = false;
  #asking = false;
  /** Why the gateway has nothing to serve; null if it does not say, undefined before it was asked. */
  #outage: Outage | null | undefined;
  #askedAt = -minAskInterval;
  #refusedAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #stop = new AbortController();
  #reportedScope = '';

  constructor(
    readonly root: string, readonly extension: string, readonly rows: Rows,
    readonly changed: () => void, readonly status: (status: Status) => void, readonly scope: (scope: Scope) => void,
  ) {
    rows.restate();
    this.#nodes = this.#openNodes(false);
    this.#openPods('', false);
  }

  /** The network may be back, or there is another token: retries at once. */
  wake(): void {
    for (const { connection } of this.#connections) connection.wake();
    if (this.#restricted) void this.#ask();
  }

  close(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
    for (const { connection } of this.#connections) connection.close();
  }

  #open(resource: 'v1/pods' | 'v1/nodes', namespace: string, plain: boolean, fields: string[], transform: (object: never) => unknown): Source {
    let free = this.#connections.find(({ watches }) => watches < maxWatches);
    if (!free) {
      const connection = connect(this.root.replace(/\/$/, ''), { multiwatch: `${this.extension}multiwatch`, headers: authorization });
      this.#connections.push((free = { connection, watches: 0 }));
    }
    free.watches++;
    const { connection } = free;
    const of = namespace ? { namespace } : {};
    const informer = plain
      ? connection.informer(resource, { ...of, transform })
      // A request costs much less than so many rows, and they still appear bit by bit.
      : connection.informer(resource, { ...of, transform: transform as (row: Row) => unknown, fields, rows: true, pageSize: 2500 });
    return { informer, connection, namespace, plain, state: { phase: 'connecting', since: Date.now() }, synced: false };
  }

  #close(source: Source): void {
    source.informer.stop();
    this.#connections.find(({ connection }) => connection === source.connection)!.watches--;
  }

  #openNodes(plain: boolean): Source {
    const { rows } = this;
    let node!: NodeRow;
    const source = this.#open('v1/nodes', '', plain, NODE_FIELDS, (of: Node | Row) => {
      node = nodeRow(Array.isArray(of) ? nodeOf(of) : of);
      return stored;
    });
    this.#follow(source, () => this.#nodes === source, () => rows.setNode(node), (name) => rows.deleteNode(name));
    return source;
  }

  #openPods(namespace: string, plain: boolean): void {
    const { rows } = this;
    let pod!: PodRow;
    const source = this.#open('v1/pods', namespace, plain, POD_FIELDS, (of: Pod | Row) => {
      pod = Array.isArray(of) ? boardRow(of) : podRow(of);
      return stored;
    });
    this.#pods.set(namespace, source);
    this.#follow(source, () => this.#pods.get(namespace) === source, (key) => rows.setPod(pod, performance.now(), key), (key) => rows.deletePod(key, performance.now()));
  }

  /** Takes the events of a source while it is used, until the end. An object is set with what was made of it last: its event comes at once. */
  #follow(source: Source, isOpen: () => boolean, set: (key: string) => void, remove: (key: string) => void): void {
    const { informer } = source;
    const isUsed = (): boolean => isOpen() && !this.#stop.signal.aborted;
    const change = (apply: (key: string) => void) => ({ key }: { key: string }): void => {
      if (!isUsed()) return;
      apply(key);
      this.changed();
    };
    informer.on('add', change(set));
    informer.on('update', change(set));
    informer.on('delete', change(remove));
    informer.on('state', ({ state }) => {
      source.state = state;
      if (isUsed()) this.#stateChanged(source);
    });
    informer.on('sync', () => {
      source.synced = true;
      if (isUsed()) this.#stateChanged(source);
    });
  }

  #closePods(source: Source): void {
    this.#pods.delete(source.namespace);
    this.#close(source);
  }

  #stateChanged(source: Source): void {
    if (source.state.phase === 'denied') this.#denied(source);
    else if (source === this.#nodes && source.state.phase === 'live') this.#noNodes = null;
    else if (source.namespace && source.plain && source.synced) this.#plain = true;
    else if (source === this.#pods.get('') && source.state.phase === 'live') this.#unrestrict();
    // Every attempt to list asks again, once for all sources.
    if (isUnread(source) && source === this.#pods.values().next().value) void this.#askOutage(source);
    this.#settle();
    this.#report();
    this.changed();
  }

  async #askOutage({ namespace }: Source): Promise<void> {
    this.#outage = await askOutage(this.extension, namespace, this.#stop.signal);
    if (!this.#stop.signal.aborted) this.#report();
  }

  /** The API server, or the gateway, refuses a list or a watch. */
  #denied(source: Source): void {
    const error = source.state.error;
    const code = error instanceof StatusError ? error.code : 0;
    if (code === 401) return; // the page asks for a token
    const isNodes = source === this.#nodes;
    // A gateway that may not read all of a resource itself has no projections of it, and
    // neither has one that leaves callers with tokens to the API server.
    if (!source.plain && (source.namespace || code === 400)) {
      if (isNodes) this.#nodes = this.#openNodes(true);
      else this.#openPods(source.namespace, true);
      this.#close(source);
      return;
    }
    if (isNodes) {
      // Their last state is not that of now.
      this.rows.deleteNodes();
      this.#noNodes = { denied: code !== 404, why: stateWords('nodes', source.state) };
      return;
    }
    if (code === 404 && !source.namespace) return; // a recording without Pods
    if (source.namespace) {
      this.#closePods(source);
      this.rows.retain((namespace) => namespace !== source.namespace, performance.now());
    }
    if (!this.#restricted) this.#refusedAt = performance.now();
    this.#restricted = true;
    void this.#ask();
  }

  #unrestrict(): void {
    this.#restricted = false;
    this.#access = null;
    clearTimeout(this.#timer);
  }

  /** Asks where the reader may list Pods now, and again after a while. */
  async #ask(): Promise<void> {
    if (this.#asking) return;
    clearTimeout(this.#timer);
    const wait = this.#askedAt + minAskInterval - performance.now();
    if (wait > 0) {
      this.#timer = setTimeout(() => void this.#ask(), wait);
      return;
    }
    this.#asking = true;
    this.#askedAt = performance.now();
    try {
      this.#access = await askAccess(this.extension, this.#stop.signal);
      this.#unknown = '';
      if (this.#restricted) this.#show(this.#access);
    } catch (error) {
      // What is shown remains: its watches say when they are refused.
      if (error instanceof Refused && error.code !== 404) this.#unknown = error.message;
      else if (!(error instanceof Refused)) this.#unknown = 'The gateway does not answer.';
      else this.#unknown = 'This gateway cannot say in which namespaces you may.';
    }
    this.#asking = false;
    if (this.#stop.signal.aborted) return;
    // An API server that has just started refuses what it allows later.
    const early = performance.now() - this.#refusedAt < askInterval;
    if (this.#restricted) this.#timer = setTimeout(() => void this.#ask(), early ? minAskInterval : askInterval);
    this.#settle();
    this.#report();
    this.changed();
  }

  /** Reads the Pods that the reader may list. */
  #show(access: Access): void {
    const { rows } = this;
    const all = this.#pods.get('');
    if (access.all) {
      if (all) {
        all.connection.wake(); // it waits for its next attempt
        return;
      }
      for (const source of [...this.#pods.values()]) this.#closePods(source);
      rows.restate(false);
      this.#openPods('', false);
      return;
    }
    const wanted = new Set(access.namespaces.slice(0, maxNamespaces));
    if (all) {
      this.#closePods(all);
      rows.restate(false);
    }
    rows.retain((namespace) => wanted.has(namespace), performance.now());
    for (const source of [...this.#pods.values()]) if (!wanted.has(source.namespace)) this.#closePods(source);
    for (const namespace of wanted) if (!this.#pods.has(namespace)) this.#openPods(namespace, this.#plain);
  }

  /** Completes the first list, and what `restate` has begun: without what cannot be read, unless that is everything. */
  #settle(): void {
    const pods = [...this.#pods.values()];
    const nothing = this.#restricted && this.#access !== null && pods.length === 0;
    if (!nothing && pods.length === 0) return;
    const sources = this.#noNodes ? pods : [...pods, this.#nodes];
    if (sources.some((source) => !source.synced && !isUnread(source)) || (sources.length > 0 && sources.every(isUnread))) return;
    this.rows.settle(performance.now());
    if (!nothing) this.rows.sync();
  }

  /** Reports the worst of the states, and what the reader may see. */
  #report(): void {
    const pods = [...this.#pods.values()];
    const without = pods.filter(isUnread);
    const some = without.length < pods.length;
    const noNodes = this.#noNodes ?? (some && isUnread(this.#nodes) ? { denied: false, failed: true, why: stateWords('nodes', this.#nodes.state) } : null);
    const shown = [...(some ? pods.filter((source) => !isUnread(source)) : pods), ...(noNodes ? [] : [this.#nodes])];
    const access = this.#restricted ? this.#access : null;
    const scope: Scope = {
      namespaces: access && !access.all ? pods.map(({ namespace }) => namespace).filter((name) => name).sort() : null,
      omitted: access ? Math.max(0, access.namespaces.length - maxNamespaces) : 0,
      incomplete: access?.incomplete ?? false,
      nodes: noNodes,
      ...(without.length > 0 && { pods: { why: stateWords('pods', without[0].state), namespaces: without.map(({ namespace }) => namespace).filter((name) => name).sort() } }),
    };
    const text = JSON.stringify(scope);
    if (text !== this.#reportedScope) this.scope(scope);
    this.#reportedScope = text;

    const refused = [...pods, this.#nodes].find(({ state: { phase, error } }) => phase === 'denied' && error instanceof StatusError && error.code === 401);
    if (refused) return this.status({ phase: 'denied', text: stateWords('pods', refused.state), since: refused.state.since, code: 401 });
    const all = this.#pods.get('');
    if (all?.state.phase === 'denied') {
      // Until it is known where the reader may, there is nothing to say.
      if (this.#asking && !this.#unknown) return this.status({ phase: 'connecting', text: '', since: all.state.since });
      const words = stateWords('pods', all.state);
      if (all.state.error instanceof StatusError && all.state.error.code === 404) return this.status({ phase: 'denied', text: words, since: all.state.since, code: 404 });
      return this.status({ phase: 'denied', text: this.#unknown ? `${sentence(words)} ${sentence(this.#unknown)}` : words, since: all.state.since });
    }
    if (pods.length === 0) {
      return this.status({ phase: access ? 'denied' : 'connecting', text: access ? 'You may not list Pods in any namespace.' : '', since: Date.now() });
    }
    const order = ['stale', 'stopped', 'connecting', 'syncing', 'denied', 'live'];
    const [worst] = shown.sort((a, b) => order.indexOf(a.state.phase) - order.indexOf(b.state.phase));
    const { state } = worst;
    if (isUnread(worst)) {
      if (this.#outage === undefined) return this.status({ phase: 'connecting', text: '', since: state.since });
      if (this.#outage) return this.status({ phase: this.#outage.since ? 'stale' : 'connecting', text: this.#outage.words, since: this.#outage.since || state.since, code: 503 });
    }
    const phase = state.phase === 'syncing' ? 'catching up' : state.phase === 'stopped' ? 'failed' : state.phase;
    this.status({ phase, text: state.error ? stateWords('pods', state) : '', since: state.since });
  }
}

/** The error of a state in words. */
export function stateWords(of: string, state: State): string {
  const { error } = state;
  const message = error?.message ?? '';
  if (state.phase === 'denied' && error instanceof StatusError && error.code === 401) return `The API server does not accept your credentials: ${message}`;
  if (state.phase === 'denied' && error instanceof StatusError && error.code === 404) return sentence(message);
  if (state.phase === 'denied') return `You may not list and watch ${of}${of === 'pods' ? ' in all namespaces' : ''}: ${message}`;
  if (error instanceof TypeError) return 'The gateway cannot be reached.';
  return message && sentence(message);
}
