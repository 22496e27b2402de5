// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"iter"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
)

// TestMemoryMetrics: metrics show the memory of a resource and of its watches.
func TestMemoryMetrics(t *testing.T) {
	o := pod("ns", "a", 5, "app", "web")
	b := newBench(t, podList(10, o))
	b.apply(kube.Modified, pod("ns", "a", 11, "app", "web"))
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(&cacheMetrics{reads: b.reads, lag: newLag(), limiters: nil}); err != nil {
		t.Fatal(err)
	}
	gather := func() map[string]float64 { return gathered(t, registry) }
	got := gather()
	if got["watchkeeper_resource_objects"] != 1 || got["watchkeeper_resource_bytes"] != float64(len(o.JSON)+1) ||
		got["watchkeeper_resource_overhead_bytes"] < 100 || got["watchkeeper_resource_window_bytes"] < float64(len(o.JSON)) {
		t.Errorf("%v", got)
	}
	if _, ok := got["watchkeeper_stack_bytes_per_watch"]; ok {
		t.Error("a size of watches without a watch")
	}
	b.res.OpenWatch()
	defer b.res.CloseWatch()
	if n := gather()["watchkeeper_stack_bytes_per_watch"]; n < 1000 {
		t.Errorf("%v bytes for a watch", n)
	}
}

// gathered returns the gauges and counters, with their labels but the resource.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() != "resource" {
					name += " " + l.GetValue()
				}
			}
			switch {
			case m.GetGauge() != nil:
				values[name] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				values[name] = m.GetCounter().GetValue()
			}
		}
	}
	return values
}

// TestPastMetrics: metrics show the slots and watches of readers of the past.
func TestPastMetrics(t *testing.T) {
	b, h := newPastBench(t)
	registry := prometheus.NewPedanticRegistry()
	history := historyapi.New(historyapi.Handler{Past: b.reads.past})
	exports := history.Limiters()[1]
	if err := registry.Register(&cacheMetrics{reads: b.reads, lag: newLag(), limiters: history.Limiters}); err != nil {
		t.Fatal(err)
	}
	release, err := exports.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull2(h.Stream.Events(t.Context(), 10, 100))
	if _, err, ok := next(); err != nil || !ok {
		t.Fatal(err)
	}
	got := gathered(t, registry)
	if got["watchkeeper_history_inflight_requests export"] != 1 || got["watchkeeper_history_inflight_requests list"] != 0 ||
		got["watchkeeper_history_readers"] != 1 || got["watchkeeper_history_reading_bytes"] <= 0 {
		t.Errorf("%v", got)
	}
	stop()
	release()
	for range 3 {
		_, _ = exports.Acquire(t.Context())
	}
	got = gathered(t, registry)
	if got["watchkeeper_history_inflight_requests export"] != 2 || got["watchkeeper_history_rejected_requests_total export"] != 1 ||
		got["watchkeeper_history_readers"] != 0 || got["watchkeeper_history_reading_bytes"] != 0 {
		t.Errorf("%v", got)
	}
}
