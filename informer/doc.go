// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer keeps a copy of a Kubernetes collection up to date.
//
// For now it holds the reflector, the list+watch state machine that Watchkeeper
// itself runs on; the informer around it, with a store and handlers, is to
// come, and what is exported here may still change.
//
// A [Reflector] opens one list+watch of one collection and tells a [Sink] what
// it sees:
//
//	           WatchList                end bookmark
//	start ──────────────────► syncing ───────────────► watching ─┐
//	  ▲  └─ LIST (+ pages) ──────┘                        │  ▲   │ stream ended:
//	  │     where WatchList is not to be had              │  └───┘ resume at the last RV
//	  └───────────────────────────────────────────────────┘
//	                    410: history lost
//
// Promises to the sink: all calls come from the goroutine of Run, in the order
// of the upstream; every full list is told from Begin to End, item by item as
// it is read, also when nothing changed; Flush follows as soon as no further frame is waiting. A stream that
// ends, is cut, stalls past its deadline or brings something that is not a
// watch event is opened again at the last RV, so the sink misses nothing. It
// may be told an event again, at the head, after a resume.
//
// Besides the vocabulary of internal/kube, which is part of what will change,
// the package needs the standard library only.
package informer
