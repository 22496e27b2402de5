// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

// The fake API server's process is this program, which here is the test.
func TestMain(m *testing.M) {
	if slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-fakeapi") }) {
		main()
		return
	}
	os.Exit(m.Run())
}

func set[T any](t *testing.T, p *T, v T) {
	was := *p
	*p = v
	t.Cleanup(func() { *p = was })
}

// The scenarios that need no control plane, with a gateway and fake API servers.
func TestRun(t *testing.T) {
	set(t, which, "ingest|objects|held")
	set(t, rounds, 2)
	s := sizes{
		cached: 100, ingest: 500, ingestRate: 5000, own: 10, shared: 20,
		holding: time.Second, steady: 50 * time.Millisecond,
	}
	var out, progress bytes.Buffer
	if err := run(t.Context(), s, &out, &progress); err != nil {
		t.Fatalf("%v\n%s\n%s", err, progress.Bytes(), out.Bytes())
	}
	for want, times := range map[string]int{
		`(?m)^BenchmarkIngest/via=gateway/watches=[01] 500( [0-9.]+ [^ \n]+){3} 0 cut$`:          4,
		`(?m)^BenchmarkObject/via=gateway/record=(true|false) 100( [-0-9.]+ [^ \n]+){8}$`:        4,
		`(?m)^BenchmarkHeld/via=gateway/proto=http1 2 10 watches 0 cut 0 lost 0 missed [0-9.]+ `: 1,
		`(?m)^BenchmarkHeld/via=gateway/proto=http2 2 20 watches 0 cut 0 lost 0 missed [0-9.]+ `: 1,
		`(?m)^\| watches cut or events lost, of (10|20) .* \| – \| 0 \| – \| 0 \| yes \|$`:       2,
		`(?m)^\| memory per cached Pod, .* \| ≤ 1.3 \| \*\*no\*\* \|$`:                           4, // of so few
		`(?m)^\| CPU per event in, one watch \| – \| [0-9.]+ µs \| – \| – \| – \|$`:              1,
	} {
		if n := len(regexp.MustCompile(want).FindAllString(out.String(), -1)); n != times {
			t.Errorf("%q is there %d times, want %d, in\n%s", want, n, times, out.Bytes())
		}
	}
}

// A run of all scenarios fails if it lacks a figure of the table.
func TestNothingMeasured(t *testing.T) {
	set(t, &scenarios, []report.Scenario[*harness]{{Name: "lazy", Run: func(*harness) error { return nil }}})
	err := run(t.Context(), chooseSizes(true), io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "Delivery/via=gateway/proto=http2 cpu-ns/delivery") {
		t.Errorf("error %v", err)
	}
}

func TestLags(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	first, later := newArrivals(1), newArrivals(2)
	first.observe(0, 7, at(100))
	first.observe(0, 9, at(200))
	later.observe(0, 7, at(103))
	later.observe(0, 9, at(199))
	later.observe(1, 9, at(250))
	lags, err := later.lags(first)
	if err != nil || !slices.Equal(lags, []float64{3, -1, 50}) {
		t.Errorf("%v, %v", lags, err)
	}
	later.observe(1, 10, at(300))
	if _, err := later.lags(first); err == nil {
		t.Error("an event that is not in the reference is no error")
	}
	if p := report.Percentile(lags, 50); p != 3 {
		t.Errorf("the median is %v", p)
	}
}

// fakeAPI counts updates by object.
type fakeAPI struct {
	mu    sync.Mutex
	names map[string]int
	fail  int // from this update on
	total int
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	if f.fail > 0 && f.total >= f.fail {
		http.Error(w, "no more", http.StatusConflict)
		return
	}
	f.names[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]++
}

func TestUpdates(t *testing.T) {
	api := &fakeAPI{names: map[string]int{}}
	s := httptest.NewServer(api)
	defer s.Close()
	w := &writer{client: s.Client(), url: s.URL, filler: filler(payload)}
	if n, err := w.updates(t.Context(), 2*objects, 10_000); n != 2*objects || err != nil {
		t.Errorf("%d updates, %v", n, err)
	}
	if len(api.names) != objects || api.names["config-3"] != 2 {
		t.Errorf("updates of %v", api.names)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	before := api.total
	if n, err := w.updates(ctx, 1<<30, 0); err != nil || n != api.total-before {
		t.Errorf("%d updates of which %d arrived, %v", n, api.total-before, err)
	}
	api.fail = api.total + 10
	if n, err := w.updates(t.Context(), 1000, 0); err == nil || n != 9 {
		t.Errorf("%d updates, %v", n, err)
	}
	if size := len(w.object(0)); size < 3700 || size > 3900 {
		t.Errorf("an object has %d bytes", size)
	}
}
