// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/bench/fanout/tally"
)

// TestTable: each target stands beside its figure, and what is missed is counted.
func TestTable(t *testing.T) {
	figures := tally.New(io.Discard)
	figures.Add("Open", 1, tally.Value{Of: 2, Unit: "s"})
	figures.Add("Open", 1, tally.Value{Of: 3.5, Unit: "s"})
	figures.Add("Open", 1, tally.Value{Of: 2.5, Unit: "s"})
	figures.Add("Steady", 1, tally.Value{Of: 40, Unit: "fps"}, tally.Value{Of: 300, Unit: "B/change"})
	var out bytes.Buffer
	if missed := table(&out, figures, rows(chooseSizes(false))); missed != 1 {
		t.Errorf("%d missed", missed)
	}
	for _, want := range []string{
		"| 5000 Nodes, 150000 Pods: first full paint | 2.5 s | ≤ 3 | yes |",
		"| steady, 1000 changes/s: frames in a second | 40 | ≥ 58 | **no** |",
		"| bytes on the wire per changed Pod | 300 B | ≤ 300 | yes |",
	} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 5 {
		t.Errorf("%d lines for three figures:\n%s", n, out.String())
	}
}

// TestRows: what is in the table is measured.
func TestRows(t *testing.T) {
	for _, r := range rows(chooseSizes(true)) {
		if r.most > 0 && r.least > 0 || !strings.Contains(r.key, " ") || r.title == "" {
			t.Errorf("%+v", r)
		}
	}
}

func TestSlope(t *testing.T) {
	for _, test := range []struct {
		y    []float64
		want float64
	}{{[]float64{5, 5, 5, 5}, 0}, {[]float64{1, 3, 5, 7}, 2}, {[]float64{0, 3, 0, 3}, 0.6}} {
		if got := slope([]float64{1, 2, 3, 4}, test.y); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%v: %g, want %g", test.y, got, test.want)
		}
	}
}

// TestMeter: what a server sends comes through, and is counted.
func TestMeter(t *testing.T) {
	body := strings.Repeat("x", 3*step+17)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, body) }))
	defer server.Close()
	m, err := newMeter(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.stop()
	resp, err := http.Get(m.URL)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(got) != body {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if n := m.sent.Load(); n < 3*step || n%step != 0 && n < int64(len(body)) {
		t.Errorf("%d bytes are counted of more than %d", n, len(body))
	}
}
