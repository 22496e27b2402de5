// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

func as(t *testing.T, name string) context.Context {
	return WithUser(t.Context(), UserNamed(name))
}

// refusedBy checks that an error is a 429 that names a flag.
func refusedBy(t *testing.T, err error, flag string) {
	t.Helper()
	refusedFor(t, err, "(--"+flag+")")
}

func refusedFor(t *testing.T, err error, why string) {
	t.Helper()
	refused, ok := errors.AsType[*status.Error](err)
	if !ok || refused.Code != http.StatusTooManyRequests || refused.Details.RetryAfterSeconds < 1 || !strings.Contains(refused.Message, why) {
		t.Errorf("%v; want a 429 with %s", err, why)
	}
}

// TestStreamsAndSelectors: each user has its own bounds, and gets back what it closes.
func TestStreamsAndSelectors(t *testing.T) {
	u := NewUsers(Limits{Streams: 5, Selectors: 2}, slog.New(slog.DiscardHandler))
	jane, john := as(t, "jane"), as(t, "john")
	var closers []func()
	open := func(ctx context.Context, of string) error {
		c, err := u.Stream(ctx, of)
		if err == nil {
			closers = append(closers, c)
		}
		return err
	}
	for _, of := range []string{"pods?a", "pods?b", "pods?a", ""} {
		if err := open(jane, of); err != nil {
			t.Fatal(err)
		}
	}
	refusedBy(t, open(jane, "pods?c"), "max-selectors-per-user")
	if err := open(john, "pods?c"); err != nil {
		t.Error("another user:", err)
	}
	if err := open(jane, "pods?b"); err != nil {
		t.Error("a known selector:", err)
	}
	refusedBy(t, open(jane, ""), "max-streams-per-user")
	closers[0]()
	closers[0]()
	refusedBy(t, open(jane, "pods?c"), "max-selectors-per-user") // the third one still has a
	closers[2]()
	if err := open(jane, "pods?c"); err != nil {
		t.Error("after a selector was closed:", err)
	}
	for _, c := range closers {
		c()
	}
	if len(u.open) != 0 {
		t.Errorf("left over: %v", u.open)
	}
}

// TestHold: answers beyond the bound are refused, except for a single one.
func TestHold(t *testing.T) {
	u := NewUsers(Limits{Bytes: 100}, slog.New(slog.DiscardHandler))
	jane := as(t, "jane")
	large, err := u.Hold(jane, 1000)
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Hold(jane, 1)
	refusedBy(t, err, "max-buffered-per-user")
	if _, err := u.Hold(as(t, "john"), 100); err != nil {
		t.Error("another user:", err)
	}
	large()
	first, err := u.Hold(jane, 60)
	if err != nil {
		t.Fatal(err)
	}
	second, err := u.Hold(jane, 40)
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Hold(jane, 1)
	refusedBy(t, err, "max-buffered-per-user")
	nothing, err := u.Hold(as(t, "jim"), 0)
	if err != nil {
		t.Fatal(err)
	}
	first()
	second()
	nothing()
	if len(u.open) != 1 {
		t.Errorf("left over: %v", u.open)
	}
}

// TestHoldOfAll: one user has half of what all may hold, and what others have left.
func TestHoldOfAll(t *testing.T) {
	u := NewUsers(Limits{Bytes: 1000, AllBytes: 200}, slog.New(slog.DiscardHandler))
	hold := func(name string, bytes int64) (func(), error) {
		t.Helper()
		return u.Hold(as(t, name), bytes)
	}
	held := func(name string, bytes int64) func() {
		t.Helper()
		release, err := hold(name, bytes)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	held("jane", 60)
	_, err := hold("jane", 50)
	refusedFor(t, err, "have 100 now (half of GOMEMLIMIT")
	held("jane", 40)
	large := held("john", 150) // a single one
	_, err = hold("jane", 1)
	refusedFor(t, err, "have 50 now (half of GOMEMLIMIT")
	held("jim", 10)
	_, err = hold("jim", 1)
	refusedFor(t, err, "have 0 now (half of GOMEMLIMIT")
	large()
	held("jim", 90)
}

// TestListsWait: lists beyond the bound wait, and those beyond the queue are refused.
func TestListsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUsers(Limits{Lists: 2, Past: 1}, slog.New(slog.DiscardHandler))
		jane := as(t, "jane")
		var ends []func()
		for range 2 {
			end, err := u.List(jane)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		results := make(chan error, 100)
		for range 2*waitingPerList + 3 {
			go func() {
				end, err := u.List(jane)
				if err == nil {
					end()
				}
				results <- err
			}()
		}
		synctest.Wait()
		for range 3 {
			refusedBy(t, <-results, "max-lists-per-user")
		}
		if end, err := u.List(as(t, "john")); err != nil {
			t.Error("another user:", err)
		} else {
			end()
		}
		ends[0]()
		for range 2 * waitingPerList {
			if err := <-results; err != nil {
				t.Error("a list that waited:", err)
			}
		}
		ends[1]()
		if u.lists.Keys() != 0 {
			t.Error(u.lists.Keys())
		}
		if _, _, err := u.Call(jane); err != nil {
			t.Error(err)
		}
		_, _, err := u.Call(jane) // after a wait
		refusedBy(t, err, "max-past-reads-per-user")
		lists := NewQueue(QueueOptions{Slots: 4})
		refuse := u.PerUserPast(lists, "lists of the past")
		acquire(t, lists, "jane")
		if _, err := lists.Acquire(jane, "jane"); err != ErrShare {
			t.Error(err)
		}
		refusedBy(t, refuse(jane), "max-past-reads-per-user")
	})
}

