// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestCount compares Count with List while names are created, deleted and created
// again.
func TestCount(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	s := must(Open("history", Options{Cluster: "c", FS: vfs.NewMem()}))
	defer s.Close()
	st := must(s.Stream(pods))
	key := func() kube.Key { return kube.Key(fmt.Sprintf("n%d/p%d", rnd.IntN(3), rnd.IntN(8))) }
	if err := st.Begin(podForm, slices.Values([]*scan.Object{object("n1/p1", 90, 5)}), 100, ms(1000)); err != nil {
		t.Fatal(err)
	}
	rv := uint64(100)
	for range 400 {
		rv += 1 + rnd.Uint64N(3)
		e := Event{Type: kube.Added, Object: object(key(), rv, 9), At: ms(rv * 1000)}
		if old := must(st.Get(t.Context(), rv, e.Object.Key)); old != nil {
			if e.Type, e.Prev = kube.Modified, old; rnd.IntN(2) == 0 {
				e.Type = kube.Deleted
			}
		}
		if err := st.Append([]Event{e}, rv, ms(rv*1000)); err != nil {
			t.Fatal(err)
		}
	}
	counts := map[int]bool{}
	for range 1000 {
		at, namespace, from := 100+rnd.Uint64N(rv-99), []string{"", "n0", "n2", "none"}[rnd.IntN(4)], kube.Key("")
		if rnd.IntN(2) == 0 {
			from = key() + "\x00"
		}
		want := 0
		for _, err := range st.List(t.Context(), at, namespace, from) {
			if err != nil {
				t.Fatal(err)
			}
			want++
		}
		got, err := st.Count(t.Context(), at, namespace, from)
		if got != want || err != nil {
			t.Fatalf("at %d, in %q from %q: %d, %v; there are %d", at, namespace, from, got, err, want)
		}
		counts[got] = true
	}
	if len(counts) < 8 {
		t.Errorf("only %d different counts", len(counts))
	}
	if _, err := st.Count(t.Context(), 99, "", ""); !errors.Is(err, ErrBefore) {
		t.Errorf("before the retained span: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := st.Count(ctx, rv, "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %v", err)
	}
}
