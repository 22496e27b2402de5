// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

var pods = kube.Resource{Version: "v1", Name: "pods"}

// A cluster is the model: every event there was, and every state.
type cluster struct {
	rnd    *rand.Rand
	rv     uint64
	now    map[kube.Key]*kube.Object
	past   map[uint64]map[kube.Key]*kube.Object
	events []Event
}

func newCluster(seed uint64) *cluster {
	c := &cluster{rnd: rand.New(rand.NewPCG(seed, 0)), rv: 100, now: map[kube.Key]*kube.Object{}, past: map[uint64]map[kube.Key]*kube.Object{}}
	c.past[c.rv] = maps.Clone(c.now)
	return c
}

func object(key kube.Key, rv uint64, filler int) *kube.Object {
	text := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"u-%s","resourceVersion":"%d"},"spec":{"x":"%0*d"},"status":{"at":"%d"}}`,
		key.Name(), key.Namespace(), key, rv, filler, 7, rv*7)
	o, err := kube.ScanObject(text)
	if err != nil {
		panic(err)
	}
	o.Row, o.Columns = fmt.Sprintf(`"cells":["%s",%d]`, key.Name(), rv), `[{"name":"Name"}]`
	return o
}

func (c *cluster) step() Event {
	c.rv += 1 + uint64(c.rnd.IntN(3))
	key := kube.MakeKey([]string{"a", "a-b", "b"}[c.rnd.IntN(3)], fmt.Sprint("p", c.rnd.IntN(12)))
	e := Event{Type: kube.Modified, Prev: c.now[key], Inferred: c.rnd.IntN(9) == 0, At: time.UnixMilli(int64(c.rv) * 1000)}
	e.Object = object(key, c.rv, 1+c.rnd.IntN(300))
	switch {
	case e.Prev == nil:
		e.Type = kube.Added
	case c.rnd.IntN(4) == 0:
		e.Type = kube.Deleted
	}
	if c.now[key] = e.Object; e.Type == kube.Deleted {
		delete(c.now, key)
	}
	c.past[c.rv] = maps.Clone(c.now)
	c.events = append(c.events, e)
	return e
}

func (c *cluster) at(rv uint64) map[kube.Key]string {
	for ; ; rv-- {
		if m, ok := c.past[rv]; ok {
			return texts(maps.All(m))
		}
	}
}

func texts(objects func(func(kube.Key, *kube.Object) bool)) map[kube.Key]string {
	out := map[kube.Key]string{}
	for k, o := range objects {
		out[k] = o.JSON + o.Row + o.Columns
	}
	return out
}

// brief is an event as text.
func brief(e Event) string {
	prev := "none"
	if e.Prev != nil {
		prev = e.Prev.JSON + e.Prev.Row
	}
	return fmt.Sprint(e.Type, e.Inferred, e.At.UnixMilli(), e.Object.JSON, e.Object.Row, e.Object.Columns, " before: ", prev)
}

var podForm = Form{ListKind: "PodList", Item: must(kube.ScanForm(`{"kind":"Pod","apiVersion":"v1","metadata":{}}`))}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ms is the time that many ms after the beginning.
func ms(n uint64) time.Time { return time.UnixMilli(int64(n)) }

// open opens a store, and its stream of Pods, which it begins with nothing at
// RV 100 if it is new.
func open(t testing.TB, dir string) (*Store, *Stream) {
	t.Helper()
	s, err := Open(dir, Options{Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Stream(pods)
	if err != nil {
		t.Fatal(err)
	}
	if st.Head().RV == 0 {
		if err := st.Begin(podForm, slices.Values([]*kube.Object(nil)), 100, ms(100_000)); err != nil {
			t.Fatal(err)
		}
	}
	return s, st
}

// TestModel records a random cluster and compares what is read of its past, at
// any RV and over restarts, with what was.
func TestModel(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			c, dir := newCluster(seed), t.TempDir()
			s, st := open(t, dir)
			defer func() { s.Close() }()
			for range 60 {
				var events []Event
				for range c.rnd.IntN(30) {
					events = append(events, c.step())
				}
				c.rv += uint64(c.rnd.IntN(2))
				if err := st.Append(events, c.rv, time.UnixMilli(int64(c.rv)*1000)); err != nil {
					t.Fatal(err)
				}
				if c.rnd.IntN(10) == 0 {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s, st = open(t, dir)
				}
				if c.rnd.IntN(8) == 0 {
					s.now = func() time.Time { return ms(c.rv * 1000) }
					s.opts.MaxAge = time.Duration(c.rnd.IntN(300)) * time.Second
					if err := s.Trim(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if got := st.Head().RV; got != c.rv {
					t.Fatalf("the head is %d, not %d", got, c.rv)
				}
				check(t, c, st)
			}
		})
	}
}

func check(t *testing.T, c *cluster, st *Stream) {
	t.Helper()
	from := st.Span().From.RV
	rv := from + c.rnd.Uint64N(c.rv-from+1)
	got := map[kube.Key]string{}
	last := kube.Key("")
	for o, err := range st.All(rv, "", "") {
		if err != nil || o.Key <= last {
			t.Fatalf("%v behind %s: %v", o, last, err)
		}
		last = o.Key
		got[o.Key] = o.JSON + o.Row + o.Columns
	}
	if diff := cmp.Diff(c.at(rv), got); diff != "" {
		t.Fatalf("at %d (-model +history)\n%s", rv, diff)
	}
	to := rv + c.rnd.Uint64N(c.rv-rv+1)
	var want, have []string
	for _, e := range c.events {
		if rv < e.Object.RV && e.Object.RV <= to {
			want = append(want, brief(e))
		}
	}
	for e, err := range st.Events(rv, to) {
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, brief(e))
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatalf("events of (%d, %d] (-model +history)\n%s", rv, to, diff)
	}
}
