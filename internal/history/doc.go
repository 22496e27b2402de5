// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package history keeps the versions of objects on disk.
//
// A [Store] is the history of one cluster, in one directory. In it, a [Stream]
// is the history of one resource: the objects of a first list ([Stream.Begin]),
// and every event since ([Stream.Append]). Where events were missed, the
// difference of two lists takes their place, and the span is a [Gap]
// ([Stream.AppendGap]).
//
// Whoever reads names an RV, which is in the retained [Span] and in no gap
// ([Stream.Check]); [Stream.At] finds that of a time. The state at an RV is
// complete: what has not changed for longer than is retained is in it too.
//
// What was acknowledged is on disk, and nothing is there in half. After a failed
// write nothing more is written until [Store.Recover], and what there is can be
// read. Readers never wait for the writer, nor it for them; who reads slowly
// holds nothing, and is told when retention overtakes it.
//
// format.go and docs/format.md have the format. The tests compare it with a model
// (model_test.go), also after crashes and failures at every operation on the
// disk (crash_test.go) and kill -9 (kill_test.go).
package history
