// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A cluster is the naive model: all its states, one map per RV.
type cluster struct {
	rnd    *rand.Rand
	rv     uint64
	uid    int
	now    map[kube.Key]*scan.Object
	past   map[uint64]map[kube.Key]*scan.Object
	frames []scan.Frame // all its watch events
}

func newCluster(seed uint64) *cluster {
	c := &cluster{rnd: rand.New(rand.NewPCG(seed, 0)), rv: 100, now: map[kube.Key]*scan.Object{}, past: map[uint64]map[kube.Key]*scan.Object{}}
	c.past[c.rv] = maps.Clone(c.now)
	return c
}

func object(key kube.Key, uid string, rv uint64) *scan.Object {
	return labelled(key, uid, rv, `{}`, "")
}

func labelled(key kube.Key, uid string, rv uint64, labels, node string) *scan.Object {
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","labels":%s},"spec":{"nodeName":%q}}`,
		key.Name(), key.Namespace(), uid, rv, labels, node))
	if err != nil {
		panic(err)
	}
	return o
}

// step makes one random change and skips RVs, as changes of other resources do.
func (c *cluster) step() {
	c.rv += 1 + uint64(c.rnd.IntN(2)*c.rnd.IntN(3))
	key := kube.MakeKey([]string{"a", "a-b", "b"}[c.rnd.IntN(3)], fmt.Sprint("p", c.rnd.IntN(8)))
	old := c.now[key]
	f := scan.Frame{}
	labels := []string{`{}`, `{"app":"x"}`, `{"app":"y"}`, `{"app":"x","tier":"t"}`, `{"tier":""}`}[c.rnd.IntN(5)]
	object := func(key kube.Key, uid string, rv uint64) *scan.Object {
		return labelled(key, uid, rv, labels, []string{"", "n1", "n2"}[c.rnd.IntN(3)])
	}
	switch {
	case old == nil:
		c.uid++
		f = scan.Frame{Type: kube.Added, Object: object(key, fmt.Sprint("u", c.uid), c.rv)}
		c.now[key] = f.Object
	case c.rnd.IntN(3) == 0:
		f = scan.Frame{Type: kube.Deleted, Object: old.At(c.rv)}
		delete(c.now, key)
	default:
		f = scan.Frame{Type: kube.Modified, Object: object(key, old.UID, c.rv)}
		c.now[key] = f.Object
	}
	c.frames = append(c.frames, f)
	c.past[c.rv] = maps.Clone(c.now)
}

// at returns the state at any RV.
func (c *cluster) at(rv uint64) map[kube.Key]*scan.Object {
	for ; ; rv-- {
		if m, ok := c.past[rv]; ok {
			return m
		}
	}
}

func (c *cluster) list() *scan.List {
	return &scan.List{Kind: "PodList", APIVersion: "v1", Typed: true, RV: c.rv, Items: slices.Collect(maps.Values(c.now))}
}

func (c *cluster) bookmark() scan.Frame {
	return scan.Frame{Type: kube.Bookmark, Object: &scan.Object{RV: c.rv}}
}

// versions returns the RVs of a state by key.
func versions(m map[kube.Key]*scan.Object) map[kube.Key]uint64 {
	out := map[kube.Key]uint64{}
	for k, o := range m {
		out[k] = o.RV
	}
	return out
}

// differ describes how two states differ, "" if they are equal.
func differ(model, got map[kube.Key]uint64) string {
	if maps.Equal(model, got) {
		return "" // reflection is slow
	}
	return cmp.Diff(model, got)
}

func snapshotVersions(t *testing.T, s *Snapshot) map[kube.Key]uint64 {
	t.Helper()
	out := map[kube.Key]uint64{}
	last := kube.Key("")
	for o := range s.All("", "") {
		if o.Key <= last {
			t.Fatalf("list order: %s after %s", o.Key, last)
		}
		last = o.Key
		out[o.Key] = o.RV
	}
	if len(out) != s.Len() {
		t.Fatalf("Len is %d, All yields %d", s.Len(), len(out))
	}
	return out
}

