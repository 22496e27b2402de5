// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// TestResume: a sink that has a head already is not told a list, unless the
// head is not to be gone on from.
func TestResume(t *testing.T) {
	pods := func(columns string) *kube.List {
		return &kube.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true, Columns: columns}
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

// TestResumeAnother: what has the collection's name is another one.
func TestResumeAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, _ := url.Parse("http://api/pods")
		r := NewReflector(ReflectorOptions{
			Transport: &script{t: t, answers: []answer{at(15)}}, URL: u, Sink: &recorder{head: 10},
			Resume: &Resume{List: &kube.List{Kind: "WidgetList", APIVersion: "v1", ItemKind: "Widget"}},
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
