// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package recorder writes what happens in a cluster to the history on disk.
//
// There is one upstream watch of a resource at any time. While clients read it,
// that is the gateway's, which feeds a timeline, and the recorder follows the
// timeline with a cursor. While nobody does, it is the recorder's own, which
// feeds the history directly: no object is held in memory then.
//
//	read        upstream ──► reflector ──► timeline ──► cursor ──┐
//	not read    upstream ──► reflector ──────────────────────────┴──► history
//
// From one to the other a watch is handed over at the RV that is on disk, by a
// [Lease]: the gateway takes the resource, loads its timeline with the recorded
// state and resumes the watch there; when it ends its lease, the recorder
// resumes it. A restart of the process is the same thing. None of them needs a
// list.
//
// # What is certain
//
// An event is in the history before its RV is the head there, so that what a
// crash loses is what the upstream watch brings again. Where that is not to be
// had any more (the upstream answers 410), where the timeline's window has moved
// past the cursor since the disk is too slow, or where nothing could be written
// for a while, the recorder compares what is recorded with what is there, and
// records the difference as a gap: never nothing, and never a guess. When the
// upstream's RVs went back, or the same versions of objects look otherwise, a new
// epoch begins. So it does for a resource whose record is damaged. A list of another
// cluster, which answers at the same address, is recorded in that one's directory.
//
// Serving never waits for the disk, but for two seconds when it begins. What is yet to be written is a cursor's
// place in a timeline, whose size is bounded, or stays with the upstream. When a
// write fails, as on a full disk, nothing is recorded until writing works again;
// [Recorder.Status] and the metrics tell.
package recorder
