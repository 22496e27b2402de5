// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"net/http"
	"time"
)

// A Freshener is a transport that can open its own connections.
type Freshener interface {
	http.RoundTripper
	// Fresh returns a transport to the same API server that shares no
	// connection with this one. Any goroutine may call it.
	Fresh() (http.RoundTripper, error)
}

// freshTransport returns a transport that shares no connection with t if that
// is possible, else t.
func freshTransport(t http.RoundTripper) (http.RoundTripper, error) {
	switch t := t.(type) {
	case Freshener:
		fresh, err := t.Fresh()
		return &ownTransport{fresh}, err
	case *http.Transport:
		return &ownTransport{t.Clone()}, nil
	}
	return t, nil
}

// An ownTransport is a transport that only one reflector uses.
type ownTransport struct{ http.RoundTripper }

// discard closes the idle connections of a transport that a reflector no longer uses,
// unless it is the caller's.
func discard(t http.RoundTripper) {
	if own, ok := t.(*ownTransport); ok {
		CloseIdle(own.RoundTripper)
	}
}

// CloseIdle closes the connections of a transport that are not in use, if it has a method
// CloseIdleConnections. It does not wait.
func CloseIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
		// With HTTP/2, a connection may become idle shortly after its last watch has ended.
		time.AfterFunc(100*time.Millisecond, c.CloseIdleConnections)
	}
}
