// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestRowsOfAlikeObjects: what is known of the objects before changes no row.
func TestRowsOfAlikeObjects(t *testing.T) {
	const columns = `metadata.labels,metadata.labels.app,spec.nodeName,spec.containers[*].image,spec.containers[?(@.name=="b")].name,status`
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	paths, err := ParseRows(columns)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		text := randomObject(r)
		fresh, err := ParseRows(columns)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(paths.AppendRow(nil, text)), string(fresh.AppendRow(nil, text)); got != want {
			t.Fatalf("%s (seed %d):\n%s, want\n%s", text, seed, got, want)
		}
	}
}

// randomObject returns an object with some of the usual members, and others.
func randomObject(r *rand.Rand) string {
	object := func(names ...string) map[string]any {
		o := map[string]any{}
		for _, name := range names {
			if r.IntN(4) > 0 {
				o[name] = randomValue(r, 2)
			}
		}
		for range r.IntN(3) {
			o[randomText(r)] = randomValue(r, 2)
		}
		return o
	}
	spec := object("nodeName", "volumes", "tolerations", "containers")
	if r.IntN(4) > 0 {
		spec["containers"] = []any{object("name", "image", "env"), object("name", "image", "env")}
	}
	text, err := json.Marshal(map[string]any{"metadata": object("labels", "managedFields", "name"), "spec": spec, "status": randomValue(r, 3)})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func randomText(r *rand.Rand) string {
	return []string{`a`, `app`, `b`, `"`, `\`, `\"`, `{"`, `]}`, `2026-11-27T10:00:00Z`, `2026-11-27T10:00:0]"`, "\n", `é`}[r.IntN(12)]
}

func randomValue(r *rand.Rand, depth int) any {
	kinds := 3
	if depth > 0 {
		kinds = 7
	}
	switch kind := r.IntN(kinds); kind {
	case 0:
		return r.IntN(120)
	case 1, 2:
		return randomText(r)
	case 3, 4:
		all := []any{}
		for range r.IntN(4) {
			all = append(all, randomValue(r, depth-1))
		}
		return all
	default:
		all := map[string]any{}
		for range r.IntN(4) {
			all[randomText(r)] = randomValue(r, depth-1)
		}
		return all
	}
}

func TestSameShape(t *testing.T) {
	for _, tc := range []struct {
		value, text string
		want        bool
	}{
		{`{"time":"2026-11-27T10:00:00Z","n":1}`, `{"time":"2027-01-01T00:00:59Z","n":3},`, true},
		{`{"time":"2026-11-27T10:00:00Z","n":1}`, `{"time":"2026-11-27T10:00:00Z","n":12}`, false},
		{`{"time":"2026-11-27T10:00:00Z","n":1}`, `{"time":"2026-11-27T10:00:00Z","n":1`, false},
		{`["aaaaaaaaaa","b"]`, `["aaaa","aaa","b"]`, false},
		{`["aaaaaaaaaaaa","b"]`, `["aaaaaaaaaaa\","b"]`, false},
		{`["a\"aaaaaaaaaaa"]`, `["a\naaaaaaaaaaa"]`, false},
		{`["a\taaaaaaaaaaa"]`, `["a\naaaaaaaaaaa"]`, true},
		{`[[1,2,3,4,5,6,7,8]]`, `[[1,2,3,4,5,6,7,81]`, false},
		{`[1,[2,3,4,5,6,7,8]]`, `[1,{2,3,4,5,6,7,8]]`, false},
		{`["éééééééé"]`, `["üüüüüüüü"]`, true},
		{`["x"]`, `["y"]`, true},
		{`["x"]`, `[7,8]`, false},
	} {
		if got := sameShape([]byte(tc.value), tc.text); got != tc.want {
			t.Errorf("%s, %s: %v", tc.value, tc.text, got)
		}
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for range 30_000 {
		value, err := json.Marshal([]any{randomValue(r, 2)})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal([]any{randomValue(r, 2)})
		if err != nil {
			t.Fatal(err)
		}
		if s := string(text) + `,"]}`; sameShape(value, s) {
			found++
			if end := afterValue(s, 0); end != len(value) {
				t.Fatalf("%s ends at %d, not as %s (seed %d)", s, end, value, seed)
			}
		}
	}
	if found == 0 {
		t.Error("no values have the same shape")
	}
}
