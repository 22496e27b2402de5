// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

func podList(rv uint64, items ...*scan.Object) *scan.List {
	return &scan.List{Kind: "PodList", APIVersion: "v1", Typed: true, RV: rv, Items: items}
}

// written returns an object that was written at a time.
func written(key kube.Key, uid string, rv uint64, at string) *scan.Object {
	text := strings.Replace(object(key, uid, rv).JSON, `"labels"`, `"managedFields":[{"manager":"m","time":"`+at+`"}],"labels"`, 1)
	o, err := scan.ParseObject(text)
	if err != nil {
		panic(err)
	}
	return o
}

func modified(o *scan.Object) scan.Frame {
	return scan.Frame{Type: kube.Modified, Object: o}
}

func deleted(o *scan.Object) scan.Frame { return scan.Frame{Type: kube.Deleted, Object: o} }

// A change is the part of an event that tests compare.
type change struct {
	Type kube.EventType
	Key  kube.Key
	UID  string
	RV   uint64
}

func changes(t *testing.T, c *Cursor) []change {
	t.Helper()
	b, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	var out []change
	for _, e := range b.Events {
		out = append(out, change{e.Type, e.Object.Key, e.Object.UID, e.RV})
	}
	return out
}

func TestReplaceRVs(t *testing.T) {
	for _, test := range []struct {
		name  string
		first []*scan.Object // at head 10
		then  *scan.List
		want  []change // nil: reset
	}{{
		"unchanged",
		[]*scan.Object{object("a", "1", 5)},
		podList(20, object("a", "1", 5)),
		[]change{},
	}, {
		"changes at their own RVs, deletions at the smallest free ones",
		[]*scan.Object{object("a", "1", 5), object("b", "2", 6), object("c", "3", 7), object("d", "4", 8)},
		podList(20, object("a", "1", 12), object("e", "5", 11)),
		[]change{{kube.Added, "e", "5", 11}, {kube.Modified, "a", "1", 12}, {kube.Deleted, "b", "2", 13}, {kube.Deleted, "c", "3", 14}, {kube.Deleted, "d", "4", 15}},
	}, {
		"a deletion comes before the re-creation, and before deletions with later deadlines",
		[]*scan.Object{object("a", "1", 5), object("b", "2", 6), object("z", "3", 7)},
		podList(14, object("z", "9", 13)),
		[]change{{kube.Deleted, "z", "3", 11}, {kube.Deleted, "a", "1", 12}, {kube.Added, "z", "9", 13}, {kube.Deleted, "b", "2", 14}},
	}, {
		"deletions at one revision share it",
		[]*scan.Object{object("a", "1", 5), object("b", "2", 6), object("c", "3", 7)},
		podList(12),
		[]change{{kube.Deleted, "a", "1", 11}, {kube.Deleted, "b", "2", 12}, {kube.Deleted, "c", "3", 12}},
	}, {
		"no free RV for a deletion",
		[]*scan.Object{object("a", "1", 5)},
		podList(12, object("a", "2", 11)),
		nil,
	}, {
		"the upstream's RVs went backwards",
		[]*scan.Object{object("a", "1", 5)},
		podList(9, object("a", "1", 5)),
		nil,
	}, {
		"another history",
		[]*scan.Object{object("a", "1", 5)},
		podList(20, object("a", "1", 4)),
		nil,
	}, {
		"another object at the same RV",
		[]*scan.Object{object("a", "1", 5)},
		podList(20, object("a", "2", 5)),
		nil,
	}, {
		"another write at the same RV",
		[]*scan.Object{object("a", "1", 5)},
		podList(20, written("a", "1", 5, "2026-01-02T15:04:05Z")),
		nil,
	}} {
		t.Run(test.name, func(t *testing.T) {
			tl := New(Options{})
			tl.Replace(podList(10, test.first...))
			c, err := tl.Watch(10, Interest{})
			if err != nil {
				t.Fatal(err)
			}
			if continued := tl.Replace(test.then); continued != (test.want != nil) {
				t.Fatalf("continued: %v", continued)
			}
			if test.want == nil {
				if _, err := c.Next(); !errors.Is(err, ErrCompacted) {
					t.Errorf("cursor across a reset: %v", err)
				}
				return
			}
			if diff := cmp.Diff(test.want, append([]change{}, changes(t, c)...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if v := tl.View(); v.RV != test.then.RV {
				t.Errorf("head %d", v.RV)
			}
		})
	}
}

// TestOtherForm: another form of the same version resets the timeline, but is of the same
// history, and the difference is known.
func TestOtherForm(t *testing.T) {
	tl := New(Options{})
	tl.Replace(podList(10, object("a", "1", 5), object("b", "2", 6)))
	first := tl.View().Epoch()
	other := object("a", "1", 5)
	other.JSON += " "
	then := podList(20, other, object("c", "3", 15))
	events, reformed, ok := tl.Difference(then)
	if len(events) != 2 || events[0].Type != kube.Deleted || events[1].Type != kube.Added || !reformed || !ok || tl.Replace(then) {
		t.Errorf("%v %v %v", events, reformed, ok)
	}
	if v := tl.View(); v.Epoch() == first || !v.SameHistory(first) || v.RV != 20 || v.Get("a").JSON != other.JSON {
		t.Errorf("%+v", v)
	}
	tl.Replace(podList(9))
	if tl.View().SameHistory(first) {
		t.Error("RVs went backwards in the same history")
	}
}

// TestReplaceRows: a list's rows replace those of unchanged objects if the columns
// have changed, or if it is of a custom resource.
func TestReplaceRows(t *testing.T) {
	printed := func(text, columns, row string) *scan.Object {
		o, err := scan.ParseObject(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Columns, o.Row = columns, row
		return o
	}
	const (
		custom = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"5"}}`
		typed  = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}}`
	)
	for _, test := range []struct{ text, columns, want string }{
		{custom, "same", "new"}, {custom, "other", "new"}, {typed, "same", "old"}, {typed, "other", "new"},
	} {
		tl := New(Options{})
		first := printed(test.text, "same", "old")
		tl.Reset(&scan.List{Kind: "List", RV: 10, Columns: "same", Items: []*scan.Object{first}})
		if !tl.Replace(&scan.List{Kind: "List", RV: 12, Columns: test.columns, Items: []*scan.Object{printed(test.text, test.columns, "new")}}) {
			t.Errorf("%+v: reset", test)
		}
		if got := tl.View().Get(first.Key); got.Row != test.want {
			t.Errorf("%+v: %s", test, got.Row)
		}
	}
}

func TestStartInsideGap(t *testing.T) {
	tl := New(Options{})
	tl.Replace(podList(10, object("a", "1", 5), object("b", "2", 6)))
	tl.Replace(podList(20, object("b", "2", 15))) // a is deleted at 11
	for rv, want := range map[uint64]bool{9: false, 10: true, 11: false, 12: false, 15: false, 16: false, 20: true, 99: true} {
		if got := tl.View().CanStart(rv); got != want {
			t.Errorf("CanStart(%d) = %v", rv, got)
		}
	}
	for _, rv := range []uint64{11, 15, 19} {
		if _, err := tl.At(rv); !errors.Is(err, ErrCompacted) {
			t.Errorf("At(%d): %v", rv, err)
		}
	}
}

// TestGapOutlivesLog: a gap is remembered when the log no longer holds its events,
// until the upstream's RVs go backwards.
func TestGapOutlivesLog(t *testing.T) {
	tl := New(Options{WindowBytes: EventOverhead})
	tl.Replace(podList(10, object("a", "1", 5), object("b", "2", 6)))
	tl.Replace(podList(20, object("b", "2", 15)))
	for rv := uint64(21); rv < 30; rv++ {
		if err := tl.Apply(modified(object("b", "2", rv))); err != nil {
			t.Fatal(err)
		}
		tl.Flush()
	}
	check := func(want bool) {
		t.Helper()
		for rv, inside := range map[uint64]bool{10: false, 11: want, 19: want, 20: false, 25: false} {
			if _, got := tl.View().GapAround(rv); got != inside {
				t.Errorf("GapAround(%d) = %v", rv, got)
			}
		}
	}
	if v := tl.View(); v.Start < 20 || tl.Stats().Gaps != 0 {
		t.Fatalf("the log begins at %d and has %d gaps: it still holds the gap", v.Start, tl.Stats().Gaps)
	}
	check(true)
	tl.Reset(podList(40))
	check(true)
	tl.Reset(podList(5))
	check(false)
}

// TestGapOverFutureStart: a client that listed upstream at 15 watches from there;
// then a relist makes the RVs between 10 and 20 a gap.
func TestGapOverFutureStart(t *testing.T) {
	tl := New(Options{})
	tl.Replace(podList(10, object("a", "1", 5), object("b", "2", 6)))
	watch := func(rv uint64) *Cursor {
		c, err := tl.Watch(rv, Interest{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	inside, end, beyond := watch(15), watch(20), watch(25)
	tl.Replace(podList(20, object("b", "2", 15))) // a is deleted at 11
	if _, err := inside.Next(); !errors.Is(err, ErrCompacted) {
		t.Errorf("a start inside the gap: %v", err)
	}
	for _, rv := range []uint64{21, 25, 26} {
		if err := tl.Apply(modified(object("b", "2", rv))); err != nil {
			t.Fatal(err)
		}
		tl.Flush()
	}
	if got := changes(t, end); len(got) != 3 {
		t.Errorf("from the end of the gap: %v", got)
	}
	if got := changes(t, beyond); len(got) != 1 || got[0].RV != 26 {
		t.Errorf("from 25: %v", got)
	}
}

// TestHold: held events are kept beyond the window, up to four times its size,
// and dropped once they are not held any more.
func TestHold(t *testing.T) {
	const window = 8 * EventOverhead
	tl := New(Options{WindowBytes: window})
	tl.Replace(podList(10, object("a", "1", 5)))
	rv := uint64(10)
	write := func(n int) {
		for range n {
			rv++
			if err := tl.Apply(modified(object("a", "1", rv))); err != nil {
				t.Fatal(err)
			}
		}
		tl.Flush()
	}
	fits := uint64(window / (&Event{Object: object("a", "1", 99)}).size())
	for _, step := range []struct {
		hold  uint64
		n     int
		start uint64 // of the window then
	}{
		{0, 20, 30 - fits},
		{30, 20, 30},            // the head is 50: nothing above 30 is dropped
		{45, 1, 45},             // the head is 51
		{45, 100, 151 - 4*fits}, // four windows
		{0, 1, 152 - fits},
	} {
		tl.Hold(step.hold)
		write(step.n)
		if got := tl.View().Start; got+1 < step.start || got > step.start+1 {
			t.Errorf("held from %d, the head is %d: the window begins at %d, want about %d", step.hold, rv, got, step.start)
		}
	}
}

// TestHoldAge: held events are kept beyond the age of the window, and dropped once they
// are not held any more.
func TestHoldAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := New(Options{WindowAge: time.Minute})
		tl.Replace(podList(10, object("a", "1", 5)))
		rv := uint64(10)
		write := func() {
			rv++
			if err := tl.Apply(modified(object("a", "1", rv))); err != nil {
				t.Fatal(err)
			}
			tl.Flush()
		}
		for range 10 {
			write()
			time.Sleep(2 * time.Second)
		}
		for _, step := range []struct{ hold, start uint64 }{
			{13, 13}, // the head is 20, and all events are older than a minute
			{16, 16},
			{0, 21}, // the window keeps the last event that is too old
		} {
			tl.Hold(step.hold)
			time.Sleep(2 * time.Minute)
			write()
			if got := tl.View().Start; got != step.start {
				t.Errorf("held from %d, the head is %d: the window begins at %d, want %d", step.hold, rv, got, step.start)
			}
		}
	})
}

// TestSharedRV: a cursor gets deletions at one RV even if they are in different
// views, and they leave the window together.
func TestSharedRV(t *testing.T) {
	tl := New(Options{WindowBytes: 6 * EventOverhead})
	tl.Replace(podList(10, object("a", "1", 5), object("b", "2", 6), object("c", "3", 7)))
	c, err := tl.Watch(10, Interest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []change
	for i, key := range []kube.Key{"a", "b", "c"} {
		if err := tl.Apply(deleted(object(key, fmt.Sprint(i+1), 14))); err != nil {
			t.Fatal(err)
		}
		tl.Flush()
		got = append(got, changes(t, c)...)
	}
	want := []change{{kube.Deleted, "a", "1", 14}, {kube.Deleted, "b", "2", 14}, {kube.Deleted, "c", "3", 14}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for rv := uint64(20); rv < 40; rv++ {
		if err := tl.Apply(modified(object("d", "4", rv))); err != nil {
			t.Fatal(err)
		}
		tl.Flush()
		if v := tl.View(); len(v.log) > 0 && v.log[0].RV <= v.Start {
			t.Fatalf("the log begins at %d, the window at %d", v.log[0].RV, v.Start)
		}
	}
}

// TestBatches: a lagging cursor gets its events in batches and moves with them.
func TestBatches(t *testing.T) {
	tl := New(Options{WindowBytes: 1 << 30})
	tl.Replace(podList(10))
	c, err := tl.Watch(10, Interest{})
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", batchBytes/3)
	for rv := uint64(11); rv <= 30; rv++ {
		o := object("a", big, rv)
		if err := tl.Apply(modified(o)); err != nil {
			t.Fatal(err)
		}
	}
	tl.Flush()
	last, rounds := uint64(10), 0
	for last < 30 {
		b, err := c.Next()
		if err != nil || len(b.Events) == 0 {
			t.Fatalf("at %d: %d events, %v", last, len(b.Events), err)
		}
		for _, e := range b.Events {
			if e.RV != last+1 {
				t.Fatalf("event at %d after %d", e.RV, last)
			}
			last = e.RV
		}
		if c.RV() != last || b.More != (last < 30) {
			t.Fatalf("the cursor is at %d after the event at %d, of 30; more: %v", c.RV(), last, b.More)
		}
		rounds++
	}
	if rounds < 5 {
		t.Errorf("20 events of a third of a batch came in %d batches", rounds)
	}
}

// TestQuietGaps: relists that find no change extend one gap.
func TestQuietGaps(t *testing.T) {
	tl := New(Options{})
	tl.Replace(podList(10, object("a", "1", 5)))
	for rv := uint64(11); rv < 100; rv++ {
		tl.Replace(podList(rv, object("a", "1", 5)))
	}
	if got := tl.View().gaps; !slices.Equal(got, []Gap{{10, 99}}) {
		t.Errorf("gaps %v", got)
	}
	if err := tl.Apply(modified(object("a", "1", 100))); err != nil {
		t.Fatal(err)
	}
	tl.Replace(podList(110, object("a", "1", 100)))
	if got := tl.View().gaps; !slices.Equal(got, []Gap{{10, 99}, {100, 110}}) {
		t.Errorf("gaps %v", got)
	}
}

func TestApplyEdgeCases(t *testing.T) {
	tl := New(Options{})
	tl.Replace(podList(10, object("a", "1", 5)))
	c, err := tl.Watch(10, Interest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []scan.Frame{
		modified(object("a", "1", 11)),
		modified(object("a", "1", 11)),   // a duplicate
		modified(object("new", "2", 12)), // not held: an addition
		deleted(object("never", "3", 13)),
		deleted(object("a", "1", 14)),
		deleted(object("a", "1", 14)),   // a duplicate
		deleted(object("new", "2", 14)), // at the same revision: a lease expired
	} {
		if err := tl.Apply(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := tl.Apply(modified(object("a", "1", 13))); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("an event below the head: %v", err)
	}
	if tl.View().RV != 10 {
		t.Error("readers see an event before Flush")
	}
	tl.Flush()
	want := []change{{kube.Modified, "a", "1", 11}, {kube.Added, "new", "2", 12}, {kube.Deleted, "a", "1", 14}, {kube.Deleted, "new", "2", 14}}
	if diff := cmp.Diff(want, changes(t, c)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCloseAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := New(Options{})
		got := make(chan error, 2)
		wait := func(rv uint64) {
			_, err := tl.WaitRV(t.Context(), rv)
			got <- err
		}
		go wait(12)
		synctest.Wait()
		tl.Replace(podList(10))
		c, err := tl.Watch(10, Interest{})
		if err != nil {
			t.Fatal(err)
		}
		tl.Bookmark(scan.Frame{Type: kube.Bookmark, Object: &scan.Object{RV: 12}})
		tl.Flush()
		if err := <-got; err != nil {
			t.Error(err)
		}
		go wait(13)
		synctest.Wait()
		if err := tl.Apply(modified(object("a", "1", 13))); err != nil {
			t.Fatal(err)
		}
		tl.Close()
		if err := <-got; !errors.Is(err, ErrClosed) {
			t.Errorf("WaitRV of a closed timeline: %v", err)
		}
		if n := len(changes(t, c)); n != 1 {
			t.Errorf("%d events before the end", n)
		}
		if _, err := c.Next(); !errors.Is(err, ErrClosed) {
			t.Errorf("cursor at the end: %v", err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("late"))
		defer cancel()
		if _, err := New(Options{}).WaitRV(ctx, 1); err == nil || err.Error() != "late" {
			t.Errorf("WaitRV without a list: %v", err)
		}
	})
}

func TestWindowAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := New(Options{WindowAge: time.Minute})
		tl.Replace(podList(10))
		for i := range uint64(300) {
			if err := tl.Apply(modified(object("a", "1", 11+i))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		tl.Flush()
		if n := tl.Stats().LogEvents; n < 60 || n > 64 {
			t.Errorf("%d events of one a second are held for a minute", n)
		}
		time.Sleep(time.Hour)
		tl.Bookmark(scan.Frame{Type: kube.Bookmark, Object: &scan.Object{RV: 1000}})
		tl.Flush()
		if n := tl.Stats().LogEvents; n > 2 {
			t.Errorf("%d events after an hour", n)
		}
	})
}

func TestNamespaceRange(t *testing.T) {
	tl := New(Options{})
	tl.Replace(podList(10, object("a/x", "1", 1), object("a-b/x", "2", 2), object("a/y", "3", 3), object("b/x", "4", 4), object("a0/x", "5", 5)))
	keys := func(ns string, from kube.Key) (out []kube.Key) {
		for o := range tl.View().All(ns, from) {
			out = append(out, o.Key)
		}
		return out
	}
	for _, test := range []struct {
		ns   string
		from kube.Key
		want []kube.Key
	}{
		{"", "", []kube.Key{"a-b/x", "a/x", "a/y", "a0/x", "b/x"}},
		{"a", "", []kube.Key{"a/x", "a/y"}},
		{"a", "a/x\x00", []kube.Key{"a/y"}},
		{"", "a/x\x00", []kube.Key{"a/y", "a0/x", "b/x"}},
		{"none", "", nil},
	} {
		if got := keys(test.ns, test.from); !slices.Equal(got, test.want) {
			t.Errorf("%q from %q: %v", test.ns, test.from, got)
		}
	}
}

// TestTimes: an event has the time of the first view with it, whenever it is read.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tl := New(Options{})
		tl.Reset(podList(10))
		c, err := tl.Watch(10, Interest{})
		if err != nil {
			t.Fatal(err)
		}
		step := func(during time.Duration, write func()) {
			time.Sleep(during)
			write()
			tl.Flush()
		}
		apply := func(name kube.Key, rv uint64) {
			if err := tl.Apply(modified(object(name, "1", rv))); err != nil {
				t.Fatal(err)
			}
		}
		step(time.Second, func() { apply("a", 11); apply("b", 12) })
		step(time.Minute, func() { apply("a", 13) })
		step(time.Minute, func() { tl.Replace(podList(20, object("a", "1", 15))) })
		time.Sleep(time.Hour)
		b, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		for _, e := range b.Events {
			got = append(got, e.At.Sub(began))
		}
		want := []time.Duration{time.Second, time.Second, 61 * time.Second, 121 * time.Second, 121 * time.Second}
		if !slices.Equal(got, want) || !b.At.Equal(began.Add(121*time.Second)) {
			t.Errorf("%v in a batch of %v, want %v", got, b.At.Sub(began), want)
		}
	})
}

// TestAdvance: a proof that nothing changed moves the head, and with it the start
// of a later gap, unless the head is past it or the timeline was reset.
func TestAdvance(t *testing.T) {
	tl := New(Options{})
	tl.Replace(podList(10, object("a", "1", 5)))
	v := tl.View()
	future, err := tl.Watch(15, Interest{})
	if err != nil {
		t.Fatal(err)
	}
	tl.Advance(v, 20)
	select {
	case <-v.changed:
	default:
		t.Error("readers are not woken")
	}
	if tl.Head() != 20 || tl.View().RV != 20 {
		t.Errorf("the head is at %d, %d", tl.Head(), tl.View().RV)
	}
	tl.Advance(v, 18)
	if got := tl.View().RV; got != 20 {
		t.Errorf("the head went back to %d", got)
	}
	if s, err := tl.At(17); err != nil || s.RV != 17 || s.Len() != 1 {
		t.Errorf("the state in between: %+v, %v", s, err)
	}
	// The gap begins at 20, so a cursor may start at 15.
	if !tl.Replace(podList(30)) {
		t.Fatal("the list does not continue the timeline")
	}
	if got, want := changes(t, future), []change{{kube.Deleted, "a", "1", 21}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	old := tl.View()
	tl.Reset(podList(25))
	if tl.Advance(old, 40); tl.View().RV != 25 {
		t.Errorf("the head of a reset timeline is at %d", tl.View().RV)
	}
}

// TestRowsCount: Table rows count towards WindowBytes (T10).
func TestRowsCount(t *testing.T) {
	tl := New(Options{WindowBytes: 1 << 20})
	tl.Replace(podList(1))
	for rv := range uint64(100) {
		o := object("a", "1", rv+2)
		o.Row = strings.Repeat("x", 100<<10)
		if err := tl.Apply(scan.Frame{Type: kube.Modified, Object: o}); err != nil {
			t.Fatal(err)
		}
	}
	tl.Flush()
	if n := len(tl.View().log); n > 10 {
		t.Errorf("the log holds %d rows of 100 KiB", n)
	}
}

// inMemory returns how many of the objects are not yet freed.
func inMemory(objects []weak.Pointer[scan.Object]) (n int) {
	runtime.GC()
	for _, o := range objects {
		if o.Value() != nil {
			n++
		}
	}
	return n
}

// TestDroppedEventsAreFreed: events that have left the window are kept in memory for an
// eighth of its size at most.
func TestDroppedEventsAreFreed(t *testing.T) {
	const window = 64 * EventOverhead
	tl := New(Options{WindowBytes: window})
	tl.Replace(podList(10, object("a", "1", 5)))
	var events []weak.Pointer[scan.Object]
	size := int64(0) // of an event
	for rv := uint64(11); rv < 1000; rv++ {
		o := object("a", "1", rv)
		events, size = append(events, weak.Make(o)), (&Event{Object: o}).size()
		if err := tl.Apply(modified(o)); err != nil {
			t.Fatal(err)
		}
		tl.Flush()
		if rv%100 != 0 {
			continue
		}
		kept := inMemory(events)
		// Besides, the first event has the object before it.
		if inLog, most := len(tl.View().log), int(window*9/8/size)+2; kept < inLog || kept > most {
			t.Errorf("at %d: %d objects in memory, %d in the log, want at most %d", rv, kept, inLog, most)
		}
	}
	runtime.KeepAlive(tl)
}

// Events that are too old are freed even if they take little of the window.
func TestOldEventsAreFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := New(Options{WindowAge: time.Minute})
		tl.Replace(podList(10, object("a", "1", 5)))
		var events []weak.Pointer[scan.Object]
		add := func(rv uint64) int64 {
			o := object("a", "1", rv)
			events = append(events, weak.Make(o))
			if err := tl.Apply(modified(o)); err != nil {
				t.Fatal(err)
			}
			tl.Flush()
			return (&Event{Object: o}).size()
		}
		size, rv := int64(0), uint64(10)
		for size < 2*minDropped {
			rv++
			size += add(rv)
		}
		for range 3 {
			time.Sleep(time.Minute)
			rv++
			add(rv)
		}
		kept := inMemory(events)
		if kept > len(events)/2 {
			t.Errorf("%d of %d objects are in memory, %d in the log", kept, len(events), len(tl.View().log))
		}
		runtime.KeepAlive(tl)
	})
}