// TestPass: a user has few lists at the API server. One that the cache can answer does not wait
// long for a place, which is free only a while after the end of the one before; another one waits.
func TestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUsers(Limits{Lists: 8}, slog.New(slog.DiscardHandler)) // 2 at the API server, 8 small ones
		jane, john := as(t, "jane"), as(t, "john")
		for _, large := range []bool{true, false} {
			n, rest := 2, largeRest
			if !large {
				n, rest = 8, smallRest
			}
			var ends []func()
			for range n {
				ends = append(ends, u.TryPass(jane, large))
			}
			if u.TryPass(jane, large) != nil {
				t.Errorf("large: %v: one more than %d passes", large, n)
			}
			if end := u.TryPass(john, large); end == nil {
				t.Errorf("large: %v: another user has none", large)
			} else {
				end()
			}
			for _, end := range ends {
				end()
			}
			began := time.Now()
			for {
				if end := u.TryPass(jane, large); end != nil {
					end()
					break
				}
				time.Sleep(time.Millisecond)
			}
			if took := time.Since(began); took < rest || took > rest+time.Millisecond {
				t.Errorf("large: %v: the next one passes after %v", large, took)
			}
			time.Sleep(rest + time.Millisecond)
		}
		first, _ := u.Pass(jane, true)
		_, _ = u.Pass(jane, true)
		go func() {
			time.Sleep(time.Second)
			first()
		}()
		if _, err := u.Pass(jane, true); err != nil {
			t.Error("one that waits for a place:", err)
		}
		_, err := u.Pass(jane, true)
		refusedBy(t, err, "max-lists-per-user")
		if _, err := u.Pass(jane, false); err != nil {
			t.Error("another read beside lists:", err)
		}
	})
}

