// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/difference"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestContinuity: after a watch that was cut, or ended early, the upstream has to prove
// that its history is the one that the sink knows: an etcd restored from a backup may
// have come past the head with other events.
func TestContinuity(t *testing.T) {
	cut := func(body ...string) script.Answer {
		return script.Answer{Want: script.From(10), Body: strings.Join(body, ""), Then: io.ErrUnexpectedEOF}
	}
	known := []string{script.Event("MODIFIED", "a", 12), script.Event("ADDED", "b", 14), script.Event("DELETED", "b", 15)}
	list := script.Event("ADDED", "a", 3) // that of the list
	relist := script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 25) + script.Bookmark(30, true)}
	listed := []string{"list 30 [ns/a@25]", "bookmark 30"}
	events := func(from, to int) (s string) {
		for rv := from; rv <= to; rv++ {
			s += script.Event("MODIFIED", "a", rv)
		}
		return s
	}
	gone := script.Event("DELETED", "b", 12) + script.Event("DELETED", "c", 12)
	for name, test := range map[string]struct {
		answers    []script.Answer // the first one follows the initial events
		events     []string        // after the list's; nil does not compare
		continuity []Continuity
	}{
		"the same events": {
			[]script.Answer{cut(known...), script.At(30), {Want: script.From(10), Stall: true, Body: strings.Join(known, "") + script.Event("ADDED", "c", 16)}},
			[]string{"MODIFIED ns/a@12", "ADDED ns/b@14", "DELETED ns/b@15", "ADDED ns/c@16"}, []Continuity{Doubtful, Proven},
		},
		"the same events, one of them twice": {
			[]script.Answer{cut(known[0], known[0], known[1]), script.At(30), {Want: script.From(10), Stall: true, Body: known[0] + known[0] + known[1] + script.Event("ADDED", "c", 16)}},
			[]string{"MODIFIED ns/a@12", "MODIFIED ns/a@12", "ADDED ns/b@14", "ADDED ns/c@16"}, []Continuity{Doubtful, Proven},
		},
		"an orderly end, but early": {
			[]script.Answer{{Want: script.From(10), Body: known[0], Lasts: time.Minute}, script.At(30), {Want: script.From(10), Stall: true, Body: known[0] + known[1]}},
			[]string{"MODIFIED ns/a@12", "ADDED ns/b@14"}, []Continuity{Doubtful, Proven},
		},
		"an orderly end, but early, right after the proof": {
			[]script.Answer{cut(known[0]), script.At(30), {Want: script.From(10), Body: known[0] + script.Bookmark(30, false), Lasts: 10 * time.Second},
				script.At(40), {Want: script.From(10), Stall: true, Body: known[0] + script.Event("ADDED", "b", 35)}},
			[]string{"MODIFIED ns/a@12", "bookmark 30", "ADDED ns/b@35"}, []Continuity{Doubtful, Proven, Doubtful, Proven},
		},
		"restored at an orderly end, but early, right after the proof": {
			[]script.Answer{cut(known[0]), script.At(30), {Want: script.From(10), Body: known[0] + known[1], Lasts: 10 * time.Second},
				script.At(30), {Want: script.From(10), Body: known[0] + script.Event("ADDED", "b", 13)}, script.At(30), relist},
			append([]string{"MODIFIED ns/a@12", "ADDED ns/b@14"}, listed...), []Continuity{Doubtful, Proven, Doubtful, Diverged},
		},
		"an orderly end that the server announced": {
			[]script.Answer{cut(known[0]), script.At(30), {Want: script.From(10), Body: known[0] + script.Bookmark(30, false), Lasts: 10 * time.Second, Header: http.Header{kube.TimeoutHeader: {"10"}}},
				{Want: script.From(30), Stall: true}},
			[]string{"MODIFIED ns/a@12", "bookmark 30"}, []Continuity{Doubtful, Proven},
		},
		"an orderly end when it is due, and the next watch is answered late": {
			[]script.Answer{{Want: script.From(10), Body: known[0], Due: true}, {Want: script.From(12), Wait: 2 * time.Second, Stall: true},
				script.At(30), {Want: script.From(10), Body: known[0], Due: true}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"an orderly end when it is due": {
			[]script.Answer{{Want: script.From(10), Body: known[0], Due: true}, {Want: script.From(12), Due: true}},
			[]string{"MODIFIED ns/a@12"}, nil,
		},
		"other events": {
			[]script.Answer{cut(known...), script.At(30), {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11) + script.Event("MODIFIED", "a", 25)}, script.At(30), relist},
			append([]string{"MODIFIED ns/a@12", "ADDED ns/b@14", "DELETED ns/b@15"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"an event of another type": {
			[]script.Answer{cut(known[0]), script.At(30), {Want: script.From(10), Body: script.Event("DELETED", "a", 12)}, script.At(30), relist},
			append([]string{"MODIFIED ns/a@12"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"another event between the last one and the head": {
			[]script.Answer{cut(known[0], script.Bookmark(20, false)), script.At(30), {Want: script.From(10), Body: known[0] + script.Event("ADDED", "c", 19)}, script.At(30), relist},
			append([]string{"MODIFIED ns/a@12", "bookmark 20"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"the last event is missing": {
			[]script.Answer{cut(known[0], known[1]), script.At(30), {Want: script.From(10), Body: known[0] + script.Event("MODIFIED", "a", 25)}, script.At(30), relist},
			append([]string{"MODIFIED ns/a@12", "ADDED ns/b@14"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"RVs below the head": {
			[]script.Answer{cut(known[0]), script.At(11), script.At(11), {Want: script.Streaming, Stall: true, Body: list + script.Bookmark(11, true)}},
			[]string{"MODIFIED ns/a@12", "list 11 [ns/a@3]", "bookmark 11"}, []Continuity{Doubtful, Diverged},
		},
		"the events are compacted": {
			[]script.Answer{cut(known[0]), script.At(30), {Want: script.From(10), Code: 410, Body: script.Status(410)}, script.At(30), relist},
			append([]string{"MODIFIED ns/a@12"}, listed...), []Continuity{Doubtful},
		},
		"no event, and that of the newest object": {
			[]script.Answer{cut(), script.At(30), {Want: script.From(2), Stall: true, Body: list + script.Event("MODIFIED", "a", 25)}},
			[]string{"MODIFIED ns/a@25"}, []Continuity{Doubtful, Proven},
		},
		"no event, and other objects came and went before the list": {
			[]script.Answer{cut(), script.At(30), {Want: script.From(2), Stall: true, Body: list + script.Event("ADDED", "b", 4) + script.Event("DELETED", "b", 5) + script.Event("DELETED", "c", 6) + script.Event("MODIFIED", "a", 25)}},
			[]string{"MODIFIED ns/a@25"}, []Continuity{Doubtful, Proven},
		},
		"no event, and that of the newest object is missing": {
			[]script.Answer{cut(), script.At(30), {Want: script.From(2), Body: script.Event("MODIFIED", "a", 25)}, script.At(30), relist},
			listed, []Continuity{Doubtful, Diverged},
		},
		"no event, and an object before the list that is not in it": {
			[]script.Answer{cut(), script.At(30), {Want: script.From(2), Body: list + script.Event("ADDED", "b", 4) + script.Event("MODIFIED", "a", 25)}, script.At(30), relist},
			listed, []Continuity{Doubtful, Diverged},
		},
		"no event, and an object of the list is deleted before it": {
			[]script.Answer{cut(), script.At(30), {Want: script.From(2), Body: list + script.Event("DELETED", "a", 4)}, script.At(30), relist},
			listed, []Continuity{Doubtful, Diverged},
		},
		"no event, and there was one": {
			[]script.Answer{cut(script.Bookmark(20, false)), script.At(30), {Want: script.From(2), Body: list + script.Event("ADDED", "c", 19)}, script.At(30), relist},
			append([]string{"bookmark 20"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"no event, and that of the newest object is compacted": {
			[]script.Answer{cut(), script.At(30), {Want: script.From(2), Code: 410, Body: script.Status(410)}, script.At(30), relist},
			listed, []Continuity{Doubtful},
		},
		"more events than are remembered": {
			[]script.Answer{cut(events(11, 30)), script.At(30), {Want: script.From(30 - maxTail), Stall: true, Body: events(31-maxTail, 31)}},
			nil, []Continuity{Doubtful, Proven},
		},
		"deletions that share an RV, one of them no longer remembered": {
			[]script.Answer{cut(gone + events(13, 12+maxTail-1)), script.At(30), {Want: script.From(11), Stall: true, Body: gone + events(13, 12+maxTail)}},
			nil, []Continuity{Doubtful, Proven},
		},
		"deletions that share the head's RV": {
			[]script.Answer{cut(script.Event("DELETED", "b", 12)), script.At(30), {Want: script.From(10), Stall: true, Body: gone}},
			[]string{"DELETED ns/b@12", "DELETED ns/c@12"}, []Continuity{Doubtful, Proven},
		},
		"another deletion at the head's RV": {
			[]script.Answer{cut(script.Event("DELETED", "b", 12)), script.At(30), {Want: script.From(10), Body: script.Event("DELETED", "c", 12) + script.Event("ADDED", "d", 13)}, script.At(30), relist},
			append([]string{"DELETED ns/b@12"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"a stream that is cut while it is proven": {
			[]script.Answer{cut(known...), script.At(30), cut(known[0]), script.At(30), {Want: script.From(10), Stall: true, Body: strings.Join(known, "") + script.Event("ADDED", "c", 16)}},
			[]string{"MODIFIED ns/a@12", "ADDED ns/b@14", "DELETED ns/b@15", "ADDED ns/c@16"}, []Continuity{Doubtful, Proven},
		},
		"a second cut after the first was proven": {
			[]script.Answer{cut(known[0]), script.At(30), cut(known[0], known[1]), script.At(30), {Want: script.From(10), Body: known[0] + script.Event("MODIFIED", "a", 14)}, script.At(30), relist},
			append([]string{"MODIFIED ns/a@12", "ADDED ns/b@14"}, listed...), []Continuity{Doubtful, Proven, Doubtful, Diverged},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				during := 4 * time.Minute // less than any timeoutSeconds
				if test.answers[0].Due {
					during = 11 * time.Minute // and one more
				}
				ctx, cancel := context.WithTimeout(t.Context(), during)
				defer cancel()
				sink := &recordingSink{}
				first := &test.answers[0]
				first.Want, first.Body = script.Streaming, script.Event("ADDED", "a", 3)+script.Bookmark(10, true)+first.Body
				up := &script.Upstream{T: t, Answers: append([]script.Answer{script.Probe}, test.answers...)}
				u, _ := url.Parse("http://upstream/api/v1/pods")
				var got []Continuity
				r := New(Objects(false), sink, honest(t, Options{Transport: up, URL: u, Continuity: settles(&got)}))
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if d := difference.Of(test.events, sink.log[2:]); test.events != nil && d != "" {
					t.Errorf("%s", d)
				}
				if d := difference.Of(test.continuity, got); d != "" {
					t.Errorf("continuity %s", d)
				}
				if len(up.Answers) > 0 {
					t.Errorf("%d answers were not requested", len(up.Answers))
				}
				if n := len(sink.log); test.events == nil && n < 10 {
					t.Errorf("only %d calls of the sink: %q", n, sink.log)
				}
			})
		})
	}
}

// TestContinuityOfPages: the watch that follows a list in pages is opened before the list.
// If it has ended before the list, the upstream may have been restored in between.
func TestContinuityOfPages(t *testing.T) {
	before := script.Event("MODIFIED", "a", 9) + script.Event("DELETED", "b", 10)
	const slow = "" // a list of six pages that lasts longer than the watch
	whole := []script.Answer{script.At(30), {Want: script.From(30), Stall: true, Body: script.Event("ADDED", "c", 31)}, {Want: "limit=500", Body: script.Page(30, "", script.Pod("a", 25))}}
	listed := []string{"list 30 [ns/a@25]", "ADDED ns/c@31"}
	for name, test := range map[string]struct {
		watch      script.Answer
		page       string
		answers    []script.Answer // after the page
		events     []string        // after the list's
		continuity []Continuity
	}{
		"the watch goes on": {
			script.Answer{Stall: true, Body: before + script.Event("MODIFIED", "a", 12)}, script.Page(10, "", script.Pod("a", 9)), nil,
			[]string{"MODIFIED ns/a@12"}, nil,
		},
		"the watch goes on, and is cut": {
			script.Answer{Body: before + script.Event("MODIFIED", "a", 12), Then: io.ErrUnexpectedEOF}, script.Page(10, "", script.Pod("a", 9)),
			[]script.Answer{script.At(30), {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"the watch was cut": {
			script.Answer{Body: before, Then: io.ErrUnexpectedEOF}, script.Page(10, "", script.Pod("a", 9)),
			[]script.Answer{script.At(10), {Want: script.From(8), Stall: true, Body: before + script.Event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"the watch ended when it was due": {
			script.Answer{Body: before, Due: true}, script.Page(10, "", script.Pod("a", 9)),
			[]script.Answer{{Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, nil,
		},
		"the watch ended when it was due, before the list": {
			script.Answer{Body: before, Due: true}, slow,
			[]script.Answer{script.At(10), {Want: script.From(8), Stall: true, Body: before + script.Event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"the watch is not answered": {
			script.Answer{Silent: true}, script.Page(10, "", script.Pod("a", 9)),
			[]script.Answer{script.At(10), {Want: script.From(8), Stall: true, Body: before + script.Event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"the watch begins after the list": {
			script.Answer{Stall: true, Body: script.Event("MODIFIED", "a", 12)}, script.Page(5, "", script.Pod("a", 4)),
			[]script.Answer{script.At(12), {Want: script.From(3), Stall: true, Body: script.Event("ADDED", "a", 4) + script.Event("ADDED", "c", 7) + script.Event("MODIFIED", "a", 12)}},
			[]string{"ADDED ns/c@7", "MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"between the two, the object was deleted and added again": {
			script.Answer{Stall: true, Body: script.Event("DELETED", "a", 9) + script.Event("ADDED", "a", 10) + script.Event("ADDED", "c", 12)}, script.Page(10, "", script.Pod("a", 10)), nil,
			[]string{"ADDED ns/c@12"}, nil,
		},
		"the watch lacks an object of the list": {
			script.Answer{Stall: true, Body: script.Event("MODIFIED", "a", 9) + script.Event("MODIFIED", "a", 12)}, script.Page(10, "", script.Pod("a", 9)+","+script.Pod("b", 10)),
			whole,
			listed, []Continuity{Doubtful},
		},
		"the watch lacks an event of the list": {
			script.Answer{Stall: true, Body: script.Event("MODIFIED", "a", 12)}, script.Page(10, "", script.Pod("a", 10)),
			whole,
			listed, []Continuity{Doubtful},
		},
		"the watch has deleted an object of the list": {
			script.Answer{Stall: true, Body: script.Event("DELETED", "a", 9) + script.Event("ADDED", "c", 12)}, script.Page(10, "", script.Pod("a", 7)),
			whole,
			listed, []Continuity{Doubtful},
		},
		"the list lacks an object of the watch": {
			script.Answer{Stall: true, Body: script.Event("ADDED", "b", 9) + script.Event("ADDED", "c", 12)}, script.Page(10, "", script.Pod("a", 7)),
			whole,
			listed, []Continuity{Doubtful},
		},
		"the watch was cut, the object is at the list's RV": {
			script.Answer{Then: io.ErrUnexpectedEOF, Body: script.Bookmark(8, false)}, script.Page(10, "", script.Pod("a", 10)),
			[]script.Answer{script.At(10), {Want: script.From(9), Stall: true, Body: script.Event("ADDED", "a", 10)}},
			nil, []Continuity{Doubtful, Proven},
		},
		"the watch was cut, the object is at the first RV": {
			script.Answer{Then: io.ErrUnexpectedEOF, Body: script.Bookmark(8, false)}, script.Page(10, "", script.Pod("a", 1)),
			[]script.Answer{script.At(10), {Want: script.From(1), Stall: true, Body: script.Bookmark(10, false)}},
			[]string{"bookmark 10"}, []Continuity{Doubtful, Proven},
		},
		"the watch was cut, there is no object": {
			script.Answer{Then: io.ErrUnexpectedEOF, Body: script.Bookmark(8, false)}, script.Page(10, ""),
			[]script.Answer{script.At(10), {Want: script.From(10), Stall: true, Body: script.Event("ADDED", "c", 31)}},
			[]string{"ADDED ns/c@31"}, []Continuity{Doubtful, Proven},
		},
		"the watch was cut, there was no object": {
			script.Answer{Then: io.ErrUnexpectedEOF, Body: script.Bookmark(8, false)}, script.Page(10, ""),
			append([]script.Answer{{Want: "limit=1", Body: script.Page(30, "", script.Pod("a", 25))}}, whole...),
			listed, []Continuity{Doubtful},
		},
		"restored, with another event before the list": {
			script.Answer{Body: before, Then: io.ErrUnexpectedEOF}, script.Page(10, "", script.Pod("a", 9)),
			append([]script.Answer{script.At(30), {Want: script.From(8), Body: script.Event("MODIFIED", "a", 9) + script.Event("MODIFIED", "a", 10) + script.Event("MODIFIED", "a", 25)}}, whole...),
			listed, []Continuity{Doubtful, Diverged},
		},
		"restored to before the newest object": {
			script.Answer{Body: before, Then: io.ErrUnexpectedEOF}, script.Page(10, "", script.Pod("a", 9)),
			append([]script.Answer{script.At(30), {Want: script.From(8), Body: script.Event("MODIFIED", "a", 25)}}, whole...),
			listed, []Continuity{Doubtful, Diverged},
		},
		"restored, and still behind": {
			script.Answer{Body: before, Then: io.ErrUnexpectedEOF}, script.Page(10, "", script.Pod("a", 9)),
			append([]script.Answer{script.At(7)}, whole...),
			listed, []Continuity{Doubtful, Diverged},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				during := 4 * time.Minute // less than any timeoutSeconds
				if test.watch.Due {
					during = 10 * time.Minute // more than one, and less than two
				}
				sink := &recordingSink{}
				test.watch.Want = script.From(8)
				pages := []script.Answer{{Want: "limit=500", Body: test.page}}
				if test.page == slow {
					pages = slices.Repeat([]script.Answer{{Want: "limit=500", Body: script.Page(10, "next"), Lasts: 110 * time.Second}}, 5)
					pages = append(pages, script.Answer{Want: "continue=next", Body: script.Page(10, "", script.Pod("a", 9)), Lasts: 110 * time.Second})
					during = 12 * time.Minute
				}
				up := &script.Upstream{T: t, Answers: slices.Concat([]script.Answer{script.Probe, {Want: script.Streaming, Code: 400, Body: script.Status(400)}, script.At(8), test.watch}, pages, test.answers)}
				u, _ := url.Parse("http://upstream/api/v1/pods")
				var got []Continuity
				// A watchdog would check a watch that is silent until it is due.
				r := New(Objects(false), sink, honest(t, Options{Transport: up, URL: u, Watchdog: !test.watch.Due, Continuity: settles(&got)}))
				ctx, cancel := context.WithTimeout(t.Context(), during)
				defer cancel()
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if d := difference.Of(test.events, sink.log[1:]); d != "" {
					t.Errorf("%s", d)
				}
				if d := difference.Of(test.continuity, got); d != "" {
					t.Errorf("continuity %s", d)
				}
				if len(up.Answers) > 0 {
					t.Errorf("%d answers were not requested", len(up.Answers))
				}
			})
		})
	}
}

// TestContinuityAfterResume: the history is proven after a resumed watch was cut, too.
func TestContinuityAfterResume(t *testing.T) {
	gone := script.Event("DELETED", "b", 20) + script.Event("DELETED", "c", 20) // the sink has received the first
	newest := func(context.Context) (*Known, error) { return &Known{"ns/a", "u", 12, false, 0}, nil }
	for name, test := range map[string]struct {
		resume     Resume
		answers    []script.Answer
		continuity []Continuity
	}{
		"nothing is known": {
			Resume{},
			[]script.Answer{script.At(30), {Want: script.From(20), Body: script.Event("ADDED", "c", 23), Then: io.ErrUnexpectedEOF}, script.At(30), {Want: script.From(20), Stall: true, Body: script.Event("ADDED", "c", 23) + script.Event("ADDED", "d", 24)}},
			[]Continuity{Watched, Doubtful, Watched, Proven},
		},
		"without an event": {
			Resume{Newest: newest},
			[]script.Answer{script.At(30), {Want: script.From(11), Body: script.Event("MODIFIED", "a", 12) + script.Bookmark(20, false), Then: io.ErrUnexpectedEOF},
				script.At(30), {Want: script.From(11), Stall: true, Body: script.Event("MODIFIED", "a", 12) + script.Event("ADDED", "d", 24)}},
			[]Continuity{Watched, Proven, Doubtful, Watched, Proven},
		},
		"cut before the proof is complete": { // nothing has followed the head
			Resume{Newest: newest},
			[]script.Answer{script.At(30), {Want: script.From(11), Body: script.Event("MODIFIED", "a", 12), Then: io.ErrUnexpectedEOF},
				script.At(30), {Want: script.From(11), Stall: true, Body: script.Event("MODIFIED", "a", 12) + script.Event("ADDED", "d", 24)}},
			[]Continuity{Watched, Doubtful, Watched, Proven},
		},
		"after a deletion at the head": {
			Resume{AfterDelete: true, Newest: newest},
			[]script.Answer{script.At(30), {Want: script.From(11), Body: script.Event("MODIFIED", "a", 12) + gone, Then: io.ErrUnexpectedEOF},
				script.At(30), {Want: script.From(19), Stall: true, Body: gone + script.Event("ADDED", "d", 24)}},
			[]Continuity{Watched, Proven, Doubtful, Watched, Proven},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
				defer cancel()
				test.resume.List = &scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true}
				sink := &recordingSink{head: 20, held: map[kube.Key]bool{"ns/a": true, "ns/c": true}}
				up := &script.Upstream{T: t, Answers: test.answers}
				u, _ := url.Parse("http://upstream/api/v1/pods")
				var got []Continuity
				r := New(Objects(false), sink, honest(t, Options{Transport: up, URL: u, Resume: &test.resume, Continuity: func(c Continuity) { got = append(got, c) }}))
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if n := len(sink.log); n == 0 || sink.log[n-1] != "ADDED ns/d@24" {
					t.Errorf("%q", sink.log)
				}
				if d := difference.Of(test.continuity, got); d != "" {
					t.Errorf("continuity %s", d)
				}
				if len(up.Answers) > 0 {
					t.Errorf("%d answers were not requested", len(up.Answers))
				}
			})
		})
	}
}

// TestDoubt: a caller that has seen another history ends the watch, and the upstream has to
// prove its history.
func TestDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script.Upstream{T: t, Answers: []script.Answer{script.Probe, {Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true)},
			script.At(30), {Want: script.From(2), Stall: true, Body: script.Event("ADDED", "a", 3) + script.Event("MODIFIED", "a", 12)}}}
		u, _ := url.Parse("http://upstream/api/v1/pods")
		sink := &recordingSink{}
		r := New(Objects(false), sink, Options{Transport: up, URL: u})
		r.Doubt(io.ErrUnexpectedEOF) // there is no watch yet
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		time.AfterFunc(time.Minute, func() { r.Doubt(io.ErrUnexpectedEOF) })
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		if d := difference.Of([]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@12"}, sink.log); d != "" || len(up.Answers) > 0 {
			t.Errorf("%s, %d answers were not requested", d, len(up.Answers))
		}
		r.Doubt(io.ErrUnexpectedEOF) // nor any more
	})
}

// honest makes the test fail if a round has failed, so that there is no watch, and the last
// Continuity says that there is one.
func honest(t *testing.T, opts Options) Options {
	inner, last := opts.Continuity, Ended
	opts.Continuity = func(c Continuity) {
		if inner(c); c != Proven {
			last = c
		}
	}
	opts.Failed = func(verb string, err error) {
		if last == Watched {
			t.Errorf("without a watch, it is said that there is one: %s: %v", verb, err)
		}
	}
	return opts
}

// settles returns an Options.Continuity that notes what is neither Watched
// nor Ended.
func settles(got *[]Continuity) func(Continuity) {
	return func(c Continuity) {
		if c != Watched && c != Ended {
			*got = append(*got, c)
		}
	}
}

// TestBookmarksByChance: two bookmarks come at once, as at the end of a streaming list, and
// then one each minute, while the resource is idle. The watchdog believes the streams dead,
// but not for ever: one lasts until a bookmark, which proves the upstream's history.
func TestBookmarksByChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var minutes []string
		for rv := 21; rv < 26; rv++ {
			minutes = append(minutes, script.Bookmark(rv, false))
		}
		up := script.NewConnections(&script.Upstream{T: t, Answers: []script.Answer{script.Probe,
			{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true), Every: time.Millisecond,
				Late: []string{script.Bookmark(11, false), script.Bookmark(12, false)}},
			{Want: script.From(12), Again: true, Stall: true, Every: time.Minute, Late: minutes}}})
		u, _ := url.Parse("http://upstream/api/v1/pods")
		sink := &recordingSink{}
		var got []Continuity
		r := New(Objects(false), sink, Options{Transport: up, URL: u, Watchdog: true, Continuity: settles(&got)})
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute+30*time.Second) // less than any timeoutSeconds
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute) // until the upstream has written what nobody reads
		if n := len(got); n == 0 || got[n-1] != Proven {
			t.Errorf("continuity %v", got)
		}
		if !slices.Contains(sink.log, "bookmark 22") {
			t.Errorf("the sink has %q", sink.log)
		}
	})
}
