// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/difference"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A recordingSink is a sink that logs each call in one short line.
type recordingSink struct {
	head   uint64
	log    []string
	list   []*scan.Object // items of the current list
	fail   func(rv uint64) error
	hidden int // events applied since the last flush
	held   map[kube.Key]bool
}

func (s *recordingSink) Head() uint64 { return s.head }

func (s *recordingSink) Holds(key kube.Key) bool { return s.held[key] }

func (s *recordingSink) Begin(bool) { s.list = nil }

func (s *recordingSink) Item(o *scan.Object) error {
	s.list = append(s.list, o)
	return nil
}

func (s *recordingSink) End(l *scan.List) bool {
	var keys []string
	s.held = map[kube.Key]bool{}
	for _, o := range s.list {
		s.held[o.Key] = true
		keys = append(keys, fmt.Sprintf("%s@%d", o.Key, o.RV))
	}
	s.log = append(s.log, fmt.Sprintf("list %d %v", l.RV, keys))
	continued := s.head > 0
	s.head, s.hidden = l.RV, 0
	return continued
}

func (s *recordingSink) Apply(typ kube.EventType, o *scan.Object) error {
	if s.fail != nil {
		if err := s.fail(o.RV); err != nil {
			return err
		}
	}
	if s.held == nil {
		s.held = map[kube.Key]bool{}
	}
	s.held[o.Key] = typ != kube.Deleted
	s.head = o.RV
	s.hidden++
	s.log = append(s.log, fmt.Sprintf("%s %s@%d", typ, o.Key, o.RV))
	return nil
}

func (s *recordingSink) Bookmark(rv uint64, _ *scan.Object) {
	s.head = rv
	s.log = append(s.log, fmt.Sprintf("bookmark %d", s.head))
}

func (s *recordingSink) Flush() { s.hidden = 0 }

const minute = time.Minute

// run runs a reflector with the answers for the time given, and returns the
// upstream, the reflector and Run's error.
func run(t *testing.T, sink *recordingSink, during time.Duration, answers ...script.Answer) (*script.Upstream, *Reflector[*scan.Object], error) {
	t.Helper()
	up := &script.Upstream{T: t, Answers: answers}
	u, _ := url.Parse("http://upstream/api/v1/pods")
	r := New(Objects(false), sink, Options{Transport: up, URL: u})
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	err := r.Run(ctx)
	if len(up.Answers) > 0 && !up.Answers[0].Again {
		t.Errorf("%d answers were not requested", len(up.Answers))
	}
	return up, r, err
}

