// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// The values of the source label: which part of the gateway answered.
const (
	sourceCache       = "cache"
	sourcePassthrough = "passthrough"
	sourceStatic      = "static"
	sourceFilter      = "filter"
	sourceExtension   = "extension"
	sourceHistory     = "history"
)

// codeAborted counts requests that ended before a status was sent, mostly
// because the client went away.
const codeAborted = 499

// requestMetrics counts requests when their status is known, so that a watch
// shows as it opens and not an hour later.
type requestMetrics struct {
	total *prometheus.CounterVec
}

func newRequestMetrics(reg prometheus.Registerer) (*requestMetrics, error) {
	m := &requestMetrics{total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "watchkeeper_requests_total",
		Help: "Requests by verb, by the part of the gateway that answered, and by status code.",
	}, []string{"verb", "source", "code"})}
	if reg != nil {
		if err := reg.Register(m.total); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// recorder is the ResponseWriter handlers get. It notes the status.
type recorder struct {
	http.ResponseWriter
	metrics  *requestMetrics
	requests *requestTracker
	request  *http.Request
	source   string
	code     int // 0 until the header was written
	// stream is what the answer goes on with when the handler has returned; nil
	// for nothing.
	stream *watchStream
}

// Unwrap serves http.ResponseController.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

func (rec *recorder) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		rec.count(code)
	}
	rec.ResponseWriter.WriteHeader(code)
}

func (rec *recorder) Write(p []byte) (int, error) {
	rec.count(http.StatusOK)
	return rec.ResponseWriter.Write(p)
}

// Flush sends the header if nothing else did.
func (rec *recorder) Flush() {
	rec.count(http.StatusOK)
	http.NewResponseController(rec.ResponseWriter).Flush() //nolint:errcheck // not for HTTP/1.0, which does without
}

// Hijack hands over the connection, which HTTP/2 does not have.
func (rec *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, brw, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err == nil {
		if isUpgrade(rec.request) {
			rec.count(http.StatusSwitchingProtocols)
		} else {
			rec.count(http.StatusOK)
		}
	}
	return conn, brw, err
}

func (rec *recorder) count(code int) {
	if rec.code != 0 {
		return
	}
	rec.code = code
	rec.metrics.total.WithLabelValues(verbOf(rec.request), rec.source, strconv.Itoa(code)).Inc()
}

// verbOf returns the Kubernetes verb of a request, as far as its method and
// the shape of its path tell.
func verbOf(r *http.Request) string {
	if isUpgrade(r) {
		return "connect"
	}
	named := false // a single object, or no resource at all
	seg := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case seg[0] == "api" && len(seg) > 2:
		seg = seg[2:]
	case seg[0] == "apis" && len(seg) > 3:
		seg = seg[3:]
	default:
		seg, named = nil, true
	}
	if len(seg) > 1 && seg[0] == "watch" && r.Method == http.MethodGet {
		return "watch"
	}
	if len(seg) > 2 && seg[0] == "namespaces" && seg[2] != "status" && seg[2] != "finalize" {
		seg = seg[2:]
	}
	named = named || len(seg) > 1
	switch r.Method {
	case http.MethodGet:
		if named {
			return "get"
		}
		if truthy(r, "watch") {
			return "watch"
		}
		return "list"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodHead, http.MethodOptions:
		return strings.ToLower(r.Method)
	}
	return "other" // clients choose methods freely, and labels must stay few
}

// mentions reports, at little cost, whether the query may have a parameter.
func mentions(r *http.Request, name string) bool {
	return strings.Contains(r.URL.RawQuery, name) || strings.Contains(r.URL.RawQuery, "%")
}

// truthy reads a boolean query parameter by the API server's rule: all but
// "0" and "false" is true, even nothing.
func truthy(r *http.Request, name string) bool {
	if !mentions(r, name) {
		return false
	}
	values, ok := r.URL.Query()[name]
	return ok && values[0] != "0" && !strings.EqualFold(values[0], "false")
}
