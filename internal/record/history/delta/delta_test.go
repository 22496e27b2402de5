// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/watchkeeper/watchkeeper/informer/scan"
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
		if got, err := apply([]byte("also "), test.from, delta); err != nil || string(got) != "also "+test.to {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		checkEdits(t, test.from, test.to, delta)
		if len(delta) > test.max {
			t.Errorf("%s: a delta of %d bytes, more than %d: %q", name, len(delta), test.max, delta)
		}
	}
}

// apply is what a delta means: it appends to dst the text that the delta makes of from.
func apply(dst []byte, from string, delta []byte) ([]byte, error) {
	end := 0
	for len(delta) > 0 {
		m, k := binary.Uvarint(delta)
		if k <= 0 || m > uint64(len(delta)-k) {
			return nil, ErrMismatch
		}
		dst = append(dst, delta[k:k+int(m)]...)
		if delta = delta[k+int(m):]; len(delta) == 0 {
			break
		}
		n, k := binary.Uvarint(delta)
		jump, l := binary.Varint(delta[max(k, 0):])
		if k <= 0 || l <= 0 {
			return nil, ErrMismatch
		}
		delta = delta[k+l:]
		at := int64(end) + int64(m) + jump
		if at < 0 || at > int64(len(from)) || n > uint64(int64(len(from))-at) {
			return nil, ErrMismatch
		}
		dst = append(dst, from[at:at+int64(n)]...)
		end = int(at) + int(n)
	}
	return dst, nil
}

// checkEdits checks the edits of a delta.
func checkEdits(t *testing.T, from, to string, delta []byte) {
	t.Helper()
	edits, ok := Edits(nil, from, delta)
	if !ok {
		t.Fatalf("%q has no edits", delta)
	}
	if got := string(Patched(nil, from, edits)); got != to {
		t.Fatalf("the edits %+v of %q make %q of %q", edits, delta, got, from)
	}
	text := []byte(from)
	if Overwrite(text, delta) && string(text) != to || string(text) != from && string(text) != to {
		t.Fatalf("overwriting %q with %q makes %q", from, delta, text)
	}
	text = []byte(from)
	if edits, _ = Edits(nil, viewOf(text), delta); string(Patch(text, edits)) != to {
		t.Fatalf("the edits %+v of %q do not make %q of %q in its memory", edits, delta, to, from)
	}
}

func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// TestOverwrite: of the texts of one length, most are made by overwriting.
func TestOverwrite(t *testing.T) {
	const from = `{"metadata":{"resourceVersion":"1234"},"status":{"at":"10:00:00","n":10,"phase":"Pending"}}`
	for to, want := range map[string]bool{
		from: true,
		strings.NewReplacer("1234", "1235", "10:00:00", "10:00:09", "Pending", "Running").Replace(from): true,
		from[:len(from)-1] + "]": true,
		"":                       false,
		from + "x":               false,
		strings.Replace(from, "1234", "12345", 1): false,
		from[40:] + from[:40]:                     false,
	} {
		delta := Append(nil, from, to)
		text := []byte(from)
		if got := Overwrite(text, delta); got != want || want && string(text) != to || !want && string(text) != from {
			t.Errorf("%q is made by overwriting: %v, want %v: %q", to, got, want, text)
		}
	}
}

// TestDeltaOfGarbage: apply refuses garbage, and never reads beyond the text.
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
		bad = bad[:rnd.IntN(len(bad)+1)]
		to, err := apply(nil, from, bad)
		if errors.Is(err, ErrMismatch) {
			refused++
			if _, ok := Edits(nil, from, bad); ok || Overwrite([]byte(from), bad) {
				t.Fatalf("apply refuses %q, which has edits", bad)
			}
			continue
		}
		checkEdits(t, from, string(to), bad)
	}
	if refused == 0 {
		t.Error("apply refused nothing")
	}
}

func FuzzDelta(f *testing.F) {
	f.Add("", "a", []byte{1, 2})
	f.Add(strings.Repeat("abcdefgh", 9), strings.Repeat("abcdefgh", 8)+"x", []byte{0, 200, 1, 3})
	f.Fuzz(func(t *testing.T, from, to string, junk []byte) {
		got, err := apply(nil, from, Append(nil, from, to))
		if err != nil || string(got) != to {
			t.Fatalf("%q, %v", got, err)
		}
		checkEdits(t, from, to, Append(nil, from, to))
		if to, err := apply(nil, from, junk); err == nil { // must not panic
			checkEdits(t, from, string(to), junk)
		} else if _, ok := Edits(nil, from, junk); ok || Overwrite([]byte(from), junk) {
			t.Fatalf("apply refuses %q, which has edits", junk)
		}
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
			out, _ = apply(out[:0], from, delta)
		}
	})
	b.Run("overwrite", func(b *testing.B) {
		b.SetBytes(int64(len(to)))
		to := strings.NewReplacer("1234567", "1234599", "10:00:00", "10:00:05").Replace(from)
		text, delta := []byte(from), Append(nil, from, to)
		for b.Loop() {
			Overwrite(text, delta)
		}
	})
	var edits []scan.Edit
	b.Run("patch", func(b *testing.B) {
		b.SetBytes(int64(len(to)))
		for b.Loop() {
			edits, _ = Edits(edits[:0], from, delta)
			out = Patched(out[:0], from, edits)
		}
	})
}