func TestReflector(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []script.Answer
		want    []string
		relists map[string]int
	}{{
		"a streaming list, and the watch on the same stream",
		[]script.Answer{script.Probe, {Want: script.Streaming, Stall: true,
			Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "b", 7) + script.Bookmark(10, true) + script.Event("MODIFIED", "a", 11)}},
		[]string{"list 10 [ns/a@3 ns/b@7]", "bookmark 10", "MODIFIED ns/a@11"},
		map[string]int{"initial": 1},
	}, {
		"after an orderly end the watch resumes at the last RV, that of a bookmark too",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Due: true, Body: script.Event("MODIFIED", "a", 11) + script.Bookmark(20, false)},
			{Want: script.From(20), Due: true, Body: script.Event("MODIFIED", "a", 21)}, {Want: script.From(21), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "bookmark 20", "MODIFIED ns/a@21"},
		map[string]int{"initial": 1},
	}, {
		"after a deletion the watch resumes one RV lower: others may share the RV",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Due: true, Body: script.Event("DELETED", "a", 11)}, {Want: script.From(10), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "DELETED ns/a@11"},
		map[string]int{"initial": 1},
	}, {
		"a cut stream, a refused connection, 500, 429",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11), Then: io.ErrUnexpectedEOF},
			{Want: "limit=1", Then: syscall.ECONNREFUSED},
			script.At(11), {Want: script.From(10), Code: 500, Body: "oops"},
			script.At(11), {Want: script.From(10), Code: 429, Body: script.Status(429)},
			script.At(11), {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11) + script.Event("MODIFIED", "a", 12), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "MODIFIED ns/a@12"},
		map[string]int{"initial": 1},
	}, {
		"truncated and malformed frames",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11) + script.Event("MODIFIED", "a", 12)[:40]},
			script.At(11), {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11) + script.Event("MODIFIED", "a", 12) + "<html>502 Bad Gateway</html>\n" + script.Event("MODIFIED", "a", 14)},
			script.At(12), {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11) + script.Event("MODIFIED", "a", 12) + script.Event("MODIFIED", "a", 13), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "MODIFIED ns/a@12", "MODIFIED ns/a@13"},
		map[string]int{"initial": 1},
	}, {
		"three malformed frames in a row lead to a list",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Body: "{]\n"}, script.At(10), {Want: script.From(10), Body: "{]\n"}, script.At(10), {Want: script.From(10), Body: "{]\n"},
			{Want: script.Streaming, Body: script.Event("ADDED", "a", 12) + script.Bookmark(15, true), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"initial": 1, "malformed": 1},
	}, {
		"also if the deletion before them is repeated each time",
		[]script.Answer{script.Probe, script.Synced,
			{Want: script.From(10), Body: script.Event("DELETED", "a", 11) + "{]\n"},
			script.At(11), {Want: script.From(10), Body: script.Event("DELETED", "a", 11) + "{]\n"},
			script.At(11), {Want: script.From(10), Body: script.Event("DELETED", "a", 11) + "{]\n"},
			{Want: script.Streaming, Body: script.Bookmark(15, true), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "DELETED ns/a@11", "list 15 []", "bookmark 15"},
		map[string]int{"initial": 1, "malformed": 1},
	}, {
		"410 as a status",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Code: 410, Body: script.Status(410)},
			{Want: script.Streaming, Body: script.Event("ADDED", "a", 12) + script.Bookmark(15, true), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"initial": 1, "expired": 1},
	}, {
		"410 in the stream",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11) + `{"type":"ERROR","object":` + script.Status(410) + "}\n"},
			{Want: script.Streaming, Body: script.Event("ADDED", "a", 12) + script.Bookmark(15, true), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"initial": 1, "expired": 1},
	}, {
		"another error in the stream leads to no list",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Body: `{"type":"ERROR","object":` + script.Status(500) + "}\n"}, script.At(10), {Want: script.From(10), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10"},
		map[string]int{"initial": 1},
	}, {
		"a replica that lags does not have the RV yet: the same watch is retried",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Code: 504, Body: script.TooLarge}, script.At(10), {Want: script.From(10), Body: `{"type":"ERROR","object":` + script.TooLarge + "}\n"},
			script.At(10), {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11"},
		map[string]int{"initial": 1},
	}, {
		"401 for a while, as when credentials are rotated",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Code: 401, Body: script.Status(401)}, {Want: "limit=1", Code: 401, Body: script.Status(401)},
			script.At(10), {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11"},
		map[string]int{"initial": 1},
	}, {
		"an etcd restored from a backup continues at lower RVs",
		[]script.Answer{script.Probe, script.Synced, {Want: script.From(10), Body: script.Event("MODIFIED", "a", 11), Then: io.ErrUnexpectedEOF},
			script.At(7), {Want: script.Streaming, Body: script.Event("ADDED", "a", 3) + script.Bookmark(7, true), Stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "list 7 [ns/a@3]", "bookmark 7"},
		map[string]int{"initial": 1, "diverged": 1},
	}, {
		"an upstream without streaming lists; pages",
		[]script.Answer{script.Probe, {Want: script.Streaming, Code: 400, Body: script.Status(400)},
			script.At(9), {Want: script.From(9), Body: script.Event("DELETED", "c", 10) + script.Event("DELETED", "b", 11), Stall: true},
			{Want: "limit=500", Body: script.Page(10, "next", script.Pod("a", 3))},
			{Want: "limit=500 continue=next", Body: script.Page(10, "", script.Pod("b", 4))}},
		[]string{"list 10 [ns/a@3 ns/b@4]", "DELETED ns/b@11"},
		map[string]int{"initial": 1},
	}, {
		"no end bookmark in time: paged lists from then on",
		[]script.Answer{script.Probe, {Want: script.Streaming, Body: script.Event("ADDED", "a", 3), Stall: true},
			script.At(10), {Want: script.From(10), Body: `{"type":"ERROR","object":` + script.Status(410) + "}\n"},
			{Want: "limit=500", Body: script.Page(10, "", script.Pod("a", 3))},
			script.At(20), {Want: script.From(20), Stall: true},
			{Want: "limit=500", Body: script.Page(20, "", script.Pod("a", 3))}},
		[]string{"list 10 [ns/a@3]", "list 20 [ns/a@3]"},
		map[string]int{"initial": 1, "expired": 1},
	}, {
		"a deletion before the end bookmark: the upstream ignored sendInitialEvents",
		[]script.Answer{script.Probe, {Want: script.Streaming, Body: script.Event("ADDED", "a", 3) + script.Event("DELETED", "a", 11), Stall: true},
			script.At(12), {Want: script.From(12), Stall: true}, {Want: "limit=500", Body: script.Page(12, "")}},
		[]string{"list 12 []"},
		map[string]int{"initial": 1},
	}, {
		"after two failed streaming lists, one paged list",
		[]script.Answer{script.Probe, {Want: script.Streaming, Body: script.Event("ADDED", "a", 3), Then: io.ErrUnexpectedEOF},
			{Want: script.Streaming, Body: `{"type":"ERROR","object":` + script.Status(504) + "}\n"},
			script.At(12), {Want: script.From(12), Body: `{"type":"ERROR","object":` + script.Status(410) + "}\n"}, {Want: "limit=500", Body: script.Page(12, "", script.Pod("a", 3))},
			{Want: script.Streaming, Body: script.Event("ADDED", "a", 13) + script.Bookmark(20, true), Stall: true}},
		[]string{"list 12 [ns/a@3]", "list 20 [ns/a@13]", "bookmark 20"},
		map[string]int{"initial": 1, "expired": 1},
	}, {
		"a continue token that expires",
		[]script.Answer{script.Probe, {Want: script.Streaming, Code: 400, Body: script.Status(400)},
			script.At(10), {Want: script.From(10), Body: script.Event("ADDED", "b", 11) + script.Event("ADDED", "c", 12), Stall: true},
			{Want: "limit=500", Body: script.Page(10, "next", script.Pod("a", 3))},
			{Want: "continue=next", Code: 410, Body: script.Status(410)},
			{Want: "", Body: script.Page(11, "", script.Pod("a", 3), script.Pod("b", 11))}},
		[]string{"list 11 [ns/a@3 ns/b@11]", "ADDED ns/c@12"},
		map[string]int{"initial": 1},
	}, {
		"a watch on a dead connection ends after its timeoutSeconds",
		[]script.Answer{script.Probe, {Want: script.Streaming, Body: script.Bookmark(10, true), Stall: true}, script.At(10), {Want: script.From(10), Stall: true}, script.At(10), {Want: script.From(10), Stall: true}},
		[]string{"list 10 []", "bookmark 10"},
		map[string]int{"initial": 1},
	}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &recordingSink{}
				_, r, err := run(t, sink, 40*time.Minute, test.answers...)
				if err != nil {
					t.Error(err)
				}
				if d := difference.Of(test.want, sink.log); d != "" {
					t.Errorf("%s", d)
				}
				if d := difference.Of(test.relists, r.Status().Relists); d != "" {
					t.Errorf("relists %s", d)
				}
				if sink.hidden > 0 {
					t.Errorf("%d events were never flushed", sink.hidden)
				}
				if p := r.Status().Phase; p != Stopped {
					t.Errorf("phase %q", p)
				}
			})
		})
	}
}

