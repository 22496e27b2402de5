// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
)

// up returns the metric that says whether recording works.
func (g *rig) up() float64 {
	g.t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(g.r.metrics); err != nil {
		g.t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "watchkeeper_history_up" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	g.t.Fatal("there is no metric")
	return 0
}

// TestNames: a resource is recorded under any of its names, at the first and at later
// starts. A name that no resource has prevents the start.
func TestNames(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	for range 2 {
		g := api.run(t, api.recorder(t, fs, "po", "*.example.com"))
		g.recorded(api.write("a", "1"))
		until(t, "a healthy recording", func() bool { return g.up() == 1 })
		g.stop()
	}
	r := api.recorder(t, fs, "po", "podz")
	err := r.Open(t.Context())
	if !errors.Is(err, ErrNotServed) || !strings.HasPrefix(err.Error(), `--record: "podz" `) || !strings.Contains(err.Error(), "did you mean pods?") {
		t.Errorf("got %v", err)
	}
	r = api.recorder(t, fs)
	defer r.Close()
	if err := r.Open(t.Context()); err != nil {
		t.Errorf("the history is still open: %v", err)
	}
}

// TestNamesUnknown: if the API server cannot be asked at the start, names that no
// resource has are reported while others are recorded.
func TestNamesUnknown(t *testing.T) {
	api := newFakeAPI(t)
	api.hidden = true
	g := api.run(t, api.recorder(t, vfs.NewMem(), "po", "podz"))
	api.change(func() { api.hidden = false })
	g.recorded(api.write("a", "1"))
	var status Status
	until(t, "the report of the name", func() bool {
		status, _ = g.r.Status()
		return len(status.NotServed) == 1
	})
	if !status.Recording || !strings.Contains(status.NotServed[0], `"podz" matches no resource of the API server: did you mean pods?`) || g.up() != 0 {
		t.Errorf("%+v, up %v", status, g.up())
	}
}

// TestNameIsGone: a recorded resource whose definition is removed does not prevent the
// next start, but is reported until it is back.
func TestNameIsGone(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	api.gadgets, api.served = 1, true
	patterns := []string{"pods", "gadgets"}
	g := api.run(t, api.recorder(t, fs, patterns...))
	g.recorded(api.write("a", "1"))
	until(t, "a record of gadgets", func() bool { return len(g.r.Store().Resources()) == 2 && g.up() == 1 })
	g.stop()
	api.change(func() { api.gadgets, api.served = 0, false })
	g = api.run(t, api.recorder(t, fs, patterns...))
	until(t, "a report", func() bool { status, _ := g.r.Status(); return len(status.NotServed) == 1 && g.up() == 0 })
	api.change(func() { api.gadgets, api.served = 2, true })
	until(t, "a healthy recording", func() bool { return g.up() == 1 })
}
