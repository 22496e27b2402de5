// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What an informer is doing. */
export type Phase =
  /** Asking for the first list; `error` says what went wrong so far. */
  | 'connecting'
  /** Taking a list. */
  | 'syncing'
  /** Following a watch. */
  | 'live'
  /** Out of contact; what is in the store is as of `since`. */
  | 'stale'
  /** Refused, as with 401, 403 and 404; asked again every half a minute. */
  | 'denied'
  /** Over. */
  | 'stopped';

export interface State {
  phase: Phase;
  /** Since when, in milliseconds since 1970. */
  since: number;
  /** Why it is stale or denied, or not yet connected. */
  error?: Error;
}

/** An object is there that was not. */
export interface AddEvent<T> {
  type: 'add';
  /** namespace/name, or name where there are no namespaces. */
  key: string;
  object: T;
  /** It was there when the subscriber came, or the informer. */
  initial?: boolean;
  /** Several changes in one, for a subscriber that is behind. */
  coalesced?: boolean;
}

/** An object is another version of itself. */
export interface UpdateEvent<T> {
  type: 'update';
  key: string;
  object: T;
  old: T;
  coalesced?: boolean;
}

/** An object is gone, or does not match the selectors any more. */
export interface DeleteEvent<T> {
  type: 'delete';
  key: string;
  /** The last that is known of it. */
  object: T;
  /** Learned from its absence in a list, or from another in its place. */
  inferred?: boolean;
  coalesced?: boolean;
}

/** A list is complete: all there is has been told. */
export interface SyncEvent {
  type: 'sync';
  /** The resourceVersion of the list. */
  resourceVersion: string;
}

/** Something went wrong. It is tried again. */
export interface ErrorEvent {
  type: 'error';
  /** A StatusError where the API server said so. */
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