func TestRefused(t *testing.T) {
	var refused *RefusedError
	t.Run("before the first list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, r, err := run(t, &recordingSink{}, time.Hour, script.Answer{Want: "limit=1", Code: 403, Body: script.Status(403)})
			if !errors.As(err, &refused) || refused.Code != 403 || r.Status().LastError == nil {
				t.Errorf("%v, %+v", err, r.Status())
			}
		})
	})
	t.Run("temporarily", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &recordingSink{}
			_, _, err := run(t, sink, time.Minute, script.Probe, script.Synced,
				script.Answer{Want: script.From(10), Code: 401, Body: script.Status(401)},
				script.Answer{Want: "limit=1", Code: 403, Body: script.Status(403)},
				script.At(10), script.Answer{Want: script.From(10), Body: script.Event("MODIFIED", "a", 11), Stall: true})
			if err != nil || len(sink.log) != 3 {
				t.Errorf("%v %v", err, sink.log)
			}
		})
	})
	t.Run("twice temporarily, with an idle stream in between", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := run(t, &recordingSink{}, time.Hour, script.Probe, script.Synced,
				script.Answer{Want: script.From(10), Code: 403, Body: script.Status(403)},
				script.At(10), script.Answer{Want: script.From(10), Lasts: 5 * time.Minute},
				script.Answer{Want: script.From(10), Code: 403, Body: script.Status(403)},
				script.At(10), script.Answer{Want: script.From(10), Stall: true})
			if err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("404 is final", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, _, err := run(t, &recordingSink{}, time.Hour, script.Probe, script.Synced, script.Answer{Want: script.From(10), Code: 404, Body: "404 page not found"})
			if !errors.As(err, &refused) || refused.Code != 404 || time.Since(start) > time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("another kind", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			other := script.Answer{Want: "limit=1", Body: strings.Replace(script.Page(20, ""), "PodList", "BeanList", 1)}
			_, _, err := run(t, &recordingSink{}, time.Hour, script.Probe, script.Synced, script.Answer{Want: script.From(10), Code: 410, Body: script.Status(410)}, other)
			if !errors.As(err, &refused) || refused.Code != 404 {
				t.Error(err)
			}
		})
	})
	t.Run("a list without an RV", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := run(t, &recordingSink{}, time.Hour, script.Answer{Want: "limit=1", Body: `{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[]}`})
			if !errors.As(err, &refused) || refused.Code != 501 {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("JSON that is no list, for a while and permanently", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			other := script.Answer{Want: "limit=1", Body: `{"error":"starting"}`}
			sink := &recordingSink{}
			_, _, err := run(t, sink, time.Minute, other, other, script.Probe, script.Synced)
			if err != nil || sink.head != 10 {
				t.Errorf("%v, at %d", err, sink.head)
			}
			start := time.Now()
			other.Again = true
			_, _, err = run(t, &recordingSink{}, time.Hour, other)
			if took := time.Since(start); !errors.As(err, &refused) || refused.Code != 501 || took < 30*time.Second || took > time.Minute {
				t.Errorf("%v after %v", err, took)
			}
		})
	})
	t.Run("permanently", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, _, err := run(t, &recordingSink{}, time.Hour, script.Probe, script.Synced,
				script.Answer{Want: script.From(10), Code: 403, Body: script.Status(403)},
				script.Answer{Want: "limit=1", Code: 403, Body: script.Status(403), Again: true})
			if took := time.Since(start); !errors.As(err, &refused) || took < 30*time.Second || took > time.Minute {
				t.Errorf("%v after %v", err, took)
			}
		})
	})
}

