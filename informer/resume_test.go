// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

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

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestResume: a sink that has a head already is not told a list, unless the
// head is not to be gone on from.
func TestResume(t *testing.T) {
	pods := func(columns string) *scan.List {
		return &scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true, Columns: columns}
	}
	for _, test := range []struct {
		name    string
		head    uint64
		resume  Resume
		answers []answer
		want    []string
		relists map[string]int
	}{{
		"a watch from the head",
		10, Resume{List: pods("")},
		[]answer{at(15), {want: from(10), stall: true, body: event("MODIFIED", "a", 12) + bookmark(20, false)}},
		[]string{"MODIFIED ns/a@12", "bookmark 20"},
		map[string]int{},
	}, {
		"from the RV before, where the last event was a deletion that others may follow",
		10, Resume{List: pods(""), AfterDelete: true},
		[]answer{at(15), {want: from(9), stall: true, body: event("DELETED", "b", 10)}},
		[]string{"DELETED ns/b@10"},
		map[string]int{},
	}, {
		"nobody is there at first",
		10, Resume{List: pods("")},
		[]answer{{want: "limit=1", code: 503, body: status(503)}, at(15), {want: from(10), stall: true, body: event("MODIFIED", "a", 12)}},
		[]string{"MODIFIED ns/a@12"},
		map[string]int{},
	}, {
		"the history behind the head has gone",
		10, Resume{List: pods("")},
		[]answer{at(15), {want: from(10), code: 410, body: status(410)},
			{want: streaming, body: event("ADDED", "a", 12) + bookmark(15, true), stall: true}},
		[]string{"list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"expired": 1},
	}, {
		"the upstream has gone back",
		10, Resume{List: pods("")},
		[]answer{at(7), {want: streaming, body: event("ADDED", "a", 3) + bookmark(7, true), stall: true}},
		[]string{"list 7 [ns/a@3]", "bookmark 7"},
		map[string]int{"diverged": 1},
	}, {
		"objects were printed in other columns",
		10, Resume{List: pods(`[{"name":"Name"}]`)},
		[]answer{at(15), {want: from(10), body: event("MODIFIED", "a", 12)},
			{want: streaming, body: event("ADDED", "a", 12) + bookmark(15, true), stall: true}},
		[]string{"list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"schema": 1},
	}, {
		"there is no head",
		0, Resume{List: pods("")},
		[]answer{probe, synced, {want: from(10), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10"},
		map[string]int{"initial": 1},
	}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				sink := &flushes{recorder: recorder{head: test.head}}
				up := &script{t: t, answers: test.answers}
				u, _ := url.Parse("http://api/pods")
				r := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: sink, Resume: &test.resume})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(test.want, sink.log); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if diff := cmp.Diff(test.relists, r.Status().Relists); diff != "" {
					t.Errorf("relists (-want +got)\n%s", diff)
				}
				if sink.n == 0 || len(up.answers) > 0 {
					t.Errorf("%d flushes, %d answers were not asked for", sink.n, len(up.answers))
				}
			})
		})
	}
}

