// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// TestPanics: mistakes in the arguments are found at once, by a message that names them.
func TestPanics(t *testing.T) {
	var none *informer.Informer[json.RawMessage]
	src, err := informer.FromURL("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	some := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.Raw(), informer.Options{})
	mapped := func(informer.Ref[json.RawMessage]) []informer.Key { return nil }
	ok := New("test", succeed, Options{}, For(some))
	for want, f := range map[string]func(){
		"the function of New is nil":                                func() { New("test", nil, Options{}, For(some)) },
		"New needs a source":                                        func() { New("test", succeed, Options{}) },
		"a Source is made by For":                                   func() { New("test", succeed, Options{}, Source{}) },
		"a Controller is made by New":                               func() { _ = new(Controller).Run(t.Context()) },
		"the informer of For is nil":                                func() { For(none) },
		"the informer of Owns is nil":                               func() { Owns(none, widgetKind) },
		"the informer of Watches is nil":                            func() { Watches(none, mapped) },
		"the informer of Reads is nil":                              func() { Reads(none) },
		"the function of Watches is nil":                            func() { Watches(some, nil) },
		"filter 0 of For is nil":                                    func() { For(some, nil) },
		"filter 1 of Owns is nil":                                   func() { Owns(some, widgetKind, GenerationChanged, nil) },
		"filter 0 of Watches is nil":                                func() { Watches(some, mapped, nil) },
		"Informers[0] of a Group is nil":                            func() { _ = (&Group{Informers: []Informer{nil}}).Run(t.Context()) },
		"Informers[1] of a Group is nil":                            func() { _ = (&Group{Informers: []Informer{some, none}}).Run(t.Context()) },
		"Controllers[1] of a Group is nil":                          func() { _ = (&Group{Controllers: []*Controller{ok, nil}}).Run(t.Context()) },
		"Controllers[0] of a Group is nil":                          func() { (&Group{Controllers: []*Controller{nil}}).Waiting() },
		`Owns needs a kind such as "Deployment", not ""`:            func() { Owns(some, Kind{}) },
		`Owns needs a kind such as "Deployment", not "replicasets"`: func() { Owns(some, Kind{Group: "apps", Kind: "replicasets"}) },
		`Owns needs a group without a version, not "apps/v1"`:       func() { Owns(some, Kind{Group: "apps/v1", Kind: "ReplicaSet"}) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "reconcile: "+want) {
					t.Errorf("%q, want %q", text, want)
				}
			}()
			f()
		}()
	}
	if phase := some.Status().Phase; phase != informer.Starting {
		t.Errorf("an informer of a group with a nil one is %s", phase)
	}
}

// TestDefaults: options that are out of range have their default.
func TestDefaults(t *testing.T) {
	o := New("test", succeed, Options{Workers: -1, MinBackoff: time.Hour}, (&feed{}).source()).opts
	if !slices.Equal([]any{o.Workers, o.MaxBackoff}, []any{4, time.Hour}) {
		t.Errorf("%+v", o)
	}
}

// stops is an informer whose Run returns nil at once.
type stops struct {
	*informer.Informer[json.RawMessage]
}

func (stops) Run(context.Context) error { return nil }

// TestGroupStops: an informer that stops by itself ends the group.
func TestGroupStops(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		err := (&Group{Informers: []Informer{stops{c.widgets}}}).Run(t.Context())
		if !errors.Is(err, informer.ErrStopped) || err.Error() != "reconcile: informer of widgets.example.com: informer has stopped" {
			t.Error(err)
		}
	})
}

// TestGroupEmpty: a group without controllers and informers waits for its context.
func TestGroupEmpty(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, _ *cluster) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		g := new(Group)
		if err := g.Run(ctx); err != nil || time.Since(began) != time.Hour || len(g.Waiting()) > 0 {
			t.Errorf("%v after %v; waiting for %q", err, time.Since(began), g.Waiting())
		}
	})
}

// TestGroupShared: a group fails, with a message that names the shared part, if another one
// runs its informer or its controller. The other one goes on.
func TestGroupShared(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
		r := &recorder{}
		controller := New("test", r.reconcile, Options{}, For(c.widgets))
		stop := start(t, &Group{Controllers: []*Controller{controller}})
		const (
			runsInformer   = "reconcile: informer of widgets.example.com: informer is already running"
			runsController = `reconcile: controller "test" is already running`
		)
		for name, test := range map[string]struct {
			group *Group
			want  []string
		}{
			"informer":   {&Group{Informers: []Informer{c.widgets}}, []string{runsInformer}},
			"controller": {&Group{Controllers: []*Controller{controller}}, []string{runsInformer, runsController}},
			"twice":      {&Group{Controllers: []*Controller{New("x", succeed, Options{}, For(c.nodes)), controller}}, []string{runsInformer, runsController}},
		} {
			if err := test.group.Run(t.Context()); err == nil || !slices.Contains(test.want, err.Error()) {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.putWidget("a")
		if got := r.read(); got != "ns/a" {
			t.Errorf("calls %q", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		x := New("x", succeed, Options{}, For(c.nodes))
		if err := (&Group{Controllers: []*Controller{x, x}}).Run(t.Context()); err == nil || err.Error() != `reconcile: controller "x" is already running` {
			t.Error(err)
		}
	})
}
