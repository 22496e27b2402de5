// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package server puts a gateway together and runs it: listeners, TLS, the
// admin endpoints, and an orderly end.
//
// Everything is checked before the first socket opens, so that a mistake in
// the options is one error and leaves nothing behind. Run starts from leaf to
// edge (upstream, gateway, admin listener, main listener) and stops from edge
// to leaf: it takes no more connections, reports not ready, lets the gateway
// end its streams, and closes what is left when the grace period is over. It
// joins every goroutine it started before it returns.
//
// Errors name the flag they come from; choosing exit codes is left to the
// command line.
package server