// TestResumeDoubt: that the upstream's RV is not below the head does not show that
// its history is the one known.
func TestResumeDoubt(t *testing.T) {
	const head = 20
	known := func(name string, rv uint64) Known { return Known{kube.MakeKey("ns", name), "u", rv, false} }
	gone := func(name string, rv uint64) Known { return Known{kube.MakeKey("ns", name), "u", rv, true} }
	tail := []Known{known("a", 12), gone("b", 15)}
	again := event("MODIFIED", "a", 12) + event("DELETED", "b", 15)
	relist := []answer{at(30), {want: streaming, body: event("ADDED", "a", 12) + bookmark(30, true), stall: true}}
	listed := []string{"list 30 [ns/a@12]", "bookmark 30"}
	object := func(name string, rv int) answer { return answer{body: podJSON(name, rv)} }
	other := answer{body: strings.Replace(podJSON("c", 9), `"uid":"u"`, `"uid":"v"`, 1)}
	none := answer{code: 404, body: status(404)}
	for _, test := range []struct {
		name    string
		tail    []Known
		newest  []Known
		answers []answer
		want    []string
	}{{
		"the last events come again",
		tail, nil,
		[]answer{at(30), {want: from(11), stall: true, body: again + event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"and nothing else",
		tail, nil,
		[]answer{at(30), {want: from(11), stall: true, body: again + bookmark(18, false) + bookmark(20, false)}},
		[]string{"bookmark 20"},
	}, {
		"a stream that is cut before they have come",
		tail, nil,
		[]answer{at(30), {want: from(11), body: again[:len(again)/2-3], then: io.ErrUnexpectedEOF},
			at(30), {want: from(11), stall: true, body: again + event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"and one at the same RV, which was not known",
		[]Known{gone("b", head)}, nil,
		[]answer{at(30), {want: from(19), stall: true, body: event("DELETED", "b", head) + event("DELETED", "c", head)}},
		[]string{"DELETED ns/c@20"},
	}, {
		"another event among them",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: event("MODIFIED", "a", 12) + event("ADDED", "c", 14) + event("DELETED", "b", 15)}}, relist[1:]...),
		listed,
	}, {
		"another event behind them",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: again + event("DELETED", "a", 16)}}, relist[1:]...),
		listed,
	}, {
		"of another object of the name",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: strings.ReplaceAll(again, `"uid":"u"`, `"uid":"v"`)}}, relist[1:]...),
		listed,
	}, {
		"one of them is not there",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: event("MODIFIED", "a", 12) + event("ADDED", "c", 23)}}, relist[1:]...),
		listed,
	}, {
		"none of them is there",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: bookmark(25, false)}}, relist[1:]...),
		listed,
	}, {
		"they are not to be had any more: an object is there as it is known",
		tail, []Known{known("a", 12), known("c", 9), known("d", 8)},
		[]answer{at(30), {want: from(11), code: 410, body: status(410)}, object("a", 24), none, object("d", 8),
			{want: from(head), stall: true, body: event("ADDED", "e", 26)}},
		[]string{"ADDED ns/e@26"},
	}, {
		"the stream says so",
		tail, []Known{known("a", 12)},
		[]answer{at(30), {want: from(11), body: `{"type":"ERROR","object":` + status(410) + "}\n"}, object("a", 12),
			{want: from(head), stall: true, body: event("ADDED", "e", 26)}},
		[]string{"ADDED ns/e@26"},
	}, {
		"no events are known, and nobody is there at first",
		nil, []Known{known("a", 12)},
		[]answer{at(30), {code: 503, body: status(503)}, at(30), object("a", 12), {want: from(head), stall: true, body: event("ADDED", "e", 26)}},
		[]string{"ADDED ns/e@26"},
	}, {
		"an object has a version that is not known",
		nil, []Known{known("d", 8), known("c", 9)},
		append([]answer{at(30), object("d", 8), object("c", 10)}, relist[1:]...),
		listed,
	}, {
		"another object has the name",
		nil, []Known{known("c", 9)},
		append([]answer{at(30), other}, relist[1:]...),
		listed,
	}, {
		"all have changed, have gone, or are not told",
		nil, []Known{known("a", 12), known("c", 9), known("d", 8)},
		append([]answer{at(30), object("a", 24), none, {code: 403, body: status(403)}}, relist...),
		listed,
	}, {
		"there was nothing, and is nothing",
		nil, []Known{},
		[]answer{at(30), {want: from(head), stall: true, body: event("ADDED", "e", 26)}},
		[]string{"ADDED ns/e@26"},
	}, {
		"there was nothing, and is something",
		nil, []Known{},
		append([]answer{{want: "limit=1", body: page(30, "", podJSON("a", 12))}}, relist...),
		listed,
	}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				sink := &recorder{head: head}
				up := &script{t: t, answers: test.answers}
				u, _ := url.Parse("http://api/api/v1/pods")
				failed := func(err error) { // what is known would be served meanwhile
					if errors.Is(err, errDiverged) || errors.Is(err, errExpired) {
						t.Errorf("failed: %v", err)
					}
				}
				r := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: sink, onFailure: failed, Resume: &Resume{
					List: &scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true}, Tail: test.tail,
					Newest: func(context.Context) ([]Known, error) { return test.newest, nil },
				}})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(test.want, sink.log); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if len(up.answers) > 0 {
					t.Errorf("%d answers were not asked for", len(up.answers))
				}
			})
		})
	}
}

// TestResumePaths: where the metadata of an object is asked for.
func TestResumePaths(t *testing.T) {
	for _, test := range []struct{ url, key, want string }{
		{"http://api/api/v1/pods?x=y", "ns/a", "/api/v1/namespaces/ns/pods/a"},
		{"http://api/prefix/apis/rbac/v1/clusterroles", "system:a", "/prefix/apis/rbac/v1/clusterroles/system:a"},
	} {
		var asked *http.Request
		u, _ := url.Parse(test.url)
		r := NewReflector(ReflectorOptions{URL: u, Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			asked = req
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(podJSON("a", 7)))}, nil
		})})
		o, err := r.metadata(t.Context(), kube.Key(test.key))
		if err != nil || o.RV != 7 || asked.URL.Path != test.want || asked.URL.RawQuery != "" || asked.Header.Get("Accept") != acceptMetadata {
			t.Errorf("%v: %v, %v", test, asked, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestResumeAnother: what has the collection's name is another one.
func TestResumeAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, _ := url.Parse("http://api/pods")
		r := NewReflector(ReflectorOptions{
			Transport: &script{t: t, answers: []answer{at(15)}}, URL: u, Sink: &recorder{head: 10},
			Resume: &Resume{List: &scan.List{Kind: "WidgetList", APIVersion: "v1", ItemKind: "Widget"}},
		})
		refused, ok := r.Run(t.Context()).(*RefusedError)
		if !ok || refused.Code != 404 {
			t.Errorf("%v", refused)
		}
	})
}

// flushes is a recorder that counts flushes.
type flushes struct {
	recorder
	n int
}

func (f *flushes) Flush() { f.n++; f.recorder.Flush() }
