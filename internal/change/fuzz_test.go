// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/change"
)

// value writes a random value; the lists have few different elements, so that
// much of them is the same in two of them.
func value(rnd *rand.Rand, depth int) string {
	switch n := rnd.IntN(7); {
	case n < 2 && depth > 0:
		var parts []string
		for range rnd.IntN(6) {
			parts = append(parts, value(rnd, depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case n < 5 && depth > 0:
		var parts []string
		for _, name := range []string{"a", "name", "type", "a~b/c", "status", "conditions"} {
			if rnd.IntN(2) == 0 {
				parts = append(parts, fmt.Sprintf("%q:%s", name, value(rnd, depth-1)))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return []string{`"x"`, `"y"`, `""`, "1", "9007199254740993", "true", "false", "null"}[rnd.IntN(8)]
}

func random(t *testing.T, rnd *rand.Rand, rv int) *scan.Object {
	t.Helper()
	kind := []string{"Pod", "Node", "Event", "Deployment", "Secret"}[rnd.IntN(5)]
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"%d","managedFields":%s,"annotations":%s},"spec":%s,"status":{"conditions":%s,"containerStatuses":%s},"data":%s}`,
		kind, rv, value(rnd, 3), value(rnd, 2), value(rnd, 4), value(rnd, 3), value(rnd, 3), value(rnd, 2)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// FuzzBetween compares random objects: a patch makes one of the other, and
// there is a summary where there is a patch; what was compared before does not
// show.
func FuzzBetween(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		before, after := random(t, rnd, 1), random(t, rnd, 2)
		all, err := (&change.Comparer{Noise: true}).Between(before, after)
		if err != nil {
			t.Fatal(err)
		}
		applies(t, all.Patch, before.JSON, after.JSON)
		c, err := new(change.Comparer).Between(before, after)
		if err != nil {
			t.Fatal(err)
		}
		if (len(c.Summary) == 0) != c.OnlyNoise || (len(c.Patch) == 0) != c.OnlyNoise {
			t.Errorf("%d operations, summary %q, noise %q", len(c.Patch), c.Summary, c.Noise)
		}
		if len(c.Summary) > 9 {
			t.Errorf("a summary of %d phrases", len(c.Summary))
		}
		next := random(t, rnd, 3)
		var used change.Comparer
		for _, pair := range [][2]*scan.Object{{nil, before}, {before, after}, {after, next}, {before, after}, {after, nil}, {after, before}} {
			want, err := new(change.Comparer).Between(pair[0], pair[1])
			if err != nil {
				t.Fatal(err)
			}
			got, err := used.Between(pair[0], pair[1])
			if a, b := text(t, want), text(t, got); err != nil || a != b {
				t.Errorf("%v\nalone:        %s\nafter others: %s", err, a, b)
			}
		}
	})
}

func text(t *testing.T, c *change.Change) string {
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
