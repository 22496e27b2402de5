// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// subscribers subscribe a function to the events of an informer.
var subscribers = map[string]func(i *Informer[json.RawMessage], f func()) (stop func() (done <-chan struct{})){
	"Handle": func(i *Informer[json.RawMessage], f func()) func() <-chan struct{} {
		return i.Handle(Handler[json.RawMessage]{Event: func(Event[json.RawMessage]) { f() }})
	},
	"Reconcile": func(i *Informer[json.RawMessage], f func()) func() <-chan struct{} {
		return Reconcile(i, ReconcileOptions[json.RawMessage]{}, func(context.Context, Event[json.RawMessage]) error {
			f()
			return nil
		})
	},
}

// withServer calls a test for each kind of subscriber, with an informer of Pods.
func withServer(t *testing.T, test func(t *testing.T, api *informertest.Server, i *Informer[json.RawMessage], subscribe func(f func()) (stop func() (done <-chan struct{})))) {
	for name, subscribe := range subscribers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := informertest.New(informertest.Options{})
				network := informertest.NewNetwork(api)
				defer network.Close()
				i := New(NewSource(network.URL(), network), pods, Raw(), Options{})
				test(t, api, i, func(f func()) func() <-chan struct{} { return subscribe(i, f) })
			})
		})
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// await waits for the end of a subscription.
func await(t *testing.T, done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(time.Hour):
		t.Fatal("the end of a subscription is never reported")
	}
}

// TestI7Stop: stop does not wait, and its channel is closed when the last call has
// returned, or at once if the informer does not run.
func TestI7Stop(t *testing.T) {
	withServer(t, func(t *testing.T, api *informertest.Server, i *Informer[json.RawMessage], subscribe func(func()) func() <-chan struct{}) {
		api.Put("pods", script.Pod("a", 1))
		calls := 0
		call := func() {
			time.Sleep(time.Minute)
			calls++
		}
		stop := subscribe(call)
		if done := stop(); !isClosed(done) || stop() != done {
			t.Error("before the first run, the end of a subscription is not reported at once")
		}

		// During a call.
		stop = subscribe(call)
		end := start(t, i)
		time.Sleep(time.Second)
		done := stop()
		again := make(chan (<-chan struct{}), 2)
		for range cap(again) {
			go func() { again <- stop() }()
		}
		if synctest.Wait(); isClosed(done) || <-again != done || <-again != done {
			t.Error("the end is reported before the call has returned, or by several channels")
		}
		if await(t, done); calls != 1 || !isClosed(stop()) {
			t.Errorf("stopped after %d calls", calls)
		}

		// By the function itself.
		self, stopped := make(chan func() <-chan struct{}, 1), make(chan (<-chan struct{}), 1)
		self <- subscribe(func() {
			stopped <- (<-self)()
			call()
		})
		if await(t, <-stopped); calls != 2 {
			t.Errorf("stopped after %d calls", calls)
		}

		// While the run ends, which waits for the call.
		stop = subscribe(call)
		time.Sleep(time.Second)
		ended := make(chan error, 1)
		go func() { ended <- end() }()
		synctest.Wait()
		if done = stop(); isClosed(done) {
			t.Error("the end is reported while a run waits for a call")
		}
		if err := <-ended; err != nil || !isClosed(done) || calls != 3 {
			t.Errorf("%v, after %d calls", err, calls)
		}

		// After a run.
		if !isClosed(subscribe(call)()) {
			t.Error("after the last run, the end of a subscription is not reported at once")
		}
		if n, tasks := len(i.events.subs), len(i.tasks); n > 0 || tasks > 0 {
			t.Errorf("%d subscriptions and %d tasks remain", n, tasks)
		}
	})
}

// TestI7Successor: a subscriber that begins after the channel of the one before was closed
// does not overlap it, whatever runs begin and end meanwhile, and receives events.
func TestI7Successor(t *testing.T) {
	for seed := range seeds() {
		withServer(t, func(t *testing.T, api *informertest.Server, i *Informer[json.RawMessage], subscribe func(func()) func() <-chan struct{}) {
			r := rand.New(rand.NewPCG(seed, 0))
			for n := range 5 {
				api.Put("pods", script.Pod(fmt.Sprint("pod-", n), n+1))
			}
			var current, calls atomic.Int64
			next := func(n int64) (stop func() <-chan struct{}) {
				current.Store(n)
				return subscribe(func() {
					for range 2 {
						if now := current.Load(); now != n {
							t.Errorf("seed %d: a call of subscriber %d while there is subscriber %d", seed, n, now)
						}
						time.Sleep(3 * time.Millisecond)
					}
					calls.Add(1)
				})
			}
			ctx, cancel := context.WithCancel(t.Context())
			var runs sync.WaitGroup
			pauses := rand.New(rand.NewPCG(seed, 1))
			runs.Go(func() {
				for ctx.Err() == nil {
					runCtx, stop := context.WithTimeout(ctx, time.Duration(pauses.IntN(50))*time.Millisecond)
					if err := i.Run(runCtx); err != nil {
						t.Error(err)
					}
					stop()
					time.Sleep(time.Duration(pauses.IntN(5)) * time.Millisecond)
				}
			})
			defer cancel()
			stop := next(0)
			for n := range int64(100) {
				time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
				api.Touch("pods", "ns/pod-1")
				var stops sync.WaitGroup
				for range r.IntN(3) {
					stops.Go(func() { <-stop() })
				}
				await(t, stop())
				stops.Wait()
				stop = next(n + 1)
			}
			cancel()
			runs.Wait()
			if await(t, stop()); calls.Load() < 50 {
				t.Errorf("seed %d: %d calls", seed, calls.Load())
			}
		})
	}
}
