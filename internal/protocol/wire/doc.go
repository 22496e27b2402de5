// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire writes objects, lists and watch frames in every form of the
// Kubernetes API: in JSON, YAML, protobuf or CBOR, and whole, as metadata only or
// as rows of a Table. It chooses the form from an Accept header, as the API server
// does.
//
// The JSON that the API server sent is the canonical form of an object. An answer
// in JSON is made of stored texts and encodes nothing again. Any other encoding
// of a version is made once, on the first request for it, and shared while a
// [Cache] of bounded size holds it (T10).
//
// [ErrForm] is returned for an object that cannot be written exactly as the API server
// would: it has a field that the types compiled in here lack, its resource has no such
// type, its row is unknown, or it has strings that JSON cannot carry. The caller passes
// the request through.
//
// All types except [Stream] may be used concurrently.
//
// The tests compare with what apimachinery's serializers write; the fuzz targets
// read every form back.
package wire
