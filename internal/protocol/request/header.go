// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"net/http"
	"net/url"
	"strings"
)

// IsIdentity reports whether a header identifies the caller.
func IsIdentity(name string) bool {
	return name == "Authorization" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-")
}

// BringsIdentity reports whether the caller has credentials of its own. The API server
// then decides what the caller may read (T8).
func BringsIdentity(h http.Header) bool {
	for name := range h {
		if IsIdentity(name) {
			return true
		}
	}
	return false
}

// Identity returns the headers that identify the caller, nil if there are none.
func Identity(h http.Header) (identity http.Header) {
	for name, values := range h {
		if IsIdentity(name) {
			if identity == nil {
				identity = http.Header{}
			}
			identity[name] = values
		}
	}
	return identity
}

// WithoutIdentity returns a request without the headers that identify the caller.
func WithoutIdentity(r *http.Request) *http.Request {
	if !BringsIdentity(r.Header) {
		return r
	}
	header := make(http.Header, len(r.Header))
	for name, values := range r.Header {
		if !IsIdentity(name) {
			header[name] = values // shared: nobody changes them
		}
	}
	r = r.WithContext(r.Context())
	r.Header = header
	return r
}

// WithoutCredentials is [WithoutIdentity], and without the subprotocol of a WebSocket that
// is a token.
func WithoutCredentials(r *http.Request) *http.Request {
	r = WithoutIdentity(r)
	if !BringsToken(r.Header) {
		return r
	}
	r = r.Clone(r.Context())
	var others []string
	for protocol := range strings.SplitSeq(strings.Join(r.Header[protocols], ","), ",") {
		if protocol = strings.TrimSpace(protocol); protocol != "" && !strings.HasPrefix(protocol, tokenProtocol) {
			others = append(others, protocol)
		}
	}
	if delete(r.Header, protocols); len(others) > 0 {
		r.Header.Set(protocols, strings.Join(others, ","))
	}
	return r
}

const (
	protocols = "Sec-Websocket-Protocol"
	// tokenProtocol begins the subprotocol of a WebSocket that is a token.
	tokenProtocol = "base64url.bearer.authorization.k8s.io."
)

// BringsToken reports whether the caller authenticates with a token, in a header or,
// as browsers do, in the subprotocol of a WebSocket.
func BringsToken(h http.Header) bool {
	return h.Get("Authorization") != "" || BringsTokenProtocol(h)
}

// BringsTokenProtocol reports whether a subprotocol of a WebSocket is a token.
func BringsTokenProtocol(h http.Header) bool {
	return strings.Contains(strings.Join(h[protocols], ","), tokenProtocol)
}

// IsSafe reports whether a method may be repeated: it changes nothing.
func IsSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// IsUpgrade reports whether r asks to switch protocols. An upgrade to HTTP/2 does not
// count, since it concerns only the connection to the gateway.
func IsUpgrade(r *http.Request) bool {
	upgrade := r.Header.Get("Upgrade")
	if upgrade == "" || strings.EqualFold(upgrade, "h2c") {
		return false
	}
	for _, v := range r.Header["Connection"] {
		for token := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return false
}

// IsWebSocket reports whether r asks for a WebSocket, by the API server's rule.
func IsWebSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// AcceptsGzip reports whether r accepts gzip by the API server's rule: the exact
// token, without a weight.
func AcceptsGzip(r *http.Request) bool {
	for token := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(token) == "gzip" {
			return true
		}
	}
	return false
}

// mentions reports whether the query may have a parameter, without parsing it.
func mentions(r *http.Request, name string) bool {
	return strings.Contains(r.URL.RawQuery, name) || strings.Contains(r.URL.RawQuery, "%")
}

// IsTrue reads a boolean query parameter by the API server's rule: every value except
// "0" and "false" is true, also the empty one.
func IsTrue(r *http.Request, name string) bool {
	if !mentions(r, name) {
		return false
	}
	values, ok := r.URL.Query()[name]
	return ok && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// IsForeign reports whether a browser says that a page of another origin
// made the request.
func IsForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	o, err := url.Parse(origin)
	return err != nil || o.Host != r.Host
}
