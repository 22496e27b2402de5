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
)

// A prom makes metrics of Prometheus of what informers do, by resource.
type prom struct {
	registry             *prometheus.Registry
	changes, told        *prometheus.CounterVec
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
		told:        counter("informer_events_total", "Events that subscribers were handed.", "type", "coalesced"),
		lists:       counter("informer_lists_total", "Full lists, by what made them necessary.", "reason"),
		watches:     counter("informer_watches_total", "Watches that have ended, by how.", "end"),
		errs:        counter("informer_errors_total", "Requests and watches that failed."),
		listing:     seconds("informer_list_seconds", "How long full lists took."),
		age:         seconds("informer_reconcile_age_seconds", "How old an event was when its reconciliation began."),
		reconciling: seconds("informer_reconcile_seconds", "How long reconciliations took.", "failed"),
	}
}

// of is for informer.Options. What an informer says of itself is asked for when
// the metrics are collected. Two informers of one resource would want a further
// label.
func (p *prom) of(res informer.Resource, status func() informer.Status) informer.Metrics {
	gauge := func(name, help string, value func(informer.Status) float64) {
		p.registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"resource": res.Name}},
			func() float64 { return value(status()) }))
	}
	gauge("informer_objects", "Objects held.", func(s informer.Status) float64 { return float64(s.Objects) })
	gauge("informer_bytes", "Bytes that they are held in.", func(s informer.Status) float64 { return float64(s.Held) })
	gauge("informer_behind", "Events that the slowest subscriber is behind.", func(s informer.Status) float64 { return float64(s.Behind) })
	gauge("informer_queued", "Events to be reconciled.", func(s informer.Status) float64 { return float64(s.Queued) })
	gauge("informer_silent_seconds", "For how long the API server has not been heard of.", func(s informer.Status) float64 { return s.Lag.Seconds() })
	gauge("informer_watching", "1 while the copy follows the API server.", func(s informer.Status) float64 {
		return map[informer.Phase]float64{informer.Watching: 1}[s.Phase]
	})
	return promOf{p, res.Name}
}

// A promOf is informer.Metrics of one resource.
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

func (p promOf) Told(typ informer.EventType, coalesced bool) {
	p.told.WithLabelValues(string(typ), fmt.Sprint(coalesced), p.resource).Inc()
}

func (p promOf) Reconciled(age, took time.Duration, err error) {
	p.age.WithLabelValues(p.resource).Observe(age.Seconds())
	p.reconciling.WithLabelValues(fmt.Sprint(err != nil), p.resource).Observe(took.Seconds())
}

// Counts what informers do, for Prometheus. The options do for all informers of
// a program; those of a manager of controller-runtime too.
func ExampleMetrics() {
	server := apiServer("Pod", "v1", `{"nodeName":"n1"}`, true)
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
	go pods.Run(ctx) //nolint:errcheck // WaitSynced tells
	if err := pods.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitRV(ctx, "7"); err != nil { // the last change there is
		log.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.Metric {
			if family.GetName() == "informer_silent_seconds" {
				continue // it is another one each time
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
