// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"runtime/metrics"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// cacheMetrics reads the state of the resources at each scrape; only the dispatch lag
// of watches is measured continuously.
type cacheMetrics struct {
	reads    *reads
	lag      prometheus.Histogram
	limiters func() []*past.Limiter
}

func newLag() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "watchkeeper_dispatch_lag_seconds",
		Help:    "Time from the publication of events to their having been written to a watch, per watch and batch.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
	})
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("watchkeeper_resource_"+name, help, append([]string{"resource"}, labels...), nil)
}

var (
	descHead      = desc("head_rv", "Newest known resourceVersion of the resource.")
	descStart     = desc("window_start_rv", "Oldest resourceVersion from which a watch can be served.")
	descContact   = desc("last_contact_timestamp_seconds", "When the resource was last known: a list, the begin of a watch, an event or a bookmark.")
	descSynced    = desc("synced", "1 if reads of the resource are served from the cache.")
	descEvents    = desc("events_total", "Events since the watch of the resource began.")
	descObjects   = desc("objects", "Live objects.")
	descBytes     = desc("bytes", "JSON of the live objects.")
	descOverhead  = desc("overhead_bytes", "Estimated memory of the live objects besides their JSON: rows of Tables, labels, trees, indexes.")
	descLogEvents = desc("window_events", "Events in the window.")
	descLogBytes  = desc("window_bytes", "Size of the events in the window: their JSON and its estimated overhead. See --window-bytes.")
	descReceived  = desc("upstream_bytes_total", "Bytes that the upstream sent.")
	descRelists   = desc("relists_total", "Full lists from the upstream, by reason.", "reason")
	descEncodings = prometheus.NewDesc("watchkeeper_encodings_bytes", "Cache of objects in encodings other than JSON.", nil, nil)
	descWatches   = desc("watches", "Open watches that are served from the cache.")
	descReading   = prometheus.NewDesc("watchkeeper_history_reading_bytes",
		"Memory of the readers of recorded events: replays, watches from old resourceVersions, exports.", nil, nil)
	descReaders  = prometheus.NewDesc("watchkeeper_history_readers", "Open readers of recorded events.", nil, nil)
	descInflight = prometheus.NewDesc("watchkeeper_history_inflight_requests",
		"Exports and whole lists of the past that are being answered.", []string{"kind"}, nil)
	descRejected = prometheus.NewDesc("watchkeeper_history_rejected_requests_total",
		"Exports and whole lists of the past that got a 429, over the limit of concurrent ones.", []string{"kind"}, nil)
	descStacks = prometheus.NewDesc("watchkeeper_stack_bytes_per_watch",
		"Stacks of the process per open watch; with many watches, most of the memory of an idle one.", nil, nil)
)

// stackBytes returns the memory of the stacks of all goroutines.
func stackBytes() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// Describe implements prometheus.Collector.
func (m *cacheMetrics) Describe(ch chan<- *prometheus.Desc) {
	m.lag.Describe(ch)
	for _, d := range []*prometheus.Desc{descEncodings, descReading, descReaders, descInflight, descRejected,
		descHead, descStart, descContact, descSynced, descEvents, descObjects,
		descBytes, descOverhead, descLogEvents, descLogBytes, descReceived, descRelists, descWatches, descStacks} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *cacheMetrics) Collect(ch chan<- prometheus.Metric) {
	m.lag.Collect(ch)
	ch <- prometheus.MustNewConstMetric(descEncodings, prometheus.GaugeValue, float64(m.reads.encodings.Bytes()))
	m.collectPast(ch)
	watches := int64(0)
	for _, res := range m.reads.cache.All() {
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, res.ID.String())
		}
		counter := func(d *prometheus.Desc, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, append([]string{res.ID.String()}, labels...)...)
		}
		stats := res.Timeline.Stats()
		s := res.State()
		synced := 0.0
		if s.Readable {
			synced = 1
		}
		if v := s.View; v != nil {
			gauge(descHead, float64(v.RV))
			gauge(descStart, float64(v.Start))
		}
		if !s.Status.LastKnown.IsZero() {
			gauge(descContact, float64(s.Status.LastKnown.UnixMilli())/1000)
		}
		gauge(descSynced, synced)
		counter(descEvents, float64(stats.Events))
		gauge(descObjects, float64(stats.Objects))
		gauge(descBytes, float64(stats.Bytes))
		gauge(descOverhead, float64(stats.Overhead))
		gauge(descLogEvents, float64(stats.LogEvents))
		gauge(descLogBytes, float64(stats.LogBytes))
		counter(descReceived, float64(s.Status.Bytes))
		for reason, n := range s.Status.Relists {
			counter(descRelists, float64(n), reason)
		}
		gauge(descWatches, float64(res.OpenWatches()))
		watches += res.OpenWatches()
	}
	if watches > 0 {
		ch <- prometheus.MustNewConstMetric(descStacks, prometheus.GaugeValue, stackBytes()/float64(watches))
	}
}

func (m *cacheMetrics) collectPast(ch chan<- prometheus.Metric) {
	store := m.reads.past.Store()
	if store == nil {
		return
	}
	reading := store.ReadUsage()
	ch <- prometheus.MustNewConstMetric(descReading, prometheus.GaugeValue, float64(reading.Bytes))
	ch <- prometheus.MustNewConstMetric(descReaders, prometheus.GaugeValue, float64(reading.Readers))
	for _, p := range m.limiters() {
		ch <- prometheus.MustNewConstMetric(descInflight, prometheus.GaugeValue, float64(p.InUse()), p.What)
		ch <- prometheus.MustNewConstMetric(descRejected, prometheus.CounterValue, float64(p.Rejected()), p.What)
	}
}

// upstreamMetrics asks the upstream at each scrape, as /readyz does.
type upstreamMetrics struct{ up *upstream.Server }

var (
	descUp = prometheus.NewDesc("watchkeeper_upstream_up",
		"1 if the API server sent something within the last seconds, or answers now, and is ready.", nil, nil)
	descUpstreamContact = prometheus.NewDesc("watchkeeper_upstream_last_contact_timestamp_seconds",
		"When the API server last answered, or sent something on a watch; 0 if it never did.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *upstreamMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- descUp
	ch <- descUpstreamContact
}

// Collect implements prometheus.Collector.
func (m *upstreamMetrics) Collect(ch chan<- prometheus.Metric) {
	up, contact := 0.0, 0.0
	if m.up.ContactUntil(context.Background(), time.Now()).Err == nil {
		up = 1
	}
	if last := m.up.LastAnswer(); !last.IsZero() {
		contact = float64(last.UnixMilli()) / 1000
	}
	ch <- prometheus.MustNewConstMetric(descUp, prometheus.GaugeValue, up)
	ch <- prometheus.MustNewConstMetric(descUpstreamContact, prometheus.GaugeValue, contact)
}
