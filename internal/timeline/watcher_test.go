// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// inA is an interest in namespace a.
var inA = Interest{Namespace: "a", Match: in("a")}

// selective returns a timeline with a pod in each of two namespaces, and a
// cursor from its head with the interest.
func selective(t *testing.T, opts Options, in Interest) (*Timeline, *Cursor) {
	t.Helper()
	tl := New(opts)
	tl.Replace(podList(10, object("a/p", "1", 5), object("b/p", "2", 6)))
	c, err := tl.Watch(10, in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return tl, c
}

func apply(t *testing.T, tl *Timeline, objects ...*scan.Object) {
	t.Helper()
	for _, o := range objects {
		if err := tl.Apply(modified(o)); err != nil {
			t.Fatal(err)
		}
	}
}

func ready(c *Cursor) bool {
	select {
	case <-c.Ready():
		return true
	default:
		return false
	}
}

// TestWoken: a selective cursor is woken by the events that concern it, and by
// every change that is not an event.
func TestWoken(t *testing.T) {
	tl, c := selective(t, Options{}, inA)
	apply(t, tl, object("b/p", "2", 11))
	tl.Flush()
	if ready(c) {
		t.Error("woken by an event that does not concern it")
	}
	if got := changes(t, c); len(got) > 0 || c.RV() != 11 {
		t.Errorf("%v, at %d", got, c.RV())
	}
	for name, then := range map[string]func(){
		"an event": func() { apply(t, tl, object("a/p", "1", 12)); tl.Flush() },
		"a gap":    func() { tl.Replace(podList(20, object("a/p", "1", 12), object("b/p", "2", 11))) },
		"a reset":  func() { tl.Reset(podList(30)) },
		"the end":  func() { tl.Close() },
	} {
		tl, c = selective(t, Options{}, inA)
		if then(); !ready(c) {
			t.Errorf("not woken by %s", name)
		}
	}
}

// TestWindowOverrun: more events come at once than the window holds.
func TestWindowOverrun(t *testing.T) {
	tl, c := selective(t, Options{WindowBytes: 4 * EventOverhead}, inA)
	apply(t, tl, object("a/p", "1", 11))
	for rv := uint64(12); rv < 40; rv++ {
		apply(t, tl, object("b/p", "2", rv))
	}
	tl.Flush()
	if !ready(c) {
		t.Error("not woken")
	}
	if _, err := c.Next(); !errors.Is(err, ErrCompacted) {
		t.Errorf("the event at 11 is lost: %v", err)
	}
}

// TestIdleThroughWindow: a cursor loses nothing if the window moves past it while
// no event concerns it.
func TestIdleThroughWindow(t *testing.T) {
	tl, c := selective(t, Options{WindowBytes: 4 * EventOverhead}, inA)
	for rv := uint64(11); rv < 40; rv++ {
		apply(t, tl, object("b/p", "2", rv))
		tl.Flush()
	}
	apply(t, tl, object("a/p", "1", 40))
	tl.Flush()
	if diff := cmp.Diff([]change{{kube.Modified, "a/p", "1", 40}}, changes(t, c)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestPublishedNotDispatched: a view is published before its events are
// dispatched. A cursor's RV is not above the dispatched events (T5); a cursor that
// is opened in between does not get the events before its start again (T4).
func TestPublishedNotDispatched(t *testing.T) {
	tl, c := selective(t, Options{}, inA)
	before := *tl.interests.dispatched.Load()
	apply(t, tl, object("a/p", "1", 11))
	tl.Flush()
	view := tl.View()
	// Undo the dispatch.
	tl.interests.dispatched.Store(&before)
	c.watcher.pending = nil
	<-c.Ready()
	late, err := tl.Watch(11, inA)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if got := changes(t, c); len(got) > 0 || c.RV() != 10 {
		t.Errorf("%v, at %d", got, c.RV())
	}
	if got := changes(t, late); len(got) > 0 || late.RV() != 11 {
		t.Errorf("%v, at %d", got, late.RV())
	}
	tl.interests.dispatch(view, false)
	if !ready(c) {
		t.Error("not woken by the dispatch")
	}
	if got := changes(t, c); len(got) != 1 || c.RV() != 11 {
		t.Errorf("%v, at %d", got, c.RV())
	}
	if got := changes(t, late); len(got) > 0 || late.RV() != 11 {
		t.Errorf("%v, at %d", got, late.RV())
	}
}

// TestLagging: a cursor that lags by more than maxPending reads all events from
// the log, in batches; then events are dispatched to it again.
func TestLagging(t *testing.T) {
	tl, c := selective(t, Options{}, inA)
	last := uint64(10)
	read := func() {
		for more := true; more; {
			b, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range b.Events {
				if e.RV != last+2 {
					t.Fatalf("event at %d after %d", e.RV, last)
				}
				last = e.RV
			}
			more = b.More
		}
	}
	for rv := uint64(11); rv < 11+8*maxPending; rv += 2 {
		apply(t, tl, object("b/p", "2", rv), object("a/p", "1", rv+1))
		if tl.Flush(); rv == 11+2*maxPending {
			read()
		}
	}
	read()
	if head := tl.View().RV; last != head || c.RV() != head {
		t.Errorf("the last event is at %d, the cursor at %d, the head at %d", last, c.RV(), head)
	}
	if len(c.watcher.pending) > 0 || c.watcher.lagging {
		t.Errorf("the cursor lags: %+v", c.watcher)
	}
}

// TestLastEvents: a cursor that reads the last events together with the end of the
// timeline is told to go on to the end, since nothing will wake it.
func TestLastEvents(t *testing.T) {
	for name, in := range map[string]Interest{"everything": {}, "selective": inA} {
		tl, c := selective(t, Options{}, in)
		apply(t, tl, object("a/p", "1", 11))
		tl.Flush()
		tl.Close()
		b, err := c.Next()
		if err != nil || len(b.Events) != 1 || !b.More {
			t.Errorf("%s: %v, more %v, %v", name, b.Events, b.More, err)
		}
		if _, err := c.Next(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: then %v", name, err)
		}
	}
}
