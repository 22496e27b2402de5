// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * A moment of the past: lists of Nodes and Pods from /at. Pods that exist before
 * and after keep their position on the board. With a speed, two watches replay
 * the changes that followed.
 */

import { NODE_FIELDS, nodeRow, podRow, type Node } from './objects';
import type { Status } from './protocol';
import type { Rows } from './rows';
import type { Silence } from './silence';
import { POD_FIELDS, type Pod } from './state';

interface List<T> {
  metadata: { resourceVersion: string };
  items: T[] | null;
}

/** An error response. */
class Refused extends Error {
  constructor(readonly code: number, message: string) {
    super(message);
  }
}

export class Past {
  readonly #stop = new AbortController();
  /** The last report; null while the moment loads. */
  #last: Status | null = null;

  constructor(
    readonly root: string, readonly at: string, readonly speed: number, readonly rows: Rows,
    readonly changed: () => void, readonly report: (status: Status) => void, readonly silence: Pick<Silence, 'words' | 'since'> | null = null,
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
      const [nodes, pods] = await Promise.all([this.#list<Node>('nodes', NODE_FIELDS), this.#list<Pod>('pods', POD_FIELDS)]);
      const { rows } = this;
      rows.restate();
      for (const node of nodes.items ?? []) rows.setNode(nodeRow(node));
      for (const pod of pods.items ?? []) rows.setPod(podRow(pod), performance.now());
      rows.settle(performance.now());
      rows.sync();
      this.changed();
      this.status({ phase: 'past', text: '', since: Date.now() });
      if (this.speed > 0) {
        await Promise.all([
          this.#watch('nodes', NODE_FIELDS, nodes.metadata.resourceVersion, (type, node: Node) => (type === 'DELETED' ? rows.deleteNode(node.metadata.name) : rows.setNode(nodeRow(node)))),
          this.#watch('pods', POD_FIELDS, pods.metadata.resourceVersion, (type, pod: Pod) =>
            type === 'DELETED' ? rows.deletePod(`${pod.metadata.namespace ?? ''}/${pod.metadata.name}`, performance.now()) : rows.setPod(podRow(pod), performance.now())),
        ]);
      }
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const code = error instanceof Refused ? error.code : 0;
      // Of a request without an answer, fetch says only that it failed.
      const text = error instanceof TypeError ? 'The gateway does not answer.' : error instanceof Error ? error.message : String(error);
      this.status({ phase: 'failed', text, since: Date.now(), code });
    }
  }

  async #fetch(resource: string, query: Record<string, string>): Promise<Response> {
    const url = new URL(`at/${this.at}/api/v1/${resource}?${new URLSearchParams(query)}`, this.root);
    const response = await fetch(url, { headers: { accept: 'application/json' }, signal: this.#stop.signal });
    if (response.ok) return response;
    const text = await response.text();
    let message = text.slice(0, 300);
    try {
      message = (JSON.parse(text) as { message?: string }).message ?? message;
    } catch {
      // Not a Status: show its text.
    }
    throw new Refused(response.status, message || response.statusText);
  }

  async #list<T>(resource: string, fields: string[]): Promise<List<T>> {
    // Otherwise the response is indented for browsers.
    return (await (await this.#fetch(resource, { fields: fields.join(','), pretty: '0' })).json()) as List<T>;
  }

  async #watch<T>(resource: string, fields: string[], resourceVersion: string, take: (type: string, object: T) => void): Promise<void> {
    const response = await this.#fetch(resource, { watch: '1', resourceVersion, speed: String(this.speed), fields: fields.join(',') });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        if (!line) continue;
        const { type, object } = JSON.parse(line) as { type: string; object: T };
        if (type === 'ERROR') throw new Error((object as { message?: string }).message ?? 'the replay ended');
        if (type !== 'BOOKMARK') take(type, object);
      }
      this.changed();
    }
  }
}
