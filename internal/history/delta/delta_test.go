// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDelta(t *testing.T) {
	long := strings.Repeat(`{"name":"a","value":"b"},`, 100)
	pod := `{"metadata":{"name":"a","resourceVersion":"1234","labels":{"app":"web"}},"status":{"phase":"Pending","conditions":[` + long[:1000] + `]}}`
	for name, test := range map[string]struct {
		from, to string
		max      int // bytes of the delta
	}{
		"the same":        {pod, pod, 4},
		"nothing":         {"", "", 0},
		"from nothing":    {"", pod, len(pod) + 2},
		"to nothing":      {pod, "", 0},
		"a number":        {pod, strings.Replace(pod, "1234", "1235", 1), 16},
		"longer":          {pod, strings.Replace(pod, "1234", "123456789", 1), 24},
		"shorter":         {pod, strings.Replace(pod, `,"labels":{"app":"web"}`, "", 1), 16},
		"in front":        {pod, "x" + pod, 8},
		"at the end":      {pod, pod + "x", 8},
		"the end cut":     {pod, pod[:len(pod)-100], 4},
		"moved":           {pod, pod[500:] + pod[:500], 32},
		"repeated":        {long, long + long, 16},
		"all different":   {strings.Repeat("a", 1000), strings.Repeat("b", 1000), 1003},
		"shorter than it": {"abc", "abd", 4},
	} {
		delta := Append([]byte("in front"), test.from, test.to)[len("in front"):]
		if got, err := Apply([]byte("also "), test.from, delta); err != nil || string(got) != "also "+test.to {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if len(delta) > test.max {
			t.Errorf("%s: a delta of %d bytes, more than %d: %q", name, len(delta), test.max, delta)
		}
	}
}

// TestDeltaOfGarbage: Apply refuses garbage, and never reads beyond the text.
func TestDeltaOfGarbage(t *testing.T) {
	from := strings.Repeat("0123456789", 20)
	good := Append(nil, from, from[:90]+"xyz"+from[100:])
	rnd := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 20000 {
		bad := append([]byte{}, good...)
		for range 1 + rnd.IntN(3) {
			bad[rnd.IntN(len(bad))] = byte(rnd.Uint32())
		}
		if _, err := Apply(nil, from, bad[:rnd.IntN(len(bad)+1)]); errors.Is(err, ErrMismatch) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("Apply refused nothing")
	}
}

func FuzzDelta(f *testing.F) {
	f.Add("", "a", []byte{1, 2})
	f.Add(strings.Repeat("abcdefgh", 9), strings.Repeat("abcdefgh", 8)+"x", []byte{0, 200, 1, 3})
	f.Fuzz(func(t *testing.T, from, to string, junk []byte) {
		got, err := Apply(nil, from, Append(nil, from, to))
		if err != nil || string(got) != to {
			t.Fatalf("%q, %v", got, err)
		}
		_, _ = Apply(nil, from, junk) // must not panic
	})
}

func BenchmarkDelta(b *testing.B) {
	filler := strings.Repeat(`{"apiVersion":"v1","fieldsType":"FieldsV1","manager":"kubelet"},`, 60)
	from := `{"metadata":{"name":"a","resourceVersion":"1234567","time":"2026-11-21T10:00:00Z"},` + filler + `"status":{"phase":"Pending","startTime":null,` + filler[:600] + `}}`
	to := strings.NewReplacer("1234567", "1234599", "10:00:00", "10:00:05", `"Pending"`, `"Running","podIP":"10.0.0.1"`).Replace(from)
	delta := Append(nil, from, to)
	b.Run("make", func(b *testing.B) {
		b.SetBytes(int64(len(to)))
		b.ReportMetric(float64(len(delta)), "B/delta")
		for b.Loop() {
			delta = Append(delta[:0], from, to)
		}
	})
	var out []byte
	b.Run("apply", func(b *testing.B) {
		b.SetBytes(int64(len(to)))
		for b.Loop() {
			out, _ = Apply(out[:0], from, delta)
		}
	})
}
