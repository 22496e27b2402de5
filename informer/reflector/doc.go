// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package reflector lists and watches a Kubernetes collection and tells a [Sink] what it
// reads. It is for package informer and for Watchkeeper's gateway, and has no
// compatibility promise, apart from the types that package informer names.
//
// A reflector promises to its sink:
//
//   - Every call comes from the goroutine of Run, in the order of the upstream.
//   - Every full list is delivered from Begin to End, each item when it is read,
//     even if nothing has changed.
//   - Flush follows as soon as no further complete frame has been received.
//   - After a watch was resumed, an event at the head may be delivered again.
//
// With [Resume], a reflector whose sink already has a head begins with a watch,
// as it does after a cut stream.
//
// # Protocol
//
//	         streaming list      end bookmark
//	start ──────────────────► listing ───────────► watching ─┐
//	  ▲  └─ LIST (in pages) ─────┘                    │  ▲   │ stream ended when due:
//	  │     if the API server has no streaming list   │  └───┘ watch from the last RV
//	  └───────────────────────────────────────────────┘
//	       410: history expired, or another history
//
// Streaming lists are those of KEP-3157. A stream that ends, is cut, outlasts
// its timeoutSeconds or has a malformed frame is followed by another watch,
// after a pause with backoff and jitter, and not before the server's
// Retry-After.
//
// A stream that did not end in order after its timeoutSeconds may have ended because
// etcd was restored from a backup. RVs do not show that: they may have passed those
// of the copy with other events, or jumped far ahead (etcdutl snapshot restore
// --bump-revision). So the next watch begins before the last events, and the API
// server has to send the same ones again; without an event since the list, that is
// the last event of the newest object. If they differ, or the API server does not
// have them any more, a list is taken. The watch that follows a list in pages is
// opened before the list, as it might continue another history otherwise. A list that is not
// below the copy's RV, but has an object below the version held, is of another
// history, too.
//
// A watch that fails is tried again, and no list is taken, for the list would lose the events
// in between. The exception is an upstream that answers lists, and no watch, for longer than
// API servers keep events: the sink then gets a list from time to time (see unwatched).
package reflector
