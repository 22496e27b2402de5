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
package history
