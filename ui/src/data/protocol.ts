// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The messages between the worker and the page. The worker decodes objects and
 * keeps rows; it sends changed rows as numbers after the page has applied the
 * previous batch. Each string is sent once and then referred to by its id.
 */

import type { Details } from '../time/refusals';

/** The fields of a Pod's row, and their index in a batch. */
export const FIELD = {
  row: 0, state: 1, node: 2, namespace: 3, owner: 4, text: 5, containers: 6, created: 7, since: 8,
  cpu: 9, memory: 10, labels: 11, cells: 12, failingUntil: 13, latest: 14, crash: 15,
} as const;
export const STRIDE = 16;

/** `containers` holds three numbers: containers, ready ones (8 bits each), restarts (up to 65535). */
export const packContainers = (containers: number, ready: number, restarts: number): number =>
  (Math.min(restarts, 0xffff) << 16) | (Math.min(ready, 255) << 8) | Math.min(containers, 255);

export interface NodeRow {
  name: string;
  labels: Record<string, string>;
  /** The status of the Ready condition; Unknown: the kubelet stopped posting node status. */
  ready: 'True' | 'False' | 'Unknown';
  /** When it last changed, or since when a ready Node is under pressure; and when the Node was created, in seconds since 1970. */
  since: number;
  created: number;
  /** Conditions that are a problem and True, such as MemoryPressure. */
  pressure: string[];
  unschedulable: boolean;
  /** Allocatable: Pods, CPU in thousandths, memory in KiB. */
  pods: number;
  cpu: number;
  memory: number;
  version: string;
}

/** The state of the connection to what the page shows. */
export type Phase = 'connecting' | 'catching up' | 'live' | 'stale' | 'denied' | 'past' | 'failed';

export interface Status {
  phase: Phase;
  /** In phase 'past', the moment that the rows show. */
  at?: string;
  /** A sentence about the cause, or empty. */
  text: string;
  /** The details of the Status that the text is from. */
  details?: Details;
  /** Since when, in milliseconds since 1970. */
  since: number;
  /** The status code of the answer: 401 if the credentials are not accepted, 404 if a recording has no Pods, 503 if nothing can be read as the API server does not answer. Of a moment that could not be loaded, 0 without an answer. */
  code?: number;
}

/** What the reader may see of the cluster. */
export interface Scope {
  /** The namespaces whose Pods are shown, sorted: none if the reader may see no Pods. null for all. */
  namespaces: string[] | null;
  /** How many further namespaces the reader may read, which are not shown; and whether there may be more. */
  omitted: number;
  incomplete: boolean;
  /** Why the Nodes are not shown; null if they are. */
  nodes: Unread | null;
  /** Why not all Pods are shown, and of which namespaces they are, none for all; absent if they are shown. */
  pods?: { why: string; namespaces: string[] };
}

/**
 * Why something cannot be read: the reader may not list it (`denied`), its requests have failed so far, as in an outage of what the
 * gateway does not hold (`failed`), or it is not there, as in a recording of one namespace.
 */
export interface Unread {
  denied: boolean;
  failed?: boolean;
  why: string;
}

/** From the page to the worker. */
export type Request =
  /** Reads from the API at `root`, with Watchkeeper's own at `extension`. `at` is a moment as /at takes it; empty for the live state. */
  | { kind: 'open'; root: string; extension: string; at: string; speed: number }
  /** Sends a token with each request from now on. `fresh`: it may be of another reader, so everything is read again. */
  | { kind: 'token'; token: string; fresh: boolean }
  /** The page became visible again, or the network is back. */
  | { kind: 'wake' }
  /** The page has applied the last batch. */
  | { kind: 'applied' };

/** From the worker to the page. */
export type Message =
  | { kind: 'status'; status: Status }
  | { kind: 'scope'; scope: Scope }
  | Batch;

export interface Batch {
  kind: 'batch';
  /** Discards everything sent before. */
  reset: boolean;
  /** The first list is complete with this batch. */
  synced: boolean;
  /** New strings; their ids continue from the last one. */
  strings: string[];
  nodes: NodeRow[];
  /** The string ids of their names. */
  nodeIds: Int32Array;
  nodesGone: string[];
  /** STRIDE numbers per changed row. */
  rows: Int32Array;
  /** Names of the Pods in new rows. */
  names: { rows: Int32Array; names: string[] };
  /** Rows of Pods that were deleted. */
  gone: Int32Array;
  /** When the newest change was received, in milliseconds since 1970. */
  received: number;
}
