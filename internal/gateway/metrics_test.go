// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// TestMemoryMetrics: what a resource and its watches take can be read off.
func TestMemoryMetrics(t *testing.T) {
	o := pod("ns", "a", 5, "app", "web")
	b := newBench(t, podList(10, o))
	b.apply(kube.Modified, pod("ns", "a", 11, "app", "web"))
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(b.cache.metrics); err != nil {
		t.Fatal(err)
	}
	gather := func() map[string]float64 {
		all, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, family := range all {
			for _, m := range family.GetMetric() {
				if m.GetGauge() != nil {
					values[family.GetName()] = m.GetGauge().GetValue()
				}
			}
		}
		return values
	}
	got := gather()
	if got["watchkeeper_resource_objects"] != 1 || got["watchkeeper_resource_bytes"] != float64(len(o.JSON)+1) ||
		got["watchkeeper_resource_overhead_bytes"] < 100 || got["watchkeeper_resource_window_bytes"] < float64(len(o.JSON)) {
		t.Errorf("%v", got)
	}
	if _, ok := got["watchkeeper_stack_bytes_per_watch"]; ok {
		t.Error("there is a size of watches, though there are none")
	}
	b.res.watches.Add(1)
	if n := gather()["watchkeeper_stack_bytes_per_watch"]; n < 1000 {
		t.Errorf("%v bytes for a watch", n)
	}
}
