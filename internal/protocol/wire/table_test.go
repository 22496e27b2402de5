// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const (
	podColumns = `[{"name":"Name","type":"string","format":"name","description":"","priority":0},{"name":"Restarts","type":"string","format":"","description":"","priority":0},{"name":"Age","type":"string","format":"","description":"","priority":0}]`
	podObject  = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"5","creationTimestamp":"2026-11-21T12:00:00Z"},` +
		`"status":{"containerStatuses":[{"name":"c","lastState":{"terminated":{"finishedAt":"2026-11-21T12:10:00Z"}}},{"name":"d","lastState":{"terminated":{"finishedAt":"2026-11-21T12:05:00Z"}}}]}}`
	podMeta = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"5","creationTimestamp":"2026-11-21T12:00:00Z"}}`
	podRow  = `"cells":["a","3 (1s ago)","12m"],"conditions":[{"type":"Completed","status":"True"}]`
)

// printed returns an object with the row and columns that the API server gave it.
func printed(t *testing.T, columns, row, object string) *scan.Object {
	t.Helper()
	f, err := scan.ParseFrame(`{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"columnDefinitions":` +
		columns + `,"rows":[{` + row + `,"object":` + object + `}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	return f.Object
}

// tableEncoder returns an encoder whose clock is stopped at 13:00.
func tableEncoder(resource kube.Resource) *Encoder {
	e := newEncoder()
	e.Resource = resource
	e.Now = func() time.Time { return time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC) }
	return e
}

var podResource = kube.Resource{Version: "v1", Name: "pods"}

func TestTable(t *testing.T) {
	o := printed(t, podColumns, podRow, podObject)
	e := tableEncoder(podResource)
	const cells = `{"cells":["a","3 (50m ago)","60m"],"conditions":[{"type":"Completed","status":"True"}],"object":`
	head := ListHead{RV: 9, Continue: "tok", Remaining: 2, Columns: podColumns}
	for include, object := range map[Include]string{IncludeMetadata: podMeta, IncludeObject: podObject, IncludeNone: "null"} {
		want := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9","continue":"tok","remainingItemCount":2},"columnDefinitions":` +
			podColumns + `,"rows":[` + cells + object + "}]}\n"
		got := listOf(t, e, Form{View: Table, Version: "v1", Include: include}, head, []*scan.Object{o})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", include, diff)
		}
		var table metav1.Table
		if err := json.Unmarshal([]byte(got), &table); err != nil || len(table.Rows) != 1 {
			t.Errorf("%v in %s", err, got)
		}
	}
	got := listOf(t, e, Form{View: Table, Version: "v1beta1"}, head, []*scan.Object{o})
	if n := strings.Count(got, `"apiVersion":"meta.k8s.io/v1beta1"`); n != 2 {
		t.Errorf("v1beta1: %s", got)
	}
	if got := listOf(t, e, Form{View: Table, Version: "v1"}, ListHead{RV: 9, Columns: podColumns}, nil); !strings.HasSuffix(got, `,"rows":[]}`+"\n") {
		t.Errorf("empty: %s", got)
	}
	bare := `[{"name":"Name","type":"string"},{"name":"Created At","type":"date","description":` + marshal((metav1.ObjectMeta{}).SwaggerDoc()["creationTimestamp"]) + `}]`
	if got := listOf(t, e, Form{View: Table, Version: "v1"}, ListHead{RV: 9, Columns: bare}, nil); !strings.HasSuffix(got, `,"rows":null}`+"\n") {
		t.Errorf("empty, of a type without columns of its own: %s", got)
	}
	for what, o := range map[string]*scan.Object{
		"no row":         parse(t, podObject),
		"other columns":  printed(t, `[{"name":"Name"}]`, `"cells":["a"]`, podObject),
		"too many cells": printed(t, podColumns, `"cells":["a","0","1m","x"]`, podObject),
	} {
		if _, err := e.List(Form{View: Table, Version: "v1"}, head, []*scan.Object{o}); !errors.Is(err, ErrForm) && !errors.Is(err, ErrColumns) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestTableEvents: only the first event has the columns, and a stream cannot
// continue with others.
func TestTableEvents(t *testing.T) {
	o := printed(t, podColumns, podRow, podObject)
	s := tableEncoder(podResource).Stream(Form{View: Table, Version: "v1", Include: IncludeNone}, false)
	for _, columns := range []string{podColumns, "null", "null"} {
		got := event(t, s, kube.Modified, o.At(77))
		if want := `{"type":"MODIFIED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"77"},"columnDefinitions":` + columns + `,"rows":[{"cells":`; !strings.HasPrefix(got, want) {
			t.Errorf("got %s", got)
		}
	}
	form := printed(t, podColumns, `"cells":["","0","\u003cunknown\u003e"]`, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","resourceVersion":"1"}}`)
	end := event(t, s, kube.Bookmark, scan.BookmarkObject(form, 80, true))
	if !strings.Contains(end, `"cells":["","0","\u003cunknown\u003e"],"object":{"kind":"PartialObjectMetadata"`) || !strings.Contains(end, "initial-events-end") {
		t.Errorf("end bookmark %s", end)
	}
	if got := event(t, s, kube.Bookmark, scan.BookmarkObject(form, 81, false)); !strings.Contains(got, `"object":null`) {
		t.Errorf("bookmark %s", got)
	}
	other := printed(t, `[{"name":"Name"}]`, `"cells":["a"]`, podObject)
	if _, err := s.Event(kube.Modified, other); !errors.Is(err, ErrColumns) {
		t.Errorf("with other columns: %v", err)
	}
}

// TestClocks: cells that depend on the time are as of the time of the answer.
func TestClocks(t *testing.T) {
	job := kube.Resource{Group: "batch", Version: "v1", Name: "jobs"}
	events := kube.Resource{Version: "v1", Name: "events"}
	widgets := kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}
	at := func(field, value string) string {
		return fmt.Sprintf(`{"kind":"X","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"},%q:%s}`, field, value)
	}
	const customObject = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"creationTimestamp":"2026-11-21T12:00:00Z","name":"a","resourceVersion":"5"}}`
	for _, test := range []struct {
		resource             kube.Resource
		column, object, cell string
		want                 string
	}{
		{job, `{"name":"Duration"}`, at("status", `{"startTime":"2026-11-21T12:59:30Z"}`), `"1s"`, `"30s"`},
		{job, `{"name":"Duration"}`, at("status", `{"startTime":"2026-11-21T12:59:30Z","completionTime":"2026-11-21T12:59:31Z"}`), `"1s"`, `"1s"`},
		{job, `{"name":"Duration"}`, at("status", `{}`), `""`, `""`},
		{kube.Resource{Group: "batch", Version: "v1", Name: "cronjobs"}, `{"name":"Last Schedule"}`, at("status", `{"lastScheduleTime":"2026-11-21T11:00:00Z"}`), `"1s"`, `"120m"`},
		{events, `{"name":"Last Seen"}`, at("series", `{"lastObservedTime":"2026-11-21T12:59:00.123456Z"}`), `"1s"`, `"59s"`},
		{events, `{"name":"Last Seen"}`, at("lastTimestamp", `"2026-11-21T12:59:00Z"`), `"1s"`, `"60s"`},
		{events, `{"name":"First Seen"}`, at("firstTimestamp", `null`), `"\u003cunknown\u003e"`, `"\u003cunknown\u003e"`},
		{widgets, `{"name":"Made","type":"date","description":"Custom resource definition column (in JSONPath format): .spec.made"}`, at("spec", `{"made":"2026-11-20T13:00:00Z"}`), `"1s"`, `"24h"`},
		{widgets, `{"name":"Made","type":"date","description":"Custom resource definition column (in JSONPath format): .spec.made"}`, at("spec", `{"made":"nonsense"}`), `"\u003cinvalid\u003e"`, `"\u003cinvalid\u003e"`},
		{widgets, `{"name":"Made","type":"date","description":"Custom resource definition column (in JSONPath format): .spec.made"}`, at("spec", `{}`), `null`, `null`},
		{widgets, `{"name":"Made","type":"date","description":"when it was made"}`, at("spec", `{"made":"2026-11-20T13:00:00Z"}`), `"1s"`, `"24h"`},
		{widgets, `{"name":"Unknown","type":"date","description":"nobody knows"}`, at("spec", `{}`), `null`, ""},
		{widgets, `{"name":"List","type":"date","description":"Custom resource definition column (in JSONPath format): .spec.x[0]"}`, at("spec", `{}`), `null`, ""},
		// Columns of a custom resource that show no date may look like an age.
		{widgets, `{"name":"Every","description":"Custom resource definition column (in JSONPath format): .spec.every"}`, at("spec", `{}`), `"5m"`, `"5m"`},
		{widgets, `{"name":"Age","description":"Custom resource definition column (in JSONPath format): .spec.age"}`, podObject, `"5m"`, `"5m"`},
		{widgets, `{"name":"Text","type":"string","description":"as the definition says"}`, podObject, `"5m"`, `"5m"`},
		{widgets, `{"name":"Other","type":"string","description":"nobody knows"}`, podObject, `"5m"`, ""},
		{widgets, `{"name":"Age","type":"string","description":"nobody knows"}`, podObject, `"5m"`, `"60m"`},
		{widgets, `{"name":"Age","type":"integer","description":"in years"}`, customObject, `42`, `42`},
		{widgets, `{"name":"Age","type":"string","description":"nobody knows"}`, customObject, `"5m"`, ""},
		{widgets, `{"name":"Text","type":"date","description":"not as the definition says"}`, podObject, `"5m"`, ""},
		{podResource, `{"name":"Created At","type":"date","description":` + marshal((metav1.ObjectMeta{}).SwaggerDoc()["creationTimestamp"]) + `}`, podObject, `"2026-11-21T12:00:00Z"`, `"2026-11-21T12:00:00Z"`},
		{widgets, `{"name":"Age","type":"date","description":` + marshal((metav1.ObjectMeta{}).SwaggerDoc()["creationTimestamp"]) + `}`, podObject, `"1s"`, `"60m"`},
		{podResource, `{"name":"Ready"}`, at("spec", `{}`), `"1/1"`, `"1/1"`},
		{podResource, `{"name":"Uptime"}`, at("spec", `{}`), `"3d4h"`, ""},
		{podResource, `{"name":"Uptime"}`, at("spec", `{}`), `"2 (5m ago)"`, ""},
		{podResource, `{"name":"Uptime"}`, at("spec", `{}`), `"Started (5m ago)"`, ""},
		{podResource, `{"name":"Uptime"}`, at("spec", `{}`), `"5m ago"`, ""},
		{podResource, `{"name":"Uptime"}`, at("spec", `{}`), `"in 3d4h"`, ""},
		{podResource, `{"name":"Uptime"}`, at("spec", `{}`), `"long ago"`, `"long ago"`},
		{podResource, `{"name":"Restarts"}`, at("spec", `{}`), `"2"`, `"2"`},
		{podResource, `{"name":"Count"}`, at("spec", `{}`), `7`, `7`},
	} {
		e := tableEncoder(test.resource)
		e.DatePath = func(column string) ([]string, bool) {
			path, ok := map[string][]string{"Made": {"spec", "made"}, "Text": nil}[column]
			return path, ok
		}
		columns := "[" + test.column + "]"
		o := printed(t, columns, `"cells":[`+test.cell+`]`, test.object)
		b, err := e.List(Form{View: Table, Version: "v1", Include: IncludeNone}, ListHead{RV: 1, Columns: columns}, []*scan.Object{o})
		if (test.want == "") != errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", test.column, err)
		} else if err == nil && !strings.Contains(b.String(), `{"cells":[`+test.want+`],"object":null}`) {
			t.Errorf("%s %s: %s, want %s", test.column, test.object, b, test.want)
		}
	}
}

// TestDefaultStorageClass: a list marks the newest StorageClass that is annotated as the
// default, and keeps the marks of an API server that has them in each row; an object has
// what the API server printed.
func TestDefaultStorageClass(t *testing.T) {
	e := tableEncoder(kube.Resource{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses"})
	const columns = `[{"name":"Name"},{"name":"Provisioner"}]`
	class := func(name, cell, created, annotation string) *scan.Object {
		return printed(t, columns, `"cells":["`+cell+`","p"]`, `{"kind":"StorageClass","apiVersion":"storage.k8s.io/v1","metadata":{"name":"`+name+
			`","resourceVersion":"5","creationTimestamp":"2026-11-21T12:00:0`+created+`Z","annotations":{"x":"y"`+annotation+`}}}`)
	}
	const is, was = `,"storageclass.kubernetes.io/is-default-class":"true"`, `,"storageclass.beta.kubernetes.io/is-default-class":"true"`
	for name, test := range map[string]struct {
		items []*scan.Object
		want  []string
	}{
		"none":        {[]*scan.Object{class("a", "a", "1", ""), class("b", "b", "1", strings.Replace(is, "true", "false", 1))}, []string{"a", "b"}},
		"one":         {[]*scan.Object{class("a", "a", "9", ""), class("b", "b", "1", is)}, []string{"a", "b (default)"}},
		"newest":      {[]*scan.Object{class("a", "a", "1", is), class("b", "b", "2", was), class("c", "c", "1", is)}, []string{"a", "b (default)", "c"}},
		"same second": {[]*scan.Object{class("a", "a", "1", ""), class("b", "b", "1", is), class("c", "c", "1", is)}, []string{"a", "b (default)", "c"}},
		"marked":      {[]*scan.Object{class("a", "a (default)", "1", is), class("b", "b (default)", "2", is)}, []string{"a (default)", "b (default)"}},
	} {
		got := listOf(t, e, Form{View: Table, Version: "v1", Include: IncludeNone}, ListHead{RV: 9, Columns: columns}, test.items)
		for _, cell := range test.want {
			if !strings.Contains(got, `{"cells":["`+cell+`","p"],`) {
				t.Errorf("%s: no row %q in %s", name, cell, got)
			}
		}
		one, err := e.Object(Form{View: Table, Version: "v1", Include: IncludeNone}, test.items[1])
		if err != nil {
			t.Fatal(err)
		}
		if before, _, _ := strings.Cut(test.items[1].Row, ","); !strings.Contains(one.String(), before) {
			t.Errorf("%s: %s has no %s", name, one, before)
		}
	}
}

