// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// Headers with which a front proxy names the user.
const (
	userHeader  = "X-Remote-User"
	groupHeader = "X-Remote-Group"
	// frontProxyPrefix is that of all headers that an API server may trust.
	frontProxyPrefix = "X-Remote-"
)

// newServer returns the server that forwards requests. The end of ctx ends connections
// that were upgraded, which the server's Close does not know.
func newServer(ctx context.Context, p *pool, config Config) *http.Server {
	anonymous := config.Client.Clone()
	anonymous.Certificates = nil
	handler := &httputil.ReverseProxy{
		Rewrite: rewrite,
		Transport: &requests{
			pool:      p,
			named:     newTransport(config.Client),
			anonymous: newTransport(anonymous),
		},
		ErrorLog: config.Log,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			config.Log.Print(err)
			code := http.StatusBadGateway
			if errors.Is(err, errNone) {
				code = http.StatusServiceUnavailable
			}
			http.Error(w, err.Error(), code)
		},
	}
	return &http.Server{
		Handler:           handler,
		TLSConfig:         config.Server,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          config.Log,
	}
}

// rewrite replaces the client's certificate by headers. The client's own headers of
// that kind are removed: only the balancer may name a user.
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme = "https"
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	for name := range r.Out.Header {
		if strings.HasPrefix(name, frontProxyPrefix) {
			r.Out.Header.Del(name)
		}
	}
	if chains := r.In.TLS.VerifiedChains; len(chains) > 0 {
		subject := chains[0][0].Subject
		r.Out.Header.Set(userHeader, subject.CommonName)
		for _, group := range subject.Organization {
			r.Out.Header.Add(groupHeader, group)
		}
	}
}

// requests sends each request to a replica.
type requests struct {
	pool *pool
	// named presents the certificate of the front proxy. anonymous does not: the API
	// server would refuse that certificate for a request without a user.
	named, anonymous *http.Transport
}

// errConnect marks an error before a request was sent.
type errConnect struct{ error }

// newTransport returns a transport that uses HTTP/1.1, which also has upgrades (exec,
// port-forward, WebSockets).
func newTransport(config *tls.Config) *http.Transport {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{}, Config: config}
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, errConnect{err}
			}
			return conn, nil
		},
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     time.Minute,
	}
}

// RoundTrip tries the next replica if it cannot connect to one. A request that may
// have reached a replica is not repeated.
func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	transport := r.anonymous
	if request.Header.Get(userHeader) != "" {
		transport = r.named
	}
	var response *http.Response
	var failed error // after the connection
	err := r.pool.try(func(m *member) error {
		attempt := request.WithContext(request.Context())
		url := *request.URL
		url.Host = m.Address
		attempt.URL = &url
		if request.Body != nil {
			attempt.Body = io.NopCloser(request.Body) // stays open for the next replica
		}
		var err error
		response, err = transport.RoundTrip(attempt)
		if errors.As(err, new(errConnect)) {
			return err
		}
		failed = err
		return nil
	})
	return response, errors.Join(err, failed)
}
