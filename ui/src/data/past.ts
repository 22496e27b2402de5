// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * A moment of the past: lists of Nodes and Pods from /at, or what differs between it and
 * the moment that is shown. Pods that exist before and after keep their position on the
 * board. With a speed, watches replay the changes that followed. A reader who may not list
 * all Pods gets those of the namespaces in which they may list Pods now.
 */

import { rowsOf, type Row, type RowPage } from '@watchkeeper/informer';
import { encoded, segment } from '../app/path';
import { askAccess, get, maxNamespaces, Refused, type Access } from './access';
import { boardRow, NODE_FIELDS, nodeOf, POD_FIELDS } from './columns';
import { nodeRow } from './objects';
import { sentence } from './quantity';
import type { Scope, Status, Unread } from './protocol';
import type { Rows } from './rows';
import type { Silence } from './silence';
import type { Details } from '../time/refusals';

/** A list, with its path below the version of the API. */
interface Listed {
  resource: string;
  rv: string;
  rows: Row[];
}

/** The answer of history/diff as rows. */
interface Difference extends RowPage {
  from: { resourceVersion: string };
  to: { resourceVersion: string };
  /** Namespace and name. */
  deleted: [string, string][];
}

/** A moment whose whole state the rows have: the resourceVersions of its Nodes, null if they cannot be read, and of its Pods. */
export interface Shown {
  at: string;
  nodes: string | null;
  pods: string;
}

/** How many lists of namespaces are requested at a time, and how many of their watches have one response. */
const maxRequests = 4;
const maxWatches = 90;

const asRows = (fields: string[]): Record<string, string> => ({ fields: fields.join(','), as: 'rows', repeated: 'omit' });

export class Past {
  readonly #stop = new AbortController();
  /** The last report; null while the moment loads. */
  #last: Status | null = null;
  /** Where the reader may list Pods; null for everywhere. */
  #access: Access | null = null;
  #noNodes: Unread | null = null;
  /** The lists of the moment; null if Nodes cannot be read. */
  #listedNodes: Listed | null = null;
  #listed: Listed[] = [];

  /** `shown` is the moment that the rows have the state of; null if it is another state. */
  constructor(
    readonly root: string, readonly at: string, readonly speed: number, readonly rows: Rows,
    readonly changed: () => void, readonly report: (status: Status) => void, readonly silence: Pick<Silence, 'words' | 'since'> | null = null,
    readonly extension = '', readonly scope: (scope: Scope) => void = () => {}, public shown: Shown | null = null,
  ) {
    void this.#run();
  }

  wake(): void {}

  close(): void {
    this.#stop.abort();
  }

  /** Reports a state, with the contact if the moment is shown. */
  status(status: Status): void {
    this.#last = status;
    this.report(status.phase === 'past' && this.silence?.words ? { ...status, text: this.silence.words, since: this.silence.since } : status);
  }

