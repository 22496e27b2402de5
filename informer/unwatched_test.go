// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// A failure answers a request.
type failure func(http.ResponseWriter, *informertest.Request)

// A watchless is an API server whose watches and lists can be made to fail.
type watchless struct {
	*informertest.Server
	noWatches, noLists atomic.Pointer[failure] // nil if they do not fail
	lists              atomic.Int32            // pages, but for those with limit=1
}

func newWatchless(t *testing.T) (*watchless, *Informer[testPod]) {
	t.Helper()
	s := &watchless{Server: informertest.New(informertest.Options{FirstRV: 1})}
	s.Control(func(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
		fails := &s.noLists
		switch {
		case r.Verb == "watch":
			fails = &s.noWatches
		case r.Query.Get("limit") != "1":
			s.lists.Add(1)
		}
		if fail := fails.Load(); fail != nil {
			(*fail)(w, r)
			return
		}
		next(w)
	})
	network := informertest.NewNetwork(s)
	t.Cleanup(network.Close)
	return s, New(NewSource(network.URL(), network), pods, JSON[testPod](), Options{})
}

// watchedUntilNow returns an informer that has had a watch for a minute, of a server that answers
// none from now on.
func watchedUntilNow(t *testing.T) (*watchless, *Informer[testPod]) {
	t.Helper()
	s, i := newWatchless(t)
	s.put("a")
	start(t, i)
	time.Sleep(minute)
	s.noWatches.Store(answer(504))
	s.CutWatches()
	return s, i
}

func (s *watchless) put(name string) {
	s.Put("pods", fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns"},"spec":{}}`, name))
}

// answer returns a failure with a code.
func answer(code int) *failure {
	f := failure(func(w http.ResponseWriter, _ *informertest.Request) {
		if code == 429 {
			w.Header().Set("Retry-After", "1")
		}
		informertest.WriteStatus(w, code, "Failure", "no")
	})
	return &f
}

// failures are the ways in which a watch can fail.
func failures() map[string]failure {
	return map[string]failure{
		"504": *answer(504), "500": *answer(500), "429": *answer(429),
		"cut": func(http.ResponseWriter, *informertest.Request) { panic(http.ErrAbortHandler) },
		"within": func(w http.ResponseWriter, _ *informertest.Request) { // after 200
			_, _ = fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":504,"message":"no"}}`)
		},
		"ended": func(w http.ResponseWriter, _ *informertest.Request) { w.WriteHeader(http.StatusOK) },
		"late": func(w http.ResponseWriter, r *informertest.Request) {
			select {
			case <-time.After(20 * time.Second):
			case <-r.Context().Done():
			}
			informertest.WriteStatus(w, 504, "Timeout", "no")
		},
	}
}

// TestUnwatched: if the API server answers lists and no watch, the copy is that of a list
// that is some minutes old at most, and the API server gets few of them. The watch goes on
// when it can be had.
func TestUnwatched(t *testing.T) {
	for name, fail := range failures() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, i := newWatchless(t)
				s.put("a")
				d := follow(t, i)
				start(t, i)
				time.Sleep(minute)
				s.noWatches.Store(&fail)
				s.CutWatches()
				s.put("b")
				time.Sleep(minute)
				if i.Len() != 1 || i.Status().Relists["unwatched"] != 0 {
					t.Errorf("a list after a minute, of which the API server has all events: %v", i.Status().Relists)
				}
				if time.Sleep(minute); i.Len() != 2 {
					t.Errorf("after two minutes, the copy has %v", contents(i))
				}
				if st := i.Status(); st.Phase != Retrying || st.LastError == nil {
					t.Errorf("%s, last error %v", st.Phase, st.LastError)
				}
				time.Sleep(28 * minute)
				s.put("c")
				if time.Sleep(6 * minute); i.Len() != 3 {
					t.Errorf("after six minutes, the copy has %v", contents(i))
				}
				if n := i.Status().Relists["unwatched"]; n < 5 || n > 9 || int(s.lists.Load()) != n {
					t.Errorf("%d lists without a watch in 36 minutes, %d requests", n, s.lists.Load())
				}
				lists := i.Status().Relists["unwatched"]
				s.noWatches.Store(nil)
				time.Sleep(minute)
				s.put("d")
				if synctest.Wait(); i.Len() != 4 || i.Status().Phase != Watching {
					t.Errorf("once watches are answered: %v, %s", contents(i), i.Status().Phase)
				}
				time.Sleep(10 * minute)
				if n := i.Status().Relists["unwatched"]; n != lists {
					t.Errorf("%d lists more with a watch", n-lists)
				}
				want(t, slices.DeleteFunc(d.read(), func(line string) bool { return line == "error" }),
					"ADDED ns/a →2 initial", "SYNCED→", "ADDED ns/b →3", "ADDED ns/c →4", "ADDED ns/d →5")
			})
		})
	}
}

// TestUnwatchedFromStart: an informer of an API server that answers no watch syncs.
func TestUnwatchedFromStart(t *testing.T) {
	for name, fail := range failures() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, i := newWatchless(t)
				s.put("a")
				s.noWatches.Store(&fail)
				start(t, i)
				if time.Sleep(2 * minute); i.Len() != 1 || i.Status().Relists["initial"] != 1 {
					t.Errorf("the copy has %v after lists %v: %v", contents(i), i.Status().Relists, i.Status().LastError)
				}
			})
		})
	}
}

// TestUnwatchedOutage: after an outage, in which lists fail as well, the watch goes on
// without a list, however long the outage was.
func TestUnwatchedOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, i := watchedUntilNow(t)
		time.Sleep(minute) // nearly enough for a list
		s.noLists.Store(answer(503))
		time.Sleep(10 * minute)
		s.put("b")
		s.noLists.Store(nil)
		s.noWatches.Store(nil)
		if time.Sleep(minute); i.Len() != 2 || s.lists.Load() != 0 || len(i.Status().Relists) != 1 {
			t.Errorf("%v after lists %v", contents(i), i.Status().Relists)
		}
	})
}

// TestUnwatchedListFails: a list that fails without an object does not take the place of a
// watch.
func TestUnwatchedListFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, i := watchedUntilNow(t)
		s.Control(func(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
			if r.Verb == "list" && r.Query.Get("limit") != "1" {
				s.lists.Add(1)
				informertest.WriteStatus(w, 429, "TooManyRequests", "no")
				return
			}
			next(w)
		})
		s.put("b")
		time.Sleep(20 * minute)
		if n := s.lists.Load(); n < 3 || n > 6 {
			t.Errorf("%d lists were tried in 20 minutes", n)
		}
		s.noWatches.Store(nil)
		if time.Sleep(minute); i.Len() != 2 || len(i.Status().Relists) != 1 {
			t.Errorf("%v after lists %v", contents(i), i.Status().Relists)
		}
	})
}
