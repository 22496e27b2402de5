// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestResume: a reflector whose sink has a head begins with a watch, and lists only
// if the head cannot be resumed from.
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
		"one RV lower after a deletion: others may share its RV",
		10, Resume{List: pods(""), AfterDelete: true},
		[]answer{at(15), {want: from(9), stall: true, body: event("DELETED", "b", 10)}},
		[]string{"DELETED ns/b@10"},
		map[string]int{},
	}, {
		"the upstream is unavailable at first",
		10, Resume{List: pods("")},
		[]answer{{want: "limit=1", code: 503, body: status(503)}, at(15), {want: from(10), stall: true, body: event("MODIFIED", "a", 12)}},
		[]string{"MODIFIED ns/a@12"},
		map[string]int{},
	}, {
		"the events after the head are compacted",
		10, Resume{List: pods("")},
		[]answer{at(15), {want: from(10), code: 410, body: status(410)},
			{want: streaming, body: event("ADDED", "a", 12) + bookmark(15, true), stall: true}},
		[]string{"list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"expired": 1},
	}, {
		"the upstream is behind the head",
		10, Resume{List: pods("")},
		[]answer{at(7), {want: streaming, body: event("ADDED", "a", 3) + bookmark(7, true), stall: true}},
		[]string{"list 7 [ns/a@3]", "bookmark 7"},
		map[string]int{"diverged": 1},
	}, {
		"the table columns have changed",
		10, Resume{List: pods(`[{"name":"Name"}]`)},
		[]answer{at(15), {want: from(10), body: event("MODIFIED", "a", 12)},
			{want: streaming, body: event("ADDED", "a", 12) + bookmark(15, true), stall: true}},
		[]string{"list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"schema": 1},
	}, {
		"without a head",
		0, Resume{List: pods("")},
		[]answer{probe, synced, {want: from(10), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10"},
		map[string]int{"initial": 1},
	}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				sink := &flushCounter{recordingSink: recordingSink{head: test.head}}
				up := &script{t: t, answers: test.answers}
				u, _ := url.Parse("http://api/pods")
				r := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: sink, Resume: &test.resume})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if d := difference(test.want, sink.log); d != "" {
					t.Errorf("%s", d)
				}
				if d := difference(test.relists, r.Status().Relists); d != "" {
					t.Errorf("relists %s", d)
				}
				if sink.n == 0 || len(up.answers) > 0 {
					t.Errorf("%d flushes, %d answers were not requested", sink.n, len(up.answers))
				}
			})
		})
	}
}

