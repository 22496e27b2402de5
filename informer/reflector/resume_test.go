// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/difference"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
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
		answers []script.Answer
		want    []string
		relists map[string]int
	}{{
		"a watch from the head",
		10, Resume{List: pods("")},
		[]script.Answer{script.At(15), {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 12) + script.Bookmark(20, false)}},
		[]string{"MODIFIED ns/a@12", "bookmark 20"},
		map[string]int{},
	}, {
		"one RV lower after a deletion: others may share its RV",
		10, Resume{List: pods(""), AfterDelete: true},
		[]script.Answer{script.At(15), {Want: script.From(9), Stall: true, Body: script.Event("DELETED", "b", 10)}},
		[]string{"DELETED ns/b@10"},
		map[string]int{},
	}, {
		"the upstream is unavailable at first",
		10, Resume{List: pods("")},
		[]script.Answer{{Want: "limit=1", Code: 503, Body: script.Status(503)}, script.At(15), {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 12)}},
		[]string{"MODIFIED ns/a@12"},
		map[string]int{},
	}, {
		"the events after the head are compacted",
		10, Resume{List: pods("")},
		[]script.Answer{script.At(15), {Want: script.From(10), Code: 410, Body: script.Status(410)},
			{Want: script.Streaming, Body: script.Event("ADDED", "a", 12) + script.Bookmark(15, true), Stall: true}},
		[]string{"list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"expired": 1},
	}, {
		"the upstream is behind the head",
		10, Resume{List: pods("")},
		[]script.Answer{script.At(7), {Want: script.Streaming, Body: script.Event("ADDED", "a", 3) + script.Bookmark(7, true), Stall: true}},
		[]string{"list 7 [ns/a@3]", "bookmark 7"},
		map[string]int{"diverged": 1},
	}, {
		"the table columns have changed",
		10, Resume{List: pods(`[{"name":"Name"}]`)},
		[]script.Answer{script.At(15), {Want: script.From(10), Body: script.Event("MODIFIED", "a", 12)},
			{Want: script.Streaming, Body: script.Event("ADDED", "a", 12) + script.Bookmark(15, true), Stall: true}},
		[]string{"list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"schema": 1},
	}, {
		"without a head",
		0, Resume{List: pods("")},
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10"},
		map[string]int{"initial": 1},
	}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				sink := &flushCounter{recordingSink: recordingSink{head: test.head}}
				up := &script.Upstream{T: t, Answers: test.answers}
				u, _ := url.Parse("http://api/pods")
				r := New(Objects(false), sink, Options{Transport: up, URL: u, Resume: &test.resume})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if d := difference.Of(test.want, sink.log); d != "" {
					t.Errorf("%s", d)
				}
				if d := difference.Of(test.relists, r.Status().Relists); d != "" {
					t.Errorf("relists %s", d)
				}
				if sink.n == 0 || len(up.Answers) > 0 {
					t.Errorf("%d flushes, %d answers were not requested", sink.n, len(up.Answers))
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
	again := script.Event("MODIFIED", "a", 12) + script.Event("DELETED", "b", 15)
	relist := []script.Answer{script.At(30), {Want: script.Streaming, Body: script.Event("ADDED", "a", 12) + script.Bookmark(30, true), Stall: true}}
	listed := []string{"list 30 [ns/a@12]", "bookmark 30"}
	for _, test := range []struct {
		name    string
		tail    []Known
		newest  *Known
		answers []script.Answer
		want    []string
	}{{
		"the last events are repeated",
		tail, nil,
		[]script.Answer{script.At(30), {Want: script.From(11), Stall: true, Body: again + script.Event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"without new events",
		tail, nil,
		[]script.Answer{script.At(30), {Want: script.From(11), Stall: true, Body: again + script.Bookmark(18, false) + script.Bookmark(20, false)}},
		[]string{"bookmark 20"},
	}, {
		"the stream is cut before all are repeated",
		tail, nil,
		[]script.Answer{script.At(30), {Want: script.From(11), Body: again[:len(again)/2-3], Then: io.ErrUnexpectedEOF},
			script.At(30), {Want: script.From(11), Stall: true, Body: again + script.Event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"with an unknown deletion at the head",
		[]Known{gone("b", head)}, nil,
		[]script.Answer{script.At(30), {Want: script.From(19), Stall: true, Body: script.Event("DELETED", "b", head) + script.Event("DELETED", "c", head)}},
		[]string{"DELETED ns/c@20"},
	}, {
		"an unknown event among them",
		tail, nil,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: script.Event("MODIFIED", "a", 12) + script.Event("ADDED", "c", 14) + script.Event("DELETED", "b", 15)}}, relist[1:]...),
		listed,
	}, {
		"an unknown event after them",
		tail, nil,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: again + script.Event("DELETED", "a", 16)}}, relist[1:]...),
		listed,
	}, {
		"with another UID",
		tail, nil,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: strings.ReplaceAll(again, `"uid":"u"`, `"uid":"v"`)}}, relist[1:]...),
		listed,
	}, {
		"one of them is missing",
		tail, nil,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: script.Event("MODIFIED", "a", 12) + script.Event("ADDED", "c", 23)}}, relist[1:]...),
		listed,
	}, {
		"all of them are missing",
		tail, nil,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: script.Bookmark(25, false)}}, relist[1:]...),
		listed,
	}, {
		"they are compacted",
		tail, nil,
		append([]script.Answer{script.At(30), {Want: script.From(11), Code: 410, Body: script.Status(410)}, script.At(30), {Want: script.From(14), Code: 410, Body: script.Status(410)}}, relist...),
		listed,
	}, {
		"all but the last are compacted",
		tail, nil,
		[]script.Answer{script.At(30), {Want: script.From(11), Code: 410, Body: script.Status(410)}, script.At(30), {Want: script.From(14), Stall: true, Body: script.Event("DELETED", "b", 15) + script.Event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"one has another content",
		[]Known{known("a", 12), {"ns/b", "u", 15, true, 1}}, nil,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: again}, script.At(30), {Want: script.From(14), Body: script.Event("DELETED", "b", 15)}}, relist...),
		listed,
	}, {
		"they are compacted, as an ERROR in the stream says",
		tail, nil,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: `{"type":"ERROR","object":` + script.Status(410) + "}\n"}, script.At(30), {Want: script.From(14), Code: 410, Body: script.Status(410)}}, relist...),
		listed,
	}, {
		"no events are known, and that of the newest object is repeated",
		nil, &a12,
		[]script.Answer{script.At(30), {Want: script.From(11), Stall: true, Body: script.Event("MODIFIED", "a", 12) + script.Event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"no events are known, and a request fails at first",
		nil, &a12,
		[]script.Answer{script.At(30), {Want: script.From(11), Code: 503, Body: script.Status(503)}, script.At(30), {Want: script.From(11), Stall: true, Body: script.Event("MODIFIED", "a", 12) + script.Event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"no events are known, and others came and went before the head",
		nil, &a12,
		[]script.Answer{script.At(30), {Want: script.From(11), Stall: true, Body: script.Event("MODIFIED", "a", 12) + script.Event("MODIFIED", "b", 13) + script.Event("DELETED", "b", 14) +
			script.Event("DELETED", "d", 15) + script.Event("ADDED", "c", 23)}},
		[]string{"ADDED ns/c@23"},
	}, {
		"no events are known, and an unknown object is left before the head",
		nil, &a12,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: script.Event("MODIFIED", "a", 12) + script.Event("MODIFIED", "b", 13) + script.Event("ADDED", "c", 23)}}, relist[1:]...),
		listed,
	}, {
		"no events are known, and a known object is changed before the head",
		nil, &a12,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: script.Event("MODIFIED", "a", 12) + script.Event("MODIFIED", "held", 13)}}, relist[1:]...),
		listed,
	}, {
		"no events are known, and a known object is deleted before the head",
		nil, &a12,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: script.Event("MODIFIED", "a", 12) + script.Event("DELETED", "held", 13)}}, relist[1:]...),
		listed,
	}, {
		"no events are known, and the newest object has another UID",
		nil, &a12,
		append([]script.Answer{script.At(30), {Want: script.From(11), Body: strings.ReplaceAll(script.Event("MODIFIED", "a", 12), `"uid":"u"`, `"uid":"v"`)}}, relist[1:]...),
		listed,
	}, {
		"the collection was empty, and is",
		nil, nil,
		[]script.Answer{script.At(30), {Want: script.From(head), Stall: true, Body: script.Event("ADDED", "e", 26)}},
		[]string{"ADDED ns/e@26"},
	}, {
		"the collection was empty, and is not",
		nil, nil,
		append([]script.Answer{{Want: "limit=1", Body: script.Page(30, "", script.Pod("a", 12))}}, relist...),
		listed,
	}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				sink := &recordingSink{head: head, held: map[kube.Key]bool{"ns/a": true, "ns/held": true}}
				up := &script.Upstream{T: t, Answers: test.answers}
				u, _ := url.Parse("http://api/api/v1/pods")
				onFailure := func(_ string, err error) { // the sink serves its state during a failure
					if errors.Is(err, errDiverged) || errors.Is(err, errExpired) {
						t.Errorf("reported as a failure: %v", err)
					}
				}
				r := New(Objects(false), sink, Options{Transport: up, URL: u, Failed: onFailure, Resume: &Resume{
					List: &scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true}, Tail: test.tail,
					Newest: func(context.Context) (*Known, error) { return test.newest, nil },
				}})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if d := difference.Of(test.want, sink.log); d != "" {
					t.Errorf("%s", d)
				}
				if len(up.Answers) > 0 {
					t.Errorf("%d answers were not requested", len(up.Answers))
				}
			})
		})
	}
}

// TestResumeOtherCollection: another collection has taken the resource's name.
func TestResumeOtherCollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, _ := url.Parse("http://api/pods")
		r := New(Objects(false), &recordingSink{head: 10}, Options{
			Transport: &script.Upstream{T: t, Answers: []script.Answer{script.At(15)}}, URL: u,
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
