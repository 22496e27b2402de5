// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package request reads what an HTTP request asks of the Kubernetes API: which
// verb of which resource, with which selectors, at which resourceVersion and in
// which form.
//
// [Parse] returns a [Read], which is immutable: what is learned later, such as
// the scope of the resource, gives further values ([Selection], [Form]) instead
// of changing it. A request that is not wholly understood is left to the API
// server ([ErrPassThrough]), so that no error message is imitated here.
//
// The package does no I/O. All functions may be called concurrently.
package request
