// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
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

// requestMetrics counts a request when its status is known, so that a watch counts when
// it opens, not when it ends.
type requestMetrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newRequestMetrics(reg prometheus.Registerer) (*requestMetrics, error) {
	m := &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "watchkeeper_requests_total",
			Help: "Requests by verb, by the part of the gateway that answered, and by status code.",
		}, []string{"verb", "source", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "watchkeeper_request_duration_seconds",
			Help:    "Time to answer a request in full, by verb and by the part of the gateway that answered; without watches, upgrades and followed logs.",
			Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"verb", "source"}),
	}
	if reg != nil {
		for _, c := range []prometheus.Collector{m.total, m.duration} {
			if err := reg.Register(c); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// responseRecorder is the ResponseWriter handlers get. It notes the status.
type responseRecorder struct {
	http.ResponseWriter
	metrics *requestMetrics
	request *http.Request
	source  string
	code    int // 0 until the header is written
	// stream is the watch that is written after the handler has returned; nil for
	// none.
	stream *httpstream.Watch
	// permit is that of a watch in shared mode; permitted is set if the watch is served,
	// which then closes it.
	permit    *access.Permit
	permitted bool
	// event is the audit event, nil for none, and rv that of the answer, 0 for none.
	event *audit.Event
	rv    uint64
	// closeStream closes the stream of a user, as permit; nil for none.
	closeStream func()
}

// Unwrap serves http.ResponseController.
func (rec *responseRecorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

func (rec *responseRecorder) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		rec.count(code)
	}
	rec.ResponseWriter.WriteHeader(code)
}

func (rec *responseRecorder) Write(p []byte) (int, error) {
	rec.count(http.StatusOK)
	return rec.ResponseWriter.Write(p)
}

// Flush also sends the header, if it was not sent before.
func (rec *responseRecorder) Flush() {
	rec.count(http.StatusOK)
	http.NewResponseController(rec.ResponseWriter).Flush() //nolint:errcheck // HTTP/1.0 cannot flush
}

// Hijack hands over the connection, which HTTP/2 does not have.
func (rec *responseRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, brw, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err == nil {
		if request.IsUpgrade(rec.request) {
			rec.count(http.StatusSwitchingProtocols)
		} else {
			rec.count(http.StatusOK)
		}
	}
	return conn, brw, err
}

func (rec *responseRecorder) count(code int) {
	if rec.code != 0 {
		return
	}
	rec.code = code
	rec.event.Answered(rec.source, rec.rv)
	rec.metrics.total.WithLabelValues(request.VerbOf(rec.request), rec.source, strconv.Itoa(code)).Inc()
}

// ended records the duration of a request, unless it lasts until the client or the
// gateway ends it.
func (rec *responseRecorder) ended(took time.Duration) {
	if r := rec.request; !request.IsLongRunning(r) && !strings.HasSuffix(r.URL.Path, multiwatchPath) {
		rec.metrics.duration.WithLabelValues(request.VerbOf(r), rec.source).Observe(took.Seconds())
	}
}
