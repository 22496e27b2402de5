// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
)

// TestI14KeysReused: the function of Watches may use its slice for each result.
func TestI14KeysReused(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		r := &recorder{}
		var buffer []informer.Key
		byLabel := func(node informer.Ref[json.RawMessage]) []informer.Key {
			name, _ := node.Label("widget")
			buffer = append(buffer[:0], informer.Key{Namespace: "ns", Name: name})
			return buffer
		}
		stop := start(t, &Group{Controllers: []*Controller{New("test", r.reconcile, Options{}, Watches(c.nodes, byLabel))}})
		for _, step := range []struct{ label, want string }{{"a", "ns/a"}, {"b", "ns/a ns/b"}, {"b", "ns/b"}, {"c", "ns/b ns/c"}} {
			c.Put("nodes", fmt.Sprintf(`{"metadata":{"name":"n","labels":{"widget":%q}}}`, step.label))
			if got := r.read(); got != step.want {
				t.Errorf("label %s: calls %q, want %q", step.label, got, step.want)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestSourceFunctions: functions may add and remove namespaces of their informer.
func TestSourceFunctions(t *testing.T) {
	for _, where := range []string{"Func", "filter", "Watches"} {
		simulate(t, informertest.Options{}, informer.Options{Namespaces: []string{"ns"}}, func(t *testing.T, c *cluster) {
			var once sync.Once
			move := func(here string) {
				if here == where {
					once.Do(func() {
						if err := errors.Join(c.widgets.AddNamespace("other"), c.widgets.RemoveNamespace("ns")); err != nil {
							t.Error(err)
						}
					})
				}
			}
			r := &recorder{}
			f := func(ctx context.Context, key informer.Key) (Result, error) {
				move("Func")
				return r.reconcile(ctx, key)
			}
			keys := func(w informer.Ref[json.RawMessage]) []informer.Key { move("Watches"); return []informer.Key{w.Key()} }
			filter := func(informer.Event[json.RawMessage]) bool { move("filter"); return true }
			c.putWidget("a")
			c.Put(widgetsName, `{"metadata":{"name":"b","namespace":"other"}}`)
			stop := start(t, &Group{Controllers: []*Controller{New("test", f, Options{}, Watches(c.widgets, keys, filter))}})
			settle()
			got := r.read()
			if names, _ := c.widgets.Namespaces(); !slices.Equal(names, []string{"other"}) || !strings.Contains(got, "ns/a") || !strings.Contains(got, "other/b") {
				t.Errorf("%s: calls %q, namespaces %v", where, got, names)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestI15Goexit: runtime.Goexit in the function of a source ends the deliveries until the
// informer runs again.
func TestI15Goexit(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		r := &recorder{}
		exits := false
		filter := func(informer.Event[json.RawMessage]) bool {
			if exits {
				exits = false
				runtime.Goexit()
			}
			return true
		}
		controller := New("test", r.reconcile, Options{}, For(c.widgets, filter))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		stop := start(t, &Group{Informers: []Informer{c.widgets}})
		go func() { ended <- controller.Run(ctx) }()
		synctest.Wait()
		exits = true
		for _, name := range []string{"lost", "a"} {
			c.putWidget(name)
			synctest.Wait()
		}
		if got := r.read(); got != "" {
			t.Errorf("calls %q", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		stop = start(t, &Group{Informers: []Informer{c.widgets}})
		if got := r.read(); got != "ns/a" {
			t.Errorf("calls %q in the next run", got)
		}
		cancel()
		if err := errors.Join(stop(), <-ended); err != nil {
			t.Error(err)
		}
	})
}

// TestWaitLog: while a controller waits for a source, the log says for what.
func TestWaitLog(t *testing.T) {
	for name, test := range map[string]struct {
		keys      func() []informer.Key
		ends      bool // the informer, before the controller runs
		want, not string
		code      int // with which the API server refuses lists; 0 if it does not
	}{
		"slow":    {func() []informer.Key { time.Sleep(40 * time.Second); return nil }, false, errNotHandled.Error(), "stopped", 0},
		"Goexit":  {func() []informer.Key { runtime.Goexit(); return nil }, false, errNotHandled.Error(), "stopped", 0},
		"stopped": {func() []informer.Key { return nil }, true, "informer has stopped", errNotHandled.Error(), 0},
		"refused": {func() []informer.Key { return nil }, false, "not synced: list http://api.test/api/v1/nodes: refused with 403: no", "no complete list", 403},
	} {
		simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
			c.Put("nodes", `{"metadata":{"name":"n"}}`)
			var log bytes.Buffer
			mapped := Watches(c.nodes, func(informer.Ref[json.RawMessage]) []informer.Key { return test.keys() })
			controller := New("test", succeed, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, mapped)
			if test.code != 0 {
				c.Control(func(w http.ResponseWriter, _ *informertest.Request, _ func(http.ResponseWriter)) {
					informertest.WriteStatus(w, test.code, "No", "no")
				})
			}
			stopInformer := start(t, &Group{Informers: []Informer{c.nodes}})
			if test.ends {
				_ = stopInformer()
			} else {
				defer func() { _ = stopInformer() }()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
			defer cancel()
			if err := controller.Run(ctx); err != nil {
				t.Error(name, err)
			}
			if line := `msg="waiting for nodes" controller=test err="` + test.want; !strings.Contains(log.String(), line) || strings.Contains(log.String(), test.not) {
				t.Errorf("%s: no line %s in\n%s", name, line, log.String())
			}
		})
	}
}