// interests has one of each kind of interest.
var interests = []Interest{
	{},
	{Namespace: "a", Match: in("a")},
	{Attribute: nameIs("p3"), Match: func(o *scan.Object) bool { return o.Key.Name() == "p3" }},
	{Namespace: "b", Attribute: nameIs("p1"), Match: func(o *scan.Object) bool { return o.Key == "b/p1" }},
	{Attribute: &Attribute{Label: "app", Values: []string{"x"}}, Match: app("x")},
	{Attribute: &Attribute{Label: "app", Values: []string{"x", "y"}}, Match: app("x", "y")},
	{Namespace: "a-b", Attribute: &Attribute{Label: "app", Values: []string{"y", "z"}}, Match: all(in("a-b"), app("y", "z"))},
	{Attribute: &Attribute{Label: "tier"}, Match: hasTier},
	{Namespace: "a", Attribute: &Attribute{Label: "tier"}, Match: all(in("a"), hasTier, app("x"))},
	{Match: func(o *scan.Object) bool { return o.Labels.Get("app") != "x" }},
	{Attribute: &Attribute{Field: "spec.nodeName", FieldValue: node, Values: []string{"n1"}}, Match: func(o *scan.Object) bool { return node(o) == "n1" }},
	{Attribute: &Attribute{Field: "spec.nodeName", FieldValue: node, Values: []string{""}}, Match: all(hasTier, func(o *scan.Object) bool { return node(o) == "" })},
}

func nameIs(name string) *Attribute {
	return &Attribute{Field: "metadata.name", FieldValue: func(o *scan.Object) string { return o.Key.Name() }, Values: []string{name}}
}

func in(namespace string) func(*scan.Object) bool {
	return func(o *scan.Object) bool { return o.Key.Namespace() == namespace }
}

func app(values ...string) func(*scan.Object) bool {
	return func(o *scan.Object) bool { return slices.Contains(values, o.Labels.Get("app")) }
}

func all(fs ...func(*scan.Object) bool) func(*scan.Object) bool {
	return func(o *scan.Object) bool {
		return !slices.ContainsFunc(fs, func(f func(*scan.Object) bool) bool { return !f(o) })
	}
}

func hasTier(o *scan.Object) bool { return o.Labels.Has("tier") }

var node = scan.FieldValue(kube.Field{Paths: []string{"spec.nodeName"}})

// A follower is a client: it folds the events of its cursor.
type follower struct {
	in     Interest
	cursor *Cursor
	state  map[kube.Key]*scan.Object
	rv     uint64
}

// selected returns the part of a state that the interest selects.
func selected(in Interest, state map[kube.Key]*scan.Object) map[kube.Key]*scan.Object {
	out := maps.Clone(state)
	maps.DeleteFunc(out, func(_ kube.Key, o *scan.Object) bool { return !in.matches(o) })
	return out
}

func follow(t *testing.T, tl *Timeline, rv uint64, state map[kube.Key]*scan.Object, in Interest) *follower {
	t.Helper()
	c, err := tl.Watch(rv, in)
	if err != nil {
		t.Fatal(err)
	}
	return &follower{in, c, selected(in, state), rv}
}

// catchUp folds the events up to the head and checks their order (T1, T4) and
// prior versions (T3).
func (f *follower) catchUp(t *testing.T) error {
	t.Helper()
	for more := true; more; {
		b, err := f.cursor.Next()
		if err != nil {
			return err
		}
		more = b.More
		for _, e := range b.Events {
			f.fold(t, e)
		}
		if f.cursor.RV() < f.rv && !more {
			t.Fatalf("the cursor is at %d after an event at %d", f.cursor.RV(), f.rv)
		}
	}
	return nil
}

func (f *follower) fold(t *testing.T, e *Event) {
	t.Helper()
	if e.RV <= f.rv {
		t.Fatalf("event at %d after %d", e.RV, f.rv)
	}
	f.rv = e.RV
	if e.Object.RV != e.RV {
		t.Fatalf("object at %d in event at %d", e.Object.RV, e.RV)
	}
	if (e.Type == kube.Added) != (e.Prev == nil) {
		t.Fatalf("%s with prior version %v", e.Type, e.Prev)
	}
	typ, object, ok := f.in.Seen(e)
	if !ok {
		t.Fatalf("%s of %s at %d does not concern the client", e.Type, e.Object.Key, e.RV)
	}
	held := f.state[e.Object.Key]
	if (typ == kube.Added) != (held == nil) || held != nil && (e.Prev == nil || held.RV != e.Prev.RV) {
		t.Fatalf("%s of %s at %d: prior version %+v, the client holds %+v", typ, e.Object.Key, e.RV, e.Prev, held)
	}
	if typ != kube.Deleted {
		f.state[object.Key] = object
		return
	}
	if held.UID != object.UID || object.RV != e.RV {
		t.Fatalf("deletion of another UID, or at another RV: %+v", object)
	}
	delete(f.state, object.Key)
}

