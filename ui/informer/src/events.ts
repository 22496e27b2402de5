// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What an informer is doing. */
export type Phase =
  /** Waiting for the first list; `error` is the last failure. */
  | 'connecting'
  /** Receiving a list. */
  | 'syncing'
  /** Following a watch. */
  | 'live'
  /** No contact; the store shows the state at `since`. */
  | 'stale'
  /** Refused with 401, 403, 404 or the like; retried every 30 to 45 seconds, and for the first 30 seconds as after a failure if there was a list before. */
  | 'denied'
  /** Stopped by its owner. */
  | 'stopped';

export interface State {
  phase: Phase;
  /** Since when, in milliseconds since 1970. */
  since: number;
  /** Why it is stale, denied or not connected yet. */
  error?: Error;
}

/** An object exists that did not. */
export interface AddEvent<T> {
  type: 'add';
  /** namespace/name, or name for cluster-scoped resources. */
  key: string;
  object: T;
  /** It existed before the subscription or the informer started. */
  initial?: boolean;
  /** Several changes merged into one event, for a lagging subscriber. */
  coalesced?: boolean;
}

/** An object has a new version. */
export interface UpdateEvent<T> {
  type: 'update';
  key: string;
  object: T;
  old: T;
  coalesced?: boolean;
}

/** An object was deleted, or no longer matches the selectors. */
export interface DeleteEvent<T> {
  type: 'delete';
  key: string;
  /** Its last known version. */
  object: T;
  /** It was missing in a list, or an object with another UID has its name. */
  inferred?: boolean;
  coalesced?: boolean;
}

/** A list is complete: events for all its objects have been emitted. */
export interface SyncEvent {
  type: 'sync';
  /** The resourceVersion of the list. */
  resourceVersion: string;
}

/** A request failed. The informer retries. */
export interface ErrorEvent {
  type: 'error';
  /** A StatusError if the API server sent a Status. */
  error: Error;
}

export interface StateEvent {
  type: 'state';
  state: State;
}

export type ObjectEvent<T> = AddEvent<T> | UpdateEvent<T> | DeleteEvent<T>;
export type InformerEvent<T> = ObjectEvent<T> | SyncEvent | ErrorEvent | StateEvent;

/** The event of a type. */
export type EventOf<T, K extends InformerEvent<T>['type']> = Extract<InformerEvent<T>, { type: K }>;
