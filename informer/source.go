// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A Source is an API server and the transport to it. Any number of informers
// may share one, concurrently.
type Source struct {
	base      *url.URL
	transport http.RoundTripper
}

// NewSource returns the API server at base, which may have a path: /api and
// /apis are below it. The transport authenticates.
//
// When an informer replaces a silent watch, it asks a transport that is a
// [Freshener] for new connections, and clones an [http.Transport]. A wrapper
// that is neither keeps the connections that it has, which may be dead.
func NewSource(base *url.URL, transport http.RoundTripper) *Source {
	return &Source{base, transport}
}

// FromURL returns an API server that requires no credentials, such as "kubectl
// proxy" or Watchkeeper itself: "http://127.0.0.1:8001". It fails if base is
// not an http or https URL.
func FromURL(base string) (*Source, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("source: %q is not an http or https URL", base)
	}
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("source: http.DefaultTransport has been replaced")
	}
	t = t.Clone()
	t.HTTP2 = &http.HTTP2Config{
		// A dead connection is closed, and with it the watches on it.
		SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second,
		// Half of net/http's default: how much of a list that is not yet read
		// may be in memory.
		MaxReceiveBufferPerStream: 2 << 20,
	}
	t.ResponseHeaderTimeout = time.Minute
	return NewSource(u, t), nil
}

// A Resource names a collection as its URL does: {"apps", "v1", "deployments"}.
// The Group of the core API is "".
type Resource struct{ Group, Version, Name string }

// url returns the URL of a collection in a namespace; "" is all namespaces.
func (s *Source) url(r Resource, namespace string, opts *Options) *url.URL {
	parts := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		parts = []string{"api", r.Version}
	}
	if namespace != "" {
		parts = append(parts, "namespaces", namespace)
	}
	u := s.base.JoinPath(append(parts, r.Name)...)
	query := u.Query()
	if opts.LabelSelector != "" {
		query.Set("labelSelector", opts.LabelSelector)
	}
	if opts.FieldSelector != "" {
		query.Set("fieldSelector", opts.FieldSelector)
	}
	u.RawQuery = query.Encode()
	return u
}

// A Key identifies an object within its resource. Namespace is "" if the
// resource is cluster-scoped.
type Key struct{ Namespace, Name string }

// String returns "namespace/name", or "name" without a namespace.
func (k Key) String() string { return string(kube.MakeKey(k.Namespace, k.Name)) }

// A Freshener is a transport that can open connections of its own.
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
		if c, ok := own.RoundTripper.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}
