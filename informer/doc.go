// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer keeps a copy of a Kubernetes collection up to date and tells
// what changes in it.
//
//	src, err := informer.FromURL("http://127.0.0.1:8001") // kubectl proxy, or Watchkeeper
//	pods := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.JSON[Pod](), informer.Options{})
//	go pods.Run(ctx)
//	for event, err := range pods.Events(ctx) {
//		…
//	}
//
// The copy is of the bytes that the API server sent, less managedFields, and an
// object is decoded when somebody reads it ([Ref.Object]). What it is decoded
// to is the business of a [Codec]: anything that encoding/json knows ([JSON],
// [Raw]), or a generated type over protobuf (package informer/typed). A [Source]
// is a URL, or what package informer/kubeconfig makes of a kubeconfig or a
// service account. This package needs the standard library only.
//
// # Guarantees
//
// Each has a test by its number. A subscriber is a loop over [Informer.Events], a
// [Handler], or [Reconcile].
//
//   - I1 Order. What a subscriber is told of an object is in the order in which
//     it happened, and without a gap: Old of an event is New of the one before.
//     Between objects there is no order once events are coalesced.
//   - I2 Deletions. Each deletion of an object that a subscriber was told of is
//     told once, with the object's last bytes. It is marked Inferred when it was
//     learned from the object's absence.
//   - I3 Identity. A name that comes back with another UID is another object:
//     Deleted, then Added.
//   - I4 Relists. A list in which nothing is new tells nothing, and allocates
//     next to nothing; the list is never held beside the copy.
//   - I5 Slow subscribers. One of them blocks neither the copy nor another one.
//     Further behind than [Options].Backlog events, it is told of an object's
//     changes in one, marked Coalesced, and of an object that came and went in
//     the meantime nothing; so what is held for it is bounded by the objects
//     it knows and those there are.
//   - I6 First list. [Informer.WaitSynced] returns the API server's refusal, or
//     why it cannot be reached, and does not wait for what will not come.
//   - I7 Lifecycle. When [Informer.Run] returns, every goroutine that it started
//     has ended. It may be run again, any number of times: what is held stays,
//     and handlers are told the difference.
//   - I8 Late subscribers. A subscriber is first told what there is, as Added
//     marked Initial, then Synced, then what changes, whenever it comes.
//   - I9 Time. An older version of an object does not replace a newer one, unless
//     the API server's history is another one than before, as after a restore
//     of etcd.
//   - I10 Own writes. After [Informer.WaitRV], the copy shows what the write with
//     that resourceVersion has done, or what came after it.
//   - I11 Reconciling. [Reconcile] calls for every event until the call succeeds
//     or the event is given up, never twice at a time for an object, and an
//     object that fails holds up no other. Of an object for which there is
//     nothing to do, nothing is kept.
//   - I12 Silence. A watch that is dead though its connection does not show it is
//     replaced after two and a half of the intervals at which the API server was
//     seen to send bookmarks, which is within three minutes of Kubernetes' own;
//     and without a list.
//
// The copy is ahead of the subscribers: an object may be newer than the event
// that is being handled, or gone.
//
// # Protocol
//
//	           WatchList                end bookmark
//	start ──────────────────► syncing ───────────────► watching ─┐
//	  ▲  └─ LIST (+ pages) ──────┘                        │  ▲   │ stream ended:
//	  │     where WatchList is not to be had              │  └───┘ resume at the last RV
//	  └───────────────────────────────────────────────────┘
//	                    410: history lost
//
// A stream that ends, is cut, stalls past its deadline or brings something that
// is not a watch event is opened again at the last RV, with backoff, jitter and
// as Retry-After says.
//
// # Reflector
//
// [Reflector] is that state machine without the copy, for Watchkeeper itself:
// its sink has objects of a package that is not public. Promises to the sink:
// all calls come from the goroutine of Run, in the order of the upstream; every
// full list is told from Begin to End, item by item as it is read, also when
// nothing changed; Flush follows as soon as no further frame is waiting. The
// sink may be told an event again, at the head, after a resume. One that has a
// head from before begins with a watch from there ([Resume]), as after a stream
// that was cut.
package informer
