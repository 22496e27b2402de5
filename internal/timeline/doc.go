// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package timeline keeps the recent history of one resource of a cluster: a log
// of events in the order of their resourceVersions, and a snapshot of the
// objects at any RV of the log.
//
//	         window                     head
//	start ──┬───────┬─────────┬──────────┤
//	(RV)    │ event │ event … │ event    │   log, in memory, bounded
//	        └───────┴─────────┴──────────┘
//	                               ▲
//	snapshot at head: a persistent B-tree, ordered by namespace/name
//
// One goroutine, the reflector's, writes a [Timeline]: it calls Replace, Apply,
// Bookmark, Flush and Reset. A caller with proof that nothing changed up to an
// RV may advance the head to it. Any number of readers load the current [View],
// which is immutable, and wait for a later one with WaitRV.
//
// A watcher is a [Cursor] into the log. A watcher of everything costs the writer
// nothing. A selective watcher, with an [Interest], is entered in an index, by
// which the writer dispatches an event to the watchers it concerns; the other
// watchers are not woken.
//
// # Invariants
//
// T1: One goroutine writes events; RVs in the log never decrease. They strictly
// increase, except for deletions that the upstream itself made at one RV, as
// etcd does when a lease expires (Events).
//
// T2: A snapshot at RV r equals the fold of all events ≤ r. Readers never block
// the writer, the writer never waits for a reader.
//
// T3: Every event holds the immediately prior version of its object.
//
// T4: A cursor yields every event of the log after its RV that its interest
// selects, in order, exactly once, or an error: [ErrCompacted] when the log no
// longer holds the next event, [ErrClosed] when the timeline has ended.
//
// T5: The RV of a View is a bookmark: every event ≤ it is in the log. The RV of
// a cursor is a bookmark for its client: every event ≤ it has been yielded.
//
// T10: The log is bounded by Options.WindowBytes. A cursor that is not read keeps
// neither objects nor events in memory.
//
// The other invariants of the project (T6 to T9) concern the gateway and the
// history.
//
// # Gaps
//
// When the upstream has lost its history, Replace turns the difference between
// the objects held and the new list into events, and records the span as a
// [Gap]. See diff.go for the RVs that these events get.
//
// # Locks
//
// They are taken in the order Timeline.mu, interestIndex.mu, watcher.mu, and
// Timeline.mu, waiting.mu. A [Waker] is called with them held. Timeline.cloneMu and
// listIndexes.mu are leaves.
//
// # Tests
//
// TestModel compares a timeline under random operations with a map of objects
// per RV.
package timeline