func TestRetryAfter(t *testing.T) {
	detail := strings.Replace(script.Status(500), `"code"`, `"details":{"retryAfterSeconds":86400},"code"`, 1)
	for _, test := range []struct {
		name string
		a    script.Answer
		want time.Duration
	}{
		{"header", script.Answer{Code: 429, Header: http.Header{"Retry-After": {"7"}}, Body: script.Status(429)}, 7 * time.Second},
		{"details, limited to a minute", script.Answer{Code: 503, Body: detail}, time.Minute},
		{"in the stream", script.Answer{Body: `{"type":"ERROR","object":` + detail + "}\n"}, time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.a.Want = script.From(10)
				up, _, _ := run(t, &recordingSink{}, 5*time.Minute, script.Probe, script.Synced, test.a, script.At(10), script.Answer{Want: script.From(10), Stall: true})
				if wait := up.Asked[4].Sub(up.Asked[3]); wait < test.want || wait > test.want+time.Second {
					t.Errorf("retried after %v", wait)
				}
			})
		})
	}
}

// TestRequestRate limits the number of requests to an upstream that fails in the
// same way each time.
func TestRequestRate(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []script.Answer
		max     int // requests in five minutes
	}{
		{"streams that end at once", []script.Answer{script.Probe, script.Synced, {Want: "", Body: "", Again: true}}, 150},
		{"a repeated deletion, then the end", []script.Answer{script.Probe, script.Synced, {Want: script.From(10), Body: script.Event("DELETED", "a", 11)}, {Want: "", Body: script.Event("DELETED", "a", 11), Again: true}}, 150},
		{"410 after 410", []script.Answer{script.Probe, script.Synced, {Want: "", Code: 410, Body: script.Status(410), Again: true}}, 150},
		{"idle streams of half a minute", []script.Answer{script.Probe, script.Synced, {Want: "", Lasts: 31 * time.Second, Again: true}}, 33},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up, _, _ := run(t, &recordingSink{}, 5*time.Minute, test.answers...)
				if n := len(up.Asked); n > test.max {
					t.Errorf("%d requests", n)
				} else if n < 8 {
					t.Errorf("only %d requests", n)
				}
			})
		})
	}
	for name, then := range map[string]string{"has expired": `{"type":"ERROR","object":` + script.Status(410) + "}\n", "cannot be read": "no JSON\n"} {
		t.Run("lists whose watch "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := []script.Answer{script.Probe}
				for i := range 1000 {
					answers = append(answers, script.Answer{Body: script.Bookmark(10+i, true) + then})
				}
				up := &script.Upstream{T: t, Answers: answers}
				u, _ := url.Parse("http://upstream/api/v1/pods")
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				if err := New(Objects(false), &recordingSink{}, Options{Transport: up, URL: u}).Run(ctx); err != nil || len(up.Asked) > 150 {
					t.Errorf("%d requests, %v", len(up.Asked), err)
				}
			})
		})
	}
}

