// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestAnnotationsThatAreFields: what is made from the API server's internal
// version does not have them, whatever else is annotated.
func TestAnnotationsThatAreFields(t *testing.T) {
	e := newEncoder()
	e.Resource = kube.Resource{Group: "apps", Version: "v1", Name: "daemonsets"}
	const generation = `"deprecated.daemonset.template.generation":"1"`
	for annotations, want := range map[string]string{
		generation:                    "",
		`"a":"b",` + generation:       `,"annotations":{"a":"b"}`,
		`"a":"deprecated.daemonset…"`: `,"annotations":{"a":"deprecated.daemonset…"}`,
	} {
		o := parse(t, `{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"5","annotations":{`+annotations+`}},"spec":{},"status":{}}`)
		got, err := e.Object(Form{View: Metadata, Version: "v1"}, o)
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"5"` + want + "}}\n"; got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, err := e.Object(Form{}, o); err != nil || !strings.Contains(got.String(), annotations) {
			t.Errorf("the whole object: %s %v", got, err)
		}
	}
}

// TestLaterStructs: an API server whose CSINode has no status yet does not
// write an empty one, which the type would.
func TestLaterStructs(t *testing.T) {
	e := newEncoder()
	for text, ok := range map[string]bool{
		`{"kind":"CSINode","apiVersion":"storage.k8s.io/v1","metadata":{"name":"a","resourceVersion":"5"},"spec":{"drivers":null}}`:             false,
		`{"kind":"CSINode","apiVersion":"storage.k8s.io/v1","metadata":{"name":"a","resourceVersion":"5"},"spec":{"drivers":null},"status":{}}`: true,
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}}`:                                                  true,
	} {
		if _, err := e.Object(Form{Media: Protobuf}, parse(t, text)); (err == nil) != ok || err != nil && !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// The bookmarks of an API server, and one made here.
	for text, ok := range map[string]bool{
		`{"kind":"CSINode","apiVersion":"storage.k8s.io/v1","metadata":{"resourceVersion":"5"},"spec":{"drivers":null}}`: false,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5"},"spec":{"containers":null},"status":{}}`:     true,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5"}}`:                                            true,
	} {
		f, err := scan.ParseFrame(`{"type":"BOOKMARK","object":` + text + `}`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Stream(Form{Media: Protobuf}, false).Event(kube.Bookmark, f.Object); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestColumnsOfEveryEvent: the aggregation layer tells them each time.
func TestColumnsOfEveryEvent(t *testing.T) {
	for _, r := range []kube.Resource{{Version: "v1", Name: "pods"}, {Group: "apiregistration.k8s.io", Version: "v1", Name: "apiservices"}} {
		e := newEncoder()
		e.Resource = r
		s := e.Stream(Form{View: Table, Version: "v1"}, false)
		o := parse(t, `{"kind":"X","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}}`)
		o.Row, o.Columns = `"cells":["a"]`, `[{"name":"Name","type":"string","format":"name","description":"","priority":0}]`
		var told int
		for range 3 {
			parts, err := s.Event(kube.Added, o)
			if err != nil {
				t.Fatal(err)
			}
			told += strings.Count(strings.Join(parts, ""), `"columnDefinitions":[`)
		}
		if want := map[string]int{"": 1, "apiregistration.k8s.io": 3}[r.Group]; told != want {
			t.Errorf("%s: the columns are told %d times in 3 events, not %d", r.Name, told, want)
		}
	}
}
