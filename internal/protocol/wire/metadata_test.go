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

// TestDerivedAnnotations: metadata leaves out derived annotations, and no others.
func TestDerivedAnnotations(t *testing.T) {
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

// TestMissingStruct: a CSINode of an API server that does not know its status is
// refused, since it would be written with an empty one.
func TestMissingStruct(t *testing.T) {
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
	// Bookmarks of an API server, and one that the gateway made.
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

// TestColumnsOfEveryEvent: only events of the aggregation layer repeat the columns.
func TestColumnsOfEveryEvent(t *testing.T) {
	for _, r := range []kube.Resource{{Version: "v1", Name: "pods"}, {Group: "apiregistration.k8s.io", Version: "v1", Name: "apiservices"}} {
		e := newEncoder()
		e.Resource = r
		s := e.Stream(Form{View: Table, Version: "v1"}, false)
		o := parse(t, `{"kind":"X","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}}`)
		o.Row, o.Columns = `"cells":["a"]`, `[{"name":"Name","type":"string","format":"name","description":"","priority":0}]`
		var repeated int
		for range 3 {
			parts, err := s.Event(kube.Added, o)
			if err != nil {
				t.Fatal(err)
			}
			repeated += strings.Count(strings.Join(parts, ""), `"columnDefinitions":[`)
		}
		if want := map[string]int{"": 1, "apiregistration.k8s.io": 3}[r.Group]; repeated != want {
			t.Errorf("%s: %d of 3 events have the columns, want %d", r.Name, repeated, want)
		}
	}
}
