// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errNo = errors.New("no")

// busy is an informer that is told of the events.
func busy(t *testing.T, events string) *Informer[thing] {
	t.Helper()
	i, _ := newInformer(t, Options{}, probe, answer{want: streaming, stall: true, body: bookmark(10, true) + events})
	return i
}

// TestI11Retry: an event that fails is tried again, and holds up its own queue
// only; what has happened since is told with it.
func TestI11Retry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := busy(t, event("ADDED", "a", 11)+event("ADDED", "b", 12)+event("MODIFIED", "a", 13)+event("MODIFIED", "a", 14)+event("ADDED", "c", 16)+event("DELETED", "c", 17))
		d := &diary{}
		var failures atomic.Int64
		failures.Store(3)
		Reconcile(i, ReconcileOptions[thing]{Workers: 1}, func(_ context.Context, e Event[thing]) error {
			d.add(tell(e))
			if e.Key.Name == "a" && failures.Add(-1) >= 0 {
				return errNo
			}
			return nil
		})
		start(t, i)
		ofA := func(lines []string) []string {
			return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return !strings.Contains(s, "ns/a") })
		}
		// What is told of a, and of c, depends on how soon its turn comes.
		if got := d.read(); len(ofA(got)) != 1 || !slices.Contains(got, "ADDED ns/b →12") {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(time.Minute)
		if got := ofA(d.read()); len(got) != 4 || !strings.HasPrefix(got[3], "ADDED ns/a →14") {
			t.Errorf("in time: %q", got)
		}
	})
}

// TestI11EveryEvent: each event in its turn, those that fail too.
func TestI11EveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := busy(t, event("ADDED", "a", 11)+event("MODIFIED", "a", 12)+event("DELETED", "a", 13)+event("ADDED", "a", 14))
		d := &diary{}
		Reconcile(i, ReconcileOptions[thing]{EveryEvent: true, MaxRetries: 2, DeadLetter: func(e Event[thing], err error) {
			d.add(fmt.Sprintf("given up %s: %v", tell(e), err))
		}}, func(_ context.Context, e Event[thing]) error {
			d.add(tell(e))
			if e.New.RV() == "12" {
				return errNo
			}
			return nil
		})
		start(t, i)
		time.Sleep(time.Minute)
		want(t, d.read(), "ADDED ns/a →11", "UPDATED ns/a 11→12", "UPDATED ns/a 11→12", "UPDATED ns/a 11→12", "given up UPDATED ns/a 11→12: no", "DELETED ns/a 13→", "ADDED ns/a →14")
	})
}

// TestI11Restart: an event that was under way when the informer stopped comes
// again, and a pause does not outlast the run.
func TestI11Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + event("ADDED", "b", 4) + bookmark(10, true)})
		d := &diary{}
		var settled atomic.Bool
		stopReconcile := Reconcile(i, ReconcileOptions[thing]{MinBackoff: time.Hour, MaxBackoff: time.Hour}, func(ctx context.Context, e Event[thing]) error {
			if !settled.Load() && e.Key.Name == "a" {
				<-ctx.Done()
				return ctx.Err()
			}
			if !settled.Load() {
				return errNo
			}
			d.add(tell(e))
			return nil
		})
		stop := start(t, i)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		settled.Store(true)
		stop = start(t, i)
		got := d.read()
		slices.Sort(got)
		want(t, got, "ADDED ns/a →3 initial", "ADDED ns/b →4 initial")
		stopReconcile()
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestI11Model reconciles what happens in a world, with failures, in queues of
// one object or several: never two at a time of a queue, of each object in
// order, and in the end of all what there is; no queue is left.
func TestI11Model(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{r: rand.New(rand.NewPCG(seed, 1)), objects: map[string]*record[string]{}}
			i := New(nil, pods, JSON[string](), Options{})
			w.log = &i.events
			opts := ReconcileOptions[string]{Workers: 3, EveryEvent: seed%2 == 0}
			if seed%3 == 0 {
				opts.QueueBy = func(e Event[string]) string { return map[bool]string{true: "low"}[e.Key.Name < "d"] }
			}
			if seed%3 == 1 {
				opts.QueueBy = func(Event[string]) string { return "all" }
			}
			var mu sync.Mutex
			chance := rand.New(rand.NewPCG(seed, 2))
			rd := &reader{t: t, held: map[string]*record[string]{}}
			atWork := map[string]bool{}
			failing := map[string]bool{} // objects whose last event failed
			r := newReconciler(i, opts, func(_ context.Context, e Event[string]) error {
				name := e.Key.Name
				if opts.QueueBy != nil {
					name = opts.QueueBy(e)
				}
				mu.Lock()
				defer mu.Unlock()
				if atWork[name] {
					t.Errorf("two at a time of %s", name)
				}
				atWork[name] = true
				pause := time.Duration(chance.IntN(3)) * time.Millisecond
				mu.Unlock()
				time.Sleep(pause)
				mu.Lock()
				delete(atWork, name)
				if chance.IntN(4) == 0 {
					failing[e.Key.Name] = true
					return errNo
				}
				en := entry[string]{typ: e.Type, old: e.Old.r, now: e.New.r}
				if e.Type == Deleted && failing[e.Key.Name] && rd.held[e.Key.Name] == nil {
					rd.held[e.Key.Name] = e.Old.r // it was tried, so it is to be undone
				}
				delete(failing, e.Key.Name)
				rd.check(en)
				return nil
			})
			r.start()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			i.mu.Lock()
			i.run = &activeRun{ctx: ctx}
			for task := range i.tasks {
				i.startLocked(task)
			}
			run := i.run
			i.mu.Unlock()
			for range 200 {
				i.mu.Lock()
				w.step()
				i.mu.Unlock()
				if w.r.IntN(4) == 0 {
					time.Sleep(time.Duration(w.r.IntN(100)) * time.Millisecond)
				}
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(r.queues) > 0 || r.total > 0 || len(r.ready) > 0 {
				t.Errorf("seed %d: left are %v, %d, %v", seed, r.queues, r.total, r.ready)
			}
			if len(rd.held) != len(w.objects) {
				t.Errorf("seed %d: %d objects, want %d", seed, len(rd.held), len(w.objects))
			}
			for key, o := range w.objects {
				if rd.held[key] != o {
					t.Errorf("seed %d: %s is %v, want %v", seed, key, rd.held[key], o)
				}
			}
			cancel()
			run.goroutines.Wait()
		})
	}
}
