// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package timeline keeps what one resource of a cluster was and is: a log of
// events in the order of their resourceVersions and a snapshot of the objects
// at any point of it.
//
//	         window                     head
//	start ──┬───────┬─────────┬──────────┤
//	(RV)    │ event │ event … │ event    │   log, in memory, bounded
//	        └───────┴─────────┴──────────┘
//	                               ▲
//	snapshot at head: a persistent B-tree, ordered by namespace/name
//
// One goroutine writes a [Timeline]: it calls Replace, Apply, Bookmark, Flush
// and Reset, which the reflector does. Who has learned elsewhere that nothing
// happened up to an RV may Advance it there. Any number of readers load the current
// [View], which is immutable, and wait for a later one with WaitRV. A watcher is
// a [Cursor] into the log. One that wants everything costs the writer
// nothing. A selective one, with an [Interest], is entered in an index, by which
// the writer finds those that an event concerns; the others do not learn of it.
//
// # Invariants
//
// T1: One goroutine writes events; RVs in the log never decrease. They strictly
// increase but for deletions that the upstream itself made at one RV, as etcd
// does when a lease expires (Events).
//
// T2: A snapshot at RV r equals the fold of all events ≤ r. Readers never block
// the writer, the writer never waits for a reader.
//
// T3: Every event knows the immediately prior version of its object.
//
// T4: A cursor yields every event of the log after its RV, in order, exactly
// once, or an error: [ErrCompacted] when the log no longer holds its place,
// [ErrClosed] when the timeline has ended.
//
// T5: The RV of a View is a bookmark: every event ≤ it is in the log. That of a
// cursor is one for its watcher.
//
// # Gaps
//
// After the upstream has lost its history, Replace turns the difference
// between the objects held and the new list into events and records the span
// as a [Gap]. See diff.go for the RVs that these events get.
package timeline
