// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

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

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestContinuity: after a watch that was cut, or ended early, the upstream has to prove
// that its history is the one that the sink knows: an etcd restored from a backup may
// have come past the head with other events.
func TestContinuity(t *testing.T) {
	cut := func(body ...string) answer {
		return answer{want: from(10), body: strings.Join(body, ""), then: io.ErrUnexpectedEOF}
	}
	known := []string{event("MODIFIED", "a", 12), event("ADDED", "b", 14), event("DELETED", "b", 15)}
	list := event("ADDED", "a", 3) // that of the list
	relist := answer{want: streaming, stall: true, body: event("ADDED", "a", 25) + bookmark(30, true)}
	listed := []string{"list 30 [ns/a@25]", "bookmark 30"}
	events := func(from, to int) (s string) {
		for rv := from; rv <= to; rv++ {
			s += event("MODIFIED", "a", rv)
		}
		return s
	}
	gone := event("DELETED", "b", 12) + event("DELETED", "c", 12)
	for name, test := range map[string]struct {
		answers    []answer // the first one follows the initial events
		events     []string // after the list's; nil does not compare
		continuity []Continuity
	}{
		"the same events": {
			[]answer{cut(known...), at(30), {want: from(10), stall: true, body: strings.Join(known, "") + event("ADDED", "c", 16)}},
			[]string{"MODIFIED ns/a@12", "ADDED ns/b@14", "DELETED ns/b@15", "ADDED ns/c@16"}, []Continuity{Doubtful, Proven},
		},
		"the same events, one of them twice": {
			[]answer{cut(known[0], known[0], known[1]), at(30), {want: from(10), stall: true, body: known[0] + known[0] + known[1] + event("ADDED", "c", 16)}},
			[]string{"MODIFIED ns/a@12", "MODIFIED ns/a@12", "ADDED ns/b@14", "ADDED ns/c@16"}, []Continuity{Doubtful, Proven},
		},
		"an orderly end, but early": {
			[]answer{{want: from(10), body: known[0], lasts: time.Minute}, at(30), {want: from(10), stall: true, body: known[0] + known[1]}},
			[]string{"MODIFIED ns/a@12", "ADDED ns/b@14"}, []Continuity{Doubtful, Proven},
		},
		"an orderly end, but early, right after the proof": {
			[]answer{cut(known[0]), at(30), {want: from(10), body: known[0] + bookmark(30, false), lasts: 10 * time.Second},
				at(40), {want: from(10), stall: true, body: known[0] + event("ADDED", "b", 35)}},
			[]string{"MODIFIED ns/a@12", "bookmark 30", "ADDED ns/b@35"}, []Continuity{Doubtful, Proven, Doubtful, Proven},
		},
		"restored at an orderly end, but early, right after the proof": {
			[]answer{cut(known[0]), at(30), {want: from(10), body: known[0] + known[1], lasts: 10 * time.Second},
				at(30), {want: from(10), body: known[0] + event("ADDED", "b", 13)}, at(30), relist},
			append([]string{"MODIFIED ns/a@12", "ADDED ns/b@14"}, listed...), []Continuity{Doubtful, Proven, Doubtful, Diverged},
		},
		"an orderly end that the server announced": {
			[]answer{cut(known[0]), at(30), {want: from(10), body: known[0] + bookmark(30, false), lasts: 10 * time.Second, header: http.Header{kube.TimeoutHeader: {"10"}}},
				{want: from(30), stall: true}},
			[]string{"MODIFIED ns/a@12", "bookmark 30"}, []Continuity{Doubtful, Proven},
		},
		"an orderly end when it is due, and the next watch is answered late": {
			[]answer{{want: from(10), body: known[0], due: true}, {want: from(12), wait: 2 * time.Second, stall: true},
				at(30), {want: from(10), body: known[0], due: true}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"an orderly end when it is due": {
			[]answer{{want: from(10), body: known[0], due: true}, {want: from(12), due: true}},
			[]string{"MODIFIED ns/a@12"}, nil,
		},
		"other events": {
			[]answer{cut(known...), at(30), {want: from(10), body: event("MODIFIED", "a", 11) + event("MODIFIED", "a", 25)}, at(30), relist},
			append([]string{"MODIFIED ns/a@12", "ADDED ns/b@14", "DELETED ns/b@15"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"an event of another type": {
			[]answer{cut(known[0]), at(30), {want: from(10), body: event("DELETED", "a", 12)}, at(30), relist},
			append([]string{"MODIFIED ns/a@12"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"another event between the last one and the head": {
			[]answer{cut(known[0], bookmark(20, false)), at(30), {want: from(10), body: known[0] + event("ADDED", "c", 19)}, at(30), relist},
			append([]string{"MODIFIED ns/a@12", "bookmark 20"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"the last event is missing": {
			[]answer{cut(known[0], known[1]), at(30), {want: from(10), body: known[0] + event("MODIFIED", "a", 25)}, at(30), relist},
			append([]string{"MODIFIED ns/a@12", "ADDED ns/b@14"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"RVs below the head": {
			[]answer{cut(known[0]), at(11), at(11), {want: streaming, stall: true, body: list + bookmark(11, true)}},
			[]string{"MODIFIED ns/a@12", "list 11 [ns/a@3]", "bookmark 11"}, []Continuity{Doubtful, Diverged},
		},
		"the events are compacted": {
			[]answer{cut(known[0]), at(30), {want: from(10), code: 410, body: status(410)}, at(30), relist},
			append([]string{"MODIFIED ns/a@12"}, listed...), []Continuity{Doubtful},
		},
		"no event, and that of the newest object": {
			[]answer{cut(), at(30), {want: from(2), stall: true, body: list + event("MODIFIED", "a", 25)}},
			[]string{"MODIFIED ns/a@25"}, []Continuity{Doubtful, Proven},
		},
		"no event, and other objects came and went before the list": {
			[]answer{cut(), at(30), {want: from(2), stall: true, body: list + event("ADDED", "b", 4) + event("DELETED", "b", 5) + event("DELETED", "c", 6) + event("MODIFIED", "a", 25)}},
			[]string{"MODIFIED ns/a@25"}, []Continuity{Doubtful, Proven},
		},
		"no event, and that of the newest object is missing": {
			[]answer{cut(), at(30), {want: from(2), body: event("MODIFIED", "a", 25)}, at(30), relist},
			listed, []Continuity{Doubtful, Diverged},
		},
		"no event, and an object before the list that is not in it": {
			[]answer{cut(), at(30), {want: from(2), body: list + event("ADDED", "b", 4) + event("MODIFIED", "a", 25)}, at(30), relist},
			listed, []Continuity{Doubtful, Diverged},
		},
		"no event, and an object of the list is deleted before it": {
			[]answer{cut(), at(30), {want: from(2), body: list + event("DELETED", "a", 4)}, at(30), relist},
			listed, []Continuity{Doubtful, Diverged},
		},
		"no event, and there was one": {
			[]answer{cut(bookmark(20, false)), at(30), {want: from(2), body: list + event("ADDED", "c", 19)}, at(30), relist},
			append([]string{"bookmark 20"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"no event, and that of the newest object is compacted": {
			[]answer{cut(), at(30), {want: from(2), code: 410, body: status(410)}, at(30), relist},
			listed, []Continuity{Doubtful},
		},
		"more events than are remembered": {
			[]answer{cut(events(11, 30)), at(30), {want: from(30 - maxTail), stall: true, body: events(31-maxTail, 31)}},
			nil, []Continuity{Doubtful, Proven},
		},
		"deletions that share an RV, one of them no longer remembered": {
			[]answer{cut(gone + events(13, 12+maxTail-1)), at(30), {want: from(11), stall: true, body: gone + events(13, 12+maxTail)}},
			nil, []Continuity{Doubtful, Proven},
		},
		"deletions that share the head's RV": {
			[]answer{cut(event("DELETED", "b", 12)), at(30), {want: from(10), stall: true, body: gone}},
			[]string{"DELETED ns/b@12", "DELETED ns/c@12"}, []Continuity{Doubtful, Proven},
		},
		"another deletion at the head's RV": {
			[]answer{cut(event("DELETED", "b", 12)), at(30), {want: from(10), body: event("DELETED", "c", 12) + event("ADDED", "d", 13)}, at(30), relist},
			append([]string{"DELETED ns/b@12"}, listed...), []Continuity{Doubtful, Diverged},
		},
		"a stream that is cut while it is proven": {
			[]answer{cut(known...), at(30), cut(known[0]), at(30), {want: from(10), stall: true, body: strings.Join(known, "") + event("ADDED", "c", 16)}},
			[]string{"MODIFIED ns/a@12", "ADDED ns/b@14", "DELETED ns/b@15", "ADDED ns/c@16"}, []Continuity{Doubtful, Proven},
		},
		"a second cut after the first was proven": {
			[]answer{cut(known[0]), at(30), cut(known[0], known[1]), at(30), {want: from(10), body: known[0] + event("MODIFIED", "a", 14)}, at(30), relist},
			append([]string{"MODIFIED ns/a@12", "ADDED ns/b@14"}, listed...), []Continuity{Doubtful, Proven, Doubtful, Diverged},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				during := 4 * time.Minute // less than any timeoutSeconds
				if test.answers[0].due {
					during = 11 * time.Minute // and one more
				}
				ctx, cancel := context.WithTimeout(t.Context(), during)
				defer cancel()
				sink := &recordingSink{}
				first := &test.answers[0]
				first.want, first.body = streaming, event("ADDED", "a", 3)+bookmark(10, true)+first.body
				up := &script{t: t, answers: append([]answer{probe}, test.answers...)}
				u, _ := url.Parse("http://upstream/api/v1/pods")
				var got []Continuity
				r := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: sink, Continuity: settles(&got)})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if d := difference(test.events, sink.log[2:]); test.events != nil && d != "" {
					t.Errorf("%s", d)
				}
				if d := difference(test.continuity, got); d != "" {
					t.Errorf("continuity %s", d)
				}
				if len(up.answers) > 0 {
					t.Errorf("%d answers were not requested", len(up.answers))
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
	before := event("MODIFIED", "a", 9) + event("DELETED", "b", 10)
	const slow = "" // a list of six pages that lasts longer than the watch
	whole := []answer{at(30), {want: from(30), stall: true, body: event("ADDED", "c", 31)}, {want: "limit=500", body: page(30, "", podJSON("a", 25))}}
	listed := []string{"list 30 [ns/a@25]", "ADDED ns/c@31"}
	for name, test := range map[string]struct {
		watch      answer
		page       string
		answers    []answer // after the page
		events     []string // after the list's
		continuity []Continuity
	}{
		"the watch goes on": {
			answer{stall: true, body: before + event("MODIFIED", "a", 12)}, page(10, "", podJSON("a", 9)), nil,
			[]string{"MODIFIED ns/a@12"}, nil,
		},
		"the watch goes on, and is cut": {
			answer{body: before + event("MODIFIED", "a", 12), then: io.ErrUnexpectedEOF}, page(10, "", podJSON("a", 9)),
			[]answer{at(30), {want: from(10), stall: true, body: event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"the watch was cut": {
			answer{body: before, then: io.ErrUnexpectedEOF}, page(10, "", podJSON("a", 9)),
			[]answer{at(10), {want: from(8), stall: true, body: before + event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"the watch ended when it was due": {
			answer{body: before, due: true}, page(10, "", podJSON("a", 9)),
			[]answer{{want: from(10), stall: true, body: event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, nil,
		},
		"the watch ended when it was due, before the list": {
			answer{body: before, due: true}, slow,
			[]answer{at(10), {want: from(8), stall: true, body: before + event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"the watch is not answered": {
			answer{silent: true}, page(10, "", podJSON("a", 9)),
			[]answer{at(10), {want: from(8), stall: true, body: before + event("MODIFIED", "a", 12)}},
			[]string{"MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"the watch begins after the list": {
			answer{stall: true, body: event("MODIFIED", "a", 12)}, page(5, "", podJSON("a", 4)),
			[]answer{at(12), {want: from(3), stall: true, body: event("ADDED", "a", 4) + event("ADDED", "c", 7) + event("MODIFIED", "a", 12)}},
			[]string{"ADDED ns/c@7", "MODIFIED ns/a@12"}, []Continuity{Doubtful, Proven},
		},
		"between the two, the object was deleted and added again": {
			answer{stall: true, body: event("DELETED", "a", 9) + event("ADDED", "a", 10) + event("ADDED", "c", 12)}, page(10, "", podJSON("a", 10)), nil,
			[]string{"ADDED ns/c@12"}, nil,
		},
		"the watch lacks an object of the list": {
			answer{stall: true, body: event("MODIFIED", "a", 9) + event("MODIFIED", "a", 12)}, page(10, "", podJSON("a", 9)+","+podJSON("b", 10)),
			whole,
			listed, []Continuity{Doubtful},
		},
		"the watch lacks an event of the list": {
			answer{stall: true, body: event("MODIFIED", "a", 12)}, page(10, "", podJSON("a", 10)),
			whole,
			listed, []Continuity{Doubtful},
		},
		"the watch has deleted an object of the list": {
			answer{stall: true, body: event("DELETED", "a", 9) + event("ADDED", "c", 12)}, page(10, "", podJSON("a", 7)),
			whole,
			listed, []Continuity{Doubtful},
		},
		"the list lacks an object of the watch": {
			answer{stall: true, body: event("ADDED", "b", 9) + event("ADDED", "c", 12)}, page(10, "", podJSON("a", 7)),
			whole,
			listed, []Continuity{Doubtful},
		},
		"the watch was cut, the object is at the list's RV": {
			answer{then: io.ErrUnexpectedEOF, body: bookmark(8, false)}, page(10, "", podJSON("a", 10)),
			[]answer{at(10), {want: from(9), stall: true, body: event("ADDED", "a", 10)}},
			nil, []Continuity{Doubtful, Proven},
		},
		"the watch was cut, the object is at the first RV": {
			answer{then: io.ErrUnexpectedEOF, body: bookmark(8, false)}, page(10, "", podJSON("a", 1)),
			[]answer{at(10), {want: from(1), stall: true, body: bookmark(10, false)}},
			[]string{"bookmark 10"}, []Continuity{Doubtful, Proven},
		},
		"the watch was cut, there is no object": {
			answer{then: io.ErrUnexpectedEOF, body: bookmark(8, false)}, page(10, ""),
			[]answer{at(10), {want: from(10), stall: true, body: event("ADDED", "c", 31)}},
			[]string{"ADDED ns/c@31"}, []Continuity{Doubtful, Proven},
		},
		"the watch was cut, there was no object": {
			answer{then: io.ErrUnexpectedEOF, body: bookmark(8, false)}, page(10, ""),
			append([]answer{{want: "limit=1", body: page(30, "", podJSON("a", 25))}}, whole...),
			listed, []Continuity{Doubtful},
		},
		"restored, with another event before the list": {
			answer{body: before, then: io.ErrUnexpectedEOF}, page(10, "", podJSON("a", 9)),
			append([]answer{at(30), {want: from(8), body: event("MODIFIED", "a", 9) + event("MODIFIED", "a", 10) + event("MODIFIED", "a", 25)}}, whole...),
			listed, []Continuity{Doubtful, Diverged},
		},
		"restored to before the newest object": {
			answer{body: before, then: io.ErrUnexpectedEOF}, page(10, "", podJSON("a", 9)),
			append([]answer{at(30), {want: from(8), body: event("MODIFIED", "a", 25)}}, whole...),
			listed, []Continuity{Doubtful, Diverged},
		},
		"restored, and still behind": {
			answer{body: before, then: io.ErrUnexpectedEOF}, page(10, "", podJSON("a", 9)),
			append([]answer{at(7)}, whole...),
			listed, []Continuity{Doubtful, Diverged},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				during := 4 * time.Minute // less than any timeoutSeconds
				if test.watch.due {
					during = 10 * time.Minute // more than one, and less than two
				}
				sink := &recordingSink{}
				test.watch.want = from(8)
				pages := []answer{{want: "limit=500", body: test.page}}
				if test.page == slow {
					pages = slices.Repeat([]answer{{want: "limit=500", body: page(10, "next"), lasts: 110 * time.Second}}, 5)
					pages = append(pages, answer{want: "continue=next", body: page(10, "", podJSON("a", 9)), lasts: 110 * time.Second})
					during = 12 * time.Minute
				}
				up := &script{t: t, answers: slices.Concat([]answer{probe, {want: streaming, code: 400, body: status(400)}, at(8), test.watch}, pages, test.answers)}
				u, _ := url.Parse("http://upstream/api/v1/pods")
				var got []Continuity
				r := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: sink, Watchdog: true, Continuity: settles(&got)})
				ctx, cancel := context.WithTimeout(t.Context(), during)
				defer cancel()
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if d := difference(test.events, sink.log[1:]); d != "" {
					t.Errorf("%s", d)
				}
				if d := difference(test.continuity, got); d != "" {
					t.Errorf("continuity %s", d)
				}
				if len(up.answers) > 0 {
					t.Errorf("%d answers were not requested", len(up.answers))
				}
			})
		})
	}
}

// TestContinuityAfterResume: the history is proven after a resumed watch was cut, too.
func TestContinuityAfterResume(t *testing.T) {
	gone := event("DELETED", "b", 20) + event("DELETED", "c", 20) // the sink has received the first
	newest := func(context.Context) (*Known, error) { return &Known{"ns/a", "u", 12, false, 0}, nil }
	for name, test := range map[string]struct {
		resume     Resume
		answers    []answer
		continuity []Continuity
	}{
		"nothing is known": {
			Resume{},
			[]answer{at(30), {want: from(20), body: event("ADDED", "c", 23), then: io.ErrUnexpectedEOF}, at(30), {want: from(20), stall: true, body: event("ADDED", "c", 23) + event("ADDED", "d", 24)}},
			[]Continuity{Watched, Doubtful, Watched, Proven},
		},
		"without an event": {
			Resume{Newest: newest},
			[]answer{at(30), {want: from(11), body: event("MODIFIED", "a", 12) + bookmark(20, false), then: io.ErrUnexpectedEOF},
				at(30), {want: from(11), stall: true, body: event("MODIFIED", "a", 12) + event("ADDED", "d", 24)}},
			[]Continuity{Watched, Proven, Doubtful, Watched, Proven},
		},
		"after a deletion at the head": {
			Resume{AfterDelete: true, Newest: newest},
			[]answer{at(30), {want: from(11), body: event("MODIFIED", "a", 12) + gone, then: io.ErrUnexpectedEOF},
				at(30), {want: from(19), stall: true, body: gone + event("ADDED", "d", 24)}},
			[]Continuity{Watched, Proven, Doubtful, Watched, Proven},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
				defer cancel()
				test.resume.List = &scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true}
				sink := &recordingSink{head: 20, held: map[kube.Key]bool{"ns/a": true, "ns/c": true}}
				up := &script{t: t, answers: test.answers}
				u, _ := url.Parse("http://upstream/api/v1/pods")
				var got []Continuity
				r := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: sink, Resume: &test.resume, Continuity: func(c Continuity) { got = append(got, c) }})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if n := len(sink.log); n == 0 || sink.log[n-1] != "ADDED ns/d@24" {
					t.Errorf("%q", sink.log)
				}
				if d := difference(test.continuity, got); d != "" {
					t.Errorf("continuity %s", d)
				}
				if len(up.answers) > 0 {
					t.Errorf("%d answers were not requested", len(up.answers))
				}
			})
		})
	}
}

// TestDoubt: a caller that has seen another history ends the watch, and the upstream has to
// prove its history.
func TestDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script{t: t, answers: []answer{probe, {want: streaming, stall: true, body: event("ADDED", "a", 3) + bookmark(10, true)},
			at(30), {want: from(2), stall: true, body: event("ADDED", "a", 3) + event("MODIFIED", "a", 12)}}}
		u, _ := url.Parse("http://upstream/api/v1/pods")
		sink := &recordingSink{}
		r := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: sink})
		r.Doubt(io.ErrUnexpectedEOF) // there is no watch yet
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		time.AfterFunc(time.Minute, func() { r.Doubt(io.ErrUnexpectedEOF) })
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		if d := difference([]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@12"}, sink.log); d != "" || len(up.answers) > 0 {
			t.Errorf("%s, %d answers were not requested", d, len(up.answers))
		}
		r.Doubt(io.ErrUnexpectedEOF) // nor any more
	})
}

// TestContinuityOfSilence: an upstream that was restored while a dead connection
// appeared open is noticed when the watchdog replaces the watch.
func TestContinuityOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newFreshScript(&script{t: t, answers: []answer{probe, withBookmarks(event("MODIFIED", "a", 13)), answered, at(30),
			{want: from(10), stall: true, body: event("MODIFIED", "a", 12) + event("MODIFIED", "a", 14)},
			at(30), {want: streaming, stall: true, body: event("ADDED", "a", 14) + bookmark(30, true)}}})
		i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, up), pods, Raw(), Options{})
		d := follow(t, i)
		start(t, i)
		time.Sleep(5 * minute)
		want(t, d.read(), "ADDED ns/a →3 initial", "SYNCED→", "UPDATED ns/a 3→13", "UPDATED ns/a 13→14")
		if n := i.Status().Relists["diverged"]; n != 1 {
			t.Errorf("relists: %v", i.Status().Relists)
		}
	})
}

// settles returns a ReflectorOptions.Continuity that notes what is neither Watched
// nor Ended.
func settles(got *[]Continuity) func(Continuity) {
	return func(c Continuity) {
		if c != Watched && c != Ended {
			*got = append(*got, c)
		}
	}
}
