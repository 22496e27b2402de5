// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGoals: each row has a figure, and at most one target.
func TestGoals(t *testing.T) {
	for _, g := range goals(chooseSizes(true)) {
		if g.Max > 0 && g.Min > 0 || !strings.Contains(g.Key, " ") || g.Title == "" {
			t.Errorf("%+v", g)
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

// TestMeter: the meter forwards and counts the bytes that the server sends.
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
