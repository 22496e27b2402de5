// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
)

// The API server's process is this program, which here is the test.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-serve") {
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

func TestRun(t *testing.T) {
	t.Chdir("../..")
	set(t, pods, 100)
	set(t, events, 200)
	set(t, rounds, 2)
	set(t, modes, "^(client-go/typed-protobuf|floor/.*)-watchlist$")
	var out, progress bytes.Buffer
	if err := run(t.Context(), &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.Bytes())
	}
	for want, times := range map[string]int{
		`(?m)^BenchmarkInformer/library=client-go/mode=typed-protobuf-watchlist/via=http 1 ([0-9.]+ [^ \n]+ ?)+$`: 2,
		`(?m)^BenchmarkInformer/library=client-go/mode=typed-protobuf-watchlist/via=tls 1 ([0-9.]+ [^ \n]+ ?)+$`:  2,
		`(?m)^\| client-go typed-protobuf-watchlist \*( \| [0-9.]+)+ \|$`:                                         2,
		`(?m)^\| client-go typed-protobuf-watchlist \*( \| 1.00 / 1.00)+ \|$`:                                     2,
		`(?m)^BenchmarkInformer/library=baseline/mode=(json|protobuf)-watchlist/via=(http|tls) 1 `:                8,
	} {
		if n := len(regexp.MustCompile(want).FindAllString(out.String(), -1)); n != times {
			t.Errorf("%q is there %d times, want %d, in\n%s", want, n, times, out.Bytes())
		}
	}
}

func TestProportions(t *testing.T) {
	cpu := func(seconds float64) measure.Result { return measure.Result{Sync: measure.Phase{CPU: seconds}} }
	r := &report{pods: 1, events: 1}
	var out bytes.Buffer
	for _, m := range []struct {
		mode measure.Mode
		cpu  []float64
	}{
		{measure.Mode{Name: "usual", Library: "client-go", Encoding: "JSON", Default: true}, []float64{30, 8, 9, 10, 11}},
		{measure.Mode{Name: "better", Library: "client-go", Encoding: "JSON"}, []float64{5}},
		{measure.Mode{Name: "little", Library: "client-go", Encoding: "JSON", Partial: true}, []float64{1}},
		{measure.Mode{Name: "another", Library: "client-go", Encoding: "protobuf", Default: true}, []float64{2}},
		{measure.Mode{Name: "raw", Library: "other", Encoding: "JSON"}, []float64{2, 3}},
	} {
		for _, seconds := range m.cpu {
			r.add(&out, m.mode, "http", cpu(seconds))
		}
	}
	out.Reset()
	r.tables(&out)
	_, table, _ := strings.Cut(out.String(), "in proportion")
	for _, want := range []string{
		"| client-go usual * | – / – | 1.00 / 2.00 |",
		"| client-go better | – / – | 0.50 / 1.00 |",
		"| client-go little | – / – | 0.10 / 0.20 |",
		"| client-go another * | – / – | 1.00 / 1.00 |",
		"| other raw | – / – | 0.25 / 0.50 |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in%s", want, table)
		}
	}
}
