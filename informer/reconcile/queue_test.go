// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
)

var errNo = errors.New("no")

// A feed is a source whose events are those that a test adds.
type feed struct {
	add    func(lane, []informer.Key)
	synced func()
}

func (f *feed) source() Source {
	return Source{nil, func(add func(lane, []informer.Key), synced func()) func() <-chan struct{} {
		f.add, f.synced = add, synced
		stopped := make(chan struct{})
		close(stopped)
		return func() <-chan struct{} { return stopped }
	}}
}

// event adds an event of the keys with the given names.
func (f *feed) event(l lane, names ...string) {
	for _, name := range names {
		f.add(l, []informer.Key{{Name: name}})
	}
}

// A call is a call of the function of a controller.
type call struct {
	name string
	at   time.Duration // since the beginning
}

func (c call) String() string { return fmt.Sprint(c.name, " ", c.at) }

// A bench runs a controller in a bubble.
type bench struct {
	*feed
	*Controller
	began time.Time
	stop  func()

	mu    sync.Mutex
	calls []call
}

// newBench runs a controller whose calls are recorded before f. Its source is synced.
func newBench(t *testing.T, opts Options, f Func) *bench {
	b := &bench{feed: &feed{}, began: time.Now()}
	b.Controller = New("test", func(ctx context.Context, key informer.Key) (Result, error) {
		b.mu.Lock()
		b.calls = append(b.calls, call{key.Name, time.Since(b.began)})
		b.mu.Unlock()
		return f(ctx, key)
	}, opts, b.source())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	b.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	synctest.Wait()
	b.synced()
	synctest.Wait()
	return b
}

// read returns the calls since the last read, once nothing can happen without time.
func (b *bench) read() (all []call) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	all, b.calls = b.calls, nil
	return all
}

// restart makes the times of calls begin again.
func (b *bench) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began = time.Now()
}

func (b *bench) want(t *testing.T, want ...call) {
	t.Helper()
	if got := b.read(); !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}

func succeed(context.Context, informer.Key) (Result, error) { return Result{}, nil }

// TestI14OnePerKey: events of a key that wait are one call, and calls of a key do not
// overlap: an event during a call leads to another one.
func TestI14OnePerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Workers: 3}, func(context.Context, informer.Key) (Result, error) {
			time.Sleep(time.Second)
			return Result{}, nil
		})
		b.event(live, "a", "a")
		synctest.Wait()
		b.event(initial, "a", "b")
		b.event(live, "a")
		time.Sleep(time.Minute)
		b.want(t, call{"a", 0}, call{"b", 0}, call{"a", time.Second})
		if s := b.Status(); s != (Status{}) {
			t.Errorf("%+v", s)
		}
		b.stop()
	})
}

// TestI14Live: live keys are called before initial ones, of which one in eight is called
// nevertheless. A live event of an initial key makes it live.
func TestI14Live(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Workers: 1}, func(_ context.Context, key informer.Key) (Result, error) {
			time.Sleep(time.Second)
			return Result{}, nil
		})
		b.event(live, "first")
		synctest.Wait()
		b.event(initial, "i0", "i1", "i2", "i3", "i4", "i5")
		for n := range 14 {
			b.event(live, fmt.Sprint("l", n))
		}
		b.event(live, "i5")
		if s := b.Status(); s != (Status{Live: 15, Initial: 5, Running: 1}) {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Minute)
		var got []string
		for _, c := range b.read() {
			got = append(got, c.name)
		}
		want := []string{"first", "l0", "l1", "l2", "l3", "l4", "l5", "l6", "i0", "l7", "l8", "l9", "l10", "l11", "l12", "l13", "i1", "i5", "i2", "i3", "i4"}
		if !slices.Equal(got, want) {
			t.Errorf("called %v\nwant %v", got, want)
		}
		b.stop()
	})
}

