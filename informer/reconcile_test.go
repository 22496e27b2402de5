// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

var errNo = errors.New("no")

// informerOf returns an informer whose watch sends the events.
func informerOf(t *testing.T, events string) *Informer[testPod] {
	t.Helper()
	i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Bookmark(10, true) + events})
	return i
}

// TestI11Retry: a failed event is retried, delays its own queue only, and is merged
// with later events of its object.
func TestI11Retry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informerOf(t, script.Event("ADDED", "a", 11)+script.Event("ADDED", "b", 12)+script.Event("MODIFIED", "a", 13)+script.Event("MODIFIED", "a", 14)+script.Event("ADDED", "c", 16)+script.Event("DELETED", "c", 17))
		d := &transcript{}
		var failures atomic.Int64
		failures.Store(3)
		Reconcile(i, ReconcileOptions[testPod]{Workers: 1}, func(_ context.Context, e Event[testPod]) error {
			d.add(describe(e))
			if e.Key.Name == "a" && failures.Add(-1) >= 0 {
				return errNo
			}
			return nil
		})
		start(t, i)
		ofA := func(lines []string) []string {
			return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return !strings.Contains(s, "ns/a") })
		}
		// How many events of a and c are merged depends on the scheduling.
		if got := d.read(); len(ofA(got)) != 1 || !slices.Contains(got, "ADDED ns/b →12") {
			t.Errorf("before the retries: %q", got)
		}
		time.Sleep(time.Minute)
		if got := ofA(d.read()); len(got) != 4 || !strings.HasPrefix(got[3], "ADDED ns/a →14") {
			t.Errorf("after the retries: %q", got)
		}
	})
}

// TestI11EveryEvent: each event is handled in order, failed ones repeatedly.
func TestI11EveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informerOf(t, script.Event("ADDED", "a", 11)+script.Event("MODIFIED", "a", 12)+script.Event("DELETED", "a", 13)+script.Event("ADDED", "a", 14))
		d := &transcript{}
		Reconcile(i, ReconcileOptions[testPod]{EveryEvent: true, MaxRetries: 2, DeadLetter: func(e Event[testPod], err error) {
			d.add(fmt.Sprintf("given up %s: %v", describe(e), err))
		}}, func(_ context.Context, e Event[testPod]) error {
			d.add(describe(e))
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

// TestI11NewVersion: a new version of an object is handled at once, although the one
// before has failed; a deletion, too, and one that comes during the call.
func TestI11NewVersion(t *testing.T) {
	for _, took := range []time.Duration{0, 25 * time.Second} { // ends between the events
		for _, inOneQueue := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Bookmark(10, true) + script.Event("ADDED", "a", 11),
					Late: []string{script.Event("MODIFIED", "a", 12), script.Event("MODIFIED", "a", 13), script.Event("DELETED", "a", 14)}})
				// The pauses of a version that fails for 20 s are longer than a second.
				opts := ReconcileOptions[testPod]{MinBackoff: time.Millisecond, MaxBackoff: time.Hour}
				if inOneQueue {
					opts.QueueBy = func(Event[testPod]) string { return "all" }
				}
				var versions []string
				var begun, ended []time.Duration // the first call of a version, and the last call of the one before
				began := time.Now()
				var last time.Duration // when the last call ended
				Reconcile(i, opts, func(_ context.Context, e Event[testPod]) error {
					version := e.Old.RV()
					if e.Type != Deleted {
						version = e.New.RV()
					}
					now := time.Since(began)
					if !slices.Contains(versions, version) {
						versions, begun, ended = append(versions, version), append(begun, now), append(ended, last)
					}
					if version == "11" && now > 10*time.Second {
						time.Sleep(took)
					}
					last = time.Since(began)
					if e.Type == Deleted {
						return nil
					}
					return errNo
				})
				stop := start(t, i)
				time.Sleep(2 * time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				want(t, versions, "11", "12", "13", "14")
				for n := range versions {
					due := max(time.Duration(n)*30*time.Second, ended[n])
					if late := begun[n] - due; late < 0 || late > opts.MinBackoff {
						t.Errorf("calls of %v, in one queue %v: version %s comes %v after it could be handled", took, inOneQueue, versions[n], late)
					}
				}
			})
		}
	}
}

// TestI15Panics: a panic, or a function that ends its goroutine, is a failure of its
// event; others go on. Nothing remains when the informer stops.
func TestI15Panics(t *testing.T) {
	panics := map[string]func(){
		"panic":        func() { panic("no") },
		"panic(error)": func() { panic(errNo) },
		"Goexit":       runtime.Goexit,
	}
	for name, misbehave := range panics {
		for _, inDeadLetter := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				i, _ := newInformer(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, script.Probe,
					script.Answer{Want: script.Streaming, Stall: true, Body: script.Bookmark(10, true) + script.Event("ADDED", "a", 11) + script.Event("ADDED", "b", 12) + script.Event("ADDED", "c", 13), Late: []string{script.Event("MODIFIED", "a", 14)}})
				d := &transcript{}
				var failures []error
				opts := ReconcileOptions[testPod]{Workers: 1, DeadLetter: func(_ Event[testPod], err error) {
					failures = append(failures, err)
					if inDeadLetter {
						misbehave()
					}
				}}
				opts.MaxRetries = 1
				Reconcile(i, opts, func(_ context.Context, e Event[testPod]) error {
					d.add(describe(e))
					if e.Key.Name == "a" {
						if inDeadLetter {
							return errNo
						}
						misbehave()
					}
					return nil
				})
				stop := start(t, i)
				time.Sleep(time.Minute)
				got := d.read()
				slices.Sort(got)
				want(t, got, "ADDED ns/a →11", "ADDED ns/a →11", "ADDED ns/b →12", "ADDED ns/c →13", "UPDATED ns/a 11→14", "UPDATED ns/a 11→14")
				if err := stop(); err != nil {
					t.Error(err)
				}
				if len(failures) != 2 || i.Status().Queued != 0 {
					t.Fatalf("%s: %d given up: %v; %d events in queues", name, len(failures), failures, i.Status().Queued)
				}
				p, isPanic := errors.AsType[*PanicError](failures[0])
				if !inDeadLetter && (isPanic != (name != "Goexit") || errors.Is(failures[0], errNo) != (name == "panic(error)")) {
					t.Errorf("%s: %v", name, failures[0])
				}
				if isPanic && !bytes.Contains(p.Stack, []byte("TestI15Panics")) {
					t.Errorf("%s: stack %s", name, p.Stack)
				}
				for _, line := range []string{
					`level=WARN msg="reconciling failed" resource=pods key=ns/a event=ADDED attempt=1 retry_in=`,
					`level=ERROR msg="reconciling failed for the last time" resource=pods key=ns/a event=ADDED attempt=2 `,
				} {
					if !strings.Contains(log.String(), line) {
						t.Errorf("%s: no line %s in\n%s", name, line, log.String())
					}
				}
			})
		}
	}
}

