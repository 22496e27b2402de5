// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
)

// A Source is an API server and the transport to it. Any number of informers
// may share one, concurrently. Its connections remain open for some time after they
// have stopped, unless it is closed.
type Source struct {
	base      *url.URL
	transport http.RoundTripper
}

// NewSource returns the API server at base, which may have a path: /api and
// /apis are below it. The transport authenticates.
//
// When an informer replaces a silent watch, it asks a transport that is a
// [Freshener] for new connections, and clones an [http.Transport]. A wrapper
// that is neither keeps the connections that it has, which may be dead. NewSource panics
// without a base or a transport, and if base has a user or password: it would not use them.
func NewSource(base *url.URL, transport http.RoundTripper) *Source {
	if base == nil || transport == nil {
		panic("informer: NewSource needs a URL and a transport")
	}
	if base.User != nil {
		panic("informer: NewSource: the transport has to authenticate, not the URL " + base.Redacted())
	}
	return &Source{base, transport}
}

// Close closes the connections that are not in use, as [http.Client.CloseIdleConnections]
// does: all of them once the informers have stopped. The source remains usable, and opens
// new ones. Close does not wait. It does nothing if the transport has no method
// CloseIdleConnections.
func (s *Source) Close() {
	reflector.CloseIdle(s.transport)
}

// FromURL returns an API server that requires no credentials, such as "kubectl
// proxy" or Watchkeeper itself: "http://127.0.0.1:8001". It fails if base is
// not an http or https URL, or has a user.
func FromURL(base string) (*Source, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("source: %q is not an http or https URL", base)
	}
	if u.User != nil {
		return nil, fmt.Errorf("source: the user in %s would not be used; package kubeconfig has sources with credentials", u.Redacted())
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

// isSegment reports whether a name can be a segment of a URL's path.
func isSegment(name string) bool {
	return name != "." && name != ".." && !strings.ContainsAny(name, "/%")
}

// A Key identifies an object within its resource. Namespace is "" if the
// resource is cluster-scoped.
type Key struct{ Namespace, Name string }

// String returns "namespace/name", or "name" without a namespace.
func (k Key) String() string { return string(kube.MakeKey(k.Namespace, k.Name)) }

// missing says what of a resource the API server does not have, after it has answered
// that it was not found: the group, the version or the resource. It returns "" if it
// cannot tell.
func (s *Source) missing(ctx context.Context, r Resource, namespace string, err error) string {
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Code != http.StatusNotFound {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	base, group := s.base.JoinPath("apis", r.Group), fmt.Sprintf("group %q", r.Group)
	if r.Group == "" {
		base, group = s.base.JoinPath("api"), "the core group"
	}
	var resources struct { // APIResourceList
		Resources []struct {
			Name       string
			Namespaced bool
		}
	}
	if code := s.discover(ctx, base.JoinPath(r.Version), &resources); code == http.StatusOK {
		for _, has := range resources.Resources {
			switch {
			case has.Name != r.Name:
			case namespace != "" && !has.Namespaced:
				return fmt.Sprintf(" (%s have no namespaces)", r.Name)
			default:
				return ""
			}
		}
		return fmt.Sprintf(" (%s has no resource %q in version %s)", group, r.Name, r.Version)
	} else if code != http.StatusNotFound {
		return ""
	}
	var versions struct{ Versions []any } // APIGroup; or APIVersions, of the core group
	switch s.discover(ctx, base, &versions) {
	case http.StatusNotFound:
		return fmt.Sprintf(" (the API server does not serve %s)", group)
	case http.StatusOK:
		var names []string
		for _, v := range versions.Versions {
			if of, ok := v.(map[string]any); ok {
				v = of["version"]
			}
			names = append(names, fmt.Sprint(v))
		}
		return fmt.Sprintf(" (%s has no version %s, but %s)", group, r.Version, strings.Join(names, ", "))
	}
	return ""
}

const (
	discoveryTimeout = 5 * time.Second
	maxDiscovery     = 4 << 20 // bytes of a response
)

// discover gets a JSON document and returns the HTTP status, 0 if there was none.
func (s *Source) discover(ctx context.Context, u *url.URL, into any) (code int) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0
	}
	req.Header.Set("Accept", "application/json")
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK && json.NewDecoder(io.LimitReader(resp.Body, maxDiscovery)).Decode(into) != nil {
		return 0
	}
	return resp.StatusCode
}

// A Freshener is a transport that can open its own connections, by its method Fresh.
type Freshener = reflector.Freshener
