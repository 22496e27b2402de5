// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer keeps a copy of a Kubernetes collection up to date and
// reports its changes.
//
//	src, err := informer.FromURL("http://127.0.0.1:8001") // kubectl proxy, or Watchkeeper
//	pods := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.JSON[Pod](), informer.Options{})
//	err = pods.Start(ctx) // or pods.Run(ctx), which returns when ctx ends
//	for event, err := range pods.Events(ctx) {
//		…
//	}
//
// The copy holds the bytes that the API server sent, without managedFields. An
// object is decoded when a program reads it ([Ref.Object]). A [Codec] decides
// what it is decoded to: anything that encoding/json can decode ([JSON],
// [Raw]), or a generated type from protobuf (package informer/clientgo/typed).
// A [Source] is a URL, or comes from a kubeconfig or a service account (package
// informer/clientgo/kubeconfig). This module requires the standard library
// only. What needs Kubernetes' libraries is in the module informer/clientgo,
// and zstd in the module informer/zstd.
//
// # Guarantees
//
// The tests of a guarantee have its number in their names. A subscriber is a loop
// over [Informer.Events], a [Handler], or a call of [Reconcile].
//
//   - I1 Order. A subscriber receives the events of one object in order and
//     without a gap: Old of an event is New of the one before. Events of
//     different objects are in order too, until events are coalesced.
//   - I2 Deletions. The deletion of an object that a subscriber knows is reported
//     once, with the object's last known bytes. It is marked Inferred if it
//     follows from the object's absence from a list or from its successor.
//   - I3 Identity. An object that is recreated under its name with another UID is
//     another object: Deleted, then Added.
//   - I4 Relists. A list without changes causes no event and allocates almost
//     nothing. A list is never in memory next to the copy.
//   - I5 Slow subscribers. A subscriber never blocks the copy or another
//     subscriber. If it lags by more than [Options].Backlog events, the events of
//     each name are coalesced into one, or into a Deleted and an Added, marked
//     Coalesced. An object that was added and deleted meanwhile is not reported,
//     except to [Handler].Transient.
//     So the memory that a subscriber needs is bounded by the number of objects
//     that it knows and that exist.
//   - I6 First list. If the API server refuses the first list or cannot be
//     reached, [Informer.WaitSynced] returns the reason; it does not wait forever.
//   - I7 Lifecycle. When [Informer.Run] returns, every goroutine that it started
//     has ended. It may be called again any number of times: the copy is kept,
//     and handlers receive the difference. The channel that stop of [Informer.Handle]
//     and [Reconcile] returns is closed when the last call has returned.
//   - I8 Late subscribers. A subscriber receives the existing objects first, as
//     Added marked Initial, then Synced, then changes, whenever it subscribes. So are the
//     objects of a namespace marked that is added later.
//   - I9 Time. An older version of an object never replaces a newer one, unless
//     the API server's history has changed, as after a restore of etcd. Then a
//     list replaces the copy.
//   - I10 Own writes. After [Informer.WaitRV], the copy shows the effect of the
//     write with that resourceVersion, or a later state.
//   - I11 Reconciling. [Reconcile] retries an event until the function succeeds
//     or the retries are exhausted. It never calls the function concurrently for
//     one object. Failures of one object delay no other. Objects without pending
//     events need no memory. A new version of an object does not wait for the
//     pause after the failures of the one before.
//   - I12 Silence. A watch on a connection that is dead but appears open is
//     replaced after two and a half intervals of the API server's bookmarks:
//     within three minutes, since Kubernetes sends one about every minute. An API server
//     sends the first one when its own cache has passed the RV at which the watch began,
//     perhaps after minutes if the resource is quiet. Until then, only the end of the
//     watch, after five to ten minutes, and the transport's own checks show it: with
//     HTTP/2, those of the sources here take 45 s.
//   - I13 Waits. [Informer.WaitSynced], [Informer.WaitRV] and [Informer.Events] end with
//     the reason as soon as they cannot be fulfilled: the API server's refusal, the end
//     of the run, or a namespace that is not watched. After [Informer.Start] they are
//     for the run that it has begun.
//   - I14 Order under several sources: see package reconcile.
//   - I15 Panics. A panic of a reconcile function is a failure of its event, and so is a
//     call of runtime.Goexit in it. Other events go on, with as many workers.
//
// Controllers, whose function is called for keys of several informers, are in package
// reconcile. [Reconcile] is for programs that handle the events of one informer.
//
// The copy is ahead of the subscribers: when an event is handled, its object may
// already be newer, or deleted.
//
// Package reflector has the state machine of lists and watches that keeps the copy up to
// date, for Watchkeeper itself. It and packages kube and scan have no compatibility
// promise, apart from the types that this package names.
package informer
