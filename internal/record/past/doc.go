// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package past reads the history for the API: the state of a resource at a moment
// ([Past.Locate], [Snapshot]) and the events that followed ([Source]).
//
// A moment is an RV of the cluster, a time, or an age. Only this package maps moments
// to states, so /at, exact lists, diff and the page cannot disagree. If the resource
// has not reached an RV, but another recorded resource has, the RV means the resource's
// newest state. A time in a gap or between two epochs has no state.
//
// A [Source] joins the timeline as soon as the timeline's window includes its
// position, and falls back to the history when it lags behind that window.
//
// [Past] is safe for concurrent use; a Snapshot and a Source belong to one goroutine.
package past
