// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway is Watchkeeper's HTTP side: the Kubernetes API in front of
// an API server.
//
// A request passes these stages in order, and the first that can answers it:
//
//	filter       refuses by host and origin
//	mounts       /ui/, static files
//	filter       refuses reads for pages of other origins, and by path and method
//	extensions   /watchkeeper/v1/; /at/, which serves reads of the past
//	cache        LIST, GET and WATCH from the timelines and the history, where it can be
//	             exact
//	passthrough  all else, byte for byte (T7), in a sandbox if a browser shows it
//
// The cache never approximates. A request that it cannot answer exactly as the API
// server would is passed through: an unknown encoding, an RV that is neither in
// the window nor recorded, a consistent list without a freshness proof, an unknown parameter, a malformed request
// (its error is then the API server's own), a caller with credentials (T8).
//
// One reflector watches a resource into one timeline, from the first read until the
// idle timeout after the last. While the upstream is unreachable, cached reads and open
// watches continue.
//
// Everything here may be called concurrently. Errors over HTTP are Kubernetes
// Statuses; errors within a watch are ERROR events.
package gateway
