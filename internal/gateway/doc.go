// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway is Watchkeeper's HTTP side: the Kubernetes API in front of
// an API server.
//
// A request goes through these, and the first that answers it ends it:
//
//	filter       hosts, origins, paths and methods that are let in
//	mounts       /ui/, static files
//	cache        LIST, GET and WATCH from the timelines, where it can be exact
//	passthrough  all else, byte for byte (T7)
//
// The cache never approximates. What it cannot answer exactly as the API
// server would it leaves to the API server: another encoding, a consistent
// list, a version it does not hold, a parameter it does not know, a malformed
// request (whose error is then the API server's own), a caller who brings
// credentials of their own (T8).
//
// A resource is watched from its first use on, by one reflector into one
// timeline, until nobody has asked for it for a while. While the upstream is
// down, cached reads and open watches go on.
//
// Everything here may be called concurrently. Errors over HTTP are Kubernetes
// Statuses; errors within a watch are ERROR events.
package gateway
