// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/internal/fakeapi"
)

// A prom has Prometheus metrics of informers, by resource.
type prom struct {
	registry             *prometheus.Registry
	changes, events      *prometheus.CounterVec
	lists, watches, errs *prometheus.CounterVec
	listing, reconciling *prometheus.HistogramVec
	age                  *prometheus.HistogramVec
}

func newProm(registry *prometheus.Registry) *prom {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(labels, "resource"))
		registry.MustRegister(c)
		return c
	}
	seconds := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(.001, 4, 10)}, append(labels, "resource"))
		registry.MustRegister(h)
		return h
	}
	return &prom{
		registry:    registry,
		changes:     counter("informer_changes_total", "Changes of the copy.", "type"),
		events:      counter("informer_events_total", "Events delivered to subscribers.", "type", "coalesced"),
		lists:       counter("informer_lists_total", "Full lists, by reason.", "reason"),
		watches:     counter("informer_watches_total", "Watches that ended, by how.", "end"),
		errs:        counter("informer_errors_total", "Failed requests and watches."),
		listing:     seconds("informer_list_seconds", "Duration of full lists."),
		age:         seconds("informer_reconcile_age_seconds", "Age of an event when its reconciliation began."),
		reconciling: seconds("informer_reconcile_seconds", "Duration of reconciliations.", "failed"),
	}
}

// of is a value of informer.Options.Metrics. Gauges read the informer's Status when
// metrics are collected. Two informers of one resource would need another label.
func (p *prom) of(res informer.Resource, status func() informer.Status) informer.Metrics {
	gauge := func(name, help string, value func(informer.Status) float64) {
		p.registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"resource": res.Name}},
			func() float64 { return value(status()) }))
	}
	gauge("informer_objects", "Objects held.", func(s informer.Status) float64 { return float64(s.Objects) })
	gauge("informer_bytes", "Bytes of the objects held.", func(s informer.Status) float64 { return float64(s.Held) })
	gauge("informer_behind", "Events by which the slowest subscriber lags.", func(s informer.Status) float64 { return float64(s.Behind) })
	gauge("informer_queued", "Events waiting to be reconciled.", func(s informer.Status) float64 { return float64(s.Queued) })
	gauge("informer_silent_seconds", "Time since the API server last sent anything.", func(s informer.Status) float64 { return s.Lag.Seconds() })
	gauge("informer_watching", "1 while the copy follows the API server.", func(s informer.Status) float64 {
		return map[informer.Phase]float64{informer.Watching: 1}[s.Phase]
	})
	return promOf{p, res.Name}
}

// A promOf implements informer.Metrics for one resource.
type promOf struct {
	*prom
	resource string
}

func (p promOf) Changed(typ informer.EventType) {
	p.changes.WithLabelValues(string(typ), p.resource).Inc()
}

func (p promOf) Listed(reason string, _ int, took time.Duration) {
	p.lists.WithLabelValues(reason, p.resource).Inc()
	p.listing.WithLabelValues(p.resource).Observe(took.Seconds())
}

func (p promOf) Watched(end string, _ time.Duration) {
	p.watches.WithLabelValues(end, p.resource).Inc()
}

func (p promOf) Failed(error) { p.errs.WithLabelValues(p.resource).Inc() }

func (p promOf) Delivered(typ informer.EventType, coalesced bool) {
	p.events.WithLabelValues(string(typ), fmt.Sprint(coalesced), p.resource).Inc()
}

func (p promOf) Reconciled(age, took time.Duration, err error) {
	p.age.WithLabelValues(p.resource).Observe(age.Seconds())
	p.reconciling.WithLabelValues(fmt.Sprint(err != nil), p.resource).Observe(took.Seconds())
}

// Exports Prometheus metrics of informers. The options can be shared by all
// informers of a program, and by those of a controller-runtime manager.
func ExampleMetrics() {
	server := apiServer(fakeapi.Pods, `{"nodeName":"n1"}`, true)
	defer server.Close()

	src, err := informer.FromURL(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	registry := prometheus.NewRegistry() // promhttp.HandlerFor serves it
	opts := informer.Options{Metrics: newProm(registry).of}
	pods := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.Raw(), opts)
	if err := pods.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitRV(ctx, "7"); err != nil { // the last change
		log.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.Metric {
			if family.GetName() == "informer_silent_seconds" {
				continue // differs each time
			}
			fmt.Print(family.GetName())
			for _, label := range m.Label {
				fmt.Print(" ", label.GetName(), "=", label.GetValue())
			}
			fmt.Println("", m.GetGauge().GetValue()+m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount()))
		}
	}
	// Output:
	// informer_behind resource=pods 0
	// informer_bytes resource=pods 152
	// informer_changes_total resource=pods type=ADDED 2
	// informer_changes_total resource=pods type=DELETED 1
	// informer_changes_total resource=pods type=UPDATED 1
	// informer_list_seconds resource=pods 1
	// informer_lists_total reason=initial resource=pods 1
	// informer_objects resource=pods 1
	// informer_queued resource=pods 0
	// informer_watching resource=pods 1
}
