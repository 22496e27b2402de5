// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// metrics are the recorder's metrics. Gauges are read when they are scraped.
type metrics struct {
	r        *Recorder
	failures prometheus.Counter
	events   *prometheus.CounterVec
	gaps     *prometheus.CounterVec
	damaged  *prometheus.CounterVec
}

// counts are the counters of one resource.
type counts struct{ events, gaps, damaged prometheus.Counter }

const namePrefix = "watchkeeper_history_"

func newMetrics(r *Recorder) *metrics {
	vec := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: namePrefix + name, Help: help}, []string{"resource"})
	}
	return &metrics{
		r: r,
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: namePrefix + "failures_total",
			Help: "How often recording failed, or could not start."}),
		events: vec("events_total", "Events recorded since the start."),
		gaps:   vec("gaps_total", "Gaps recorded since the start: spans of resourceVersions of which only the outcome is known."),
		damaged: vec("damaged_total",
			"How often the record of the resource turned out to be damaged since the start, so that a new epoch began."),
	}
}

func (m *metrics) of(id kube.Resource) counts {
	name := id.String()
	return counts{m.events.WithLabelValues(name), m.gaps.WithLabelValues(name), m.damaged.WithLabelValues(name)}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namePrefix+name, help, labels, nil)
}

var (
	descUp    = desc("up", "1 while recording works, 0 while nothing can be recorded, or something in --record does not exist, may not be listed and watched, or has no watch for 30 s though the API server answers.")
	descDisk  = desc("disk_bytes", "Space that the cluster's directory takes on disk, with write-ahead logs and what is reserved for them.")
	descLive  = desc("live_bytes", "Recorded data in the cluster's directory, without what is reserved or will be deleted.")
	descMax   = desc("max_bytes", "Maximum size of the history on disk: see --history-max-bytes.")
	descLag   = desc("lag_seconds", "How long the oldest event that is not yet on disk has waited.", "resource")
	descHead  = desc("head_rv", "Newest resourceVersion up to which everything is recorded.", "resource")
	descGap   = desc("last_gap_timestamp_seconds", "When the newest gap in the record of the resource ended; 0 if it has none.", "resource")
	descSince = desc("oldest_timestamp_seconds", "The oldest moment that the history has of the resource.", "resource")
)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.failures.Describe(ch)
	m.events.Describe(ch)
	m.gaps.Describe(ch)
	m.damaged.Describe(ch)
	for _, d := range []*prometheus.Desc{descUp, descDisk, descLive, descMax, descLag, descHead, descGap, descSince} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.failures.Collect(ch)
	m.events.Collect(ch)
	m.gaps.Collect(ch)
	m.damaged.Collect(ch)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	status, _ := m.r.Status()
	up := 0.0
	if status.Complete() {
		up = 1
	}
	gauge(descUp, up)
	gauge(descMax, float64(m.r.opts.MaxBytes))
	if m.r.Store() != nil { // before, the size of the cluster's directory is not known
		gauge(descDisk, float64(status.DiskBytes))
		gauge(descLive, float64(status.LiveBytes))
	}
	m.collectOldest(gauge)
	m.r.mu.Lock()
	s := m.r.session
	m.r.mu.Unlock()
	if s == nil {
		return
	}
	for _, t := range s.all() {
		gauge(descLag, t.w.lag().Seconds(), t.id.String())
		if st := t.w.current(); st.Resource() == t.id { // else nothing is recorded in this version yet
			gauge(descHead, float64(st.Head().RV), t.id.String())
		}
	}
}

// collectOldest collects the oldest moment of each resource that can be read, and its
// newest gap, which may be from before the start.
func (m *metrics) collectOldest(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	store := m.r.Store()
	if store == nil {
		return
	}
	for _, id := range store.Resources() {
		if m.r.Withholds(id) {
			continue
		}
		gap := 0.0
		for _, st := range store.Streams(id) {
			for _, g := range st.Gaps() {
				if !g.Late() {
					gap = float64(g.Until.UnixMilli()) / 1000
				}
			}
		}
		gauge(descGap, gap, id.String())
		for _, st := range store.Streams(id) {
			if span := st.Span(); span.To.RV != 0 {
				gauge(descSince, float64(span.From.At.UnixMilli())/1000, id.String())
				break
			}
		}
	}
}
