// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// refuse answers all requests for Widgets with a code, until end is called.
func (c *cluster) refuse(code int) (end func()) {
	return c.Control(func(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
		if strings.Contains(r.URL.Path, "/widgets") {
			informertest.WriteStatus(w, code, "No", "no")
			return
		}
		next(w)
	})
}

// TestI14Restart: an informer that the API server refuses is run again, at the beginning
// and later. Its events are the difference. The group says what it waits for.
func TestI14Restart(t *testing.T) {
	for _, code := range []int{401, 403, 404} {
		simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
			var log bytes.Buffer
			r := &recorder{}
			g := &Group{Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Controllers: []*Controller{New("test", r.reconcile, Options{}, For(c.widgets), Owns(c.configMaps, widgetKind))}}
			want := func(what, keys string, waits bool) {
				t.Helper()
				if got := r.read(); got != keys {
					t.Errorf("%d, %s: calls %q, want %q", code, what, got, keys)
				}
				w := g.Waiting()
				if waits != (len(w) == 1) || waits && !(strings.HasPrefix(w[0], widgetsName+": ") && strings.Contains(w[0], "refused with 40")) {
					t.Errorf("%d, %s: waiting for %q", code, what, w)
				}
			}
			end := c.refuse(code)
			c.putWidget("a")
			c.putWidget("b")
			stop := start(t, g)
			settle()
			want("refused at the beginning", "", true)
			end()
			settle()
			want("served", "ns/a ns/b", false)

			end = c.refuse(code)
			c.CutWatches()
			settle()
			settle()
			c.putConfigMap("m", "b")
			want("refused later", "ns/b", true)
			c.Delete(widgetsName, "ns/a")
			c.putWidget("c")
			end()
			settle()
			want("served again", "ns/a ns/c", false)
			if err := stop(); err != nil {
				t.Error(err)
			}
			if n := strings.Count(log.String(), `msg="waiting for widgets.example.com"`); n == 0 || n > 6 {
				t.Errorf("%d lines in\n%s", n, log.String())
			}
		})
	}
}

// TestGroupFails: a refusal that does not heal, or an informer that is running already,
// ends the group with the error.
func TestGroupFails(t *testing.T) {
	for _, already := range []bool{false, true} {
		simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
			r := &recorder{}
			ctx, cancel := context.WithCancel(t.Context())
			if already {
				if err := c.widgets.Start(ctx); err != nil {
					t.Fatal(err)
				}
			} else {
				defer c.refuse(405)()
			}
			controller := New("test", r.reconcile, Options{}, For(c.configMaps))
			err := (&Group{Controllers: []*Controller{controller}, Informers: []Informer{c.widgets}}).Run(t.Context())
			refused, isRefused := errors.AsType[*informer.RefusedError](err)
			if errors.Is(err, informer.ErrRunning) != already || isRefused == already || isRefused && refused.Code != 405 || !strings.Contains(err.Error(), "widgets") {
				t.Errorf("already running %v: %v", already, err)
			}
			cancel()
			if already {
				_ = c.widgets.Wait()
			}
			if phase := c.configMaps.Status().Phase; phase != informer.Stopped && phase != informer.Starting {
				t.Errorf("the other informer is %s", phase)
			}
		})
	}
}

