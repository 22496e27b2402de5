// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * A moment of the past: lists of Nodes and Pods from /at. Pods that exist before
 * and after keep their position on the board. With a speed, watches replay the
 * changes that followed. A reader who may not list all Pods gets those of the
 * namespaces in which they may list Pods now.
 */

import { askAccess, get, maxNamespaces, Refused, type Access } from './access';
import { NODE_FIELDS, nodeRow, podRow, type Node } from './objects';
import type { Scope, Status } from './protocol';
import type { Rows } from './rows';
import type { Silence } from './silence';
import { POD_FIELDS, type Pod } from './state';

interface List<T> {
  metadata: { resourceVersion: string };
  items: T[] | null;
}

/** A list, with its path below the version of the API. */
interface Listed<T> {
  resource: string;
  list: List<T>;
}

/** How many lists of namespaces are requested at a time, and how many of their watches have one response. */
const maxRequests = 4;
const maxWatches = 90;

export class Past {
  readonly #stop = new AbortController();
  /** The last report; null while the moment loads. */
  #last: Status | null = null;
  /** Where the reader may list Pods; null for everywhere. */
  #access: Access | null = null;
  #noNodes = '';

  constructor(
    readonly root: string, readonly at: string, readonly speed: number, readonly rows: Rows,
    readonly changed: () => void, readonly report: (status: Status) => void, readonly silence: Pick<Silence, 'words' | 'since'> | null = null,
    readonly extension = '', readonly scope: (scope: Scope) => void = () => {},
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
      const [nodes, pods] = await Promise.all([this.#nodes(), this.#pods()]);
      const { rows } = this;
      rows.restate();
      for (const node of nodes?.list.items ?? []) rows.setNode(nodeRow(node));
      for (const { list } of pods) for (const pod of list.items ?? []) rows.setPod(podRow(pod), performance.now());
      rows.settle(performance.now());
      rows.sync();
      this.changed();
      this.scope({
        namespaces: this.#access ? pods.map(({ resource }) => resource.split('/')[1]) : null,
        omitted: Math.max(0, (this.#access?.namespaces.length ?? 0) - maxNamespaces), incomplete: this.#access?.incomplete ?? false, nodes: this.#noNodes,
      });
      this.status({ phase: 'past', text: '', since: Date.now() });
      if (this.speed > 0) await this.#replay(nodes, pods);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const code = error instanceof Refused ? error.code : 0;
      // Of a request without an answer, fetch says only that it failed.
      const text = error instanceof TypeError ? 'The gateway does not answer.' : error instanceof Error ? error.message : String(error);
      this.status({ phase: 'failed', text, since: Date.now(), code });
    }
  }

  async #nodes(): Promise<Listed<Node> | null> {
    try {
      return await this.#list<Node>('nodes', NODE_FIELDS);
    } catch (error) {
      if (!(error instanceof Refused) || error.code !== 403) throw error;
      this.#noNodes = `You may not list nodes: ${error.message}`;
      return null;
    }
  }

  async #pods(): Promise<Listed<Pod>[]> {
    let why: unknown;
    try {
      return [await this.#list<Pod>('pods', POD_FIELDS)];
    } catch (error) {
      if (!(error instanceof Refused) || error.code !== 403) throw error;
      why = error;
    }
    // Without an answer, the refusal says more.
    const access = await askAccess(this.extension, this.#stop.signal).catch(() => null);
    if (!access || access.all || access.namespaces.length === 0) throw why;
    this.#access = access;
    const waiting = access.namespaces.slice(0, maxNamespaces);
    const lists: Listed<Pod>[] = [];
    const work = async (): Promise<void> => {
      for (let namespace = waiting.shift(); namespace; namespace = waiting.shift()) {
        const list = await this.#list<Pod>(`namespaces/${namespace}/pods`, POD_FIELDS).catch((error) => {
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

  async #list<T>(resource: string, fields: string[]): Promise<Listed<T>> {
    // Otherwise the response is indented for browsers.
    const url = new URL(this.#path(resource, { fields: fields.join(','), pretty: '0' }), this.root);
    return { resource, list: (await (await get(url, this.#stop.signal)).json()) as List<T> };
  }

  #path(resource: string, query: Record<string, string>): string {
    return `at/${this.at}/api/v1/${resource}?${new URLSearchParams(query)}`;
  }

  /** Replays what followed the lists. */
  async #replay(nodes: Listed<Node> | null, pods: Listed<Pod>[]): Promise<void> {
    const { rows } = this;
    const setNode = (type: string, object: unknown): void => {
      const node = object as Node;
      if (type === 'DELETED') rows.deleteNode(node.metadata.name);
      else rows.setNode(nodeRow(node));
    };
    const setPod = (type: string, object: unknown): void => {
      const pod = object as Pod;
      if (type === 'DELETED') rows.deletePod(`${pod.metadata.namespace ?? ''}/${pod.metadata.name}`, performance.now());
      else rows.setPod(podRow(pod), performance.now());
    };
    const watch = ({ resource, list }: Listed<unknown>, fields: string[]): string =>
      this.#path(resource, { watch: '1', resourceVersion: list.metadata.resourceVersion, speed: String(this.speed), fields: fields.join(',') });
    const watches = [...(nodes ? [{ path: watch(nodes, NODE_FIELDS), take: setNode }] : []), ...pods.map((one) => ({ path: watch(one, POD_FIELDS), take: setPod }))];
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

  async #watch(url: URL, takes: ((type: string, object: unknown) => void)[]): Promise<void> {
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
        if (type === 'ERROR') throw new Error((object as { message?: string }).message ?? 'the replay ended');
        if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') takes[watch](type, object);
      }
      this.changed();
    }
  }
}
