// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * What the worker and the page say to each other. The worker decodes objects
 * and keeps rows; the page gets the rows that changed, as numbers, once it has
 * applied the ones before. A string is sent once and then named by its number.
 */

/** The numbers of one Pod's row, in the order in which they are sent. */
export const FIELD = {
  row: 0, state: 1, node: 2, namespace: 3, owner: 4, text: 5, containers: 6, created: 7, since: 8,
  cpu: 9, memory: 10, labels: 11, cells: 12,
} as const;
export const STRIDE = 13;

/** `containers` holds three numbers: containers, ready ones (8 bits each), restarts (up to 65535). */
export const packContainers = (containers: number, ready: number, restarts: number): number =>
  (Math.min(restarts, 0xffff) << 16) | (Math.min(ready, 255) << 8) | Math.min(containers, 255);

export interface NodeRow {
  name: string;
  labels: Record<string, string>;
  /** The status of the Ready condition; Unknown is a Node that nobody hears from. */
  ready: 'True' | 'False' | 'Unknown';
  /** When that last changed, and when the Node came, in seconds since 1970. */
  since: number;
  created: number;
  /** Other conditions that hold and should not: MemoryPressure and the like. */
  pressure: string[];
  unschedulable: boolean;
  /** Allocatable: Pods, CPU in thousandths, memory in KiB. */
  pods: number;
  cpu: number;
  memory: number;
  version: string;
}

/** How things stand with what the page shows. */
export type Phase = 'connecting' | 'catching up' | 'live' | 'stale' | 'denied' | 'past' | 'failed';

export interface Status {
  phase: Phase;
  /** A sentence about it, if there is more to say. */
  text: string;
  /** Since when, in milliseconds since 1970. */
  since: number;
}

/** From the page to the worker. */
export type Request =
  /** Reads from the API at `root`; what Kubernetes does not have is at `extension`; `at` is a moment as /at takes it, live if it is empty. */
  | { kind: 'open'; root: string; extension: string; at: string; speed: number }
  /** The page is seen again, or the network is back. */
  | { kind: 'wake' }
  /** The last batch has been applied. */
  | { kind: 'applied' };

/** From the worker to the page. */
export type Message =
  | { kind: 'status'; status: Status }
  | Batch;

export interface Batch {
  kind: 'batch';
  /** All that was known before is void. */
  reset: boolean;
  /** Whether the first state is complete with this. */
  synced: boolean;
  /** Strings that are new, numbered on from the last. */
  strings: string[];
  nodes: NodeRow[];
  /** The numbers of their names. */
  nodeIds: Int32Array;
  nodesGone: string[];
  /** STRIDE numbers per changed Pod. */
  rows: Int32Array;
  /** Names of the Pods of which the row is new, by row. */
  names: { rows: Int32Array; names: string[] };
  /** Rows of Pods that were deleted. */
  gone: Int32Array;
  /** When the newest of it was received, in milliseconds since 1970. */
  received: number;
}
