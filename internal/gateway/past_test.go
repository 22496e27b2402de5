// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	recording "github.com/watchkeeper/watchkeeper/internal/recorder"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A fakeHistory is a store that a test fills.
type fakeHistory struct {
	store  *history.Store
	stream *history.Stream

	mu    sync.Mutex // guards what follows
	syncs func() error

	withheld string // the name of a resource
}

func (f *fakeHistory) Store() *history.Store { return f.store }

func (f *fakeHistory) Sync(context.Context, kube.Resource) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.syncs == nil {
		return nil
	}
	return f.syncs()
}

func (h *fakeHistory) Withholds(r kube.Resource) bool { return r.Name == h.withheld }

func (h *fakeHistory) Status() (recording.Status, bool) {
	return recording.Status{Recording: true}, true
}

// epoch is when the tests' history begins, at the RV 10: each RV is a second.
var epoch = time.Now().Add(-24 * time.Hour).Truncate(time.Second)

func timeOfRV(rv uint64) time.Time { return epoch.Add(time.Duration(rv) * time.Second) }

// newHistory returns the history of Pods that begins with a list.
func newHistory(t *testing.T, list *scan.List) *fakeHistory {
	t.Helper()
	store, err := history.Open("history", history.Options{Cluster: "c", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fakeHistory{store: store}
	f.begin(t, list)
	return f
}

func (f *fakeHistory) begin(t *testing.T, list *scan.List) {
	t.Helper()
	st, err := f.store.NewEpoch(pods)
	if err == nil {
		f.stream = st
		form := history.Form{ListKind: list.Kind, Item: list.EmptyItem()}
		err = st.Begin(form, slices.Values(list.Items), list.RV, timeOfRV(list.RV))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// append records an event, at the time of its RV.
func (f *fakeHistory) append(t *testing.T, events ...history.Event) {
	t.Helper()
	for _, e := range events {
		e.At = timeOfRV(e.Object.RV)
		if err := f.stream.Append([]history.Event{e}, e.Object.RV, e.At); err != nil {
			t.Fatal(err)
		}
	}
}

// remember gives the bench a past.
func (b *bench) remember(h *fakeHistory) { b.cache.past = newPast(b.cache, h) }

// at serves a request for the past, as a Gateway does.
func (b *bench) at(w *recorder, r *http.Request) {
	when, inner, err := cutAt(r, time.Now())
	if err != nil {
		b.t.Error(err)
		return
	}
	w.request = inner
	b.cache.serveAt(w, inner, when)
}

// A pastModel is a resource that is written, its timeline with a small window, and
// a recorder that lags behind.
type pastModel struct {
	t       *testing.T
	rnd     *rand.Rand
	rv      uint64
	now     map[kube.Key]*scan.Object
	events  []timeline.Event // all there were
	live    *timeline.Timeline
	history *fakeHistory
	pending []history.Event
}

func (m *pastModel) step() {
	m.rv += 1 + uint64(m.rnd.IntN(3))
	key := kube.MakeKey([]string{"a", "b"}[m.rnd.IntN(2)], fmt.Sprint("p", m.rnd.IntN(6)))
	o := pod(key.Namespace(), key.Name(), m.rv, "color", []string{"red", "blue"}[m.rnd.IntN(2)])
	prev := m.now[key]
	typ := kube.Added
	switch {
	case prev != nil && m.rnd.IntN(4) == 0:
		typ = kube.Deleted
		delete(m.now, key)
	case prev != nil:
		typ = kube.Modified
		m.now[key] = o
	default:
		m.now[key] = o
	}
	m.events = append(m.events, timeline.Event{Type: typ, RV: m.rv, Object: o, Prev: prev})
	m.pending = append(m.pending, history.Event{Type: typ, Object: o, Prev: prev, At: timeOfRV(m.rv)})
	if err := m.live.Apply(scan.Frame{Type: typ, Object: o}); err != nil {
		m.t.Fatal(err)
	}
}

// record is the recorder's: it writes what is pending.
func (m *pastModel) record() error {
	m.history.mu.Lock()
	defer m.history.mu.Unlock()
	return m.recordLocked()
}

func (m *pastModel) recordLocked() error {
	var rv uint64
	for _, e := range m.pending {
		rv = e.Object.RV
	}
	if rv == 0 {
		return nil
	}
	err := m.history.stream.Append(m.pending, rv, timeOfRV(rv))
	m.pending = nil
	return err
}

// A pastWatcher is a client of the model.
type pastWatcher struct {
	source source
	in     timeline.Interest
	from   uint64
	got    []string
	late   int // batches that did not come from the timeline
}

func (w *pastWatcher) step(t *testing.T) (more bool) {
	b, err := w.source.Next()
	if err != nil {
		t.Fatalf("the watch from %d at %d: %v", w.from, w.source.RV(), err)
	}
	for _, e := range b.Events {
		if typ, o, ok := w.in.Seen(e); ok {
			w.got = append(w.got, fmt.Sprint(typ, " ", o.Key, "@", o.RV, o.Labels))
		}
	}
	if len(b.Events) > 0 && b.At.IsZero() {
		w.late++
	}
	return b.More
}

// TestPastCursor: watchers from any RV that is recorded see every event once, in
// order, however far behind the window they are, and however far the recorder is.
func TestPastCursor(t *testing.T) {
	late := 0
	for seed := range uint64(8) {
		list := podList(10, pod("a", "p0", 4), pod("b", "p1", 5))
		m := &pastModel{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), rv: 10, now: map[kube.Key]*scan.Object{}, history: newHistory(t, list)}
		for _, o := range list.Items {
			m.now[o.Key] = o
		}
		m.live = timeline.New(timeline.Options{WindowBytes: 12 << 10})
		m.live.Reset(list)
		m.history.syncs = m.recordLocked
		b := newBench(t, list)
		b.res.timeline = m.live
		b.remember(m.history)
		var watchers []*pastWatcher
		for range 300 {
			m.history.mu.Lock()
			for range m.rnd.IntN(4) {
				m.step()
			}
			m.history.mu.Unlock()
			if m.rnd.IntN(3) == 0 {
				m.live.Flush()
			}
			if m.rnd.IntN(8) == 0 {
				if err := m.record(); err != nil {
					t.Fatal(err)
				}
			}
			if m.rnd.IntN(15) == 0 {
				m.live.Flush()
				watchers = append(watchers, m.watch(b))
			}
			for _, w := range watchers {
				if m.rnd.IntN(40) == 0 {
					w.step(t)
				}
			}
		}
		m.live.Flush()
		for _, w := range watchers {
			for w.step(t) || w.source.RV() < m.rv {
				select {
				case <-w.source.Ready():
				case <-time.After(10 * time.Second):
					t.Fatalf("nothing from %d on", w.source.RV())
				default:
				}
			}
			var want []string
			for i := range m.events {
				if e := &m.events[i]; e.RV > w.from {
					if typ, o, ok := w.in.Seen(e); ok {
						want = append(want, fmt.Sprint(typ, " ", o.Key, "@", o.RV, o.Labels))
					}
				}
			}
			if diff := cmp.Diff(want, w.got); diff != "" {
				t.Fatalf("seed %d, from %d (-model +watch)\n%s", seed, w.from, diff)
			}
			late += w.late
			w.source.Close()
		}
	}
	if late == 0 {
		t.Error("nobody was late")
	}
}

// watch begins a watch from a random RV.
func (m *pastModel) watch(b *bench) *pastWatcher {
	w := &pastWatcher{from: 10 + m.rnd.Uint64N(m.rv-9)}
	switch m.rnd.IntN(3) {
	case 0:
		w.in.Match = func(o *scan.Object) bool { return o.Labels.Get("color") == "red" }
		w.in.Attribute = &timeline.Attribute{Label: "color", Values: []string{"red"}}
	case 1:
		w.in.Match = func(o *scan.Object) bool { return o.Key.Namespace() == "a" }
		w.in.Namespace = "a"
	}
	v := m.live.View()
	if v.CanStart(w.from) {
		cursor, err := m.live.WatchFrom(v, w.from, w.in)
		if err != nil {
			m.t.Fatal(err)
		}
		w.source = b.cache.past.follow(b.res, v, cursor, w.in)
		return w
	}
	rd := &read{target: target{resource: pods}, rv: w.from}
	cursor, err := b.cache.past.resume(m.t.Context(), rd, b.res, v)
	if err != nil || cursor == nil {
		m.t.Fatal(cursor, err)
	}
	cursor.in = w.in
	w.source = cursor
	return w
}
