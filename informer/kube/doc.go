// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube is the vocabulary shared by all packages: resources, keys,
// resource versions, moments, event types, and the fields that the API server
// selects by.
//
// All types are values and may be shared between goroutines. The package does
// no I/O and imports only the standard library.
//
// There is no compatibility promise: the package is for use by this project's
// modules.
package kube
