// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/watchkeeper/watchkeeper/examples/metrics"
	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// TestPrometheus: the example's options serve several informers of one resource, those of
// one namespace and selector too.
func TestPrometheus(t *testing.T) {
	src, err := informer.FromURL("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	of := metrics.New(registry).Of
	for _, o := range []informer.Options{
		{Metrics: of},
		{Metrics: of, Namespaces: []string{"a"}},
		{Metrics: of, Namespaces: []string{"a"}},
		{Metrics: of, Namespaces: []string{"a", "b"}, FieldSelector: "status.phase=Running"},
		{Metrics: of, LabelSelector: "x=y", FieldSelector: "status.phase=Running"},
	} {
		informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.Raw(), o)
	}
	const want = `# HELP informer_objects Objects held.
# TYPE informer_objects gauge
informer_objects{namespace="",resource="pods",selector=""} 0
informer_objects{namespace="",resource="pods",selector="x=y;status.phase=Running"} 0
informer_objects{namespace="a",resource="pods",selector=""} 0
informer_objects{namespace="a,b",resource="pods",selector="status.phase=Running"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "informer_objects"); err != nil {
		t.Error(err)
	}
}

// Exports Prometheus metrics of informers. The options can be shared by all
// informers of a program, and by those of a controller-runtime manager, which makes one
// for each namespace and selector of its cache.
func Example() {
	api := informertest.New(informertest.Options{})
	api.Put("pods", `{"metadata":{"name":"one","namespace":"default"}}`)
	network := informertest.NewNetwork(api)
	defer network.Close()

	src := informer.NewSource(network.URL(), network)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	registry := prometheus.NewRegistry() // promhttp.HandlerFor serves it
	opts := informer.Options{Metrics: metrics.New(registry).Of}
	pods := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.Raw(), opts)
	if err := pods.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}
	api.Put("pods", `{"metadata":{"name":"two","namespace":"default"}}`)
	api.Put("pods", `{"metadata":{"name":"one","namespace":"default","labels":{"a":"b"}}}`)
	if err := pods.WaitRV(ctx, fmt.Sprint(api.Delete("pods", "default/two"))); err != nil {
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
				if label.GetValue() != "" {
					fmt.Print(" ", label.GetName(), "=", label.GetValue())
				}
			}
			fmt.Println("", m.GetGauge().GetValue()+m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount()))
		}
	}
	// Output:
	// informer_behind resource=pods 0
	// informer_bytes resource=pods 168
	// informer_changes_total resource=pods type=ADDED 2
	// informer_changes_total resource=pods type=DELETED 1
	// informer_changes_total resource=pods type=UPDATED 1
	// informer_list_seconds resource=pods 1
	// informer_lists_total reason=initial resource=pods 1
	// informer_objects resource=pods 1
	// informer_queued resource=pods 0
	// informer_watching resource=pods 1
}
