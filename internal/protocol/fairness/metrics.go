// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count by class of users: users come and go, and some names are private.
type metrics struct {
	requests *prometheus.CounterVec
	byClass  [classes]prometheus.Counter // of requests
	rejected *prometheus.CounterVec
	streams  [classes]atomic.Int64
	bytes    atomic.Int64
}

var (
	descStreams = prometheus.NewDesc("watchkeeper_user_streams",
		"Open watches and other streams of users, by class.", []string{"class"}, nil)
	descBytes = prometheus.NewDesc("watchkeeper_user_buffered_bytes",
		"Answers that are in memory until their clients have read them.", nil, nil)
)

func newMetrics() *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "watchkeeper_user_requests_total",
			Help: "Requests of authenticated users, by class: user, serviceaccount or node.",
		}, []string{"class"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "watchkeeper_user_rejected_total",
			Help: "Requests that got a 429 because their user was at a bound, by class and bound; queue is that of all users, api-server that of its priority and fairness.",
		}, []string{"class", "bound"}),
	}
	for c := range classes {
		m.byClass[c] = m.requests.WithLabelValues(c.String())
		for _, b := range bounds {
			m.rejected.WithLabelValues(c.String(), string(b))
		}
	}
	return m
}

// Seen counts a request of a user.
func (u *Users) Seen(user User) { u.byClass[user.Class].Inc() }

// Describe implements prometheus.Collector.
func (u *Users) Describe(ch chan<- *prometheus.Desc) {
	u.requests.Describe(ch)
	u.rejected.Describe(ch)
	ch <- descStreams
	ch <- descBytes
}

// Collect implements prometheus.Collector.
func (u *Users) Collect(ch chan<- prometheus.Metric) {
	u.requests.Collect(ch)
	u.rejected.Collect(ch)
	for c := range classes {
		ch <- prometheus.MustNewConstMetric(descStreams, prometheus.GaugeValue, float64(u.metrics.streams[c].Load()), c.String())
	}
	ch <- prometheus.MustNewConstMetric(descBytes, prometheus.GaugeValue, float64(u.metrics.bytes.Load()))
}