// TestDateMoves: a changed definition can change the field that a column shows,
// without a change of the columns.
func TestDateMoves(t *testing.T) {
	const columns = `[{"name":"Made","type":"date","description":"when it was made"}]`
	o := printed(t, columns, `"cells":["1s"]`, `{"kind":"X","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"},"spec":{"made":"2026-11-20T13:00:00Z","sold":"2026-11-21T12:59:00Z"}}`)
	e := tableEncoder(kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"})
	for field, want := range map[string]string{"made": "24h", "sold": "60s"} {
		e.DatePath = func(string) ([]string, bool) { return []string{"spec", field}, true }
		got := listOf(t, e, Form{View: Table, Version: "v1", Include: IncludeNone}, ListHead{RV: 1, Columns: columns}, []*scan.Object{o})
		if !strings.Contains(got, `{"cells":["`+want+`"],`) {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
}

// TestLastRestart follows a Pod's life by the API server's rules.
func TestLastRestart(t *testing.T) {
	const (
		old = `"lastState":{"terminated":{"finishedAt":"2026-11-21T10:00:00Z"}}`
		mid = `"lastState":{"terminated":{"finishedAt":"2026-11-21T11:00:00Z"}}`
		new = `"lastState":{"terminated":{"finishedAt":"2026-11-21T12:00:00Z"}}`
	)
	sidecar := `"spec":{"initContainers":[{"name":"s","restartPolicy":"Always"},{"name":"i"}],"containers":[]}`
	for _, test := range []struct{ name, spec, status, want string }{
		{"waits for an init container", `"spec":{"containers":[]}`, `"initContainerStatuses":[{"name":"i",` + mid + `,"state":{"running":{}}}],"containerStatuses":[{"name":"c",` + new + `}]`, "11:00"},
		{"the init containers after it do not count", `"spec":{"containers":[]}`, `"initContainerStatuses":[{"name":"i",` + old + `,"state":{"running":{}}},{"name":"j",` + new + `,"state":{}}]`, "10:00"},
		{"initialized before", `"spec":{"containers":[]}`, `"conditions":[{"type":"Initialized","status":"True"}],"initContainerStatuses":[{"name":"i",` + new + `,"state":{"running":{}}}],"containerStatuses":[{"name":"c",` + old + `}]`, "10:00"},
		{"a sidecar counts", sidecar, `"initContainerStatuses":[{"name":"s","started":true,` + mid + `,"state":{"running":{}}},{"name":"i",` + new + `,"state":{"terminated":{"exitCode":0}}}],"containerStatuses":[{"name":"c",` + old + `}]`, "11:00"},
	} {
		o := parse(t, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"},`+test.spec+`,"status":{`+test.status+`}}`)
		if got, err := lastRestart(o); err != nil || got != "2026-11-21T"+test.want+":00Z" {
			t.Errorf("%s: %s %v", test.name, got, err)
		}
	}
}
