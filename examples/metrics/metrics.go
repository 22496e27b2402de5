// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics is an example: it exports the metrics of informers and controllers to
// Prometheus.
package metrics

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer"
)

// Informers has the metrics of a program's informers. Those of one resource and selector
// have the same labels, and are counted together. Namespaces are no label: those of an
// informer change with AddNamespace and RemoveNamespace.
type Informers struct {
	changes, events      *prometheus.CounterVec
	lists, watches, errs *prometheus.CounterVec
	listing, reconciling *prometheus.HistogramVec
	age                  *prometheus.HistogramVec

	mu   sync.Mutex
	each map[collection][]weak.Pointer[one]
}

// one is an informer. Its Metrics refer to it: it is garbage together with the informer.
type one struct{ status func() informer.Status }

// A collection has the values of the labels in collectionLabels.
type collection [3]string

var collectionLabels = []string{"group", "resource", "selector"}

// New registers the metrics.
func New(registry *prometheus.Registry) *Informers {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(collectionLabels, labels...))
		registry.MustRegister(c)
		return c
	}
	seconds := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(.001, 4, 10)}, append(collectionLabels, labels...))
		registry.MustRegister(h)
		return h
	}
	p := &Informers{
		changes:     counter("informer_changes_total", "Changes of the copy.", "type"),
		events:      counter("informer_events_total", "Events delivered to subscribers.", "type", "coalesced"),
		lists:       counter("informer_lists_total", "Full lists, by reason.", "reason"),
		watches:     counter("informer_watches_total", "Watches that ended, by how.", "end"),
		errs:        counter("informer_errors_total", "Failed requests and watches."),
		listing:     seconds("informer_list_seconds", "Duration of full lists."),
		age:         seconds("informer_reconcile_age_seconds", "Age of an event when its reconciliation began."),
		reconciling: seconds("informer_reconcile_seconds", "Duration of reconciliations.", "failed"),
		each:        map[collection][]weak.Pointer[one]{},
	}
	registry.MustRegister(p)
	return p
}

// Of is a value of [informer.Options].Metrics.
func (p *Informers) Of(of informer.Collection, status func() informer.Status) informer.Metrics {
	c := collection{of.Resource.Group, of.Resource.Name, strings.Trim(of.LabelSelector+";"+of.FieldSelector, ";")}
	o := &one{status}
	p.mu.Lock()
	p.each[c] = append(p.each[c], weak.Make(o))
	p.mu.Unlock()
	with := func(values ...string) []string { return append(c[:], values...) }
	return informer.Metrics{
		Changed: func(typ informer.EventType) {
			p.changes.WithLabelValues(with(string(typ))...).Inc()
			runtime.KeepAlive(o) // as long as the informer has its Metrics
		},
		Listed: func(reason string, _ int, took time.Duration) {
			p.lists.WithLabelValues(with(reason)...).Inc()
			p.listing.WithLabelValues(with()...).Observe(took.Seconds())
		},
		Watched: func(end string, _ time.Duration) { p.watches.WithLabelValues(with(end)...).Inc() },
		Failed:  func(error) { p.errs.WithLabelValues(with()...).Inc() },
		Delivered: func(typ informer.EventType, coalesced bool) {
			p.events.WithLabelValues(with(string(typ), fmt.Sprint(coalesced))...).Inc()
		},
		Reconciled: func(age, took time.Duration, err error) {
			p.age.WithLabelValues(with()...).Observe(age.Seconds())
			p.reconciling.WithLabelValues(with(fmt.Sprint(err != nil))...).Observe(took.Seconds())
		},
	}
}

// gauges are read from the informers' Status when metrics are collected.
var gauges = []struct {
	desc  *prometheus.Desc
	value func(informer.Status) float64
	sum   func(a, b float64) float64 // of two informers of one collection
}{
	{gauge("informer_objects", "Objects held."), func(s informer.Status) float64 { return float64(s.Objects) }, add},
	{gauge("informer_bytes", "Bytes of the objects held."), func(s informer.Status) float64 { return float64(s.Held) }, add},
	{gauge("informer_behind", "Events by which the slowest subscriber lags."), func(s informer.Status) float64 { return float64(s.Behind) }, math.Max},
	{gauge("informer_queued", "Events waiting to be reconciled."), func(s informer.Status) float64 { return float64(s.Queued) }, add},
	{gauge("informer_silent_seconds", "Time since the API server last sent anything."), func(s informer.Status) float64 { return s.Lag.Seconds() }, math.Max},
	{gauge("informer_watching", "1 while the copy follows the API server."), func(s informer.Status) float64 {
		return map[informer.Phase]float64{informer.Watching: 1}[s.Phase]
	}, math.Min},
}

func gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, collectionLabels, nil)
}

func add(a, b float64) float64 { return a + b }

// Describe implements prometheus.Collector.
func (p *Informers) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range gauges {
		ch <- g.desc
	}
}

// Collect implements prometheus.Collector. Informers that have stopped are left out.
func (p *Informers) Collect(ch chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, pointers := range p.each {
		var statuses []informer.Status
		p.each[c] = slices.DeleteFunc(pointers, func(w weak.Pointer[one]) bool {
			o := w.Value()
			if o != nil {
				statuses = append(statuses, o.status())
			}
			return o == nil
		})
		statuses = slices.DeleteFunc(statuses, func(s informer.Status) bool { return s.Phase == informer.Stopped })
		if len(statuses) == 0 {
			continue
		}
		for _, g := range gauges {
			value := g.value(statuses[0])
			for _, s := range statuses[1:] {
				value = g.sum(value, g.value(s))
			}
			ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, c[:]...)
		}
	}
}
