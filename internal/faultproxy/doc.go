// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package faultproxy stands between a gateway and its API server, and makes
// trouble there. Only tests import it.
//
//	gateway ──► Proxy ──► kube-apiserver
//	              │ nth request of a kind, after k frames: a [Fault]
//
// What goes wrong is drawn from a seed: the fault of the nth request of a kind
// for a resource depends on the seed, the resource, the kind and n alone, and
// not on what other requests do in the meantime. So a seed replays as exactly
// as the gateway asks the same again. Each fault that came about is in
// [Proxy.Injected].
//
// The requests of the gateway itself (by its User-Agent) get all faults; those
// of its clients, which it passes through, only such as an honest network and
// an honest API server know: the client itself has to cope with them, and the
// gateway is not to blame. Bytes are never changed in a way that a JSON parser
// cannot notice: against that there is TLS.
package faultproxy
