// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package past reads the history for the API: the state of a resource at a moment
// ([Past.Locate], [Snapshot]) and the events that followed ([Source]).
//
// What a moment means is decided here and nowhere else, for /at, exact lists, diff
// and the page alike: an RV of the cluster, a time, or an age. An RV that the
// resource has not reached, but another recorded resource has, is the resource's
// newest state; a time between two epochs, or in a gap, is no moment.
//
// A [Source] goes on in the timeline as soon as that has its position, and falls
// back to the history when it lags behind the timeline's window.
//
// [Past] may be used concurrently; a Snapshot and a Source belong to one goroutine.
package past
