// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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

// TestI14Sources: a change leads to a call for the key of each version of its object.
func TestI14Sources(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		r := &recorder{}
		size := func(node informer.Ref[json.RawMessage]) []informer.Key {
			size, _ := node.Label("widget")
			if size == "" {
				return nil
			}
			return []informer.Key{{Namespace: "ns", Name: size}, {Namespace: "ns", Name: "all"}}
		}
		controller := New("test", r.reconcile, Options{}, For(c.widgets), Owns(c.configMaps, widgetKind), Watches(c.nodes, size))
		stop := start(t, &Group{Controllers: []*Controller{controller}})
		node := func(widget string) {
			c.Put("nodes", fmt.Sprintf(`{"metadata":{"name":"n","labels":{"widget":%q}}}`, widget))
		}
		for _, step := range []struct {
			what string
			do   func()
			want string
		}{
			{"an object", func() { c.putWidget("a") }, "ns/a"},
			{"its change", func() { c.Touch(widgetsName, "ns/a") }, "ns/a"},
			{"its deletion", func() { c.Delete(widgetsName, "ns/a") }, "ns/a"},
			{"an owned object", func() { c.putConfigMap("m", "a") }, "ns/a"},
			{"its change", func() { c.Touch("configmaps", "ns/m") }, "ns/a"},
			{"another owner", func() { c.putConfigMap("m", "b") }, "ns/a ns/b"},
			{"no owner", func() { c.putConfigMap("m", "") }, "ns/b"},
			{"an object without an owner", func() { c.Touch("configmaps", "ns/m") }, ""},
			{"an owner again", func() { c.putConfigMap("m", "c") }, "ns/c"},
			{"its deletion", func() { c.Delete("configmaps", "ns/m") }, "ns/c"},
			{"a mapped object", func() { node("a") }, "ns/a ns/all"},
			{"its change", func() { node("a") }, "ns/a ns/all"},
			{"another mapping", func() { node("b") }, "ns/a ns/all ns/b"},
			{"no mapping", func() { node("") }, "ns/all ns/b"},
			{"a mapping again", func() { node("c") }, "ns/all ns/c"},
			{"its deletion", func() { c.Delete("nodes", "n") }, "ns/all ns/c"},
			{"keys that no source has", func() {
				controller.Enqueue(informer.Key{Namespace: "ns", Name: "x"}, informer.Key{Namespace: "ns", Name: "y"}, informer.Key{Namespace: "ns", Name: "x"})
			}, "ns/x ns/y"},
		} {
			step.do()
			if got := r.read(); got != step.want {
				t.Errorf("%s: calls %q, want %q", step.what, got, step.want)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		controller.Enqueue(informer.Key{Name: "z"})
		if got := r.read(); got != "" {
			t.Errorf("calls %q after the end", got)
		}
	})
}

