// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package scan reads Kubernetes objects, lists and watch events from JSON and
// protobuf without decoding them into Go types.
//
// An [Object] is the JSON that the API server sent, kept as an immutable
// string, and the few attributes that routing and selectors need, found in one
// pass over the text ([ParseObject], [ParseFrame]). Labels, names and the UID
// are substrings of the text, so an object costs little more than its JSON.
//
// The pass validates the whole text as JSON (RFC 8259): a truncated or garbled
// frame is an error here and never enters a timeline.
//
// An [Item] holds the same attributes of an object that is in the reader's
// buffer, in JSON or protobuf, without a copy or an allocation. The informer
// library uses it.
//
// Objects, Frames, Lists and Paths are immutable and may be shared between
// goroutines; Items and their readers may not. The package does no I/O except
// to read lists.
//
// There is no compatibility promise: the package is for use by this project's
// modules.
package scan
