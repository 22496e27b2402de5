// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package faultproxy is a proxy between a gateway and its API server that injects
// faults. Only tests import it.
//
//	gateway ──► Proxy ──► kube-apiserver
//	              │ nth request of a kind, after k frames: a [Fault]
//
// Faults are drawn from a seed: the fault of the nth request of a kind for a
// resource depends only on the seed, the resource, the kind and n, and not on
// other requests. So a seed replays as exactly as the gateway repeats its
// requests. [Proxy.Injected] returns each injected fault.
//
// The gateway's own requests (by its User-Agent) get all faults. Those of its
// clients, which it passes through, get only faults that a correct network and a
// correct API server can cause: the client has to handle them, not the gateway. They reach
// the API server with the credentials of the client if they have some.
// Bytes are never changed in a way that a JSON parser cannot notice: TLS protects
// against that.
package faultproxy
