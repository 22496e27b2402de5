// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package request parses HTTP requests for the Kubernetes API: the verb, the
// resource, the selectors, the resourceVersion and the form of the answer.
//
// [Parse] returns a [Read], which is immutable. Facts that are learned later, such as
// the scope of the resource, give further values ([Selection], [Form]) instead of
// changing it. A request that [Parse] does not understand in full is passed through
// ([ErrPassThrough]), so that the API server's errors need not be imitated.
//
// The package does no I/O. All functions may be called concurrently.
package request
