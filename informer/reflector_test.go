// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

// An answer is how the scripted upstream answers one request. The request's query
// must have the parameters in want, which are separated by spaces.
type answer struct {
	want   string
	code   int
	body   string
	late   []string      // sent after body, every so often
	every  time.Duration // the time between them; 0 is half a minute
	then   error         // how the body ends; nil is an orderly end
	stall  bool          // the body never ends
	silent bool          // there is no answer
	wait   time.Duration // before the answer
	lasts  time.Duration
	due    bool // the body ends in order after the request's timeoutSeconds
	again  bool // also the answer to every later request
	header http.Header
}

// A script is an upstream that gives its answers in order. Without further answers
// its streams never end.
type script struct {
	t       *testing.T
	answers []answer
	asked   []time.Time
	sent    map[string]sentEvent // by name and RV
}

// A sentEvent is an event, or an object of a list, that a script has sent.
type sentEvent struct {
	rv   int
	text string // of the event
}

// sentObjects matches the objects of podJSON, and what is in front of them in an event.
var sentObjects = regexp.MustCompile(`(?:"type":"(\w+)","object":)?(\{"kind":"Pod","apiVersion":"v1","metadata":\{"name":"([^"]*)","namespace".*?"resourceVersion":"(\d+)".*?\}\})`)

// note remembers the events in a body.
func (s *script) note(body string) {
	if s.sent == nil {
		s.sent = map[string]sentEvent{}
	}
	for _, m := range sentObjects.FindAllStringSubmatch(body, -1) {
		if m[1] == "" {
			m[1] = "MODIFIED"
		}
		rv, _ := strconv.Atoi(m[4])
		s.sent[m[3]+"@"+m[4]] = sentEvent{rv, fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", m[1], m[2])}
	}
}

// repeated returns the events from an RV on that a watch sends again before the answer that
// the test wants.
func (s *script) repeated(query url.Values, a answer) (events string) {
	from, err := strconv.Atoi(query.Get("resourceVersion"))
	_, after, ok := strings.Cut(a.want, "resourceVersion=")
	after, _, _ = strings.Cut(after, " ")
	to, _ := strconv.Atoi(after)
	if err != nil || !ok || from >= to {
		return ""
	}
	var sent []sentEvent
	for _, e := range s.sent {
		if from < e.rv && e.rv <= to {
			sent = append(sent, e)
		}
	}
	slices.SortFunc(sent, func(a, b sentEvent) int { return a.rv - b.rv })
	for _, e := range sent {
		events += e.text
	}
	return events
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Now())
	a := answer{stall: true}
	if req.URL.RawQuery == "limit=1" && (len(s.answers) == 0 || s.answers[0].want != "limit=1") {
		a = at(9999) // a probe for which the test has no answer
	} else if len(s.answers) > 0 {
		if a = s.answers[0]; !a.again {
			s.answers = s.answers[1:]
		}
		events := s.repeated(req.URL.Query(), a)
		for _, part := range strings.Fields(a.want) {
			if !slices.Contains(strings.Split(req.URL.RawQuery, "&"), part) && !(events != "" && strings.HasPrefix(part, "resourceVersion=")) {
				s.t.Errorf("request %d: query %q lacks %q", len(s.asked), req.URL.RawQuery, part)
			}
		}
		if a.code == 0 && (a.then == nil || a.body != "") {
			a.body = events + a.body
		}
	}
	for _, text := range append(a.late, a.body) {
		s.note(text)
	}
	if a.silent {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	time.Sleep(a.wait)
	if a.code == 0 && a.then != nil && a.body == "" {
		return nil, a.then
	}
	if a.every == 0 {
		a.every = minute / 2
	}
	pr, pw := io.Pipe()
	go func() {
		<-req.Context().Done()
		pw.CloseWithError(req.Context().Err())
	}()
	go func() {
		_, _ = io.WriteString(pw, a.body)
		for _, text := range a.late {
			time.Sleep(a.every)
			_, _ = io.WriteString(pw, text)
		}
		if seconds, err := strconv.Atoi(req.URL.Query().Get("timeoutSeconds")); a.due && err == nil {
			a.lasts = time.Duration(seconds) * time.Second
		}
		select {
		case <-time.After(a.lasts):
		case <-req.Context().Done():
		}
		if !a.stall {
			pw.CloseWithError(a.then)
		}
	}()
	if a.code == 0 {
		a.code = http.StatusOK
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	return &http.Response{StatusCode: a.code, Header: a.header, Body: pr, Request: req}, nil
}

const minute = time.Minute

func podJSON(name string, rv int) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns","uid":"u","resourceVersion":"%d"},"spec":{}}`, name, rv)
}

func event(typ, name string, rv int) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", typ, podJSON(name, rv))
}

