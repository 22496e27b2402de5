// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/informer/internal/simulation"
)

// faults makes requests and streams of a cluster fail.
type faults struct {
	*cluster
	*simulation.Faults

	oneOwner bool // the owner of a ConfigMap never changes
}

func (f *faults) control(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
	switch {
	case f.Happens(10):
		panic(http.ErrAbortHandler)
	case f.Happens(10):
		informertest.WriteStatus(w, 500, "InternalError", "no")
	case f.Happens(10):
		informertest.WriteStatus(w, []int{401, 403, 404}[f.IntN(3)], "Refused", "no")
	case r.Verb == "watch":
		next(&cutStream{w, f})
	default:
		next(w)
	}
}

// A cutStream is a watch that ends after a part of a batch, or breaks.
type cutStream struct {
	http.ResponseWriter
	f *faults
}

func (s *cutStream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *cutStream) Write(b []byte) (int, error) {
	if !s.f.Happens(8) {
		return s.ResponseWriter.Write(b)
	}
	frames := slices.Collect(strings.Lines(string(b)))
	_, _ = io.WriteString(s.ResponseWriter, strings.Join(frames[:s.f.IntN(len(frames))], ""))
	if s.f.Happens(2) {
		panic(http.ErrAbortHandler)
	}
	return 0, io.EOF
}

// step changes an object.
func (f *faults) step() {
	name := string(rune('a' + f.IntN(5)))
	resource, put := widgetsName, func() { f.putWidget(name) }
	if f.IntN(2) == 0 {
		owner := []string{"", "a", "b", "c", "d", "e"}[f.IntN(6)]
		if f.oneOwner {
			owner = map[string]string{"a": "b", "b": "b", "c": "d", "d": "e"}[name]
		}
		resource, put = "configmaps", func() { f.putConfigMap(name, owner) }
	}
	if f.Get(resource, "ns/"+name) != "" && f.IntN(3) == 0 {
		f.Delete(resource, "ns/"+name)
	} else {
		put()
	}
	switch f.IntN(20) {
	case 0:
		f.Compact(f.RV())
	case 1:
		f.Expire()
	case 2:
		f.CutWatches()
	}
}

// view returns what the copies have for a Widget: its version and those of its ConfigMaps.
func (c *cluster) view(key informer.Key) string {
	var parts []string
	for _, m := range c.configMaps.All() {
		if o, ok := m.Controller(); ok && o.Name == key.Name {
			parts = append(parts, m.Key().Name+"@"+m.RV())
		}
	}
	slices.Sort(parts)
	w, _ := c.widgets.Get(key)
	return fmt.Sprint(w.RV(), parts)
}

// TestI14Faults: while requests fail, streams break, histories expire and informers are
// refused, and calls fail, panic and ask for others, calls of a key never overlap, none
// begins before the sources are synced, and the last call for each key reads the last
// state. It runs WATCHKEEPER_SIMULATIONS seeds (20), from WATCHKEEPER_SIMULATION_SEED
// (random) on.
func TestI14Faults(t *testing.T) {
	first, seeds := simulation.Seeds(t, 20)
	for seed := first; seed < first+seeds; seed++ {
		// With the smallest backlog, events are coalesced often, so that owners in between
		// are not called.
		coalesces := seed%2 == 0
		opts := informer.Options{Backlog: 1000, DetectMutation: seed%4 < 2}
		if coalesces {
			opts.Backlog = 1
		}
		simulate(t, informertest.Options{NoWatchList: seed%3 == 0}, opts, func(t *testing.T, c *cluster) {
			f := &faults{cluster: c, Faults: simulation.NewFaults(seed), oneOwner: coalesces}
			c.Control(f.control)
			for range 10 {
				f.step()
			}
			var mu sync.Mutex // guards both
			running, seen := map[informer.Key]bool{}, map[string]string{}
			reconcile := func(ctx context.Context, key informer.Key) (Result, error) {
				now, cancel := context.WithCancel(ctx)
				cancel()
				if err := errors.Join(c.widgets.WaitSynced(now), c.configMaps.WaitSynced(now)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if running[key] {
					t.Errorf("seed %d: calls of %s overlap", seed, key)
				}
				running[key] = true
				defer delete(running, key)
				view := c.view(key)
				mu.Unlock()
				time.Sleep(time.Duration(f.IntN(50)) * time.Millisecond)
				mu.Lock()
				switch {
				case f.Happens(8):
					return Result{}, errNo
				case f.Happens(20):
					panic(errNo)
				case f.Happens(20):
					runtime.Goexit()
				case f.Happens(4):
					return Result{After: time.Duration(1+f.IntN(60)) * time.Second}, nil
				}
				seen[key.String()] = view
				return Result{}, nil
			}
			g := &Group{Controllers: []*Controller{
				New("test", reconcile, Options{Workers: 1 + int(seed%3)}, For(c.widgets), Owns(c.configMaps, widgetKind)),
				New("other", succeed, Options{}, For(c.configMaps)),
			}}
			stop := start(t, g)
			for range 150 {
				f.step()
				time.Sleep(time.Duration(f.IntN(3000)) * time.Millisecond)
			}
			f.End()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if w := g.Waiting(); len(w) > 0 {
				t.Errorf("seed %d: waiting for %q", seed, w)
			}
			for _, informer := range []struct {
				name string
				of   *informer.Informer[json.RawMessage]
			}{{widgetsName, c.widgets}, {"configmaps", c.configMaps}} {
				if n := len(c.All(informer.name)); n != informer.of.Len() {
					t.Errorf("seed %d: the copy has %d %s, want %d", seed, informer.of.Len(), informer.name, n)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			want := map[string]string{}
			for key := range seen {
				want[key] = c.view(informer.Key{Namespace: "ns", Name: strings.TrimPrefix(key, "ns/")})
			}
			for key := range c.All(widgetsName) {
				want[key] = c.view(informer.Key{Namespace: "ns", Name: strings.TrimPrefix(key, "ns/")})
			}
			if !maps.Equal(seen, want) {
				t.Errorf("seed %d: the last calls have read\n%v\nwant\n%v", seed, seen, want)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