// TestResumeContinuity: an upstream whose RV is not below the head has to prove that its
// history is the one that the sink knows.
func TestResumeContinuity(t *testing.T) {
	const head = 20
	known := func(name string, rv uint64) Known { return Known{kube.MakeKey("ns", name), "u", rv, false, 0} }
	gone := func(name string, rv uint64) Known { return Known{kube.MakeKey("ns", name), "u", rv, true, 0} }
	a12 := known("a", 12)
	tail := []Known{a12, gone("b", 15)}
	again := event("MODIFIED", "a", 12) + event("DELETED", "b", 15)
	relist := []answer{at(30), {want: streaming, body: event("ADDED", "a", 12) + bookmark(30, true), stall: true}}
	listed := []string{"list 30 [ns/a@12]", "bookmark 30"}
	for _, test := range []struct {
		name    string
		tail    []Known
		newest  *Known
		answers []answer
		want    []string
	}{{
		"the last events are repeated",
		tail, nil,
		[]answer{at(30), {want: from(11), stall: true, body: again + event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"without new events",
		tail, nil,
		[]answer{at(30), {want: from(11), stall: true, body: again + bookmark(18, false) + bookmark(20, false)}},
		[]string{"bookmark 20"},
	}, {
		"the stream is cut before all are repeated",
		tail, nil,
		[]answer{at(30), {want: from(11), body: again[:len(again)/2-3], then: io.ErrUnexpectedEOF},
			at(30), {want: from(11), stall: true, body: again + event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"with an unknown deletion at the head",
		[]Known{gone("b", head)}, nil,
		[]answer{at(30), {want: from(19), stall: true, body: event("DELETED", "b", head) + event("DELETED", "c", head)}},
		[]string{"DELETED ns/c@20"},
	}, {
		"an unknown event among them",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: event("MODIFIED", "a", 12) + event("ADDED", "c", 14) + event("DELETED", "b", 15)}}, relist[1:]...),
		listed,
	}, {
		"an unknown event after them",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: again + event("DELETED", "a", 16)}}, relist[1:]...),
		listed,
	}, {
		"with another UID",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: strings.ReplaceAll(again, `"uid":"u"`, `"uid":"v"`)}}, relist[1:]...),
		listed,
	}, {
		"one of them is missing",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: event("MODIFIED", "a", 12) + event("ADDED", "c", 23)}}, relist[1:]...),
		listed,
	}, {
		"all of them are missing",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: bookmark(25, false)}}, relist[1:]...),
		listed,
	}, {
		"they are compacted",
		tail, nil,
		append([]answer{at(30), {want: from(11), code: 410, body: status(410)}, at(30), {want: from(14), code: 410, body: status(410)}}, relist...),
		listed,
	}, {
		"all but the last are compacted",
		tail, nil,
		[]answer{at(30), {want: from(11), code: 410, body: status(410)}, at(30), {want: from(14), stall: true, body: event("DELETED", "b", 15) + event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"one has another content",
		[]Known{known("a", 12), {"ns/b", "u", 15, true, 1}}, nil,
		append([]answer{at(30), {want: from(11), body: again}, at(30), {want: from(14), body: event("DELETED", "b", 15)}}, relist...),
		listed,
	}, {
		"they are compacted, as an ERROR in the stream says",
		tail, nil,
		append([]answer{at(30), {want: from(11), body: `{"type":"ERROR","object":` + status(410) + "}\n"}, at(30), {want: from(14), code: 410, body: status(410)}}, relist...),
		listed,
	}, {
		"no events are known, and that of the newest object is repeated",
		nil, &a12,
		[]answer{at(30), {want: from(11), stall: true, body: event("MODIFIED", "a", 12) + event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"no events are known, and a request fails at first",
		nil, &a12,
		[]answer{at(30), {want: from(11), code: 503, body: status(503)}, at(30), {want: from(11), stall: true, body: event("MODIFIED", "a", 12) + event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"no events are known, and others came and went before the head",
		nil, &a12,
		[]answer{at(30), {want: from(11), stall: true, body: event("MODIFIED", "a", 12) + event("MODIFIED", "b", 13) + event("DELETED", "b", 14) +
			event("DELETED", "d", 15) + event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"no events are known, and an unknown object is left before the head",
		nil, &a12,
		append([]answer{at(30), {want: from(11), body: event("MODIFIED", "a", 12) + event("MODIFIED", "b", 13) + event("ADDED", "c", 23)}}, relist[1:]...),
		listed,
	}, {
		"no events are known, and a known object is changed before the head",
		nil, &a12,
		append([]answer{at(30), {want: from(11), body: event("MODIFIED", "a", 12) + event("MODIFIED", "held", 13)}}, relist[1:]...),
		listed,
	}, {
		"no events are known, and a known object is deleted before the head",
		nil, &a12,
		append([]answer{at(30), {want: from(11), body: event("MODIFIED", "a", 12) + event("DELETED", "held", 13)}}, relist[1:]...),
		listed,
	}, {
		"no events are known, and the newest object has another UID",
		nil, &a12,
		append([]answer{at(30), {want: from(11), body: strings.ReplaceAll(event("MODIFIED", "a", 12), `"uid":"u"`, `"uid":"v"`)}}, relist[1:]...),
		listed,
	}, {
		"the collection was empty, and is",
		nil, nil,
		[]answer{at(30), {want: from(head), stall: true, body: event("ADDED", "e", 26)}},
		[]string{"ADDED ns/e@26"},
	}, {
		"the collection was empty, and is not",
		nil, nil,
		append([]answer{{want: "limit=1", body: page(30, "", podJSON("a", 12))}}, relist...),
		listed,
	}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				sink := &recordingSink{head: head, held: map[kube.Key]bool{"ns/a": true, "ns/held": true}}
				up := &script{t: t, answers: test.answers}
				u, _ := url.Parse("http://api/api/v1/pods")
				onFailure := func(_ string, err error) { // the sink serves its state during a failure
					if errors.Is(err, errDiverged) || errors.Is(err, errExpired) {
						t.Errorf("reported as a failure: %v", err)
					}
				}
				r := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: sink, onFailure: onFailure, Resume: &Resume{
					List: &scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true}, Tail: test.tail,
					Newest: func(context.Context) (*Known, error) { return test.newest, nil },
				}})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if d := difference(test.want, sink.log); d != "" {
					t.Errorf("%s", d)
				}
				if len(up.answers) > 0 {
					t.Errorf("%d answers were not requested", len(up.answers))
				}
			})
		})
	}
}

// TestResumeOtherCollection: another collection has taken the resource's name.
func TestResumeOtherCollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, _ := url.Parse("http://api/pods")
		r := NewReflector(ReflectorOptions{
			Transport: &script{t: t, answers: []answer{at(15)}}, URL: u, Sink: &recordingSink{head: 10},
			Resume: &Resume{List: &scan.List{Kind: "WidgetList", APIVersion: "v1", ItemKind: "Widget"}},
		})
		refused, ok := r.Run(t.Context()).(*RefusedError)
		if !ok || refused.Code != 404 {
			t.Errorf("%v", refused)
		}
	})
}

// A flushCounter is a recordingSink that counts flushes.
type flushCounter struct {
	recordingSink
	n int
}

func (f *flushCounter) Flush() { f.n++; f.recordingSink.Flush() }