// TestI14Shutdown: when the context of Run ends, that of calls does. Run waits for calls
// that have begun, during which the informers run, begins no other, and leaves nothing
// running.
func TestI14Shutdown(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		calls := 0
		opts := Options{Workers: 1, Metrics: Metrics{Retried: func(int, time.Duration) { t.Error("an interrupted call is retried") }}}
		controller := New("test", func(ctx context.Context, key informer.Key) (Result, error) {
			calls++
			<-ctx.Done()
			c.putWidget("b")
			time.Sleep(time.Hour)
			if _, ok := c.widgets.Get(informer.Key{Namespace: "ns", Name: "b"}); !ok {
				t.Error("the informer does not run during the call")
			}
			return Result{After: time.Minute}, ctx.Err()
		}, opts, For(c.widgets))
		other := New("other", succeed, Options{}, Reads(c.widgets), For(c.configMaps))
		g := &Group{Controllers: []*Controller{controller, other}}
		stop := start(t, g)
		c.putWidget("a")
		c.putWidget("waits")
		synctest.Wait()
		if err := controller.Run(t.Context()); err == nil {
			t.Error("Run has been called twice")
		}
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if calls != 1 || time.Since(began) != time.Hour || c.widgets.Status().Phase != informer.Stopped || controller.Status() != (Status{}) {
			t.Errorf("%d calls, after %v the informer is %s, the queue %+v", calls, time.Since(began), c.widgets.Status().Phase, controller.Status())
		}
	})
}

// TestI14RunAgain: each run begins anew, with a call for each object. An informer may go
// on running between the runs of a controller.
func TestI14RunAgain(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		r := &recorder{}
		var events atomic.Int64
		counts := func(informer.Event[json.RawMessage]) bool { return events.Add(1) > 0 }
		controller := New("test", r.reconcile, Options{}, For(c.widgets, counts))
		stopInformer := start(t, &Group{Informers: []Informer{c.widgets}})
		for n, want := range []string{"ns/a", "ns/a ns/b", "ns/b ns/c"} {
			c.putWidget(string(rune('a' + n)))
			if n == 2 {
				c.Delete(widgetsName, "ns/a")
			}
			synctest.Wait() // the informer has seen the changes
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- controller.Run(ctx) }()
			if got := r.read(); got != want {
				t.Errorf("run %d: calls %q, want %q", n, got, want)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			before := events.Load()
			c.Touch(widgetsName, "ns/"+string(rune('a'+n)))
			if got := r.read(); got != "" || events.Load() != before {
				t.Errorf("calls %q, %d events after run %d", got, events.Load()-before, n)
			}
		}
		if err := stopInformer(); err != nil {
			t.Error(err)
		}
	})
}

// TestI14EndAnyTime: a group may end at any moment, and run again.
func TestI14EndAnyTime(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		r := &recorder{}
		controllers := []*Controller{
			New("one", r.reconcile, Options{MaxRate: 1}, For(c.widgets)),
			New("two", func(context.Context, informer.Key) (Result, error) { return Result{}, errNo }, Options{}, For(c.configMaps), Reads(c.widgets)),
		}
		g := &Group{Controllers: controllers, Informers: []Informer{c.widgets, c.nodes}}
		c.Control(func(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
			time.Sleep(time.Millisecond)
			next(w)
		})
		for n := range 5 {
			c.putWidget(string(rune('a' + n)))
			c.putConfigMap(string(rune('a'+n)), "")
		}
		for n := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*100*time.Microsecond)
			if err := g.Run(ctx); err != nil {
				t.Error(n, err)
			}
			cancel()
			for _, c := range controllers {
				if s := c.Status(); s != (Status{}) {
					t.Errorf("%d: %+v", n, s)
				}
			}
		}
		time.Sleep(time.Second) // requests that were delayed
	})
}

// TestHotStandby: a group of informers alone keeps the copies ready for a controller that
// runs while its replica leads.
func TestHotStandby(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		c.putWidget("a")
		stop := start(t, &Group{Informers: []Informer{c.widgets, c.widgets}})
		r := &recorder{}
		leading, lost := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		lists := c.widgets.Status().Relists["initial"]
		go func() { ended <- New("test", r.reconcile, Options{}, For(c.widgets)).Run(leading) }()
		if got := r.read(); got != "ns/a" || lists != 1 || c.widgets.Status().Relists["initial"] != 1 {
			t.Errorf("calls %q after %d lists, %v", got, lists, c.widgets.Status().Relists)
		}
		lost()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
