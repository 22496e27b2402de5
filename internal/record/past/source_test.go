// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// newPast returns the past of a record.
func newPast(t *testing.T, record Record) *Past {
	t.Helper()
	b := upstream.NewBackground()
	t.Cleanup(b.Stop)
	return New(record, b, slog.New(slog.DiscardHandler))
}

// A model is a changing resource, its timeline with a small window, and a recorder that
// lags.
type model struct {
	t       *testing.T
	rnd     *rand.Rand
	rv      uint64
	now     map[kube.Key]*scan.Object
	events  []timeline.Event // all events
	live    *timeline.Timeline
	history *pasttest.Record
	pending []history.Event
}

func (m *model) step() {
	m.rv += 1 + uint64(m.rnd.IntN(3))
	key := kube.MakeKey([]string{"a", "b"}[m.rnd.IntN(2)], fmt.Sprint("p", m.rnd.IntN(6)))
	o := pasttest.Pod(key.Namespace(), key.Name(), m.rv, "color", []string{"red", "blue"}[m.rnd.IntN(2)])
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
	m.pending = append(m.pending, history.Event{Type: typ, Object: o, Prev: prev, At: pasttest.TimeOf(m.rv)})
	if err := m.live.Apply(scan.Frame{Type: typ, Object: o}); err != nil {
		m.t.Fatal(err)
	}
}

// record writes the pending events, as the recorder does.
func (m *model) record() error {
	m.history.Mu.Lock()
	defer m.history.Mu.Unlock()
	return m.recordLocked()
}

func (m *model) recordLocked() error {
	var rv uint64
	for _, e := range m.pending {
		rv = e.Object.RV
	}
	if rv == 0 {
		return nil
	}
	err := m.history.Stream.Append(m.pending, rv, pasttest.TimeOf(rv))
	m.pending = nil
	return err
}

// A watcher is a client of the model.
type watcher struct {
	source *Source
	in     timeline.Interest
	from   uint64
	got    []string
	late   int // batches that did not come from the timeline
}

func (w *watcher) step(t *testing.T) (more bool) {
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

// TestSource: watchers from any recorded RV see every event once, in order, however
// far they and the recorder lag behind the window.
func TestSource(t *testing.T) {
	late := 0
	for seed := range uint64(8) {
		list := pasttest.List(10, pasttest.Pod("a", "p0", 4), pasttest.Pod("b", "p1", 5))
		m := &model{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), rv: 10, now: map[kube.Key]*scan.Object{}, history: pasttest.New(t, list)}
		for _, o := range list.Items {
			m.now[o.Key] = o
		}
		m.live = timeline.New(timeline.Options{WindowBytes: 12 << 10})
		m.live.Reset(list)
		m.history.OnSync = m.recordLocked
		p := newPast(t, m.history)
		var watchers []*watcher
		for range 300 {
			m.history.Mu.Lock()
			for range m.rnd.IntN(4) {
				m.step()
			}
			m.history.Mu.Unlock()
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
				watchers = append(watchers, m.watch(p))
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
		t.Error("no watcher was late")
	}
}

// watch begins a watch from a random RV.
func (m *model) watch(p *Past) *watcher {
	w := &watcher{from: 10 + m.rnd.Uint64N(m.rv-9)}
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
		w.source = p.Follow(pasttest.Pods, m.live, v, cursor, w.in)
		return w
	}
	source, err := p.Resume(m.t.Context(), pasttest.Pods, m.live, v, w.from, w.in)
	if err != nil || source == nil {
		m.t.Fatal(source, err)
	}
	w.source = source
	return w
}
