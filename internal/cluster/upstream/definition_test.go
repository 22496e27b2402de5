// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A definer is an API server that answers with one definition.
type definer struct {
	code  int // 0: the server does not answer
	body  string
	asked []string
}

func (d *definer) RoundTrip(r *http.Request) (*http.Response, error) {
	d.asked = append(d.asked, r.URL.Path)
	if d.code == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: d.code, Body: io.NopCloser(strings.NewReader(d.body)), Request: r}, nil
}

// definitions returns the definitions of the definer's custom resource.
func (d *definer) definitions(t *testing.T) *Definitions {
	t.Helper()
	up := &Server{Transport: d, base: &url.URL{Scheme: "http", Host: "upstream"}}
	b := NewBackground()
	t.Cleanup(b.Stop)
	return NewDefinitions(up, kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, b)
}

const widgetDefinition = `{"metadata":{"uid":"u","generation":7},"spec":{"versions":[
	{"name":"v1beta1","selectableFields":[{"jsonPath":".spec.old"}]},
	{"name":"v1","selectableFields":[{"jsonPath":".spec.color"},{"jsonPath":".spec.a-b_c.d1"},{"jsonPath":".spec['x']"},{"jsonPath":".spec.*"},{"jsonPath":".."}],
	 "additionalPrinterColumns":[{"name":"Color","type":"string","jsonPath":".spec.color","priority":1},{"name":"Since","type":"date","jsonPath":".status.since"}]},
	{"name":"v2"}]}}`

func TestDefinition(t *testing.T) {
	server := &definer{code: 200, body: widgetDefinition}
	defs := server.definitions(t)
	got, err := defs.Get(t.Context(), 1)
	want := &Definition{
		uid: "u", generation: 7,
		selectable: []string{"spec.color", "spec.a-b_c.d1"},
		columns:    []column{{"Color", "string", ".spec.color"}, {"Since", "date", ".status.since"}},
	}
	if diff := cmp.Diff(want, got.Definition, cmp.AllowUnexported(Definition{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"; server.asked[0] != path {
		t.Errorf("requested %s", server.asked)
	}
	defs = server.definitions(t)
	defs.id.Version = "v2"
	got, err = defs.Get(t.Context(), 2)
	if want := []column{{"Age", "date", ".metadata.creationTimestamp"}}; err != nil || cmp.Diff(want, got.Definition.columns) != "" || len(got.Definition.selectable) > 0 {
		t.Errorf("without columns: %v %+v", err, got)
	}
	defs = server.definitions(t)
	defs.id.Version = "v3"
	if got, err := defs.Get(t.Context(), 3); !errors.Is(err, ErrUndefined) {
		t.Errorf("of a missing version: %+v %v", got, err)
	}
}

// TestDefinitionAge: an answer is used for ten seconds, and for longer while the API
// server does not answer; never after the next list.
func TestDefinitionAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &definer{code: 200, body: widgetDefinition}
		defs := server.definitions(t)
		for _, step := range []struct {
			what       string
			after      time.Duration
			code       int
			generation int
			known      bool
			asked      int
		}{
			{"first", 0, 200, 1, true, 1},
			{"at once", 0, 500, 1, true, 1},
			{"after a while, from a server that is down", 11 * time.Second, 0, 1, true, 2},
			{"just after", 0, 200, 1, true, 2},
			{"after a while, from a server in trouble", 11 * time.Second, 503, 1, true, 3},
			{"of a new generation, from a server that is down", 0, 0, 2, false, 4},
			{"of a new generation", 0, 200, 2, true, 5},
			{"of an old generation", 0, 200, 1, true, 5},
			{"forbidden for a moment", 11 * time.Second, 403, 2, true, 6},
			{"not forbidden", 11 * time.Second, 200, 2, true, 7},
			{"forbidden", 11 * time.Second, 403, 2, true, 8},
			{"forbidden for half a minute", 31 * time.Second, 403, 2, false, 9},
			{"forbidden just now", 0, 200, 2, false, 9},
			{"not there", 11 * time.Second, 404, 2, false, 10},
			{"there again", 11 * time.Second, 200, 2, true, 11},
		} {
			time.Sleep(step.after)
			server.code = step.code
			if _, err := defs.Get(t.Context(), step.generation); (err == nil) != step.known || len(server.asked) != step.asked {
				t.Errorf("%s: %v after %d requests, want known %v after %d", step.what, err, len(server.asked), step.known, step.asked)
			}
		}
	})
}

