// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A definer is an API server that answers with one definition.
type definer struct {
	code  int // 0: nobody is there
	body  string
	asked []string
}

func (d *definer) RoundTrip(r *http.Request) (*http.Response, error) {
	d.asked = append(d.asked, r.URL.Path)
	if d.code == 0 {
		return nil, errors.New("nobody is there")
	}
	return &http.Response{StatusCode: d.code, Body: io.NopCloser(strings.NewReader(d.body)), Request: r}, nil
}

// resource is a custom resource of the definer's.
func (d *definer) resource(namespaced bool) *resource {
	id := kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}
	up := &Upstream{Transport: d, base: &url.URL{Scheme: "http", Host: "upstream"}}
	begin := func() (context.Context, func(), bool) { return context.Background(), func() {}, true }
	return &resource{
		id: id, info: metav1.APIResource{Namespaced: namespaced},
		defined: definitions{up: up, id: id, asked: shared[knownDefinition]{begin: begin, timeout: definitionTimeout}},
	}
}

const widgetDefinition = `{"metadata":{"uid":"u","generation":7},"spec":{"versions":[
	{"name":"v1beta1","selectableFields":[{"jsonPath":".spec.old"}]},
	{"name":"v1","selectableFields":[{"jsonPath":".spec.color"},{"jsonPath":".spec.a-b_c.d1"},{"jsonPath":".spec['x']"},{"jsonPath":".spec.*"},{"jsonPath":".."}],
	 "additionalPrinterColumns":[{"name":"Color","type":"string","jsonPath":".spec.color","priority":1},{"name":"Since","type":"date","jsonPath":".status.since"}]},
	{"name":"v2"}]}}`

func TestDefinition(t *testing.T) {
	server := &definer{code: 200, body: widgetDefinition}
	res := server.resource(true)
	got, err := res.defined.get(t.Context(), 1)
	want := &definition{
		uid: "u", edition: 7,
		selectable: []string{"spec.color", "spec.a-b_c.d1"},
		columns:    []column{{"Color", "string", ".spec.color"}, {"Since", "date", ".status.since"}},
	}
	if diff := cmp.Diff(want, got.definition, cmp.AllowUnexported(definition{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"; server.asked[0] != path {
		t.Errorf("asked for %s", server.asked)
	}
	res = server.resource(true)
	res.defined.id.Version = "v2"
	got, err = res.defined.get(t.Context(), 2)
	if want := []column{{"Age", "date", ".metadata.creationTimestamp"}}; err != nil || cmp.Diff(want, got.definition.columns) != "" || len(got.definition.selectable) > 0 {
		t.Errorf("without columns: %v %+v", err, got)
	}
	res = server.resource(true)
	res.defined.id.Version = "v3"
	if got, err := res.defined.get(t.Context(), 3); !errors.Is(err, errUndefined) {
		t.Errorf("of a version that is not there: %+v %v", got, err)
	}
}

// TestDefinitionStands: an answer stands for ten seconds within a generation,
// and while the API server says nothing; not beyond the generation.
func TestDefinitionStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &definer{code: 200, body: widgetDefinition}
		res := server.resource(true)
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
			{"forbidden still", 31 * time.Second, 403, 2, false, 9},
			{"forbidden just now", 0, 200, 2, false, 9},
			{"not there", 11 * time.Second, 404, 2, false, 10},
			{"there again", 11 * time.Second, 200, 2, true, 11},
		} {
			time.Sleep(step.after)
			server.code = step.code
			if _, err := res.defined.get(t.Context(), step.generation); (err == nil) != step.known || len(server.asked) != step.asked {
				t.Errorf("%s: %v after %d questions, want known %v after %d", step.what, err, len(server.asked), step.known, step.asked)
			}
		}
	})
}

// TestDefinitionOver: a definition is over when there is another, or none, or
// when it is not known whether it still stands; not when it is read again.
func TestDefinitionOver(t *testing.T) {
	another := strings.Replace(widgetDefinition, `"generation":7`, `"generation":8`, 1)
	anew := strings.Replace(widgetDefinition, `"uid":"u"`, `"uid":"v"`, 1)
	for _, test := range []struct {
		what       string
		code       int
		body       string
		generation int
		over       bool
	}{
		{"read again", 200, widgetDefinition, 1, false},
		{"read again after a list", 200, widgetDefinition, 2, false},
		{"another edition", 200, another, 2, true},
		{"made anew", 200, anew, 2, true},
		{"gone", 404, "", 2, true},
		{"going", 200, strings.Replace(another, `"uid"`, `"deletionTimestamp":"2026-11-21T12:00:00Z","uid"`, 1), 2, true},
		{"forbidden after a list", 403, "", 2, true},
		{"forbidden later", 403, "", 1, false},
		{"not told after a list", 503, "", 2, true},
		{"not told later", 503, "", 1, false},
		{"another edition, found later", 200, another, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &definer{code: 200, body: widgetDefinition}
			res := server.resource(true)
			def, err := res.defined.get(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			changed := 0
			res.defined.changed = func() { changed++ }
			time.Sleep(definitionFresh)
			server.code, server.body = test.code, test.body
			<-res.defined.ask(test.generation)
			over := false
			select {
			case <-def.over:
				over = true
			default:
			}
			if over != test.over {
				t.Errorf("%s: over %v", test.what, over)
			}
			// What was listed is of the old definition.
			if stale := test.over && test.generation == 1 || test.code == 404; changed > 0 != stale {
				t.Errorf("%s: %d changes told", test.what, changed)
			}
		})
	}
}