// TestI14After: there is at most one After of a key. An event calls the function at once,
// and the Result of that call replaces it. A call due does not delay others.
func TestI14After(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards both
		var after time.Duration
		var err error
		b := newBench(t, Options{}, func(_ context.Context, key informer.Key) (Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if key.Name != "a" {
				return Result{}, nil
			}
			return Result{After: after}, err
		})
		set := func(d time.Duration, fails error) {
			mu.Lock()
			defer mu.Unlock()
			after, err = d, fails
		}
		step := func(d time.Duration, fails error, sleep time.Duration) {
			set(d, fails)
			b.event(live, "a")
			synctest.Wait()
			set(0, nil)
			time.Sleep(sleep)
		}
		const m = time.Minute
		step(10*m, nil, 5*m) // replaced by
		step(20*m, nil, 2*m) // a later one, replaced by
		step(4*m, nil, 1*m)  // an earlier one
		b.event(live, "b")
		if s := b.Status(); s.Waiting != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Hour)
		b.want(t, call{"a", 0}, call{"a", 5 * m}, call{"a", 7 * m}, call{"b", 8 * m}, call{"a", 11 * m})

		b.restart()
		step(10*m, nil, m)
		step(0, nil, time.Hour) // cancelled, as by a call that finds that the object is gone
		b.want(t, call{"a", 0}, call{"a", m})

		b.restart()
		step(10*m, &TerminalError{errNo}, time.Hour)
		b.want(t, call{"a", 0}, call{"a", 10 * m})

		b.restart()
		step(-m, nil, time.Hour)
		b.want(t, call{"a", 0})
		b.stop()
	})
}

// TestI14AfterKeepsItsLane: calls that are due of many keys that existed at the beginning, more
// than the workers can do, do not delay a live change; those of a live key are live.
func TestI14AfterKeepsItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{Workers: 4}, func(_ context.Context, key informer.Key) (Result, error) {
			time.Sleep(50 * time.Millisecond)
			return Result{After: time.Second}, nil
		})
		for i := range 500 {
			b.event(initial, fmt.Sprint("i", i))
		}
		time.Sleep(20 * time.Second)
		b.read()
		b.restart()
		b.event(live, "new")
		time.Sleep(10 * time.Second)
		var last time.Duration
		calls := 0
		for _, c := range b.read() {
			if c.name != "new" {
				continue
			}
			if c.at-last > 1200*time.Millisecond || calls == 0 && c.at > 100*time.Millisecond {
				t.Errorf("call %d of the live key is at %v, after one at %v", calls, c.at, last)
			}
			last, calls = c.at, calls+1
		}
		if calls < 8 {
			t.Errorf("the live key was called %d times in 10 s", calls)
		}
		b.stop()
	})
}

// TestI14Failures: failures are retried after growing pauses and delay no other key. An
// event ends the pause, but not before MinBackoff, and pauses begin again. A terminal
// error is not retried.
func TestI14Failures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var retries []time.Duration
		opts := Options{Workers: 1, MinBackoff: time.Second, MaxBackoff: time.Hour}
		opts.Metrics.Retried = func(failures int, pause time.Duration) {
			if longest := time.Second << (failures - 1); pause < longest/2 || pause > longest {
				t.Errorf("a pause of %v after %d failures", pause, failures)
			}
			retries = append(retries, pause)
		}
		var failing atomic.Bool
		failing.Store(true)
		b := newBench(t, opts, func(_ context.Context, key informer.Key) (Result, error) {
			switch {
			case key.Name == "terminal":
				return Result{}, fmt.Errorf("wrapped: %w", &TerminalError{errNo})
			case key.Name == "a" && failing.Load():
				return Result{After: time.Millisecond}, errNo
			}
			return Result{}, nil
		})
		b.event(live, "a", "b", "terminal")
		time.Sleep(10 * time.Minute)
		calls := b.read()
		if len(calls) < 10 || len(calls) > 14 || calls[1] != (call{"b", 0}) || calls[2] != (call{"terminal", 0}) {
			t.Errorf("calls %v", calls)
		}
		for n, at := 0, time.Duration(0); n < len(retries)-1; n++ {
			if at += retries[n]; calls[n+3] != (call{"a", at}) {
				t.Errorf("retry %d: %v, want %v", n, calls[n+3], at)
			}
		}

		// The pause is minutes now.
		failing.Store(false)
		b.restart()
		b.event(initial, "a")
		b.want(t, call{"a", 0})

		failing.Store(true)
		b.event(live, "a") // fails
		b.read()
		for range 5 { // within MinBackoff
			b.event(live, "a")
		}
		if calls := b.read(); len(calls) > 0 {
			t.Errorf("calls %v within the shortest pause", calls)
		}
		failing.Store(false)
		time.Sleep(time.Second)
		if calls := b.read(); len(calls) != 1 {
			t.Errorf("calls %v after the shortest pause", calls)
		}
		if s := b.Status(); s != (Status{}) {
			t.Errorf("%+v", s)
		}
		b.stop()
	})
}

