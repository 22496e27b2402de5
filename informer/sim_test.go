// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/informer/internal/simulation"
)

// A simulated is an API server of Pods whose requests and streams fail in many
// ways.
type simulated struct {
	*informertest.Server
	*simulation.Faults
	network *informertest.Network
}

func newSimulation(t *testing.T, seed uint64) *simulated {
	s := &simulated{
		Server: informertest.New(informertest.Options{FirstRV: 1, NoWatchList: seed%3 == 0}),
		Faults: simulation.NewFaults(seed),
	}
	s.Control(s.control)
	s.network = informertest.NewNetwork(s)
	t.Cleanup(s.network.Close)
	return s
}

// step changes an object and sometimes compacts the history.
func (s *simulated) step() {
	name := string(rune('a' + s.IntN(8)))
	if s.Get("pods", "ns/"+name) != "" && s.IntN(3) == 0 {
		s.Delete("pods", "ns/"+name)
	} else {
		s.Put("pods", fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns"},"spec":{}}`, name))
	}
	if s.IntN(20) == 0 {
		s.Compact(s.RV())
	}
}

func (s *simulated) control(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
	switch {
	case s.Happens(15):
		panic(http.ErrAbortHandler)
	case s.Happens(15):
		informertest.WriteStatus(w, 500, "InternalError", "no")
	case r.Verb == "list" && r.Query.Get("limit") != "1" && s.Happens(4):
		list := httptest.NewRecorder()
		next(list)
		_, _ = w.Write(list.Body.Bytes()[:list.Body.Len()/2])
	case r.Verb == "watch":
		next(&faultyStream{w, s, r})
	default:
		next(w)
	}
}

// A faultyStream is a watch that fails after one of the frames of a batch.
type faultyStream struct {
	http.ResponseWriter
	s *simulated
	r *informertest.Request
}

func (f *faultyStream) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *faultyStream) Write(b []byte) (int, error) {
	if !f.s.Happens(8) {
		return f.ResponseWriter.Write(b)
	}
	frames := slices.Collect(strings.Lines(string(b)))
	frames = frames[:f.s.IntN(len(frames))]
	kind := f.s.IntN(6)
	switch kind {
	case 2:
		frames = append(frames, `{"type":"ADDED","obj`)
	case 3:
		frames = append(frames, "<html>\n")
	case 4:
		frames = append(frames, expired)
	}
	_, _ = io.WriteString(f.ResponseWriter, strings.Join(frames, ""))
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	switch kind {
	case 1:
		panic(http.ErrAbortHandler)
	case 5:
		<-f.r.Context().Done()
	}
	return 0, io.EOF // ends the response cleanly
}

// A subscriberModel checks the events of a subscriber and derives the objects that
// exist from them.
type subscriberModel struct {
	t     *testing.T
	name  string
	known map[Key]Ref[testPod]
}

func (h *subscriberModel) apply(e Event[testPod]) {
	known, ok := h.known[e.Key]
	wrong := false
	switch e.Type {
	case Added:
		wrong = ok
	case Updated:
		wrong = !ok || e.Old.RV() != known.RV() || e.New.UID() != known.UID() || e.New.RV() == known.RV()
	case Deleted:
		wrong = !ok || e.Old.UID() != known.UID()
	}
	if wrong {
		h.t.Errorf("%s: %s, known is %s", h.name, describe(e), known.RV())
	}
	if h.known[e.Key] = e.New; e.Type == Deleted {
		delete(h.known, e.Key)
	}
}

// TestSimulation: under faults, every event that a subscriber receives continues
// the ones before; once the faults end, the copy and the subscribers have the
// upstream's objects. It runs WATCHKEEPER_SIMULATIONS seeds (10), from
// WATCHKEEPER_SIMULATION_SEED (random) on.
func TestSimulation(t *testing.T) {
	first, seeds := simulation.Seeds(t, 10)
	for seed := first; seed < first+seeds; seed++ {
		synctest.Test(t, func(t *testing.T) {
			s := newSimulation(t, seed)
			i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, s.network), pods, JSON[testPod](), Options{Backlog: 3, DetectMutation: seed%2 == 0})
			var heard []*subscriberModel
			var mu sync.Mutex // guards heard's maps
			ctx, cancel := context.WithCancel(t.Context())
			var listeners sync.WaitGroup
			defer listeners.Wait()
			defer cancel()
			listen := func(name string, pause func() time.Duration) {
				h := &subscriberModel{t: t, name: fmt.Sprintf("seed %d, %s", seed, name), known: map[Key]Ref[testPod]{}}
				heard = append(heard, h)
				listeners.Go(func() {
					for e, err := range i.Events(ctx) {
						if err == nil && e.Type != Synced {
							mu.Lock()
							h.apply(e)
							mu.Unlock()
						}
						time.Sleep(pause())
					}
				})
			}
			listen("quick", func() time.Duration { return 0 })
			listen("slow", func() time.Duration { return 20 * time.Second })
			start(t, i)
			for n := range 300 {
				s.step()
				time.Sleep(time.Duration(n%7) * 3 * time.Second)
				if n == 150 {
					listen("late", func() time.Duration { return time.Second })
				}
			}
			s.End()
			time.Sleep(time.Hour) // until the deadline of a stalled stream
			synctest.Wait()
			objects := s.All("pods")
			mu.Lock()
			defer mu.Unlock()
			if i.Len() != len(objects) {
				t.Errorf("seed %d: %d objects, want %d", seed, i.Len(), len(objects))
			}
			for key, o := range objects {
				name := strings.TrimPrefix(key, "ns/")
				ref, _ := i.Get(Key{"ns", name})
				if raw, _ := ref.Raw(); string(raw) != o {
					t.Errorf("seed %d: %s, want %s", seed, raw, o)
				}
				for _, h := range heard {
					if known := h.known[Key{"ns", name}]; known != ref || len(h.known) != len(objects) {
						t.Errorf("%s: %s is known at %s, is at %s; %d are known", h.name, name, known.RV(), ref.RV(), len(h.known))
					}
				}
			}
		})
	}
}
