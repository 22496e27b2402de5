// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire writes what the timeline holds in every form of the Kubernetes
// API: objects, lists and watch frames, in JSON, YAML, protobuf or CBOR, whole,
// as metadata only or as rows of a Table; and it chooses the form from an
// Accept header, as the API server does.
//
// The text that the API server sent is the canonical form of an object. In JSON
// nothing is encoded again: answers are stored texts with little around them.
// Any other encoding of a version is made when it is first wanted, once, and
// shared by all who want it while a [Cache] of bounded size holds it.
//
// What cannot be written exactly as the API server would write it is
// [ErrForm]: a field that the types compiled in here do not know, a resource
// that has no such type, a row that was never seen. The request is then for
// the API server to answer.
//
// All types but [Stream] may be used concurrently.
package wire
