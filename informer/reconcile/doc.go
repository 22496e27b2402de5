// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile calls a function for each object that has changed, or on which
// something has changed that it depends on. It is the half of a controller that reads:
// one queue of keys, fed by several informers. Writes, their retries after conflicts,
// events and leader election are those of client-go.
//
//	widgets, configMaps := informer.New(…), informer.New(…)
//	c := reconcile.New("widget", func(ctx context.Context, key informer.Key) (reconcile.Result, error) {
//		widget, exists := widgets.Get(key)
//		…
//	}, reconcile.Options{Logger: log},
//		reconcile.For(widgets),
//		reconcile.Owns(configMaps, reconcile.Kind{Group: "example.com", Kind: "Widget"}))
//	group := reconcile.Group{Controllers: []*reconcile.Controller{c}, Logger: log}
//	err := group.Run(ctx)
//
// The function gets a key, not an event: it reads the present state from the informers,
// compares it with the one that the object asks for, and writes the difference. What has
// happened meanwhile is one call.
//
// # Guarantees
//
// They continue those of package informer. The tests of a guarantee have its number in
// their names.
//
// I14 Order under several sources:
//
//   - Each event of a source leads to a call for each of its keys that begins after the
//     copy shows the event, or a later state. An update has the keys of both versions, a
//     deletion those of the last one. If a source lags so much that the events of an
//     object are coalesced, the keys of versions in between are not called, but an
//     object that came and went is. So after the last event of a key and its retries,
//     the last call has read the last state of the copies.
//   - There is never more than one call for a key at a time. An event during a call
//     leads to another one.
//   - No call begins before each source has passed on the objects that exist, so that a
//     function finds the objects that belong together. After that, the sources are not
//     in step: the copy of one may be ahead of that of another.
//   - Live changes are called before the objects that existed at the beginning and
//     before deletions that follow from a list. Of eight calls, one is for the latter as
//     long as some wait. Within each of the two lanes, the keys are called in the order
//     of their first events.
//   - A failed call is retried until one succeeds, after growing pauses, and delays no
//     other key. An event ends the pause: it does not wait longer than MinBackoff after
//     the failure.
//   - There is at most one [Result].After of a key. Each call replaces it. A call that is due
//     has the priority of the one before: that of a new object does not wait for those of
//     many that existed at the beginning.
//   - When the context of Run ends, no call begins. Run returns when the calls have, and
//     leaves no goroutine.
//
// I15 Panics: a panic of the function is a failure of its key, and a call of
// runtime.Goexit, too. The number of workers stays the same. Panics of filters and of the
// functions of [Watches] end the program: without keys there is nothing to retry. Goexit in
// one of them ends the deliveries until the informer runs again.
//
// # Informers
//
// [Group.Run] runs the informers of its controllers, each once, and runs them again after
// refusals that may end: a definition that comes back, a right that is granted. The events
// of a later run are the differences to the copy, so that only these lead to calls.
//
// To be ready when a replica becomes the leader, run a Group of the informers alone, and
// [Controller.Run] as long as the replica leads, as the example examples/leader in the
// repository does.
//
// # Memory
//
// A key is in the queue while it waits, runs, is to be retried or has an After. Others
// need no memory.
//
// # Tests
//
// Package informertest has an API server in memory for tests of controllers, with which
// minutes pass at once. The example examples/widget in the repository has such tests.
package reconcile
