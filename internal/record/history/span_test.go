// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// small returns a stream with a gap: the first list has a; b is added at 110; c is added
// and b modified in a gap from 110 to 120.
func small(t *testing.T, dir string) (*Store, *Stream) {
	t.Helper()
	s := must(Open(dir, Options{Cluster: "c"}))
	st := must(s.Stream(pods))
	a, b, c := object("n/a", 90, 5), object("n/b", 110, 5), object("n/c", 115, 5)
	b2 := object("n/b", 117, 9)
	for _, err := range []error{
		st.Begin(podForm, slices.Values([]*scan.Object{a}), 100, ms(1000)),
		st.Append([]Event{{Type: kube.Added, Object: b, At: ms(1990)}}, 110, ms(2000)),
		st.AppendGap([]Event{
			{Type: kube.Added, Object: c, Inferred: true, At: ms(9000)},
			{Type: kube.Modified, Object: b2, Prev: b, Inferred: true, At: ms(9000)},
		}, 120, ms(9000)),
		st.Append(nil, 130, ms(10_000)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, st
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	s, st := small(t, dir)
	for range 2 {
		for rv, want := range map[uint64]error{99: ErrBefore, 100: nil, 110: nil, 111: ErrGap, 119: ErrGap, 120: nil, 130: nil, 131: ErrFuture} {
			err := st.Check(rv)
			says := "pods are recorded from 100 (1970-01-01T00:00:01.000Z) to 130"
			if want == ErrGap {
				says = "pods were not observed between 110 (1970-01-01T00:00:02.000Z) and 120 (1970-01-01T00:00:09.000Z)"
			}
			if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%d: %v, not %v", rv, err, want)
			}
		}
		for at, want := range map[uint64]any{
			999: ErrBefore, 1000: 100, 1989: 100, 1990: 110, 2000: 110, 2001: ErrGap, 8999: ErrGap, 9000: 120, 9999: 120,
			10_000: 130, 20_000: 130, uint64(time.Now().UnixMilli()) + 1_000_000: ErrFuture,
		} {
			m, err := st.At(t.Context(), ms(at))
			if rv, ok := want.(int); ok && (err != nil || m.RV != uint64(rv) || m.At.After(ms(at))) {
				t.Errorf("at %d: %v, %v, not %v", at, m, err, want)
			} else if !ok && !errors.Is(err, want.(error)) {
				t.Errorf("at %d: %v, %v, not %v", at, m, err, want)
			}
		}
		if diff := cmp.Diff([]Gap{{110, 120, ms(2000), ms(9000)}}, st.Gaps()); diff != "" {
			t.Error(diff)
		}
		if form := st.Form(); form.ListKind != "PodList" || form.Item.JSON != podForm.Item.JSON {
			t.Errorf("form %v", form)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = must(Open(dir, Options{Cluster: "c"}))
		st = must(s.Stream(pods))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestEventCounts(t *testing.T) {
	s, st := small(t, t.TempDir())
	defer s.Close()
	for _, test := range []struct {
		from, to uint64
		want     []EventCount
	}{
		{0, 10_000, []EventCount{{}, {Added: 1}, {}, {}, {}, {}, {}, {}, {}, {Added: 1, Modified: 1}}},
		{1990, 2500, []EventCount{{Added: 1}}},
		{1991, 9000, make([]EventCount, 8)},
		{9000, 9001, []EventCount{{Added: 1, Modified: 1}}},
	} {
		got, err := st.EventCounts(t.Context(), ms(test.from), ms(test.to), time.Second, nil)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("[%d, %d): %v %s", test.from, test.to, err, diff)
		}
	}
}

func TestEventCountsEnd(t *testing.T) {
	s, st := small(t, t.TempDir())
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := st.EventCounts(ctx, ms(0), ms(10_000), time.Second, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %v", err)
	}
}

func TestEpochs(t *testing.T) {
	dir := t.TempDir()
	s, old := small(t, dir)
	st, err := s.NewEpoch(pods)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Begin(podForm, slices.Values([]*scan.Object{object("n/z", 7, 5)}), 8, ms(20_000)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		all := s.Streams(pods)
		if len(all) != 2 || all[0].Epoch() != 0 || all[1].Epoch() != 1 || all[0].Head() != old.Head() || all[1].Head().RV != 8 {
			t.Fatalf("streams %v", all)
		}
		for i, want := range []int{3, 1} {
			n := 0
			for _, err := range all[i].List(t.Context(), all[i].Head().RV, "", "") {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			if n != want {
				t.Errorf("epoch %d holds %d objects", i, n)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = must(Open(dir, Options{Cluster: "c"}))
	}
	if got := s.Resources(); len(got) != 1 || got[0] != pods || s.Streams(kube.Resource{Name: "x"}) != nil {
		t.Errorf("resources %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir+"/x", Options{Cluster: "c", ReadOnly: true}); err == nil {
		t.Error("a missing store was opened read-only")
	}
	s, _ := small(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{Cluster: "d"}); !errors.Is(err, ErrOtherCluster) {
		t.Errorf("another cluster's: %v", err)
	}
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	st := must(s.Stream(pods))
	if err := st.Append(nil, 140, ms(20_000)); err == nil || st.Head().RV != 130 {
		t.Errorf("an append to a read-only store: %v, %v", err, st.Head())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = must(Open(dir, Options{Cluster: "c"}))
	if err := s.setJSON([]byte{tableFormat}, identity{Format: formatVersion + 1, Cluster: "c"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{Cluster: "c"}); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("a newer format: %v", err)
	}
}

// TestListReadsFew: List reads few objects for a caller that takes few.
func TestListReadsFew(t *testing.T) {
	s := must(Open(t.TempDir(), Options{Cluster: "c"}))
	defer s.Close()
	st := must(s.Stream(pods))
	var objects []*scan.Object
	for i := range uint64(3000) {
		objects = append(objects, object(kube.Key("n/"+kube.FormatRV(10_000+i)), 10_000+i, 5))
	}
	if err := st.Begin(podForm, slices.Values(objects), 20_000, ms(1)); err != nil {
		t.Fatal(err)
	}
	take := func(most int) {
		n := 0
		for o, err := range st.List(t.Context(), 20_000, "", "") {
			if err != nil || o.Key != objects[n].Key {
				t.Fatalf("%v, %v", o, err)
			}
			if n++; n == most {
				break
			}
		}
		if n != most {
			t.Errorf("%d objects, not %d", n, most)
		}
	}
	take(3000)
	one := testing.AllocsPerRun(5, func() { take(1) })
	many := testing.AllocsPerRun(5, func() { take(600) })
	if one > many/20 {
		t.Errorf("one object takes %v allocations, 600 take %v", one, many)
	}
}
