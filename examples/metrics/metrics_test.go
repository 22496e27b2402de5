// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/watchkeeper/watchkeeper/examples/metrics"
	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/informer/reconcile"
)

// TestInformers: several informers of one collection are counted together, and those that
// have stopped or are garbage are left out.
func TestInformers(t *testing.T) {
	src, err := informer.FromURL("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	of := metrics.New(registry).Of
	const head = "# HELP informer_objects Objects held.\n# TYPE informer_objects gauge\n"
	check := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "informer_objects"); err != nil {
			t.Error(err)
		}
	}
	pods, events := informer.Resource{Version: "v1", Name: "pods"}, informer.Resource{Version: "v1", Name: "events"}
	newEvents := informer.Resource{Group: "events.k8s.io", Version: "v1", Name: "events"}
	var all []*informer.Informer[json.RawMessage]
	add := func(res informer.Resource, o informer.Options) {
		o.Metrics = of
		all = append(all, informer.New(src, res, informer.Raw(), o))
	}
	add(events, informer.Options{})
	add(newEvents, informer.Options{})
	add(pods, informer.Options{})
	add(pods, informer.Options{Namespaces: []string{"a"}})
	add(pods, informer.Options{LabelSelector: "x=y", FieldSelector: "status.phase=Running"})
	check(head + `informer_objects{group="",resource="events",selector=""} 0
informer_objects{group="",resource="pods",selector=""} 0
informer_objects{group="",resource="pods",selector="x=y;status.phase=Running"} 0
informer_objects{group="events.k8s.io",resource="events",selector=""} 0
`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := all[1].Run(ctx); err != nil {
		t.Fatal(err)
	}
	check(head + `informer_objects{group="",resource="events",selector=""} 0
informer_objects{group="",resource="pods",selector=""} 0
informer_objects{group="",resource="pods",selector="x=y;status.phase=Running"} 0
`)
	kept := all[3]
	all = nil
	runtime.GC()
	check(head + `informer_objects{group="",resource="pods",selector=""} 0
`)
	runtime.KeepAlive(kept)
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
	report(registry)
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

// Exports Prometheus metrics of a controller.
func ExampleControllers() {
	api := informertest.New(informertest.Options{})
	api.Put("pods", `{"metadata":{"name":"one","namespace":"default"}}`)
	network := informertest.NewNetwork(api)
	defer network.Close()

	src := informer.NewSource(network.URL(), network)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	registry := prometheus.NewRegistry()
	controllers := metrics.NewControllers(registry)
	pods := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.Raw(), informer.Options{})
	calls := make(chan int, 2)
	c := reconcile.New("pods", func(context.Context, informer.Key) (reconcile.Result, error) {
		if calls <- 0; len(calls) == 1 {
			return reconcile.Result{}, errors.New("not yet")
		}
		return reconcile.Result{After: time.Hour}, nil
	}, reconcile.Options{Metrics: controllers.Of("pods")}, reconcile.For(pods))
	controllers.Add("pods", c.Status)
	group := reconcile.Group{Controllers: []*reconcile.Controller{c}}
	ended := make(chan error, 1)
	go func() { ended <- group.Run(ctx) }()
	for c.Status().Waiting == 0 || len(calls) < 2 {
		time.Sleep(time.Millisecond)
	}
	report(registry)
	cancel()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output:
	// controller_keys controller=pods state=initial 0
	// controller_keys controller=pods state=live 0
	// controller_keys controller=pods state=running 0
	// controller_keys controller=pods state=waiting 1
	// controller_reconcile_seconds controller=pods failed=false 1
	// controller_reconcile_seconds controller=pods failed=true 1
	// controller_retries_total controller=pods 1
	// controller_wait_seconds controller=pods 2
}

// report prints the metrics of a registry, but for the one that differs each time.
func report(registry *prometheus.Registry) {
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
}
