// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{
		{[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{7, 1, 100}, 7}, {[]float64{4, 1, 3, 2}, 2.5},
	} {
		given := append([]float64(nil), c.of...)
		if got := Median(c.of); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.of, got, c.want)
		}
		for i := range given {
			if given[i] != c.of[i] {
				t.Errorf("the values were changed to %v", c.of)
			}
		}
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("there is a median of nothing")
	}
}

func TestPercentile(t *testing.T) {
	var values []float64
	for i := 200; i > 0; i-- {
		values = append(values, float64(i))
	}
	for p, want := range map[float64]float64{0: 1, 0.5: 1, 50: 100, 99: 198, 99.1: 199, 100: 200} {
		if got := Percentile(values, p); got != want {
			t.Errorf("Percentile(%v) = %v, want %v", p, got, want)
		}
	}
	if got := Percentile([]float64{5}, 99); got != 5 {
		t.Errorf("of one value: %v", got)
	}
	if !math.IsNaN(Percentile(nil, 50)) {
		t.Error("there is a percentile of nothing")
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	rep := New(&out)
	for _, v := range []float64{400, 100, 200} { // nanoseconds
		rep.Add("X/via=direct", 10, Value{v * 1000, "ns/op"}, Value{1, "other"})
	}
	rep.Add("X/via=gateway", 10, Value{50_000, "ns/op"}, Value{0.25, "other"})
	if want := "BenchmarkX/via=direct 10 400000 ns/op 1 other\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("the first line is not %q:\n%s", want, out.String())
	}
	rep.Add("Z/via=direct", 10, Value{-5, "ns/op"})
	out.Reset()
	direct, gateway := "X/via=direct ns/op", "X/via=gateway ns/op"
	missed := rep.Table(&out, []Row{
		{Title: "met", Direct: direct, Gateway: gateway, Unit: "µs", Scale: 1e-3, Target: 1.0 / 4, Says: "≤ 1/4"},
		{Title: "missed", Direct: direct, Gateway: gateway, Unit: "µs", Scale: 1e-3, Target: 1.0 / 5, Says: "≤ 1/5"},
		{Title: "too little", Direct: "Z/via=direct ns/op", Gateway: gateway, Target: 1, Says: "≤ 1"},
		{Title: "not compared", Direct: "Y ns/op", Gateway: gateway, Target: 1, Says: "≤ 1"},
		{Title: "absolute", Direct: direct, Gateway: gateway, Scale: 1e-3, Target: 60, Absolute: true, Says: "≤ 60"},
		{Title: "enough", Gateway: gateway, Scale: 1e-3, Target: 40, Absolute: true, AtLeast: true, Says: "≥ 40"},
		{Title: "not enough", Gateway: gateway, Scale: 1e-3, Target: 60, Absolute: true, AtLeast: true, Says: "≥ 60"},
		{Title: "beside", Direct: direct, Beside: "another", Gateway: gateway, Scale: 1e-3},
		{Title: "no target", Direct: gateway, Gateway: direct},
		{Title: "not measured", Direct: direct, Gateway: "Y ns/op", Target: 1},
	})
	want := `| | kube-apiserver | gateway | ratio | target | met |
|---|---|---|---|---|---|
| met | 200 µs | 50 µs | 1/4 | ≤ 1/4 | yes |
| missed | 200 µs | 50 µs | 1/4 | ≤ 1/5 | **no** |
| too little | -5 | 50000 | – | ≤ 1 | **no** |
| not compared | – | 50000 | – | ≤ 1 | **no** |
| absolute | 200 | 50 | 1/4 | ≤ 60 | yes |
| enough | – | 50 | – | ≥ 40 | yes |
| not enough | – | 50 | – | ≥ 60 | **no** |
| beside | 200 (another) | 50 | 1/4 | – | – |
| no target | 50000 | 200000 | 4 | – | – |
`
	if out.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", out.String(), want)
	}
	if missed != 4 {
		t.Errorf("%d missed", missed)
	}
}

func TestFormat(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 3: "3", 12345.6: "12346", 43.21: "43.2", 1.2345: "1.234", 0.012345: "0.0123", -43.21: "-43.2"} {
		if got := format(v); got != want {
			t.Errorf("format(%v) = %q, want %q", v, got, want)
		}
	}
}
