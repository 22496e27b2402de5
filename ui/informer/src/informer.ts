// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { Backlog, coalesce } from './backlog.js';
import type { EventOf, InformerEvent, State } from './events.js';
import { keyOf, Reflector, Restored, type Collection, type ColumnDefinition, type Row, type Shared, type Sink, type TableRow, type Wire } from './reflector.js';
import { older } from './rv.js';

export interface InformerOptions<O = unknown, T = O> {
  /** Only objects in this namespace. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /**
   * Only these fields of the objects, such as `spec.nodeName` and
   * `spec.containers[*].image`, plus those that identify the object.
   * Watchkeeper supports this; API servers send whole objects.
   */
  fields?: string[];
  /** Keep metadata.managedFields, which is left out by default. */
  managedFields?: boolean;
  /** How many objects to request per page of a list. The default is 500. */
  pageSize?: number;
  /** Its result is stored and emitted in place of the object. It must not throw. */
  transform?: (object: O) => T;
  /** Stops the informer when it aborts. */
  signal?: AbortSignal;
}

/** The objects are rows: arrays with the values of `fields`, without the names of members. Only Watchkeeper has rows. */
export type RowOptions<T = Row> = InformerOptions<Row, T> & { fields: string[]; rows: true };

/** The objects are rows of the API server's Tables, as kubectl prints them. */
export type TableOptions<T = TableRow> = InformerOptions<TableRow, T> & { table: true };

export interface BatchOptions {
  /**
   * Schedules a batch: it is called when there are events, and calls flush
   * later. With `requestAnimationFrame` there is one batch per frame. By default
   * the events that were received together are a batch.
   */
  schedule?: (flush: () => void) => void;
  /** A batch has at most one event per object, or two if the object was replaced. */
  coalesce?: boolean;
  /** How many events to buffer before those of one object are merged. The default is 10,000. */
  backlog?: number;
}

interface Entry<T> {
  uid: string;
  rv: string;
  object: T;
  /** The number of the last list that had it. */
  list: number;
}

type Type = InformerEvent<unknown>['type'];

/** Keeps a copy of a collection and emits its changes. The README lists its guarantees. */
export class Informer<T> implements AsyncIterable<InformerEvent<T>> {
  /** The current objects by namespace/name, or by name for cluster-scoped resources. */
  readonly store: ReadonlyMap<string, T>;
  /** The columns of a Table, once the first page was received; they may change. */
  columns: ColumnDefinition[] = [];

  private readonly entries = new Map<string, Entry<T>>();
  private readonly handlers = new Map<Type, Set<(event: any) => void>>();
  private readonly subscribers = new Set<{ push(event: InformerEvent<T>): void; flush(): void }>();
  private readonly stopping = new AbortController();
  private current: State = { phase: 'connecting', since: Date.now() };
  private rv = ''; // of the last list

  /** @internal */
  constructor(
    shared: Shared,
    collection: Collection,
    private readonly options: InformerOptions<any, T>,
  ) {
    this.store = new Store(this.entries);
    options.signal?.addEventListener('abort', () => this.stop());
    if (options.signal?.aborted) this.stop();
    // Later, so that the caller can subscribe first.
    queueMicrotask(() => {
      void new Reflector(shared, collection, this.sink()).run(this.stopping.signal);
    });
  }

  /** Its current phase. */
  get state(): State {
    return this.current;
  }

  /** Calls a function for each event of a type from now on. It returns a function that unsubscribes. */
  on<K extends Type>(type: K, handler: (event: EventOf<T, K>) => void): () => void {
    let all = this.handlers.get(type);
    if (!all) this.handlers.set(type, (all = new Set()));
    all.add(handler);
    return () => all.delete(handler);
  }

  /**
   * Calls a function with batches of events: the current objects first, then
   * changes. It returns a function that unsubscribes.
   */
  onBatch(handler: (events: InformerEvent<T>[]) => void, options: BatchOptions = {}): () => void {
    const backlog = new Backlog<T>(options.backlog ?? 10_000);
    let due = false;
    const deliver = () => {
      due = false;
      if (backlog.empty || !this.subscribers.has(subscriber)) return;
      const events = backlog.take();
      call(handler, options.coalesce ? coalesce(events) : events);
    };
    const flush = () => {
      if (due || backlog.empty) return;
      due = true;
      const { schedule } = options; // not a method: requestAnimationFrame is one of the window
      if (schedule) schedule(deliver);
      else deliver();
    };
    const subscriber = { push: (event: InformerEvent<T>) => backlog.push(event), flush };
    this.subscribe(subscriber);
    queueMicrotask(flush);
    return () => this.subscribers.delete(subscriber);
  }

