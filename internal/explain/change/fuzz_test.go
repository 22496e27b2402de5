// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
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
		for _, name := range []string{"a", "name", "type", "a~b/c", "status", "conditions", "replicas", "containers", "taints", "paused"} {
			if rnd.IntN(2) == 0 {
				parts = append(parts, fmt.Sprintf("%q:%s", name, value(rnd, depth-1)))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return []string{`"x"`, `"y"`, `""`, "1", "9007199254740993", "true", "false", "null"}[rnd.IntN(8)]
}

// metadata are values of metadata whose type is checked.
var metadata = [][]string{
	{"", `,"labels":{}`, `,"labels":{"a":"x"}`, `,"labels":{"a":"y","b":""}`},
	{"", `,"finalizers":["a/b","c/d"]`, `,"finalizers":["c/d","a/b"]`},
	{"", `,"ownerReferences":[{"uid":"u","kind":"K"}]`, `,"ownerReferences":[{"uid":"u","kind":"K","controller":true}]`},
	{"", `,"deletionTimestamp":"2026-01-01T00:00:00Z"`, `,"deletionTimestamp":"2026-01-01T00:00:30Z","deletionGracePeriodSeconds":30`},
}

// seeds has a seed for each part of an object.
type seeds [10]uint64

// next returns the seeds of another version, in which all parts differ or only one.
func (s seeds) next(rnd *rand.Rand) seeds {
	only := rnd.IntN(2 * len(s))
	for i := range s {
		if only >= len(s) || only == i {
			s[i] = rnd.Uint64()
		}
	}
	return s
}

func random(t *testing.T, s seeds, rv int) *scan.Object {
	t.Helper()
	part := 0
	next := func() *rand.Rand {
		part++
		return rand.New(rand.NewPCG(s[part-1], 2))
	}
	kind := []string{"Pod", "Node", "Event", "Deployment", "Secret"}[next().IntN(5)]
	meta := fmt.Sprintf(`,"managedFields":%s,"annotations":%s`, value(next(), 3), value(next(), 2))
	for _, choices := range metadata {
		meta += choices[next().IntN(len(choices))]
	}
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"%d"%s},"spec":%s,"status":%s,"data":%s}`,
		kind, rv, meta, value(next(), 4), status(next()), value(next(), 2)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func status(rnd *rand.Rand) string {
	return fmt.Sprintf(`{"conditions":%s,"containerStatuses":%s,"replicas":%d}`, value(rnd, 3), value(rnd, 3), rnd.IntN(2))
}

// FuzzBetween compares random objects: a patch makes one of the other, and
// there is a summary where there is a patch; what was compared before does not
// show.
func FuzzBetween(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		first := seeds{}.next(rnd)
		second := first.next(rnd)
		before, after := random(t, first, 1), random(t, second, 2)
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
		next := random(t, second.next(rnd), 3)
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
			if blank(got) {
				t.Errorf("a phrase of the summary is blank: %q", got.Summary)
			}
		}
	})
}

// blank reports whether a change that is not only noise has no summary, or one with a
// phrase that says nothing.
func blank(c *change.Change) bool {
	says := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for _, phrase := range c.Summary {
		if !strings.ContainsFunc(phrase, says) {
			return true
		}
	}
	return len(c.Summary) == 0 && !c.OnlyNoise
}

func text(t *testing.T, c *change.Change) string {
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
