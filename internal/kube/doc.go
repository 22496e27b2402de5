// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube is the vocabulary of the house: resources, keys, resource
// versions, objects as bytes, and watch frames.
//
// An [Object] is the JSON the API server sent, kept as an immutable string,
// and the few attributes that routing and selectors need, found by one scan of
// the text ([ScanObject], [ScanFrame]). Labels, names and the UID are
// substrings of the text, so an object costs its JSON and little more. Nothing
// here decodes an object into Go types.
//
// The scan validates the whole text as JSON (RFC 8259), so a truncated or
// garbled frame is an error here and never enters a timeline.
//
// An [Item] is what the informer library has of an object: the same scan, of
// JSON or protobuf, without a copy or an allocation.
//
// All other types are values or immutable after their construction and may be
// shared between goroutines. The package does no I/O but to read lists.
package kube