// TestUndefinedOver: watches that began while there was no definition to be had
// end when there is one.
func TestUndefinedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &definer{code: 403}
		res := server.resource(true)
		over, ok := res.definition(t.Context(), 1)
		if !ok || over == nil {
			t.Fatalf("not to be served: %v %v", over, ok)
		}
		time.Sleep(definitionFresh)
		server.code, server.body = 200, widgetDefinition
		if _, ok := res.definition(t.Context(), 1); !ok {
			t.Error("not to be served")
		}
		<-over
	})
}

// TestDefinitionGoing: what is being deleted is the API server's to answer.
func TestDefinitionGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &definer{code: 200, body: strings.Replace(widgetDefinition, `"uid"`, `"deletionTimestamp":"2026-11-21T12:00:00Z","uid"`, 1)}
		res := server.resource(true)
		if _, ok := res.definition(t.Context(), 1); ok {
			t.Error("served while it is being deleted")
		}
		time.Sleep(definitionFresh)
		server.body = widgetDefinition // made anew
		if _, ok := res.definition(t.Context(), 1); !ok {
			t.Error("not served when there is another one")
		}
	})
}

// TestDefinedFeed: a list has the definition be asked for anew, if it is known.
func TestDefinedFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &definer{code: 200, body: widgetDefinition}
		res := server.resource(true)
		res.timeline = timeline.New(timeline.Options{})
		res.reflector = informer.NewReflector(informer.ReflectorOptions{})
		sink := &feed{Timeline: res.timeline, replaced: res.listed}
		list := &scan.List{Kind: "WidgetList", APIVersion: "example.com/v1", ItemKind: "Widget", RV: 5}
		if sink.End(list); len(server.asked) > 0 {
			t.Error("asked though nobody wants to know")
		}
		def, err := res.defined.get(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		server.body = strings.Replace(widgetDefinition, `"uid":"u"`, `"uid":"v"`, 1)
		if !sink.End(list) {
			t.Error("the timeline does not continue")
		}
		<-def.over
	})
}

// lastFrames is a frameSink that does something at the first flush.
type lastFrames struct {
	frames []string
	then   func()
}

func (l *lastFrames) frame(parts []string) error {
	l.frames = append(l.frames, strings.Join(parts, ""))
	return nil
}

func (l *lastFrames) flush() error {
	if l.then != nil {
		l.then()
	}
	l.then = nil
	return nil
}

func (l *lastFrames) release() {}

// TestWatchOver: a watch whose definition is over writes what there is, and
// ends: with the ERROR if there is one.
func TestWatchOver(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*bench)
		want []string
	}{
		"with an event": {func(b *bench) { b.apply(kube.Added, pod("d", "b", 12)) }, []string{"ADDED a@11", "ADDED b@12"}},
		"with an error": {func(b *bench) { b.res.timeline.Reset(podList(20)) }, []string{"ADDED a@11", "ERROR @"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, podList(10))
			over := make(chan struct{})
			sink := &lastFrames{then: func() { test.then(b); close(over) }}
			v := b.res.timeline.View()
			cursor, err := b.res.timeline.WatchFrom(v, v.RV, timeline.Interest{})
			if err != nil {
				t.Fatal(err)
			}
			b.apply(kube.Added, pod("d", "a", 11))
			s := &watchStream{
				cache: b.cache, res: b.res, source: cursor, pulse: pulse{deadline: time.Now().Add(time.Hour)}, over: over, wire: b.res.encoder.Stream(wire.Form{}, false),
				bookmarkForm: v.BookmarkForm, sink: sink,
			}
			s.pulse.begin(nil)
			defer s.pulse.stop()
			s.run()
			var got []string
			for _, line := range sink.frames {
				got = append(got, brief(t, line))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestDefinitionDate: where a column's date is.
func TestDefinitionDate(t *testing.T) {
	def := &definition{columns: []column{
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

// TestFields: what a custom resource is selected by. The API server's own are
// known without a question, and nothing is known of others.
func TestFields(t *testing.T) {
	o, err := scan.ParseObject(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"d","resourceVersion":"1"},"spec":{"color":"red","a-b_c":{"d1":5}}}`)
	if err != nil {
		t.Fatal(err)
	}
	server := &definer{code: 200, body: widgetDefinition}
	res := server.resource(true)
	for label, want := range map[string]string{"metadata.name": "w", "metadata.namespace": "d", "spec.color": "red", "spec.a-b_c.d1": "5"} {
		if value, ok := res.fields(t.Context(), 1)(label); !ok || value(o) != want {
			t.Errorf("%s: %v, want %q", label, ok, want)
		}
	}
	for _, label := range []string{"spec.old", "spec", "metadata.uid", "spec['x']", "spec.*", ".spec.color"} {
		if _, ok := res.fields(t.Context(), 1)(label); ok {
			t.Errorf("selectable by %s", label)
		}
	}
	if _, ok := server.resource(false).fields(t.Context(), 1)("metadata.namespace"); ok {
		t.Error("a cluster-scoped custom resource is selectable by namespace")
	}
	aggregated := &definer{code: 404}
	if _, ok := aggregated.resource(true).fields(t.Context(), 1)("metadata.name"); ok {
		t.Error("something is known of what is no custom resource")
	}
	own := (&definer{}).resource(true)
	own.id = kube.Resource{Version: "v1", Name: "pods"}
	if _, ok := own.fields(t.Context(), 1)("status.phase"); !ok {
		t.Error("Pods are not selectable by phase")
	}
}
