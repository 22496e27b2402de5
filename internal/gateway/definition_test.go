// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/kube"
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
		defined: definitions{up: up, id: id, begin: begin},
	}
}

const widgetDefinition = `{"spec":{"versions":[
	{"name":"v1beta1","selectableFields":[{"jsonPath":".spec.old"}]},
	{"name":"v1","selectableFields":[{"jsonPath":".spec.color"},{"jsonPath":".spec.a-b_c.d1"},{"jsonPath":".spec['x']"},{"jsonPath":".spec.*"},{"jsonPath":".."}],
	 "additionalPrinterColumns":[{"name":"Color","type":"string","jsonPath":".spec.color","priority":1},{"name":"Since","type":"date","jsonPath":".status.since"}]},
	{"name":"v2"}]}}`

func TestDefinition(t *testing.T) {
	server := &definer{code: 200, body: widgetDefinition}
	res := server.resource(true)
	got, ok := res.defined.get(t.Context(), 1)
	want := &definition{
		selectable: []string{"spec.color", "spec.a-b_c.d1"},
		columns:    []column{{"Color", "string", ".spec.color"}, {"Since", "date", ".status.since"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(definition{})); !ok || diff != "" {
		t.Errorf("%v (-want +got)\n%s", ok, diff)
	}
	if path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"; server.asked[0] != path {
		t.Errorf("asked for %s", server.asked)
	}
	res.defined.id.Version = "v2"
	got, ok = res.defined.get(t.Context(), 2)
	if want := []column{{"Age", "date", ".metadata.creationTimestamp"}}; !ok || cmp.Diff(want, got.columns) != "" || len(got.selectable) > 0 {
		t.Errorf("without columns: %v %+v", ok, got)
	}
	res.defined.id.Version = "v3"
	if got, ok := res.defined.get(t.Context(), 3); ok {
		t.Errorf("of a version that is not there: %+v", got)
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
			{"forbidden", 11 * time.Second, 403, 2, false, 6},
			{"forbidden just now", 0, 200, 2, false, 6},
			{"not there", 11 * time.Second, 404, 2, false, 7},
			{"there again", 11 * time.Second, 200, 2, true, 8},
		} {
			time.Sleep(step.after)
			server.code = step.code
			if _, known := res.defined.get(t.Context(), step.generation); known != step.known || len(server.asked) != step.asked {
				t.Errorf("%s: known %v after %d questions, want %v after %d", step.what, known, len(server.asked), step.known, step.asked)
			}
		}
	})
}

// TestFields: what a custom resource is selected by. The API server's own are
// known without a question, and nothing is known of others.
func TestFields(t *testing.T) {
	o, err := kube.ScanObject(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"d","resourceVersion":"1"},"spec":{"color":"red","a-b_c":{"d1":5}}}`)
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