// TestI14EventDuringFailure: an event during a call that fails is handled after the
// shortest pause.
func TestI14EventDuringFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		fails.Store(true)
		var failures atomic.Int64
		opts := Options{MinBackoff: time.Second, MaxBackoff: time.Hour}
		opts.Metrics.Retried = func(n int, _ time.Duration) { failures.Store(int64(n)) }
		b := newBench(t, opts, func(_ context.Context, key informer.Key) (Result, error) {
			time.Sleep(time.Minute)
			if fails.Load() {
				return Result{}, errNo
			}
			return Result{}, nil
		})
		b.event(live, "a")
		time.Sleep(20 * time.Minute) // fails, so that the next pause is long
		b.read()
		for b.Status().Running == 0 {
			time.Sleep(time.Second)
		}
		b.event(live, "a")
		for b.Status().Running == 1 {
			time.Sleep(time.Second / 4)
		}
		b.read()
		before := failures.Load()
		time.Sleep(time.Second)
		fails.Store(false)
		if calls := b.read(); len(calls) != 1 {
			t.Errorf("calls %v", calls)
		}
		fails.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := failures.Load(); before < 3 || n != 1 {
			t.Errorf("%d failures in a row before the event, %d after it", before, n)
		}
		b.stop()
	})
}

// TestI14MaxRate: calls of all keys together are limited, and a quiet second allows a
// burst.
func TestI14MaxRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxRate: 10}, succeed)
		var names []string
		for n := range 40 {
			names = append(names, fmt.Sprint(n))
		}
		b.event(live, names...)
		for second, want := range []int{10, 10, 10, 10, 0} { // the first ten at once
			if got := len(b.read()); got != want {
				t.Errorf("%d calls in second %d, want %d", got, second, want)
			}
			time.Sleep(time.Second)
		}
		b.stop()
	})
}

// TestI14Model: events of many keys and lanes come while calls succeed, fail, ask for an
// After or panic. Calls of a key never overlap, each event is followed by the beginning
// of a call, the last call of each key succeeds, and nothing remains.
func TestI14Model(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex // guards all below
			version, seen := map[string]int{}, map[string]int{}
			running, failed := map[string]bool{}, map[string]bool{}
			chance := rand.New(rand.NewPCG(seed, 2))
			settled := false
			opts := Options{Workers: 1 + int(seed%4), MaxRate: float64(seed%3) * 100}
			b := newBench(t, opts, func(_ context.Context, key informer.Key) (Result, error) {
				mu.Lock()
				defer mu.Unlock()
				if running[key.Name] {
					t.Errorf("seed %d: calls of %s overlap", seed, key.Name)
				}
				running[key.Name] = true
				read := version[key.Name]
				took := time.Duration(chance.IntN(3)) * time.Millisecond
				mu.Unlock()
				time.Sleep(took)
				mu.Lock()
				running[key.Name] = false
				failed[key.Name] = false
				seen[key.Name] = read
				switch n := chance.IntN(10); {
				case settled:
				case n == 0:
					failed[key.Name] = true
					panic(errNo)
				case n < 4:
					failed[key.Name] = true
					return Result{}, errNo
				case n < 6:
					return Result{After: time.Duration(chance.IntN(100)) * time.Millisecond}, nil
				}
				return Result{}, nil
			})
			for range 300 {
				name := string(rune('a' + r.IntN(8)))
				mu.Lock()
				version[name]++
				mu.Unlock()
				b.event(lane(r.IntN(2)), name)
				if r.IntN(3) == 0 {
					time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
				}
			}
			mu.Lock()
			settled = true
			mu.Unlock()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !maps.Equal(version, seen) {
				t.Errorf("seed %d: the last calls have seen %v, want %v", seed, seen, version)
			}
			for key, fails := range failed {
				if fails {
					t.Errorf("seed %d: the last call of %s has failed", seed, key)
				}
			}
			if q := b.Controller.queue; len(q.items) > 0 || len(q.waiting) > 0 || b.Status() != (Status{}) {
				t.Errorf("seed %d: remaining %v, %+v", seed, q.items, b.Status())
			}
			b.stop()
		})
	}
}
