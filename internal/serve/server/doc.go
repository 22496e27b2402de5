// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package server composes and runs a gateway: listeners, TLS, the admin
// endpoints, and an orderly shutdown.
//
// All options are checked before the first socket opens, so an invalid option is
// one error and has no side effects. Run starts from leaf to edge (upstream,
// recorder, gateway, admin listener, main listener). It stops from edge to leaf:
// it accepts no more connections, reports not ready, lets the gateway end its
// streams, and closes the remaining ones after the grace period. It waits for
// every goroutine that it started.
//
// Errors name the flag that caused them. The command line chooses exit codes.
package server