// TestPauseAfterOutage: an API server that was down and answers 503 while it starts is
// asked again soon, however often the connection was refused before.
func TestPauseAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := script.Answer{Then: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
		answers := []script.Answer{script.Probe, script.Synced}
		for range 30 {
			answers = append(answers, down)
		}
		for range 3 {
			answers = append(answers, script.Answer{Code: 503, Body: script.Status(503)})
		}
		u, _ := url.Parse("http://upstream/api/v1/pods")
		var last time.Time // failure
		refused, answered := 0, 0
		r := New(Objects(false), &recordingSink{}, Options{Transport: &script.Upstream{T: t, Answers: answers}, URL: u, Failed: func(_ string, err error) {
			pause, limit := time.Since(last), maxDialPause
			if last = time.Now(); errors.As(err, new(*StatusError)) {
				if answered++; answered > 1 {
					limit = MinBackoff << (answered - 2)
				}
			} else {
				refused++
			}
			if refused > 1 && pause > limit {
				t.Errorf("%v after %v, want at most %v", err, pause, limit)
			}
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := r.Run(ctx); err != nil || refused < 30 || answered != 3 {
			t.Errorf("%v, after %d refused connections and %d answers", err, refused, answered)
		}
	})
}

// TestSchemaChange: a stream of custom resources that ends early is followed by a
// list, since their definition may have changed; also one that ends at once after such a
// list. One that ends at once otherwise is not, as when an API server starts.
func TestSchemaChange(t *testing.T) {
	custom := func(s string) string {
		return strings.ReplaceAll(s, `{"kind":"Pod","apiVersion":"v1",`, `{"apiVersion":"v1","kind":"Pod",`)
	}
	widgets := script.Answer{Want: "limit=1", Body: `{"apiVersion":"v1","items":[],"kind":"PodList","metadata":{"continue":"","resourceVersion":"12"}}`}
	list := func(rv int, lasts time.Duration) script.Answer {
		return script.Answer{Want: script.Streaming, Body: custom(script.Event("ADDED", "a", 3) + script.Bookmark(rv, true)), Lasts: lasts}
	}
	for name, test := range map[string]struct {
		answers []script.Answer
		lists   []string
	}{
		"early": {[]script.Answer{widgets, list(10, 5*time.Second), widgets, list(11, time.Hour)}, []string{"list 10 [ns/a@3]", "list 11 [ns/a@3]"}},
		"early, and at once": {[]script.Answer{widgets, list(10, 5*time.Second), widgets, list(11, 0), widgets, list(12, time.Hour)},
			[]string{"list 10 [ns/a@3]", "list 11 [ns/a@3]", "list 12 [ns/a@3]"}},
		"at once": {[]script.Answer{widgets, list(10, 0), widgets, {Want: script.From(2), Lasts: time.Hour, Body: custom(script.Event("ADDED", "a", 3))}}, []string{"list 10 [ns/a@3]"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &recordingSink{}
				up, _, _ := run(t, sink, time.Minute, test.answers...)
				lists := slices.DeleteFunc(sink.log, func(line string) bool { return !strings.HasPrefix(line, "list") })
				if !slices.Equal(lists, test.lists) || len(up.Answers) > 0 {
					t.Errorf("%q, %d answers were not requested", sink.log, len(up.Answers))
				}
			})
		})
	}
}

