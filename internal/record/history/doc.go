// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package history keeps the versions of Kubernetes objects on disk.
//
// # Model
//
// A [Store] is the history of one cluster, in one directory. A [Stream] in it is
// the history of one resource in one epoch; a new epoch begins when the
// upstream's RVs start over, or the same versions have another form. A stream
// consists of a first list ([Stream.Begin]) and all events since
// ([Stream.Append]). Where events were missed, it has a [Gap] with the
// difference of two lists ([Stream.AppendGap]).
//
// Times are those of the writer's clock. They never decrease, except at a
// [ClockStep], where the clock was set back. A time that it showed twice is not
// the time of one state.
//
// # Writing
//
// Each stream has one writer; different streams can be written concurrently.
// RVs in a stream never decrease. When an append returns nil it is on disk, in
// full (T9); readers then see all of it at once.
//
// # Reading
//
// A reader chooses a stream and an RV in its retained [Span]. [Stream.Check]
// tells whether the state at an RV is known; [Stream.At] finds the RV for a
// time, and [Stream.AtAge] for an age. Then
//   - [Stream.Get], [Stream.List] and [Stream.Count] read the state at the RV.
//     It is complete: objects that have not changed for longer than the
//     retention are in it, too.
//   - [Stream.Events], [Stream.Versions], [Stream.LastEvents] and
//     [Stream.LastVersions] read events in the order of their RVs, each with the
//     version before it (T3).
//   - [Stream.EventCounts] counts events by time.
//
// Any goroutine may read. Readers and writers do not block each other. A slow
// reader pins nothing on disk: if retention overtakes it, it gets [ErrBefore]
// instead of an incomplete answer. What all readers of events hold in memory is
// limited (T10).
//
// # Retention
//
// [Store.Trim] enforces the limits on age and size. Its caller decides when.
//
// # Failure
//
// After a failed write, or with little free disk space, appends fail and what was
// acknowledged can still be read; [Store.Err] returns the reason and
// [Store.Recover] makes the store writable again. After a crash the store opens
// with everything acknowledged. Corruption is reported as [ErrCorrupt] to the
// reader that meets it, and never repaired: the writer begins a new epoch, and
// other streams are not affected.
//
// # Tests
//
// format.go and docs/format.md describe the layout on disk. The tests compare
// the package with a model (model_test.go), also when every single operation on
// the disk crashes or fails (crash_test.go), when the process is killed
// (kill_test.go), and when bits flip (damage_test.go). Tests of other packages
// use a Store in t.TempDir, or with [Options].FS set to vfs.NewMem().
package history
