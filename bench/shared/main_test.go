// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func set[T any](t *testing.T, p *T, v T) {
	was := *p
	*p = v
	t.Cleanup(func() { *p = was })
}

// TestMain is also the client of the hostile user, see attack.go.
func TestMain(m *testing.M) {
	if attacks() {
		return
	}
	os.Exit(m.Run())
}

// All scenarios, with a control plane and few users: two minutes, in the soak.
func TestAll(t *testing.T) {
	if os.Getenv("WATCHKEEPER_BENCH_SHARED") == "" {
		t.Skip("part of make soak: WATCHKEEPER_BENCH_SHARED=1")
	}
	set(t, rounds, 2)
	s := sizes{users: minUsers, pairs: 2, requests: 50, rate: 20, spread: settle, span: time.Second, hold: time.Second, single: 5}
	var out, progress bytes.Buffer
	if err := run(t.Context(), s, &out, &progress); err != nil {
		t.Fatalf("%v\n%s\n%s", err, progress.Bytes(), out.Bytes())
	}
	for want, times := range map[string]int{
		`(?m)^BenchmarkRequest/mode=(local|shared|direct)/proto=http[12]/form=(list|get) 50 [0-9.]+ cpu-ns/op [0-9]+ B/op$`: 2 * 12,
		`(?m)^BenchmarkShare/users=(20|2) 20 [-0-9.e]+ of-direct$`:                                                          2 * 2,
		// One token of all users, or of two, is cached when the gateway is warm.
		`(?m)^BenchmarkOpen/watches=200/users=200 200 [0-9.]+ s (199|200) tokenreviews (199|200) accessreviews `: 1,
		`(?m)^BenchmarkOpen/watches=200/users=2 200 [0-9.]+ s [12] tokenreviews [12] accessreviews `:             1,
		`(?m)^BenchmarkHeld/watches=200/users=(200|2) .* 0 cut 0 missed `:                                        2,
		`(?m)^BenchmarkRevoked/of=user 5 .* [1-9][0-9.]* accessreviews/user-concerned `:                          1,
		`(?m)^BenchmarkRevoked/of=group 20 .* [1-9][0-9.]* accessreviews/user-concerned `:                        2,
		`(?m)^BenchmarkHostile/with=no .* 0 refused 0 cut `:                                                      2,
		`(?m)^BenchmarkHostile/with=yes .* [1-9][0-9]* hostile-answers$`:                                         2,
		`(?m)^BenchmarkHostileShare `: 2,
		`(?m)^BenchmarkStart/of=(namespaces|secrets)/from=(direct|gateway) 40 [0-9.]+ p50-ms [0-9.]+ p99-ms$`: 2 * 4,
	} {
		if n := len(regexp.MustCompile(want).FindAllString(out.String(), -1)); n != times {
			t.Errorf("%q is there %d times, want %d, in\n%s", want, n, times, out.Bytes())
		}
	}
	for _, g := range goals(s) {
		if !strings.Contains(out.String(), "| "+g.Title+" | ") && g.Than == "" { // without a check there is no quotient
			t.Errorf("no row %q", g.Title)
		}
	}
}

// The requests of one scenario, with a control plane and few users.
func TestCached(t *testing.T) {
	set(t, which, "cached")
	s := sizes{users: minUsers, pairs: 2, requests: 50, rate: 20, spread: settle, span: time.Second, hold: time.Second, single: 5}
	var out, progress bytes.Buffer
	if err := run(t.Context(), s, &out, &progress); err != nil {
		t.Fatalf("%v\n%s\n%s", err, progress.Bytes(), out.Bytes())
	}
	const want = `(?m)^BenchmarkRequest/mode=(local|shared|direct)/proto=http[12]/form=(list|get) 50 [0-9.]+ cpu-ns/op [0-9]+ B/op$`
	if n := len(regexp.MustCompile(want).FindAllString(out.String(), -1)); n != 2*12 {
		t.Errorf("%q is there %d times, want 24, in\n%s", want, n, out.Bytes())
	}
}

func TestParseCounts(t *testing.T) {
	got, err := parseCounts(strings.NewReader(`# TYPE apiserver_request_total counter
apiserver_request_total{code="201",group="authentication.k8s.io",resource="tokenreviews",subresource="",verb="POST"} 7
apiserver_request_total{code="500",group="authentication.k8s.io",resource="tokenreviews",subresource="",verb="POST"} 1
apiserver_request_total{code="201",group="authorization.k8s.io",resource="subjectaccessreviews",verb="POST"} 1.5e+01
apiserver_request_total{code="200",resource="configmaps",verb="LIST"} 2
apiserver_request_total{code="200",resource="configmaps",verb="GET"} 3
apiserver_request_total{code="200",resource="configmaps",verb="WATCH"} 100
apiserver_request_total{code="200",resource="pods",subresource="tokenreviews",verb="GET"} 100
apiserver_request_duration_seconds_count{resource="tokenreviews"} 100
`))
	if want := (counts{tokens: 8, rights: 15, reads: 5}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := parseCounts(strings.NewReader(`apiserver_request_total{resource="pods"} many`)); err == nil {
		t.Error("a metric that is no number is no error")
	}
}

// A line that the API server is writing is not read.
func TestParseAudit(t *testing.T) {
	got, err := parseAudit(strings.NewReader(`{"requestReceivedTimestamp":"2026-11-25T20:00:00.500000Z","requestObject":{"spec":{"user":"jane"}}}
{"requestReceivedTimestamp":"2026-11-25T20:00:01.000000Z","requestObject":{"spec":{"user":"joe"}}}
{"requestReceivedTimestamp":"2026-1`))
	if err != nil || len(got) != 2 || got[0].user != "jane" || got[1].user != "joe" || got[1].at.Sub(got[0].at) != 500*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
}