  /** The contact has changed. */
  again(): void {
    if (this.#last) this.status(this.#last);
  }

  async #run(): Promise<void> {
    try {
      if (!(await this.#move())) await this.#load();
      this.changed();
      this.scope({
        namespaces: this.#access ? this.#listed.map(({ resource }) => resource.split('/')[1]) : null,
        omitted: Math.max(0, (this.#access?.namespaces.length ?? 0) - maxNamespaces), incomplete: this.#access?.incomplete ?? false, nodes: this.#noNodes,
      });
      this.status({ phase: 'past', at: this.at, text: '', since: Date.now() });
      if (this.speed > 0) await this.#replay();
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const code = error instanceof Refused ? error.code : 0;
      // Of a request without an answer, fetch says only that it failed.
      const text = error instanceof TypeError ? 'The gateway does not answer.' : error instanceof Error ? error.message : String(error);
      this.status({ phase: 'failed', text, since: Date.now(), code, ...(error instanceof Refused && { details: error.details }) });
    }
  }

  #setNode(row: Row): void {
    this.rows.setNode(nodeRow(nodeOf(row)));
  }

  #setPod(row: Row): void {
    this.rows.setPod(boardRow(row), performance.now());
  }

  /** Lists the moment. */
  async #load(): Promise<void> {
    const { rows } = this;
    [this.#listedNodes, this.#listed] = await Promise.all([this.#nodes(), this.#pods()]);
    this.#stop.signal.throwIfAborted();
    rows.restate();
    for (const row of this.#listedNodes?.rows ?? []) this.#setNode(row);
    for (const { rows: pods } of this.#listed) for (const row of pods) this.#setPod(row);
    rows.settle(performance.now());
    rows.sync();
    this.#shows(this.#listedNodes?.rv ?? null, this.#listed[0].rv);
  }

  /** Changes the rows from the moment that they show. False if that is not possible, or the moment has to be listed to see why it cannot be shown. */
  async #move(): Promise<boolean> {
    const { rows, shown } = this;
    if (!shown) return false;
    let nodes: Difference | null;
    let pods: Difference;
    try {
      [nodes, pods] = await Promise.all([shown.nodes === null ? null : this.#difference('nodes', NODE_FIELDS, shown), this.#difference('pods', POD_FIELDS, shown)]);
    } catch (error) {
      if (this.#stop.signal.aborted) throw error;
      return false;
    }
    this.#stop.signal.throwIfAborted(); // the next moment is already loading, from the state that the rows have
    // After a restore of etcd, a moment may be that of another history.
    if (pods.from.resourceVersion !== shown.pods || (nodes && nodes.from.resourceVersion !== shown.nodes)) return false;
    for (const row of nodes ? rowsOf(nodes) : []) this.#setNode(row);
    for (const [, name] of nodes?.deleted ?? []) rows.deleteNode(name);
    for (const row of rowsOf(pods)) this.#setPod(row);
    for (const [namespace, name] of pods.deleted) rows.deletePod(`${namespace}/${name}`, performance.now());
    this.#listedNodes = nodes && { resource: 'nodes', rv: nodes.to.resourceVersion, rows: [] };
    this.#listed = [{ resource: 'pods', rv: pods.to.resourceVersion, rows: [] }];
    this.#shows(nodes?.to.resourceVersion ?? null, pods.to.resourceVersion);
    return true;
  }

  async #difference(resource: string, fields: string[], { at }: Shown): Promise<Difference> {
    const query = new URLSearchParams({ from: at, to: this.at, ...asRows(fields) });
    return (await (await get(new URL(`history/diff/api/v1/${resource}?${query}`, this.extension), this.#stop.signal)).json()) as Difference;
  }

  /** The rows have the state of this moment, until a replay changes them. */
  #shows(nodes: string | null, pods: string): void {
    this.shown = this.#access || this.speed > 0 ? null : { at: this.at, nodes, pods };
  }

  async #nodes(): Promise<Listed | null> {
    try {
      return await this.#list('nodes', NODE_FIELDS);
    } catch (error) {
      // 404: the recording has none, or they are not recorded.
      if (!(error instanceof Refused) || (error.code !== 403 && error.code !== 404)) throw error;
      this.#noNodes = error.code === 403 ? { denied: true, why: `You may not list nodes: ${error.message}` } : { denied: false, why: sentence(error.message) };
      return null;
    }
  }

  async #pods(): Promise<Listed[]> {
    let why: unknown;
    try {
      return [await this.#list('pods', POD_FIELDS)];
    } catch (error) {
      if (!(error instanceof Refused) || error.code !== 403) throw error;
      why = error;
    }
    // Without an answer, the refusal says more.
    const access = await askAccess(this.extension, this.#stop.signal).catch(() => null);
    if (!access || access.all || access.namespaces.length === 0) throw why;
    this.#access = access;
    const waiting = access.namespaces.slice(0, maxNamespaces);
    const lists: Listed[] = [];
    const work = async (): Promise<void> => {
      for (let namespace = waiting.shift(); namespace; namespace = waiting.shift()) {
        const list = await this.#list(`namespaces/${namespace}/pods`, POD_FIELDS).catch((error) => {
          if (!(error instanceof Refused) || error.code !== 403) throw error;
          why = error; // of this namespace
        });
        if (list) lists.push(list);
      }
    };
    await Promise.all(Array.from({ length: maxRequests }, work));
    if (lists.length === 0) throw why;
    return lists.sort((a, b) => (a.resource < b.resource ? -1 : 1));
  }

  async #list(resource: string, fields: string[]): Promise<Listed> {
    // Otherwise the response is indented for browsers.
    const url = new URL(this.#path(resource, { ...asRows(fields), pretty: '0' }), this.root);
    const list = (await (await get(url, this.#stop.signal)).json()) as { metadata: { resourceVersion: string } } & RowPage;
    return { resource, rv: list.metadata.resourceVersion, rows: rowsOf(list) };
  }

  #path(resource: string, query: Record<string, string>): string {
    return `at/${segment(this.at)}/${encoded(`api/v1/${resource}`)}?${new URLSearchParams(query)}`;
  }

  /** Replays what followed the lists. */
  async #replay(): Promise<void> {
    const { rows } = this;
    const setNode = (type: string, row: Row): void => {
      if (type === 'DELETED') rows.deleteNode(row[1]);
      else this.#setNode(row);
    };
    const setPod = (type: string, row: Row): void => {
      if (type === 'DELETED') rows.deletePod(`${row[0] ?? ''}/${row[1]}`, performance.now());
      else this.#setPod(row);
    };
    const watch = ({ resource, rv }: Listed, fields: string[]): string =>
      this.#path(resource, { watch: '1', resourceVersion: rv, speed: String(this.speed), ...asRows(fields) });
    const nodes = this.#listedNodes;
    const watches = [...(nodes ? [{ path: watch(nodes, NODE_FIELDS), take: setNode }] : []), ...this.#listed.map((one) => ({ path: watch(one, POD_FIELDS), take: setPod }))];
    if (!this.#access) {
      await Promise.all(watches.map(({ path, take }) => this.#watch(new URL(path, this.root), [take])));
      return;
    }
    // A browser opens only six connections.
    const shares = [];
    for (let from = 0; from < watches.length; from += maxWatches) {
      const share = watches.slice(from, from + maxWatches);
      const query = new URLSearchParams(share.map(({ path }) => ['watch', `/${path}`]));
      shares.push(this.#watch(new URL(`multiwatch?${query}`, this.extension), share.map(({ take }) => take)));
    }
    await Promise.all(shares);
  }

  async #watch(url: URL, takes: ((type: string, row: Row) => void)[]): Promise<void> {
    const reader = (await get(url, this.#stop.signal)).body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        if (!line) continue;
        const { type, object, watch = 0 } = JSON.parse(line) as { type: string; object: unknown; watch?: number };
        if (type === 'ERROR') {
          const { message = 'the replay ended', details } = object as { message?: string; details?: Details };
          throw new Refused(0, message, details);
        }
        if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') takes[watch](type, object as Row);
      }
      this.changed();
    }
  }
}
