// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/reconcile"
)

// Controllers has the metrics of a program's controllers, by their names.
type Controllers struct {
	waiting, reconciling *prometheus.HistogramVec
	retries              *prometheus.CounterVec

	mu       sync.Mutex
	statuses map[string]func() reconcile.Status
}

// NewControllers registers the metrics.
func NewControllers(registry *prometheus.Registry) *Controllers {
	buckets := prometheus.ExponentialBuckets(.001, 4, 10)
	p := &Controllers{
		waiting: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_wait_seconds", Help: "How long a key had waited for a worker.", Buckets: buckets,
		}, []string{"controller"}),
		reconciling: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_reconcile_seconds", Help: "Duration of calls.", Buckets: buckets,
		}, []string{"controller", "failed"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_retries_total", Help: "Failed calls that are retried.",
		}, []string{"controller"}),
		statuses: map[string]func() reconcile.Status{},
	}
	registry.MustRegister(p.waiting, p.reconciling, p.retries, p)
	return p
}

// Of is a value of [reconcile.Options].Metrics.
func (p *Controllers) Of(name string) reconcile.Metrics {
	return reconcile.Metrics{
		Reconciled: func(waited, took time.Duration, err error) {
			p.waiting.WithLabelValues(name).Observe(waited.Seconds())
			p.reconciling.WithLabelValues(name, fmt.Sprint(err != nil)).Observe(took.Seconds())
		},
		Retried: func(int, time.Duration) { p.retries.WithLabelValues(name).Inc() },
	}
}

// Add adds the queue of a controller, given its Status method. It replaces that of another
// controller of the same name.
func (p *Controllers) Add(name string, status func() reconcile.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.statuses[name] = status
}

var keys = prometheus.NewDesc("controller_keys", "Keys by state: live and initial ones wait for a worker, waiting ones for a time.",
	[]string{"controller", "state"}, nil)

// Describe implements prometheus.Collector.
func (p *Controllers) Describe(ch chan<- *prometheus.Desc) { ch <- keys }

// Collect implements prometheus.Collector.
func (p *Controllers) Collect(ch chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, status := range p.statuses {
		s := status()
		for state, n := range map[string]int{"live": s.Live, "initial": s.Initial, "waiting": s.Waiting, "running": s.Running} {
			ch <- prometheus.MustNewConstMetric(keys, prometheus.GaugeValue, float64(n), name, state)
		}
	}
}
