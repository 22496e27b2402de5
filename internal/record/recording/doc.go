// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording writes a part of a history into one file, and serves such a
// file as a cluster in which nothing changes any more. A postmortem, a bug
// report or a lesson can use it without the cluster.
//
// Exporter.Export writes, [Import] reads into an empty [history.Store], and
// [NewUpstream] answers requests from that store. format.go describes the file. A file
// is verified as a whole: reading an incomplete file is an error. Exports and imports
// run on the caller's goroutine and end with its context. The memory of an import is
// limited, whatever the file contains (T10).
package recording