// TestTurn: a list gives its turn up while a client blocks it, and has it while it works.
func TestTurn(t *testing.T) {
	u := NewUsers(Limits{}, slog.New(slog.DiscardHandler))
	u.turns = NewQueue(QueueOptions{Slots: 1, Wait: -1})
	turn, err := u.Turn(as(t, "jane"))
	if err != nil {
		t.Fatal(err)
	}
	inUse := func(want int) writerFunc {
		return func(p []byte) (int, error) {
			if got := u.turns.InUse(); got != want {
				t.Errorf("%d turns in use for %q, want %d", got, p, want)
			}
			return len(p), nil
		}
	}
	work, wait := turn.Working(inUse(1)), turn.Waiting(inUse(0))
	for range 2 {
		fmt.Fprint(work, "work")
		fmt.Fprint(wait, "wait")
	}
	fmt.Fprint(wait, "wait")
	turn.End()
	turn.End()
	if u.turns.Keys() != 0 {
		t.Error("a turn is left")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestNoUser: a request without a user has no bounds, nor has anything in local mode.
func TestNoUser(t *testing.T) {
	for _, u := range []*Users{nil, NewUsers(Limits{Lists: 1, Streams: 1, Selectors: 1, Bytes: 1, Past: 1}, slog.New(slog.DiscardHandler))} {
		for range 3 {
			_, a := u.List(t.Context())
			_, _, b := u.Call(t.Context())
			_, c := u.Stream(t.Context(), fmt.Sprint("pods?", t.Name()))
			_, d := u.Hold(t.Context(), 10)
			turn, e := u.Turn(t.Context())
			if err := errors.Join(a, b, c, d, e); err != nil || turn != nil {
				t.Error(err)
			}
			var out bytes.Buffer
			fmt.Fprint(turn.Working(turn.Waiting(&out)), "text")
			if turn.End(); out.String() != "text" {
				t.Errorf("%q", out.String())
			}
		}
	}
}

// TestUserMetrics: metrics name classes and bounds, from zero on, and no user.
func TestUserMetrics(t *testing.T) {
	u := NewUsers(Limits{Streams: 1}, slog.New(slog.DiscardHandler))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(u)
	for _, name := range []string{"jane", "system:node:a", "system:serviceaccount:ns:a", "system:serviceaccount:ns:b"} {
		u.Seen(UserNamed(name))
		for range 2 {
			_, _ = u.Stream(as(t, name), "")
		}
	}
	if _, err := u.Hold(as(t, "jane"), 7); err != nil {
		t.Fatal(err)
	}
	q := NewQueue(QueueOptions{Slots: 1})
	if _, err := u.Slot(as(t, "jane"), q, "busy", 1); err != nil {
		t.Fatal(err)
	}
	_, err := u.Slot(as(t, "john"), q, "others take it", 1)
	refusedFor(t, err, "others take it")
	const want = `
# HELP watchkeeper_user_buffered_bytes Answers that are in memory until their clients have read them.
# TYPE watchkeeper_user_buffered_bytes gauge
watchkeeper_user_buffered_bytes 7
# HELP watchkeeper_user_rejected_total Requests that got a 429 because their user was at a bound, by class and bound; queue is that of all users, api-server that of its priority and fairness.
# TYPE watchkeeper_user_rejected_total counter
watchkeeper_user_rejected_total{bound="api-server",class="node"} 0
watchkeeper_user_rejected_total{bound="api-server",class="serviceaccount"} 0
watchkeeper_user_rejected_total{bound="api-server",class="user"} 0
watchkeeper_user_rejected_total{bound="bytes",class="node"} 0
watchkeeper_user_rejected_total{bound="bytes",class="serviceaccount"} 0
watchkeeper_user_rejected_total{bound="bytes",class="user"} 0
watchkeeper_user_rejected_total{bound="lists",class="node"} 0
watchkeeper_user_rejected_total{bound="lists",class="serviceaccount"} 0
watchkeeper_user_rejected_total{bound="lists",class="user"} 0
watchkeeper_user_rejected_total{bound="past",class="node"} 0
watchkeeper_user_rejected_total{bound="past",class="serviceaccount"} 0
watchkeeper_user_rejected_total{bound="past",class="user"} 0
watchkeeper_user_rejected_total{bound="queue",class="node"} 0
watchkeeper_user_rejected_total{bound="queue",class="serviceaccount"} 0
watchkeeper_user_rejected_total{bound="queue",class="user"} 1
watchkeeper_user_rejected_total{bound="selectors",class="node"} 0
watchkeeper_user_rejected_total{bound="selectors",class="serviceaccount"} 0
watchkeeper_user_rejected_total{bound="selectors",class="user"} 0
watchkeeper_user_rejected_total{bound="streams",class="node"} 1
watchkeeper_user_rejected_total{bound="streams",class="serviceaccount"} 2
watchkeeper_user_rejected_total{bound="streams",class="user"} 1
# HELP watchkeeper_user_requests_total Requests of authenticated users, by class: user, serviceaccount or node.
# TYPE watchkeeper_user_requests_total counter
watchkeeper_user_requests_total{class="node"} 1
watchkeeper_user_requests_total{class="serviceaccount"} 2
watchkeeper_user_requests_total{class="user"} 1
# HELP watchkeeper_user_streams Open watches and other streams of users, by class.
# TYPE watchkeeper_user_streams gauge
watchkeeper_user_streams{class="node"} 1
watchkeeper_user_streams{class="serviceaccount"} 2
watchkeeper_user_streams{class="user"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestRefusalsLogged: the log names a user who is refused something at once, and then once a minute
// with how many requests were.
func TestRefusalsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		u := NewUsers(Limits{}, slog.New(slog.NewTextHandler(&out, nil)))
		want := func(n int, text string) {
			t.Helper()
			synctest.Wait()
			u.refusals.Lock()
			defer u.refusals.Unlock()
			if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != n || !strings.Contains(lines[n-1], text) {
				t.Errorf("%q\nwant %d lines, the last with %q", lines, n, text)
			}
		}
		for range 3 {
			u.RefusedUpstream(as(t, "jane"))
		}
		want(1, "user=jane bound=api-server")
		u.RefusedUpstream(as(t, "john"))
		want(2, "user=john")
		time.Sleep(logPause + time.Second)
		want(3, "user=jane requests=2 within=1m0s")
		u.RefusedUpstream(as(t, "john"))
		want(4, "user=john bound=")
		time.Sleep(2 * logPause)
		want(4, "user=john bound=")
		if len(u.refused) != 0 {
			t.Errorf("left over: %v", u.refused)
		}
	})
}

// TestUsersAtOnce: many users at once keep their bounds, and leave nothing.
func TestUsersAtOnce(t *testing.T) {
	u := NewUsers(Limits{Streams: 8, Selectors: 3, Bytes: 100}, slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	for n := range 32 {
		ctx := as(t, fmt.Sprint("user-", n%4))
		running.Go(func() {
			for i := range 500 {
				stop, err := u.Stream(ctx, fmt.Sprint("pods?", i%5))
				if err == nil {
					defer stop()
				}
				release, err := u.Hold(ctx, int64(1+i%60))
				u.mu.Lock()
				for name, of := range u.open {
					if of.streams > 8 || len(of.selectors) > 3 || of.bytes > 100 {
						t.Errorf("%s: %+v", name, of)
					}
				}
				u.mu.Unlock()
				if err == nil {
					release()
				}
			}
		})
	}
	running.Wait()
	if len(u.open) != 0 || u.metrics.bytes.Load() != 0 || u.metrics.streams[Other].Load() != 0 {
		t.Errorf("left over: %v", u.open)
	}
}
