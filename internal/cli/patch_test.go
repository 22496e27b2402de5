// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestHunks applies diffs of lists that change in several places. The numbers in each header
// have to be those of the lines.
func TestHunks(t *testing.T) {
	o := &output{noise: true}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		list := make([]string, rnd.IntN(120))
		for i := range list {
			list[i] = fmt.Sprint("v", rnd.IntN(60))
		}
		now := slices.Clone(list)
		for range rnd.IntN(12) {
			at := rnd.IntN(len(now) + 1)
			switch rnd.IntN(3) {
			case 0:
				now = slices.Insert(now, at, fmt.Sprint("n", rnd.IntN(9)))
			case 1:
				now = slices.Delete(now, at, min(at+rnd.IntN(4), len(now)))
			case 2:
				rnd.Shuffle(min(4, len(now)-at), func(i, j int) { now[at+i], now[at+j] = now[at+j], now[at+i] })
			}
		}
		before, after := object(t, list), object(t, now)
		switch seed {
		case 0:
			before = nil
		case 1:
			after = nil
		}
		var b strings.Builder
		if err := o.diff(&b, "x", before, after); err != nil {
			t.Fatal(err)
		}
		old, err := o.yaml(before)
		if err != nil {
			t.Fatal(err)
		}
		want, err := o.yaml(after)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := patch(old, b.String()); err != nil || got != want {
			t.Fatalf("seed %d: %v: the diff makes\n%s\nof\n%s\n%s", seed, err, got, old, b.String())
		}
	}
}

func object(t *testing.T, list []string) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(map[string]any{"list": list})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// patch applies a unified diff, each hunk exactly where its header says.
func patch(text, diff string) (string, error) {
	old, lines := slices.Collect(strings.Lines(text)), slices.Collect(strings.Lines(diff))
	var out []string
	next := 0 // of old
	for i := 0; i < len(lines); {
		line := lines[i]
		i++
		if strings.HasPrefix(line, "--- a/") || strings.HasPrefix(line, "+++ b/") {
			continue
		}
		m := hunkHeader.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return "", fmt.Errorf("%q is in no hunk", line)
		}
		from, fromCount, to, toCount := number(m[1]), number(m[2]), number(m[3]), number(m[4])
		if fromCount == 0 {
			from++
		}
		if toCount == 0 {
			to++
		}
		out = append(out, old[next:from-1]...)
		if next = from - 1; len(out) != to-1 {
			return "", fmt.Errorf("%q begins at line %d", line, len(out)+1)
		}
		for fromCount > 0 || toCount > 0 {
			kind, content := lines[i][0], lines[i][1:]
			i++
			if kind != '+' {
				if old[next] != content {
					return "", fmt.Errorf("line %d is %q, not %q", next+1, old[next], content)
				}
				next++
				fromCount--
			}
			if kind != '-' {
				out = append(out, content)
				toCount--
			}
		}
	}
	return strings.Join(append(out, old[next:]...), ""), nil
}