func bookmark(rv int, end bool) string {
	annotations := ""
	if end {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s},"spec":{"containers":null}}}`+"\n", rv, annotations)
}

func page(rv int, next string, items ...string) string {
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`+"\n", rv, next, strings.Join(items, ","))
}

func status(code int) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","code":%d}`, code)
}

// tooLarge is the Status for an RV that is higher than the API server's.
const tooLarge = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 10, current: 9",` +
	`"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`

var (
	probe     = at(5)
	streaming = "watch=true sendInitialEvents=true resourceVersionMatch=NotOlderThan allowWatchBookmarks=true"
	synced    = answer{want: streaming, body: event("ADDED", "a", 3) + bookmark(10, true)}
)

// at answers the consistent list with limit=1 by which the reflector learns the
// collection's kind and the upstream's RV.
func at(rv int) answer { return answer{want: "limit=1", body: page(rv, "")} }

func from(rv int) string {
	return fmt.Sprintf("watch=true allowWatchBookmarks=true resourceVersion=%d", rv)
}

// run runs a reflector with the answers for the time given, and returns the
// upstream, the reflector and Run's error.
func run(t *testing.T, sink *recordingSink, during time.Duration, answers ...answer) (*script, *Reflector, error) {
	t.Helper()
	up := &script{t: t, answers: answers}
	u, _ := url.Parse("http://upstream/api/v1/pods")
	r := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: sink})
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	err := r.Run(ctx)
	if len(up.answers) > 0 && !up.answers[0].again {
		t.Errorf("%d answers were not requested", len(up.answers))
	}
	return up, r, err
}