// TestDefinitionOver: Over is closed when the definition has changed or is gone, or when
// a list has no answer; not when an equal definition is read again.
func TestDefinitionOver(t *testing.T) {
	another := strings.Replace(widgetDefinition, `"generation":7`, `"generation":8`, 1)
	again := strings.Replace(widgetDefinition, `"uid":"u"`, `"uid":"v"`, 1)
	for _, test := range []struct {
		what       string
		code       int
		body       string
		generation int
		over       bool
	}{
		{"read again", 200, widgetDefinition, 1, false},
		{"read again after a list", 200, widgetDefinition, 2, false},
		{"another generation", 200, another, 2, true},
		{"created again", 200, again, 2, true},
		{"gone", 404, "", 2, true},
		{"going", 200, strings.Replace(another, `"uid"`, `"deletionTimestamp":"2026-11-21T12:00:00Z","uid"`, 1), 2, true},
		{"forbidden after a list", 403, "", 2, true},
		{"forbidden later", 403, "", 1, false},
		{"no answer after a list", 503, "", 2, true},
		{"no answer later", 503, "", 1, false},
		{"another generation, found later", 200, another, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &definer{code: 200, body: widgetDefinition}
			defs := server.definitions(t)
			def, err := defs.Get(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			changed := 0
			defs.Changed = func() { changed++ }
			time.Sleep(maxDefinitionAge)
			server.code, server.body = test.code, test.body
			<-defs.Refresh(test.generation)
			over := false
			select {
			case <-def.Over.Done():
				over = true
			default:
			}
			if over != test.over {
				t.Errorf("%s: over %v", test.what, over)
			}
			// The listed objects are of the old definition.
			if stale := test.over && test.generation == 1 || test.code == 404; changed > 0 != stale {
				t.Errorf("%s: %d calls of Changed", test.what, changed)
			}
		})
	}
}

// TestOutdate: after Outdate, Over is closed once, whatever the API server answers.
func TestOutdate(t *testing.T) {
	for _, code := range []int{200, 403, 503} {
		for _, lists := range []int{1, 2} {
			server := &definer{code: 200, body: widgetDefinition}
			defs := server.definitions(t)
			before, err := defs.Get(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			defs.Outdate()
			server.code = code
			<-defs.Refresh(lists)
			select {
			case <-before.Over.Done():
			default:
				t.Errorf("%d after list %d: Over is open", code, lists)
			}
			after := defs.Now()
			server.code = 200
			<-defs.Refresh(lists)
			if now := defs.Now(); now.Definition == nil || code == 200 && now.Over != after.Over {
				t.Errorf("%d after list %d: %+v, then %+v", code, lists, after, now)
			}
		}
	}
}

// TestDefinitionDate: the path of a column's date.
func TestDefinitionDate(t *testing.T) {
	def := &Definition{columns: []column{
		{"Since", "date", ".status.since"}, {"Every", "string", ".spec.every"}, {"First", "date", ".spec.list[0]"},
		{"Twice", "date", ".spec.a"}, {"Twice", "string", ".spec.b"},
	}}
	for name, want := range map[string]string{
		"Since": "status since true", "Every": " true", "First": " false", "Twice": " false", "Other": " false",
	} {
		path, ok := def.date(name)
		if !ok {
			path = nil
		}
		if got := fmt.Sprint(strings.Join(path, " "), " ", ok); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestFields: the selectable fields of a custom resource. Those of built-in resources
// are known without a request; other resources have none.
func TestFields(t *testing.T) {
	o, err := scan.ParseObject(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"d","resourceVersion":"1"},"spec":{"color":"red","a-b_c":{"d1":5}}}`)
	if err != nil {
		t.Fatal(err)
	}
	server := &definer{code: 200, body: widgetDefinition}
	defs := server.definitions(t)
	for label, want := range map[string]string{"metadata.name": "w", "metadata.namespace": "d", "spec.color": "red", "spec.a-b_c.d1": "5"} {
		if value, ok := defs.Fields(t.Context(), 1, true)(label); !ok || value(o) != want {
			t.Errorf("%s: %v, want %q", label, ok, want)
		}
	}
	for _, label := range []string{"spec.old", "spec", "metadata.uid", "spec['x']", "spec.*", ".spec.color"} {
		if _, ok := defs.Fields(t.Context(), 1, true)(label); ok {
			t.Errorf("selectable by %s", label)
		}
	}
	if _, ok := server.definitions(t).Fields(t.Context(), 1, false)("metadata.namespace"); ok {
		t.Error("a cluster-scoped custom resource is selectable by namespace")
	}
	aggregated := &definer{code: 404}
	if _, ok := aggregated.definitions(t).Fields(t.Context(), 1, true)("metadata.name"); ok {
		t.Error("an aggregated resource is selectable by name")
	}
	own := (&definer{}).definitions(t)
	own.id = kube.Resource{Version: "v1", Name: "pods"}
	if _, ok := own.Fields(t.Context(), 1, true)("status.phase"); !ok {
		t.Error("Pods are not selectable by phase")
	}
}
