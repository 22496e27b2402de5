// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A simulation is an API server with one collection whose requests and streams fail
// in many ways.
type simulation struct {
	mu        sync.Mutex // guards all below
	r         *rand.Rand
	rv        int
	objects   map[string]string // JSON by name
	uids      map[string]string
	history   []string // frames, by RV
	compacted int      // watches from lower RVs are answered with 410
	changed   chan struct{}
	faults    bool
	streams   bool // it serves streaming lists
}

func newSimulation(seed uint64) *simulation {
	return &simulation{r: rand.New(rand.NewPCG(seed, 3)), rv: 1, objects: map[string]string{}, uids: map[string]string{},
		history: make([]string, 2), changed: make(chan struct{}), faults: true, streams: seed%3 > 0}
}

// step changes an object and sometimes compacts the history.
func (s *simulation) step() {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := string(rune('a' + s.r.IntN(8)))
	s.rv++
	typ := "MODIFIED"
	switch _, known := s.objects[name]; {
	case !known:
		typ = "ADDED"
		s.uids[name] = fmt.Sprint("uid-", s.rv)
	case s.r.IntN(3) == 0:
		typ = "DELETED"
	}
	frame := uid(event(typ, name, s.rv), s.uids[name])
	s.objects[name] = strings.TrimSuffix(frame[strings.Index(frame, `"object":`)+len(`"object":`):], "}\n")
	if typ == "DELETED" {
		delete(s.objects, name)
	}
	s.history = append(s.history, frame)
	if s.r.IntN(20) == 0 {
		s.compacted = s.rv
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// fault returns true one time in n while there are faults.
func (s *simulation) fault(n int) bool { return s.faults && s.r.IntN(n) == 0 }

func (s *simulation) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := r.URL.Query()
	answer := func(code int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	switch {
	case s.fault(15):
		return nil, errors.New("connection refused")
	case s.fault(15):
		return answer(500, status(500))
	case query.Get("limit") == "1":
		return answer(200, page(s.rv, ""))
	case !query.Has("watch"):
		var items []string
		for _, o := range s.objects {
			items = append(items, o)
		}
		body := page(s.rv, "", items...)
		if s.fault(4) {
			body = body[:len(body)/2]
		}
		return answer(200, body)
	case query.Has("sendInitialEvents") && !s.streams:
		return answer(400, status(400))
	case !query.Has("sendInitialEvents") && from < s.compacted:
		return answer(410, status(410))
	}
	pr, pw := io.Pipe()
	context.AfterFunc(r.Context(), func() { pw.CloseWithError(r.Context().Err()) })
	var initial []string
	if query.Has("sendInitialEvents") {
		from = s.rv
		for _, o := range s.objects {
			initial = append(initial, `{"type":"ADDED","object":`+o+"}\n")
		}
		initial = append(initial, bookmark(s.rv, true))
	}
	go s.stream(r.Context(), pw, initial, from)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: pr, Request: r}, nil
}

func (s *simulation) stream(ctx context.Context, w *io.PipeWriter, initial []string, at int) {
	marks := time.NewTicker(minute)
	defer marks.Stop()
	for ctx.Err() == nil {
		s.mu.Lock()
		send := append(initial, s.history[at+1:]...)
		initial, at = nil, s.rv
		changed := s.changed
		var err error
		stall := false
		if s.fault(8) && len(send) > 0 {
			send = send[:s.r.IntN(len(send))]
			switch s.r.IntN(6) {
			case 0:
				err = io.EOF
			case 1:
				err = errors.New("connection reset")
			case 2:
				send, err = append(send, `{"type":"ADDED","obj`), io.EOF
			case 3:
				send, err = append(send, "<html>\n"), io.EOF
			case 4:
				send, err = append(send, expired), io.EOF
			case 5:
				stall = true
			}
		}
		s.mu.Unlock()
		_, _ = io.WriteString(w, strings.Join(send, ""))
		if err != nil {
			w.CloseWithError(err)
			return
		}
		if stall {
			<-ctx.Done()
			return
		}
		select {
		case <-changed:
		case <-marks.C:
			_, _ = io.WriteString(w, bookmark(at, false))
		case <-ctx.Done():
		}
	}
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
// upstream's objects. It runs WATCHKEEPER_SIMULATIONS seeds, 40 by default.
func TestSimulation(t *testing.T) {
	seeds := uint64(40)
	if n, err := strconv.ParseUint(os.Getenv("WATCHKEEPER_SIMULATIONS"), 10, 64); err == nil {
		seeds = n
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			s := newSimulation(seed)
			i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, s), pods, JSON[testPod](), Options{Backlog: 3})
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
			s.mu.Lock()
			s.faults = false
			s.mu.Unlock()
			time.Sleep(time.Hour) // until the deadline of a stalled stream
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			mu.Lock()
			defer mu.Unlock()
			if i.Len() != len(s.objects) {
				t.Errorf("seed %d: %d objects, want %d", seed, i.Len(), len(s.objects))
			}
			for name, o := range s.objects {
				ref, _ := i.Get(Key{"ns", name})
				if raw, _ := ref.Raw(); string(raw) != o {
					t.Errorf("seed %d: %s, want %s", seed, raw, o)
				}
				for _, h := range heard {
					if known := h.known[Key{"ns", name}]; known != ref || len(h.known) != len(s.objects) {
						t.Errorf("%s: %s is known at %s, is at %s; %d are known", h.name, name, known.RV(), ref.RV(), len(h.known))
					}
				}
			}
		})
	}
}
