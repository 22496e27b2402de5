// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/http"
	"sync/atomic"
)

// dialer is a type of its own so that each value is told from the others.
type dialer struct{ net.Dialer }

// roundRobin spreads requests over transports.
type roundRobin struct {
	all  []http.RoundTripper
	next atomic.Int64
}

func (r *roundRobin) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.all[int(r.next.Add(1))%len(r.all)].RoundTrip(req)
}