// TestModel drives a timeline with random operations and compares every state
// it serves with the model's (T1–T5). It runs WATCHKEEPER_MODEL_SEEDS seeds (16; 4 in make test),
// from WATCHKEEPER_MODEL_SEED (random) on.
func TestModel(t *testing.T) {
	fromEnv := func(name string, otherwise uint64) uint64 {
		if s := os.Getenv(name); s != "" {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		return otherwise
	}
	defaultSeeds := uint64(16)
	if testing.Short() {
		defaultSeeds = 4
	}
	seeds, first := fromEnv("WATCHKEEPER_MODEL_SEEDS", defaultSeeds), fromEnv("WATCHKEEPER_MODEL_SEED", rand.Uint64N(1<<32))
	t.Logf("WATCHKEEPER_MODEL_SEED=%d, %d seeds", first, seeds)
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { runModel(t, seed, 400) })
	}
}

func runModel(t *testing.T, seed uint64, steps int) {
	c := newCluster(seed)
	opts := Options{}
	if seed%3 == 1 {
		opts.WindowBytes = 30 * EventOverhead
	}
	tl := New(opts)
	tl.checkpointInterval = 1 + int(seed%16)
	if seed%2 == 1 {
		tl.interests.maxPending = int(seed % 5)
	}
	interest := func() Interest { return interests[c.rnd.IntN(len(interests))] }
	for range c.rnd.IntN(20) {
		c.step()
	}
	if tl.Replace(c.list()) {
		t.Fatal("the first list does not reset the timeline")
	}
	sent := len(c.frames)
	var followers []*follower
	for range steps {
		switch n := c.rnd.IntN(100); {
		case n < 60:
			c.step()
		case n < 85: // the upstream watch delivers some events
			for k := c.rnd.IntN(10); k > 0 && sent < len(c.frames); k-- {
				if err := tl.Apply(c.frames[sent]); err != nil {
					t.Fatal(err)
				}
				sent++
			}
			if sent > 0 && c.rnd.IntN(4) == 0 { // and repeats the last one
				if err := tl.Apply(c.frames[sent-1]); err != nil && !errors.Is(err, ErrOutOfOrder) {
					t.Fatal(err)
				}
			}
			if sent == len(c.frames) && c.rnd.IntN(3) == 0 {
				tl.Bookmark(c.bookmark())
			}
			tl.Flush()
		case n < 88: // the upstream has lost its history
			if !tl.Replace(c.list()) {
				t.Fatal("the list does not continue the timeline")
			}
			sent = len(c.frames)
		case n < 90 && sent == len(c.frames): // a caller proves that nothing changed
			tl.Flush()
			v := tl.View()
			c.rv += uint64(c.rnd.IntN(5))
			tl.Advance(v, c.rv)
			if got := tl.View().RV; got != c.rv {
				t.Fatalf("the head is at %d after Advance to %d", got, c.rv)
			}
		case n < 92 && c.rv > tl.View().RV: // a client has listed upstream, ahead of the timeline
			followers = append(followers, follow(t, tl, c.rv, c.now, interest()))
		default:
			v := tl.View()
			followers = append(followers, follow(t, tl, v.RV, c.at(v.RV), interest()))
		}
		v := tl.View()
		if diff := differ(versions(c.at(v.RV)), snapshotVersions(t, &v.Snapshot)); diff != "" {
			t.Fatalf("head %d (-model +timeline)\n%s", v.RV, diff)
		}
		checkPast(t, c, tl)
		followers = slices.DeleteFunc(followers, func(f *follower) bool {
			if c.rnd.IntN(3) > 0 {
				return false // lags
			}
			err := f.catchUp(t)
			if errors.Is(err, ErrCompacted) {
				f.cursor.Close()
				return true
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := differ(versions(selected(f.in, c.at(f.cursor.RV()))), versions(f.state)); diff != "" {
				t.Fatalf("client of %+v at %d (-model +client)\n%s", f.in, f.cursor.RV(), diff)
			}
			return false
		})
	}
	for _, f := range followers {
		f.cursor.Close()
	}
	if x := &tl.interests; len(x.namespaces) > 0 || x.fields != 0 {
		t.Errorf("the index is not empty: %+v, %d fields", x.namespaces, x.fields)
	}
}

// checkPast compares the state at a random RV in or near the window (T2), and the
// state of a client that resumes from it (T4).
func checkPast(t *testing.T, c *cluster, tl *Timeline) {
	t.Helper()
	v := tl.View()
	rv := v.Start - 5 + c.rnd.Uint64N(v.RV-v.Start+10)
	s, err := tl.At(rv)
	switch {
	case rv > v.RV:
		if !errors.Is(err, ErrFutureRV) {
			t.Fatalf("At(%d) above the head %d: %v", rv, v.RV, err)
		}
		return
	case rv < v.Start || v.inGap(rv):
		if !errors.Is(err, ErrCompacted) {
			t.Fatalf("At(%d) outside: %v", rv, err)
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	if diff := differ(versions(c.at(rv)), snapshotVersions(t, s)); diff != "" {
		t.Fatalf("At(%d) (-model +timeline)\n%s", rv, diff)
	}
	in := interests[c.rnd.IntN(len(interests))]
	f := follow(t, tl, rv, c.at(rv), in)
	defer f.cursor.Close()
	if f.catchUp(t) != nil || differ(versions(selected(in, c.at(v.RV))), versions(f.state)) != "" {
		t.Fatalf("a client of %+v that resumes from %d does not reach %d", in, rv, v.RV)
	}
}

// TestConcurrentReaders has readers check the invariants while the timeline is
// written. It is for the race detector.
func TestConcurrentReaders(t *testing.T) {
	c := newCluster(1)
	tl := New(Options{WindowBytes: 1000 * EventOverhead})
	tl.checkpointInterval = 64
	tl.Replace(c.list())
	done := make(chan struct{})
	var wg sync.WaitGroup
	type proof struct { // that nothing changed up to rv
		view *View
		rv   uint64
	}
	proofs := make(chan proof, 1000)
	wg.Go(func() { // advances late
		for p := range proofs {
			tl.Advance(p.view, p.rv)
		}
	})
	var started sync.WaitGroup // before the window moves past their start
	started.Add(len(interests))
	for i, in := range interests {
		rnd := rand.New(rand.NewPCG(uint64(i), 0))
		wg.Go(func() { // reads the past
			for {
				select {
				case <-done:
					return
				default:
				}
				v := tl.View()
				_, err := tl.At(v.Start + rnd.Uint64N(v.RV-v.Start+1))
				if err != nil && !errors.Is(err, ErrCompacted) {
					t.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			v := tl.View()
			f := follow(t, tl, v.RV, nil, in)
			defer f.cursor.Close()
			started.Done()
			state := map[kube.Key]*scan.Object{}
			for o := range v.All("", "") {
				state[o.Key] = o
			}
			f.state = selected(in, state)
			for {
				select {
				case <-f.cursor.Ready():
				case <-done:
					return
				}
				if err := f.catchUp(t); err != nil {
					if !errors.Is(err, ErrCompacted) {
						t.Error(err)
					}
					return
				}
				s, err := tl.At(f.cursor.RV())
				if errors.Is(err, ErrCompacted) {
					continue
				}
				if err != nil {
					t.Errorf("at %d: %v", f.cursor.RV(), err)
					return
				}
				state := map[kube.Key]*scan.Object{}
				for o := range s.All("", "") {
					state[o.Key] = o
				}
				if diff := differ(versions(selected(in, state)), versions(f.state)); diff != "" {
					t.Errorf("client of %+v at %d (-snapshot +client)\n%s", in, f.cursor.RV(), diff)
					return
				}
			}
		})
	}
	started.Wait()
	sent, steps := 0, 8000
	if testing.Short() {
		steps = 2000
	}
	for range steps {
		c.step()
		if c.rnd.IntN(3) == 0 {
			for ; sent < len(c.frames); sent++ {
				if err := tl.Apply(c.frames[sent]); err != nil {
					t.Error(err)
				}
			}
			tl.Flush()
			c.rv += uint64(c.rnd.IntN(3))
			select {
			case proofs <- proof{tl.View(), c.rv}:
			default:
			}
		}
		clear(c.past) // not used here
	}
	close(done)
	close(proofs)
	wg.Wait()
}
