// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/script"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// printed converts the lines of a watch to Tables. Only the first has the columns.
func printed(columns, lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		typ, object, _ := strings.Cut(strings.TrimSpace(line), `,"object":`)
		fmt.Fprintf(&out, `%s,"object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":%s,"rows":[{"cells":["x"],"object":%s}]}}`+"\n",
			typ, columns, strings.TrimSuffix(object, "}"))
		columns = "null"
	}
	return out.String()
}

// A rowSink is a recordingSink that logs columns and rows too.
type rowSink struct{ recordingSink }

func (s *rowSink) End(l *scan.List) bool {
	s.log = append(s.log, "columns "+l.Columns)
	for _, o := range s.list {
		s.log = append(s.log, o.Row+" under "+o.Columns)
	}
	return s.recordingSink.End(l)
}

func (s *rowSink) Apply(typ kube.EventType, o *scan.Object) error {
	s.log = append(s.log, o.Row+" under "+o.Columns)
	return s.recordingSink.Apply(typ, o)
}

func runColumns(t *testing.T, answers ...script.Answer) ([]string, *Reflector[*scan.Object]) {
	t.Helper()
	up := &script.Upstream{T: t, Answers: answers}
	u, _ := url.Parse("http://upstream/api/v1/pods")
	sink := &rowSink{}
	r := New(Objects(true), sink, Options{Transport: up, URL: u})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	if err := r.Run(ctx); err != nil {
		t.Error(err)
	}
	if len(up.Answers) > 0 {
		t.Errorf("%d answers were not requested", len(up.Answers))
	}
	return sink.log, r
}

// TestColumns: each object comes with its row, and changed columns lead to a list.
func TestColumns(t *testing.T) {
	tables := script.Streaming + " includeObject=Object"
	synctest.Test(t, func(t *testing.T) {
		log, r := runColumns(t, script.Probe,
			script.Answer{Want: tables, Body: printed(`["a"]`, script.Event("ADDED", "a", 3)+script.Bookmark(10, true)+script.Event("MODIFIED", "a", 11)), Due: true},
			script.Answer{Want: script.From(11) + " includeObject=Object", Body: printed(`["a"]`, script.Event("MODIFIED", "a", 12)), Due: true},
			script.Answer{Want: script.From(12), Body: printed(`["b"]`, script.Event("MODIFIED", "a", 13)), Lasts: minute},
			script.At(20), script.Answer{Want: tables, Body: printed(`["b"]`, script.Event("ADDED", "a", 13)+script.Bookmark(20, true)), Stall: true})
		want := []string{`columns ["a"]`, `"cells":["x"] under ["a"]`, "list 10 [ns/a@3]", "bookmark 10",
			`"cells":["x"] under ["a"]`, "MODIFIED ns/a@11", `"cells":["x"] under ["a"]`, "MODIFIED ns/a@12",
			`columns ["b"]`, `"cells":["x"] under ["b"]`, "list 20 [ns/a@13]", "bookmark 20"}
		if !slices.Equal(log, want) {
			t.Errorf("%q", log)
		}
		if n := r.Status().Relists["schema"]; n != 1 {
			t.Errorf("relists: %v", r.Status().Relists)
		}
	})
}

// TestColumnsOfPages: objects of paged lists have rows too.
func TestColumnsOfPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10"},"columnDefinitions":["a"],"rows":[{"cells":["x"],"object":` + script.Pod("a", 3) + `}]}`
		log, _ := runColumns(t, script.Probe, script.Answer{Want: script.Streaming, Code: 400, Body: script.Status(400)},
			script.At(10), script.Answer{Want: script.From(10), Body: printed(`["a"]`, script.Event("MODIFIED", "a", 12)), Stall: true},
			script.Answer{Want: "limit=500 includeObject=Object", Body: page})
		want := []string{`columns ["a"]`, `"cells":["x"] under ["a"]`, "list 10 [ns/a@3]", `"cells":["x"] under ["a"]`, "MODIFIED ns/a@12"}
		if !slices.Equal(log, want) {
			t.Errorf("%q", log)
		}
	})
}

// TestColumnsOfPagesOnly: Kubernetes 1.32 serves streaming lists of plain objects only, and
// Tables in lists and watches.
func TestColumnsOfPagesOnly(t *testing.T) {
	page := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10"},"columnDefinitions":["a"],"rows":[{"cells":["x"],"object":` + script.Pod("a", 3) + `}]}`
	for name, streamed := range map[string]string{"objects": script.Event("ADDED", "a", 3), "no objects": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, r := runColumns(t, script.Probe, script.Answer{Want: script.Streaming, Body: streamed + script.Bookmark(10, true), Stall: true},
					script.At(10), script.Answer{Want: script.From(10), Body: printed(`["a"]`, script.Event("MODIFIED", "a", 12)), Stall: true},
					script.Answer{Want: "limit=500 includeObject=Object", Body: page})
				want := []string{`columns ["a"]`, `"cells":["x"] under ["a"]`, "list 10 [ns/a@3]", `"cells":["x"] under ["a"]`, "MODIFIED ns/a@12"}
				if !slices.Equal(log, want) || r.Status().Relists["schema"] != 0 {
					t.Errorf("%q, relists: %v", log, r.Status().Relists)
				}
			})
		})
	}
}

// TestNoColumns: an upstream without Tables, or with Tables without objects.
func TestNoColumns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the list in pages might have had some
		log, _ := runColumns(t, script.Probe, script.Synced, script.At(10), script.Answer{Want: script.From(10), Stall: true},
			script.Answer{Want: "limit=500", Body: script.Page(10, "", script.Pod("a", 3))})
		if want := []string{"columns ", " under ", "list 10 [ns/a@3]"}; !slices.Equal(log, want) {
			t.Errorf("%q", log)
		}
	})
	want := []string{"columns ", " under ", "list 10 [ns/a@3]", "bookmark 10"}
	synctest.Test(t, func(t *testing.T) {
		bare := `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[{"cells":["x"],"object":null}]}}` + "\n"
		plain := script.Synced
		plain.Stall = true
		if log, _ := runColumns(t, script.Probe, script.Answer{Want: script.Streaming, Body: bare}, script.Probe, plain); !slices.Equal(log, want) {
			t.Errorf("%q", log)
		}
	})
}
