// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/watchkeeper/watchkeeper/informer"
)

// TestPrometheus: the example's options serve several informers of one resource, those of
// one namespace and selector too.
func TestPrometheus(t *testing.T) {
	src, err := informer.FromURL("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	metrics := newProm(registry).of
	for _, o := range []informer.Options{
		{Metrics: metrics},
		{Metrics: metrics, Namespaces: []string{"a"}},
		{Metrics: metrics, Namespaces: []string{"a"}},
		{Metrics: metrics, Namespaces: []string{"a", "b"}, FieldSelector: "status.phase=Running"},
		{Metrics: metrics, LabelSelector: "x=y", FieldSelector: "status.phase=Running"},
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
