// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// color is an attribute whose value changes with every version of an object; one
// version in n+2 has none.
func color(n uint64, values ...string) *Attribute {
	return &Attribute{
		Field: fmt.Sprint("color of ", n),
		FieldValue: func(o *scan.Object) string {
			if c := o.RV % (n + 2); c <= n {
				return strconv.FormatUint(c, 10)
			}
			return ""
		},
		Values: values,
	}
}

// having returns the objects with the attribute.
func having(all iter.Seq[*scan.Object], a *Attribute) (out []*scan.Object) {
	for o := range all {
		if a == nil || slices.Contains(a.Values, a.FieldValue(o)) {
			out = append(out, o)
		}
	}
	return out
}

// checkSelect compares Select with a scan, for one choice of arguments.
func checkSelect(t *testing.T, s *Snapshot, choice uint64) {
	t.Helper()
	namespace := []string{"", "a", "a-b", "b", "none"}[choice%5]
	from := kube.Key("")
	if choice%3 == 0 {
		from = kube.Key([]string{"a/", "a/p5", "a/p5\x00", "b/p1", "c", "a-b/p"}[choice%6])
	}
	a := []*Attribute{
		color(30, strconv.FormatUint(choice%30, 10)),
		color(30, strconv.FormatUint(choice%30, 10), strconv.FormatUint((choice+11)%30, 10)),
		color(40, strconv.FormatUint(choice%40, 10)),
		color(2, "1"), // of too many objects for an index
		color(30, ""),
		color(30, "unheard of"),
		nil,
	}[choice%7]
	want := having(s.All(namespace, from), a)
	if got := having(s.Select(namespace, from, a), a); !slices.Equal(want, got) {
		t.Fatalf("choice %d: %d objects are selected at %d, a scan finds %d", choice, len(got), s.RV, len(want))
	}
}

// TestSelect selects at each step of a random history with relists and resets,
// and at past RVs.
func TestSelect(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		c := newCluster(seed)
		tl := New(Options{WindowBytes: 200 << 10})
		tl.indexes.minObjects = 5
		tl.Replace(c.list())
		indexed := 0
		for step := range 400 {
			from := len(c.frames)
			for range 1 + c.rnd.IntN(3) {
				c.step()
			}
			switch {
			case c.rnd.IntN(40) == 0:
				tl.Replace(c.list())
			case c.rnd.IntN(80) == 0:
				tl.Reset(c.list())
			default:
				for _, f := range c.frames[from:] {
					if err := tl.Apply(f); err != nil {
						t.Fatal(err)
					}
					if c.rnd.IntN(4) == 0 { // between Apply and Flush
						checkSelect(t, &tl.View().Snapshot, uint64(step))
					}
				}
				tl.Flush()
			}
			v := tl.View()
			for range 3 {
				checkSelect(t, &v.Snapshot, c.rnd.Uint64())
			}
			indexed = max(indexed, len(v.indexes))
			if past, err := tl.At(v.Start + c.rnd.Uint64N(v.RV-v.Start+1)); err == nil {
				checkSelect(t, past, c.rnd.Uint64())
			}
		}
		if indexed != 3 {
			t.Errorf("seed %d: %d indexes, want 3", seed, indexed)
		}
	}
}

// TestSelectWhileWritten has readers select while the timeline is written. A view
// keeps its own state.
func TestSelectWhileWritten(t *testing.T) {
	c := newCluster(1)
	tl := New(Options{})
	tl.indexes.minObjects = 5
	tl.Replace(c.list())
	done := make(chan struct{})
	var readers sync.WaitGroup
	for reader := range uint64(4) {
		readers.Go(func() {
			for i := uint64(0); ; i++ {
				select {
				case <-done:
					return
				default:
				}
				v := tl.View()
				checkSelect(t, &v.Snapshot, i*4+reader)
				checkSelect(t, &v.Snapshot, i*7+reader)
			}
		})
	}
	for i := range 3000 {
		c.step()
		if err := tl.Apply(c.frames[len(c.frames)-1]); err != nil {
			t.Error(err)
			break
		}
		if i%3 == 0 {
			tl.Flush()
		}
	}
	close(done)
	readers.Wait()
	tl.Flush()
	if n := len(tl.View().indexes); n != 3 {
		t.Errorf("%d indexes, want 3", n)
	}
}

// TestIndexesAreBounded: an idle index makes room for another, and is dropped in
// the end even if none needs the room.
func TestIndexesAreBounded(t *testing.T) {
	var items []*scan.Object
	for i := range uint64(20) {
		items = append(items, object(kube.MakeKey("a", fmt.Sprint("p", i)), "u", 100+i))
	}
	tl := New(Options{})
	tl.indexes.minObjects, tl.checkpointInterval = 5, 1
	tl.Replace(podList(200, items...))
	request := func(n uint64) {
		for range minIndexRequests {
			for range tl.View().Select("", "", color(n, "1")) {
				break
			}
		}
	}
	for n := range uint64(maxRequested * 2) {
		request(10 + n)
	}
	if n := len(tl.View().indexes); n != maxListIndexes {
		t.Errorf("%d indexes, want %d", n, maxListIndexes)
	}
	if n := len(tl.indexes.requests); n > maxRequested {
		t.Errorf("the requests of %d attributes are counted", n)
	}
	before := tl.View().indexes
	for _, p := range before {
		p.requested.Store(time.Now().Add(-2 * time.Minute).Unix())
	}
	request(5000)
	if after := tl.View().indexes; len(after) != 1 {
		t.Errorf("%d indexes, of which one is not idle", len(after))
	}
	for _, p := range tl.View().indexes {
		p.requested.Store(time.Now().Add(-2 * maxIndexIdle).Unix())
	}
	for i := range uint64(10) { // to the next checkpoint
		if err := tl.Apply(modified(object("a/p1", "u", 201+i))); err != nil {
			t.Fatal(err)
		}
	}
	tl.Flush()
	if n := len(tl.View().indexes); n != 0 {
		t.Errorf("%d idle indexes are kept", n)
	}
}