func TestReflector(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []answer
		want    []string
		relists map[string]int
	}{{
		"a streaming list, and the watch on the same stream",
		[]answer{probe, {want: streaming, stall: true,
			body: event("ADDED", "a", 3) + event("ADDED", "b", 7) + bookmark(10, true) + event("MODIFIED", "a", 11)}},
		[]string{"list 10 [ns/a@3 ns/b@7]", "bookmark 10", "MODIFIED ns/a@11"},
		map[string]int{"initial": 1},
	}, {
		"after an orderly end the watch resumes at the last RV, that of a bookmark too",
		[]answer{probe, synced, {want: from(10), due: true, body: event("MODIFIED", "a", 11) + bookmark(20, false)},
			{want: from(20), due: true, body: event("MODIFIED", "a", 21)}, {want: from(21), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "bookmark 20", "MODIFIED ns/a@21"},
		map[string]int{"initial": 1},
	}, {
		"after a deletion the watch resumes one RV lower: others may share the RV",
		[]answer{probe, synced, {want: from(10), due: true, body: event("DELETED", "a", 11)}, {want: from(10), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "DELETED ns/a@11"},
		map[string]int{"initial": 1},
	}, {
		"a cut stream, a refused connection, 500, 429",
		[]answer{probe, synced, {want: from(10), body: event("MODIFIED", "a", 11), then: io.ErrUnexpectedEOF},
			{want: "limit=1", then: syscall.ECONNREFUSED},
			at(11), {want: from(10), code: 500, body: "oops"},
			at(11), {want: from(10), code: 429, body: status(429)},
			at(11), {want: from(10), body: event("MODIFIED", "a", 11) + event("MODIFIED", "a", 12), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "MODIFIED ns/a@12"},
		map[string]int{"initial": 1},
	}, {
		"truncated and malformed frames",
		[]answer{probe, synced, {want: from(10), body: event("MODIFIED", "a", 11) + event("MODIFIED", "a", 12)[:40]},
			at(11), {want: from(10), body: event("MODIFIED", "a", 11) + event("MODIFIED", "a", 12) + "<html>502 Bad Gateway</html>\n" + event("MODIFIED", "a", 14)},
			at(12), {want: from(10), body: event("MODIFIED", "a", 11) + event("MODIFIED", "a", 12) + event("MODIFIED", "a", 13), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "MODIFIED ns/a@12", "MODIFIED ns/a@13"},
		map[string]int{"initial": 1},
	}, {
		"three malformed frames in a row lead to a list",
		[]answer{probe, synced, {want: from(10), body: "{]\n"}, at(10), {want: from(10), body: "{]\n"}, at(10), {want: from(10), body: "{]\n"},
			{want: streaming, body: event("ADDED", "a", 12) + bookmark(15, true), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"initial": 1, "malformed": 1},
	}, {
		"also if the deletion before them is repeated each time",
		[]answer{probe, synced,
			{want: from(10), body: event("DELETED", "a", 11) + "{]\n"},
			at(11), {want: from(10), body: event("DELETED", "a", 11) + "{]\n"},
			at(11), {want: from(10), body: event("DELETED", "a", 11) + "{]\n"},
			{want: streaming, body: bookmark(15, true), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "DELETED ns/a@11", "list 15 []", "bookmark 15"},
		map[string]int{"initial": 1, "malformed": 1},
	}, {
		"410 as a status",
		[]answer{probe, synced, {want: from(10), code: 410, body: status(410)},
			{want: streaming, body: event("ADDED", "a", 12) + bookmark(15, true), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"initial": 1, "expired": 1},
	}, {
		"410 in the stream",
		[]answer{probe, synced, {want: from(10), body: event("MODIFIED", "a", 11) + `{"type":"ERROR","object":` + status(410) + "}\n"},
			{want: streaming, body: event("ADDED", "a", 12) + bookmark(15, true), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "list 15 [ns/a@12]", "bookmark 15"},
		map[string]int{"initial": 1, "expired": 1},
	}, {
		"another error in the stream leads to no list",
		[]answer{probe, synced, {want: from(10), body: `{"type":"ERROR","object":` + status(500) + "}\n"}, at(10), {want: from(10), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10"},
		map[string]int{"initial": 1},
	}, {
		"a replica that lags does not have the RV yet: the same watch is retried",
		[]answer{probe, synced, {want: from(10), code: 504, body: tooLarge}, at(10), {want: from(10), body: `{"type":"ERROR","object":` + tooLarge + "}\n"},
			at(10), {want: from(10), body: event("MODIFIED", "a", 11), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11"},
		map[string]int{"initial": 1},
	}, {
		"401 for a while, as when credentials are rotated",
		[]answer{probe, synced, {want: from(10), code: 401, body: status(401)}, {want: "limit=1", code: 401, body: status(401)},
			at(10), {want: from(10), body: event("MODIFIED", "a", 11), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11"},
		map[string]int{"initial": 1},
	}, {
		"an etcd restored from a backup continues at lower RVs",
		[]answer{probe, synced, {want: from(10), body: event("MODIFIED", "a", 11), then: io.ErrUnexpectedEOF},
			at(7), {want: streaming, body: event("ADDED", "a", 3) + bookmark(7, true), stall: true}},
		[]string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@11", "list 7 [ns/a@3]", "bookmark 7"},
		map[string]int{"initial": 1, "diverged": 1},
	}, {
		"an upstream without streaming lists; pages",
		[]answer{probe, {want: streaming, code: 400, body: status(400)},
			at(9), {want: from(9), body: event("DELETED", "c", 10) + event("DELETED", "b", 11), stall: true},
			{want: "limit=500", body: page(10, "next", podJSON("a", 3))},
			{want: "limit=500 continue=next", body: page(10, "", podJSON("b", 4))}},
		[]string{"list 10 [ns/a@3 ns/b@4]", "DELETED ns/b@11"},
		map[string]int{"initial": 1},
	}, {
		"no end bookmark in time: paged lists from then on",
		[]answer{probe, {want: streaming, body: event("ADDED", "a", 3), stall: true},
			at(10), {want: from(10), body: `{"type":"ERROR","object":` + status(410) + "}\n"},
			{want: "limit=500", body: page(10, "", podJSON("a", 3))},
			at(20), {want: from(20), stall: true},
			{want: "limit=500", body: page(20, "", podJSON("a", 3))}},
		[]string{"list 10 [ns/a@3]", "list 20 [ns/a@3]"},
		map[string]int{"initial": 1, "expired": 1},
	}, {
		"a deletion before the end bookmark: the upstream ignored sendInitialEvents",
		[]answer{probe, {want: streaming, body: event("ADDED", "a", 3) + event("DELETED", "a", 11), stall: true},
			at(12), {want: from(12), stall: true}, {want: "limit=500", body: page(12, "")}},
		[]string{"list 12 []"},
		map[string]int{"initial": 1},
	}, {
		"after two failed streaming lists, one paged list",
		[]answer{probe, {want: streaming, body: event("ADDED", "a", 3), then: io.ErrUnexpectedEOF},
			{want: streaming, body: `{"type":"ERROR","object":` + status(504) + "}\n"},
			at(12), {want: from(12), body: `{"type":"ERROR","object":` + status(410) + "}\n"}, {want: "limit=500", body: page(12, "", podJSON("a", 3))},
			{want: streaming, body: event("ADDED", "a", 13) + bookmark(20, true), stall: true}},
		[]string{"list 12 [ns/a@3]", "list 20 [ns/a@13]", "bookmark 20"},
		map[string]int{"initial": 1, "expired": 1},
	}, {
		"a continue token that expires",
		[]answer{probe, {want: streaming, code: 400, body: status(400)},
			at(10), {want: from(10), body: event("ADDED", "b", 11) + event("ADDED", "c", 12), stall: true},
			{want: "limit=500", body: page(10, "next", podJSON("a", 3))},
			{want: "continue=next", code: 410, body: status(410)},
			{want: "", body: page(11, "", podJSON("a", 3), podJSON("b", 11))}},
		[]string{"list 11 [ns/a@3 ns/b@11]", "ADDED ns/c@12"},
		map[string]int{"initial": 1},
	}, {
		"a watch on a dead connection ends after its timeoutSeconds",
		[]answer{probe, {want: streaming, body: bookmark(10, true), stall: true}, at(10), {want: from(10), stall: true}, at(10), {want: from(10), stall: true}},
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
				if d := difference(test.want, sink.log); d != "" {
					t.Errorf("%s", d)
				}
				if d := difference(test.relists, r.Status().Relists); d != "" {
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
			_, r, err := run(t, &recordingSink{}, time.Hour, answer{want: "limit=1", code: 403, body: status(403)})
			if !errors.As(err, &refused) || refused.Code != 403 || r.Status().LastError == nil {
				t.Errorf("%v, %+v", err, r.Status())
			}
		})
	})
	t.Run("temporarily", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := &recordingSink{}
			_, _, err := run(t, sink, time.Minute, probe, synced,
				answer{want: from(10), code: 401, body: status(401)},
				answer{want: "limit=1", code: 403, body: status(403)},
				at(10), answer{want: from(10), body: event("MODIFIED", "a", 11), stall: true})
			if err != nil || len(sink.log) != 3 {
				t.Errorf("%v %v", err, sink.log)
			}
		})
	})
	t.Run("twice temporarily, with an idle stream in between", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := run(t, &recordingSink{}, time.Hour, probe, synced,
				answer{want: from(10), code: 403, body: status(403)},
				at(10), answer{want: from(10), lasts: 5 * time.Minute},
				answer{want: from(10), code: 403, body: status(403)},
				at(10), answer{want: from(10), stall: true})
			if err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("404 is final", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, _, err := run(t, &recordingSink{}, time.Hour, probe, synced, answer{want: from(10), code: 404, body: "404 page not found"})
			if !errors.As(err, &refused) || refused.Code != 404 || time.Since(start) > time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("another kind", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			other := answer{want: "limit=1", body: strings.Replace(page(20, ""), "PodList", "BeanList", 1)}
			_, _, err := run(t, &recordingSink{}, time.Hour, probe, synced, answer{want: from(10), code: 410, body: status(410)}, other)
			if !errors.As(err, &refused) || refused.Code != 404 {
				t.Error(err)
			}
		})
	})
	t.Run("a list without an RV", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := run(t, &recordingSink{}, time.Hour, answer{want: "limit=1", body: `{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[]}`})
			if !errors.As(err, &refused) || refused.Code != 501 {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("permanently", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, _, err := run(t, &recordingSink{}, time.Hour, probe, synced,
				answer{want: from(10), code: 403, body: status(403)},
				answer{want: "limit=1", code: 403, body: status(403), again: true})
			if took := time.Since(start); !errors.As(err, &refused) || took < 30*time.Second || took > time.Minute {
				t.Errorf("%v after %v", err, took)
			}
		})
	})
}

func TestRetryAfter(t *testing.T) {
	detail := strings.Replace(status(500), `"code"`, `"details":{"retryAfterSeconds":86400},"code"`, 1)
	for _, test := range []struct {
		name string
		a    answer
		want time.Duration
	}{
		{"header", answer{code: 429, header: http.Header{"Retry-After": {"7"}}, body: status(429)}, 7 * time.Second},
		{"details, limited to a minute", answer{code: 503, body: detail}, time.Minute},
		{"in the stream", answer{body: `{"type":"ERROR","object":` + detail + "}\n"}, time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.a.want = from(10)
				up, _, _ := run(t, &recordingSink{}, 5*time.Minute, probe, synced, test.a, at(10), answer{want: from(10), stall: true})
				if wait := up.asked[4].Sub(up.asked[3]); wait < test.want || wait > test.want+time.Second {
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
		answers []answer
		max     int // requests in five minutes
	}{
		{"streams that end at once", []answer{probe, synced, {want: "", body: "", again: true}}, 150},
		{"a repeated deletion, then the end", []answer{probe, synced, {want: from(10), body: event("DELETED", "a", 11)}, {want: "", body: event("DELETED", "a", 11), again: true}}, 150},
		{"410 after 410", []answer{probe, synced, {want: "", code: 410, body: status(410), again: true}}, 150},
		{"idle streams of half a minute", []answer{probe, synced, {want: "", lasts: 31 * time.Second, again: true}}, 33},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up, _, _ := run(t, &recordingSink{}, 5*time.Minute, test.answers...)
				if n := len(up.asked); n > test.max {
					t.Errorf("%d requests", n)
				} else if n < 8 {
					t.Errorf("only %d requests", n)
				}
			})
		})
	}
	t.Run("lists whose watch has expired", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			answers := []answer{probe}
			for i := range 1000 {
				answers = append(answers, answer{body: bookmark(10+i, true) + `{"type":"ERROR","object":` + status(410) + "}\n"})
			}
			up := &script{t: t, answers: answers}
			u, _ := url.Parse("http://upstream/api/v1/pods")
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if err := NewReflector(ReflectorOptions{Transport: up, URL: u, Sink: &recordingSink{}}).Run(ctx); err != nil || len(up.asked) > 150 {
				t.Errorf("%d requests, %v", len(up.asked), err)
			}
		})
	})
}

// TestSchemaChange: a stream of custom resources that ends early is followed by a
// list, since their definition may have changed; also one that ends at once after such a
// list. One that ends at once otherwise is not, as when an API server starts.
func TestSchemaChange(t *testing.T) {
	custom := func(s string) string {
		return strings.ReplaceAll(s, `{"kind":"Pod","apiVersion":"v1",`, `{"apiVersion":"v1","kind":"Pod",`)
	}
	widgets := answer{want: "limit=1", body: `{"apiVersion":"v1","items":[],"kind":"PodList","metadata":{"continue":"","resourceVersion":"12"}}`}
	list := func(rv int, lasts time.Duration) answer {
		return answer{want: streaming, body: custom(event("ADDED", "a", 3) + bookmark(rv, true)), lasts: lasts}
	}
	for name, test := range map[string]struct {
		answers []answer
		lists   []string
	}{
		"early": {[]answer{widgets, list(10, 5*time.Second), widgets, list(11, time.Hour)}, []string{"list 10 [ns/a@3]", "list 11 [ns/a@3]"}},
		"early, and at once": {[]answer{widgets, list(10, 5*time.Second), widgets, list(11, 0), widgets, list(12, time.Hour)},
			[]string{"list 10 [ns/a@3]", "list 11 [ns/a@3]", "list 12 [ns/a@3]"}},
		"at once": {[]answer{widgets, list(10, 0), widgets, {want: from(2), lasts: time.Hour, body: custom(event("ADDED", "a", 3))}}, []string{"list 10 [ns/a@3]"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &recordingSink{}
				up, _, _ := run(t, sink, time.Minute, test.answers...)
				lists := slices.DeleteFunc(sink.log, func(line string) bool { return !strings.HasPrefix(line, "list") })
				if !slices.Equal(lists, test.lists) || len(up.answers) > 0 {
					t.Errorf("%q, %d answers were not requested", sink.log, len(up.answers))
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
	at := func(rv int) answer {
		return answer{want: "limit=1", body: fmt.Sprintf(`{"apiVersion":"v1","items":[],"kind":"PodList","metadata":{"continue":"","resourceVersion":"%d"}}`, rv)}
	}
	list := answer{want: "limit=500", body: fmt.Sprintf(`{"apiVersion":"v1","items":[%s],"kind":"PodList","metadata":{"resourceVersion":"10"}}`, custom(podJSON("a", 3)))}
	slow := list
	slow.lasts = 20 * time.Second
	early := answer{want: from(9), body: bookmark(10, false), lasts: 10 * time.Second}
	again := answer{want: from(10), lasts: 10 * time.Second}
	seen := custom(event("ADDED", "a", 3))
	for name, test := range map[string]struct {
		answers []answer
		log     []string
	}{
		"without news":            {[]answer{{want: from(9), due: true}, list, {want: from(10), stall: true}}, []string{"list 10 [ns/a@3]"}},
		"ended early":             {[]answer{early, slow, at(10), {want: from(10), stall: true}, list}, []string{"list 10 [ns/a@3]", "list 10 [ns/a@3]"}},
		"ended early in any list": {[]answer{early, slow, at(10), again, slow, at(10), {want: from(2), stall: true, body: seen}}, []string{"list 10 [ns/a@3]", "list 10 [ns/a@3]"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &recordingSink{}
				answers := append([]answer{at(5), {want: streaming, code: 400, body: status(400)}, at(9)}, test.answers...)
				up, _, _ := run(t, sink, 11*time.Minute, answers...)
				if !slices.Equal(sink.log, test.log) || len(up.answers) > 0 {
					t.Errorf("%q, %d answers were not requested", sink.log, len(up.answers))
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
		go run(t, sink, time.Hour, probe, answer{want: streaming, stall: true,
			body: bookmark(10, true) + event("MODIFIED", "a", 11) + event("MODIFIED", "a", 12)[:40]})
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
		run(t, sink, time.Minute, probe, synced,
			answer{want: from(10), body: event("MODIFIED", "a", 9) + event("MODIFIED", "a", 11)},
			answer{want: streaming, body: event("ADDED", "a", 11) + bookmark(12, true), stall: true})
		if want := []string{"list 10 [ns/a@3]", "bookmark 10", "list 12 [ns/a@11]", "bookmark 12"}; !slices.Equal(sink.log, want) {
			t.Errorf("%v", sink.log)
		}
	})
}

func TestBackoffBounds(t *testing.T) {
	var b backoff
	for i := range 100 {
		limit := min(200*time.Millisecond<<min(i, 20), 8*time.Second)
		if d := b.next(); d < limit/2 || d > limit {
			t.Fatalf("wait %d is %v", i, d)
		}
	}
}