// TestI7QueueByGoexit: a run ends as usual if QueueBy has ended the goroutine that calls it.
func TestI7QueueByGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true)})
		opts := ReconcileOptions[testPod]{QueueBy: func(Event[testPod]) string {
			runtime.Goexit()
			return ""
		}}
		Reconcile(i, opts, func(context.Context, Event[testPod]) error { return nil })
		stop := start(t, i)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		synctest.Wait() // the test fails if a goroutine remains
	})
}

// TestReconcileSynced: the function is called when the copy is complete, unless it is to
// be called before.
func TestReconcileSynced(t *testing.T) {
	for _, before := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3),
				Late: []string{script.Event("ADDED", "b", 4), script.Bookmark(10, true)}, Every: 5 * time.Second})
			d := &transcript{}
			began := time.Now()
			Reconcile(i, ReconcileOptions[testPod]{BeforeSynced: before}, func(_ context.Context, e Event[testPod]) error {
				d.add(fmt.Sprint(e.Key, " after ", time.Since(began)))
				return nil
			})
			stop := start(t, i)
			time.Sleep(time.Minute)
			got := d.read()
			slices.Sort(got)
			if before {
				want(t, got, "ns/a after 0s", "ns/b after 5s")
			} else {
				want(t, got, "ns/a after 10s", "ns/b after 10s")
			}
			_ = stop()
		})
	}
}

// TestI11Restart: an event that was being handled when the informer stopped is
// handled again in the next run, and a pause ends with the run.
func TestI11Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "b", 4) + script.Bookmark(10, true)})
		d := &transcript{}
		var settled atomic.Bool
		stopReconcile := Reconcile(i, ReconcileOptions[testPod]{MinBackoff: time.Hour, MaxBackoff: time.Hour}, func(ctx context.Context, e Event[testPod]) error {
			if !settled.Load() && e.Key.Name == "a" {
				<-ctx.Done()
				return ctx.Err()
			}
			if !settled.Load() {
				return errNo
			}
			d.add(describe(e))
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

// TestI11Model reconciles the changes of a logModel, with failures, in queues of one
// object or several. Calls of one queue never overlap, events of an object are in
// order, the last ones match the objects that exist, and no queue remains.
func TestI11Model(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			w := &logModel{r: rand.New(rand.NewPCG(seed, 1)), objects: map[string]*record[string]{}}
			i := New(NewSource(&url.URL{}, http.DefaultTransport), pods, JSON[string](), Options{})
			w.log = &i.events
			opts := ReconcileOptions[string]{Workers: 3, EveryEvent: seed%2 == 0, BeforeSynced: true}
			if seed%3 == 0 {
				opts.QueueBy = func(e Event[string]) string { return map[bool]string{true: "low"}[e.Key.Name < "d"] }
			}
			if seed%3 == 1 {
				opts.QueueBy = func(Event[string]) string { return "all" }
			}
			isMisnamed := seed%6 == 5
			if isMisnamed {
				opts.QueueBy = func(e Event[string]) string { return fmt.Sprint(e.Ref().r.rv % 3) }
			}
			var mu sync.Mutex
			chance := rand.New(rand.NewPCG(seed, 2))
			rd := &modelReader{t: t, held: map[string]*record[string]{}}
			atWork := map[string]bool{}
			failing := map[string]bool{} // objects whose last event failed
			r := newReconciler(i, opts, func(_ context.Context, e Event[string]) error {
				name := e.Key.Name
				if opts.QueueBy != nil && !isMisnamed {
					name = opts.QueueBy(e)
				}
				mu.Lock()
				defer mu.Unlock()
				if atWork[name] {
					t.Errorf("calls of queue %s overlap", name)
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
					rd.held[e.Key.Name] = e.Old.r // its addition was tried, and failed
				}
				delete(failing, e.Key.Name)
				rd.check(en)
				return nil
			})
			r.start()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			i.mu.Lock()
			began := &activeRun{ctx: ctx, ended: make(chan struct{})}
			i.run = began
			for task := range i.tasks {
				i.startLocked(task)
			}
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
			if len(r.queues) > 0 || len(r.pending) > 0 || r.total > 0 || len(r.ready) > 0 {
				t.Errorf("seed %d: remaining %v, %v, %d, %v", seed, r.queues, r.pending, r.total, r.ready)
			}
			if r.misnamed != isMisnamed {
				t.Errorf("seed %d: misnamed %t", seed, r.misnamed)
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
			began.goroutines.Wait()
		})
	}
}
