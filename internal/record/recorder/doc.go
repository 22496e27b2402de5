// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package recorder writes the changes in a cluster to the history on disk.
//
// It is a sink: internal/cluster/watchcache owns the upstream watch of each recorded resource
// ([Owner]). While clients read a resource, its record follows the timeline with a
// cursor; otherwise the reflector feeds the record, and only recent versions of objects are held
// in memory.
//
//	read        upstream ──► reflector ──► timeline ──► cursor ──┐
//	not read    upstream ──► reflector ──────────────────────────┴──► writer ──► history
//
// A [Recorder] opens the history of the cluster and records in sessions. A session
// ends when a write fails, and another one is tried. In a session, each resource has a
// resourceRecorder with a writer, which writes events in batches. The knowledge of how
// a record and the upstream relate outlives sessions (continuity).
//
// # Guarantees
//
// An event is in the history before its RV is the head there, so that the upstream
// watch, resumed at the head, sends the events again that a crash has lost. If the
// upstream no longer has them (410), if the timeline's window has moved past the cursor
// because the disk is too slow, or if nothing could be written for a while, the
// recorded state is compared with the current one, and the difference is recorded as a
// gap: changes are never omitted, and never guessed. If the upstream's RVs decreased,
// if the same versions of objects differ, or if the record of the resource is damaged,
// a new epoch begins. A list of another cluster, which answers at the same address, is
// recorded in that cluster's directory.
//
// Serving waits for the disk only when a client begins to read a resource, for a few
// seconds at most. Events that are not yet written are in the window of a timeline,
// whose size is limited, or at the upstream. When a write fails, as on a full disk,
// nothing is recorded until writing works again; [Recorder.Status] and the metrics
// show it.
package recorder