// TestOwns: only the controller of the given kind counts, and an owner may be
// cluster-scoped.
func TestOwns(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		c.putConfigMap("a", "owner")
		for kind, want := range map[Kind]string{
			widgetKind: "ns/owner",
			{Group: "example.com", Kind: "Widget", ClusterScoped: true}: "owner",
			{Group: "example.com", Kind: "Gadget"}:                      "",
			{Group: "", Kind: "Widget"}:                                 "",
			{Group: "", Kind: "Node"}:                                   "",
		} {
			r := &recorder{}
			stop := start(t, &Group{Controllers: []*Controller{New("test", r.reconcile, Options{}, Owns(c.configMaps, kind))}})
			if got := r.read(); got != want {
				t.Errorf("%+v: %q, want %q", kind, got, want)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestFilters: an event that a filter rejects leads to no call; GenerationChanged rejects
// what leaves the generation as it is.
func TestFilters(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		r := &recorder{}
		notB := func(e informer.Event[json.RawMessage]) bool { return e.Key.Name != "b" }
		controller := New("test", r.reconcile, Options{}, For(c.widgets, GenerationChanged, notB), For(c.configMaps, GenerationChanged))
		stop := start(t, &Group{Controllers: []*Controller{controller}})
		put := func(metadata string) func() {
			return func() {
				c.Put(widgetsName, `{"metadata":{"name":"a","namespace":"ns",`+metadata+`}}`)
			}
		}
		for _, step := range []struct {
			what string
			do   func()
			want string
		}{
			{"added", put(`"generation":1`), "ns/a"},
			{"a label", put(`"generation":1,"labels":{"x":"y"}`), ""},
			{"a generation", put(`"generation":2`), "ns/a"},
			{"deleted", func() { c.Delete(widgetsName, "ns/a") }, "ns/a"},
			{"rejected", func() { c.putWidget("b") }, ""},
			{"no generation", func() { c.putConfigMap("a", ""); c.Touch("configmaps", "ns/a") }, "ns/a"},
			{"no generation", func() { c.Touch("configmaps", "ns/a") }, "ns/a"},
		} {
			step.do()
			if got := r.read(); !strings.Contains(got, step.want) || (got == "") != (step.want == "") {
				t.Errorf("%s: calls %q, want %q", step.what, got, step.want)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestI14Synced: no call begins before every source has passed on the objects that exist,
// also one that is only read. Their keys wait in the lane of initial ones.
func TestI14Synced(t *testing.T) {
	for _, late := range []string{"widgets", "configmaps", "nodes"} {
		simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
			var log bytes.Buffer
			c.putWidget("a")
			c.putConfigMap("b", "b")
			began := time.Now()
			c.Control(func(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
				if r.Resource.Name == late {
					time.Sleep(time.Until(began.Add(50 * time.Second)))
				}
				next(w)
			})
			var calls atomic.Int64
			controller := New("test", func(context.Context, informer.Key) (Result, error) {
				if calls.Add(1); time.Since(began) < 50*time.Second {
					t.Errorf("without %s, a call after %v", late, time.Since(began))
				}
				return Result{}, nil
			}, Options{Workers: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}, For(c.widgets), Owns(c.configMaps, widgetKind), Reads(c.nodes))
			g := &Group{Controllers: []*Controller{controller}}
			stop := start(t, g)
			what := late
			if late == "widgets" {
				what = widgetsName
			}
			if w := g.Waiting(); len(w) != 1 || w[0] != what+": not synced: there is no complete list yet" {
				t.Errorf("waiting for %q", w)
			}
			s := controller.Status()
			c.putWidget("c")
			if late == "nodes" && s != (Status{Initial: 2}) {
				t.Errorf("%+v", s)
			}
			time.Sleep(10 * time.Minute)
			if w := g.Waiting(); calls.Load() != 3 || len(w) > 0 {
				t.Errorf("%d calls; waiting for %q", calls.Load(), w)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			for _, line := range []string{`level=WARN msg="waiting for ` + what + `" controller=test err="not synced: there is no complete list yet"`, `level=INFO msg="all sources are synced`} {
				if !strings.Contains(log.String(), line) {
					t.Errorf("no line %s in\n%s", line, log.String())
				}
			}
		})
	}
}

// TestI14Transient: an object that is added and deleted while the source lags leads to a
// call, since an earlier call may have read it.
func TestI14Transient(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{Backlog: 1}, func(t *testing.T, c *cluster) {
		r := &recorder{}
		lag := make(chan bool)
		slow := Watches(c.configMaps, func(m informer.Ref[json.RawMessage]) []informer.Key {
			<-lag
			return []informer.Key{m.Key()}
		})
		stop := start(t, &Group{Controllers: []*Controller{New("test", r.reconcile, Options{}, slow)}})
		c.putConfigMap("first", "")
		synctest.Wait() // the source waits in its function
		for _, name := range []string{"a", "b", "c"} {
			c.putConfigMap(name, "")
			synctest.Wait()
		}
		c.Delete("configmaps", "ns/b")
		synctest.Wait()
		close(lag)
		if got, want := r.read(), "ns/a ns/b ns/c ns/first"; got != want {
			t.Errorf("calls %q, want %q", got, want)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestI14Inferred: deletions that follow from a list are not live, what has changed is.
func TestI14Inferred(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		release := make(chan bool)
		controller := New("test", func(_ context.Context, key informer.Key) (Result, error) {
			if key.Name == "busy" {
				<-release
			}
			return Result{}, nil
		}, Options{Workers: 1}, For(c.widgets))
		for _, name := range []string{"a", "b", "c"} {
			c.putWidget(name)
		}
		stop := start(t, &Group{Controllers: []*Controller{controller}})
		c.putWidget("busy")
		synctest.Wait()
		end := c.refuse(500)
		c.Expire()
		c.Delete(widgetsName, "ns/a", "ns/b")
		c.Touch(widgetsName, "ns/c")
		c.Compact(c.RV())
		end()
		settle()
		if s := controller.Status(); s != (Status{Live: 1, Initial: 2, Running: 1}) {
			t.Errorf("%+v", s)
		}
		close(release)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestI7Sources: Run waits for calls of the functions of sources.
func TestI7Sources(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		calls := 0
		slow := func(informer.Ref[json.RawMessage]) []informer.Key {
			time.Sleep(time.Minute)
			calls++
			return nil
		}
		if err := c.nodes.Start(ctx); err != nil {
			t.Fatal(err)
		}
		controllerCtx, stopController := context.WithTimeout(ctx, time.Second)
		defer stopController()
		c.Put("nodes", `{"metadata":{"name":"n"}}`)
		if err := New("test", new(recorder).reconcile, Options{}, Watches(c.nodes, slow)).Run(controllerCtx); err != nil || calls != 1 {
			t.Errorf("%v, after %d calls", err, calls)
		}
		stop()
		if err := c.nodes.Wait(); err != nil {
			t.Error(err)
		}
	})
}
