// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package history

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestLast compares the last events with the end of all of them.
func TestLast(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	s := must(Open("history", Options{Cluster: "c", FS: vfs.NewMem()}))
	defer s.Close()
	st := must(s.Stream(pods))
	key := func() kube.Key { return kube.Key(fmt.Sprint("n/p", rnd.IntN(20))) }
	if err := st.Begin(podForm, slices.Values([]*scan.Object{object("n/p1", 90, 5)}), 100, ms(1000)); err != nil {
		t.Fatal(err)
	}
	rv := uint64(100)
	for range 300 {
		rv += 1 + rnd.Uint64N(3)
		e := Event{Type: kube.Added, Object: object(key(), rv, 9), At: ms(rv * 1000)}
		if old := must(st.Get(t.Context(), rv, e.Object.Key)); old != nil {
			e.Type, e.Prev = kube.Modified, old
		}
		if err := st.Append([]Event{e}, rv, ms(rv*1000)); err != nil {
			t.Fatal(err)
		}
	}
	tail := func(all iter.Seq2[Event, error], to uint64, n int) []string {
		events := must(collectUpTo(all, to))
		return briefs(events[max(0, len(events)-n):])
	}
	for range 300 {
		from := 100 + rnd.Uint64N(rv-99)
		to, n, key := from+rnd.Uint64N(rv-from+1), rnd.IntN(20), key()
		got, err := st.LastEvents(t.Context(), from, to, n)
		if diff := cmp.Diff(tail(st.Events(t.Context(), from, to), to, n), briefs(got)); err != nil || diff != "" {
			t.Errorf("the last %d events of (%d, %d]: %v %s", n, from, to, err, diff)
		}
		got, err = st.LastVersions(t.Context(), key, from, to, n)
		if diff := cmp.Diff(tail(st.Versions(t.Context(), key, from), to, n), briefs(got)); err != nil || diff != "" {
			t.Errorf("the last %d versions of %s in (%d, %d]: %v %s", n, key, from, to, err, diff)
		}

		// A search in pieces finds the same.
		match := func(k kube.Key, typ kube.EventType) bool { return k == key && typ == kube.Modified }
		var want []string
		for _, e := range must(collectUpTo(st.Events(t.Context(), from, to), to)) {
			if e.At.Before(ms(from*1000 + 9000)) {
				continue
			}
			if match(e.Object.Key, e.Type) {
				want = append(want, brief(e))
			}
		}
		var pieces []string
		for rest := to; rest > from; {
			found, err := st.Search(t.Context(), Search{Match: match, From: from, To: rest, Since: ms(from*1000 + 9000), Events: 1 + rnd.IntN(3), Scan: 1 + n})
			if err != nil || found.Rest >= rest {
				t.Fatalf("a search of (%d, %d]: %+v, %v", from, rest, found, err)
			}
			pieces = append(briefs(found.Events), pieces...)
			rest = found.Rest
		}
		if diff := cmp.Diff(want, pieces); diff != "" {
			t.Errorf("the updates of %s in (%d, %d]: %s", key, from, to, diff)
		}
	}
}