  /** Yields all events: the current objects first, then changes, until the informer stops. */
  async *[Symbol.asyncIterator](): AsyncGenerator<InformerEvent<T>, void> {
    const backlog = new Backlog<T>(1000);
    let wake = () => {};
    const subscriber = { push: (event: InformerEvent<T>) => backlog.push(event), flush: () => wake() };
    this.subscribe(subscriber);
    try {
      for (;;) {
        yield* backlog.take();
        if (!backlog.empty) continue;
        if (this.current.phase === 'stopped') return;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.subscribers.delete(subscriber);
    }
  }

  /** Resolves when the first list is complete. Rejects if the API server refuses it or the informer stops. */
  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = () => {
        if (this.rv) resolve();
        else if (this.current.phase === 'denied') reject(this.current.error);
        else if (this.current.phase === 'stopped') reject(new Error('the informer is stopped'));
        else return false;
        offs.forEach((off) => off());
        return true;
      };
      const offs: (() => void)[] = [];
      if (!over()) offs.push(this.on('sync', over), this.on('state', over));
    });
  }

  /** Stops it. The store keeps its contents. */
  stop(): void {
    if (this.stopping.signal.aborted) return;
    this.stopping.abort();
    this.enter({ phase: 'stopped', since: Date.now() });
    this.flush();
  }

  private subscribe(subscriber: { push(event: InformerEvent<T>): void; flush(): void }): void {
    for (const [key, { object }] of this.entries) subscriber.push({ type: 'add', key, object, initial: true });
    if (this.rv) subscriber.push({ type: 'sync', resourceVersion: this.rv });
    subscriber.push({ type: 'state', state: this.current });
    this.subscribers.add(subscriber);
  }

  private emit(event: InformerEvent<T>): void {
    for (const { push } of this.subscribers) push(event);
    for (const handler of this.handlers.get(event.type) ?? []) call(handler, event);
  }

  private flush(): void {
    for (const { flush } of this.subscribers) flush();
  }

  private enter(state: State): void {
    this.current = state;
    this.emit({ type: 'state', state });
  }

  private sink(): Sink {
    return {
      put: (object, how) => this.put(object, how.list, how.initial, how.restored),
      has: (object) => this.entries.get(keyOf(object))?.uid === object.metadata.uid,
      remove: (object) => this.remove(keyOf(object), object),
      columns: (definitions) => (this.columns = definitions),
      synced: (list, resourceVersion) => {
        for (const [key, entry] of this.entries) if (entry.list !== list) this.remove(key);
        this.rv = resourceVersion;
        this.emit({ type: 'sync', resourceVersion });
      },
      flush: () => this.flush(),
      phase: (phase, since, error) => {
        const { current } = this;
        if (current.phase === 'stopped' || (current.phase === phase && current.error?.message === error?.message)) return;
        this.enter({ phase, since: since ?? (current.phase === phase ? current.since : Date.now()), error });
        this.flush();
      },
      failed: (error) => {
        this.emit({ type: 'error', error });
        this.flush();
      },
    };
  }

  private put(wire: Wire, list = 0, initial?: boolean, restored?: boolean): void {
    const key = keyOf(wire);
    const { uid, resourceVersion: rv } = wire.metadata;
    let known = this.entries.get(key);
    const other = known && known.uid !== uid;
    if (known && !restored) {
      if (older(rv, known.rv) || (other && rv === known.rv)) throw new Restored();
      if (rv === known.rv) {
        known.list = list;
        return;
      }
    }
    if (other) {
      this.remove(key); // its deletion was missed
      known = undefined;
    }
    const object = this.stored(wire);
    this.entries.set(key, { uid, rv, object, list });
    if (known) this.emit({ type: 'update', key, object, old: known.object });
    else this.emit(initial ? { type: 'add', key, object, initial } : { type: 'add', key, object });
  }

  /** Removes an object. last is the version of its DELETED event; without one the deletion is inferred. */
  private remove(key: string, last?: Wire): void {
    const known = this.entries.get(key);
    if (!known) return;
    this.entries.delete(key);
    if (last?.metadata.uid === known.uid) this.emit({ type: 'delete', key, object: this.stored(last) });
    else this.emit({ type: 'delete', key, object: known.object, inferred: true });
  }

  private stored(wire: Wire): T {
    if (!this.options.managedFields) delete wire.metadata.managedFields;
    const object = wire.row ?? wire;
    return this.options.transform ? this.options.transform(object) : (object as T);
  }
}

/** Calls a subscriber. Its exceptions do not disturb the informer, and are reported as uncaught. */
function call<A>(handler: (argument: A) => void, argument: A): void {
  try {
    handler(argument);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** A read-only Map of the objects of entries. */
class Store<T> implements ReadonlyMap<string, T> {
  constructor(private readonly all: ReadonlyMap<string, Entry<T>>) {}

  get size(): number {
    return this.all.size;
  }

  get(key: string): T | undefined {
    return this.all.get(key)?.object;
  }

  has(key: string): boolean {
    return this.all.has(key);
  }

  keys(): MapIterator<string> {
    return this.all.keys();
  }

  *values(): MapIterator<T> {
    for (const { object } of this.all.values()) yield object;
  }

  *entries(): MapIterator<[string, T]> {
    for (const [key, { object }] of this.all) yield [key, object];
  }

  [Symbol.iterator](): MapIterator<[string, T]> {
    return this.entries();
  }

  forEach(callback: (value: T, key: string, map: ReadonlyMap<string, T>) => void): void {
    for (const [key, object] of this) callback(object, key, this);
  }
}
