// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package hook tests, without a cluster, what controller-runtime's cache has
// the informer library ask an API server for.
package hook