// TestSchemaChangeOfPages: the watch that was opened before a list in pages shows a changed
// definition, too, unless it only brings nothing new, or ends in the next list again: then
// the API server has ended it because it was not read.
func TestSchemaChangeOfPages(t *testing.T) {
	custom := func(s string) string {
		return strings.ReplaceAll(s, `{"kind":"Pod","apiVersion":"v1",`, `{"apiVersion":"v1","kind":"Pod",`)
	}
	at := func(rv int) script.Answer {
		return script.Answer{Want: "limit=1", Body: fmt.Sprintf(`{"apiVersion":"v1","items":[],"kind":"PodList","metadata":{"continue":"","resourceVersion":"%d"}}`, rv)}
	}
	list := script.Answer{Want: "limit=500", Body: fmt.Sprintf(`{"apiVersion":"v1","items":[%s],"kind":"PodList","metadata":{"resourceVersion":"10"}}`, custom(script.Pod("a", 3)))}
	slow := list
	slow.Lasts = 20 * time.Second
	early := script.Answer{Want: script.From(9), Body: script.Bookmark(10, false), Lasts: 10 * time.Second}
	again := script.Answer{Want: script.From(10), Lasts: 10 * time.Second}
	seen := custom(script.Event("ADDED", "a", 3))
	for name, test := range map[string]struct {
		answers []script.Answer
		log     []string
	}{
		"without news":            {[]script.Answer{{Want: script.From(9), Due: true}, list, {Want: script.From(10), Stall: true}}, []string{"list 10 [ns/a@3]"}},
		"ended early":             {[]script.Answer{early, slow, at(10), {Want: script.From(10), Stall: true}, list}, []string{"list 10 [ns/a@3]", "list 10 [ns/a@3]"}},
		"ended early in any list": {[]script.Answer{early, slow, at(10), again, slow, at(10), {Want: script.From(2), Stall: true, Body: seen}}, []string{"list 10 [ns/a@3]", "list 10 [ns/a@3]"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &recordingSink{}
				answers := append([]script.Answer{at(5), {Want: script.Streaming, Code: 400, Body: script.Status(400)}, at(9)}, test.answers...)
				up, _, _ := run(t, sink, 11*time.Minute, answers...)
				if !slices.Equal(sink.log, test.log) || len(up.Answers) > 0 {
					t.Errorf("%q, %d answers were not requested", sink.log, len(up.Answers))
				}
			})
		})
	}
}

// TestFlushBeforePartialFrame: an incomplete frame does not delay the flush of the
// event before it.
func TestFlushBeforePartialFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &recordingSink{}
		go run(t, sink, time.Hour, script.Probe, script.Answer{Want: script.Streaming, Stall: true,
			Body: script.Bookmark(10, true) + script.Event("MODIFIED", "a", 11) + script.Event("MODIFIED", "a", 12)[:40]})
		time.Sleep(time.Minute)
		synctest.Wait()
		if sink.head != 11 || sink.hidden > 0 {
			t.Errorf("at %d, %d events not flushed", sink.head, sink.hidden)
		}
	})
}

// TestSinkRefuses: an event that the sink refuses, as a timeline does with one that
// is out of order, leads to a list.
func TestSinkRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &recordingSink{fail: func(rv uint64) error {
			if rv == 9 {
				return errors.New("out of order")
			}
			return nil
		}}
		run(t, sink, time.Minute, script.Probe, script.Synced,
			script.Answer{Want: script.From(10), Body: script.Event("MODIFIED", "a", 9) + script.Event("MODIFIED", "a", 11)},
			script.Answer{Want: script.Streaming, Body: script.Event("ADDED", "a", 11) + script.Bookmark(12, true), Stall: true})
		if want := []string{"list 10 [ns/a@3]", "bookmark 10", "list 12 [ns/a@11]", "bookmark 12"}; !slices.Equal(sink.log, want) {
			t.Errorf("%v", sink.log)
		}
	})
}
