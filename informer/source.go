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

// A Source is an API server and the way to it. It may be shared by any number
// of informers.
type Source struct {
	base      *url.URL
	transport http.RoundTripper
}

// NewSource returns the API server at base, whose path leads to /api and /apis.
// The transport authenticates; an informer takes a copy of an [http.Transport]
// when it distrusts a connection, so it is best to give one as it is.
func NewSource(base *url.URL, transport http.RoundTripper) *Source {
	return &Source{base, transport}
}

// FromURL returns an API server that wants no credentials, such as "kubectl
// proxy" or Watchkeeper itself: "http://127.0.0.1:8001".
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
		// A connection that has died is closed, and with it what waits on it.
		SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second,
		// How much of a list may wait in memory to be read: half the default.
		MaxReceiveBufferPerStream: 2 << 20,
	}
	t.ResponseHeaderTimeout = time.Minute
	return NewSource(u, t), nil
}

// A Resource names a collection as in a URL: {"apps", "v1", "deployments"}. The
// group of the core API is "".
type Resource struct{ Group, Version, Name string }

// url returns that of a collection; namespace "" is all of them.
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

// A Key identifies an object within its resource. Namespace is "" for a
// cluster-scoped one.
type Key struct{ Namespace, Name string }

// String returns "namespace/name", or "name".
func (k Key) String() string { return string(kube.MakeKey(k.Namespace, k.Name)) }

// A Freshener is a transport that can have connections of its own. An informer
// takes one when it distrusts a connection; of an [http.Transport] it takes a
// clone. Any other transport goes on with what it has.
type Freshener interface {
	http.RoundTripper
	// Fresh returns a transport to the same API server that uses no connection
	// of this one.
	Fresh() (http.RoundTripper, error)
}

// fresh returns a transport that uses no connection of t, if there is one to be
// had.
func fresh(t http.RoundTripper) (http.RoundTripper, error) {
	switch t := t.(type) {
	case Freshener:
		return t.Fresh()
	case *http.Transport:
		return t.Clone(), nil
	}
	return t, nil
}
