// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package script has an upstream for tests that answers requests from a list.
package script

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An Answer is how the scripted upstream answers one request. The request's query
// must have the parameters in Want, which are separated by spaces. Without a Code it is 200.
type Answer struct {
	Want   string
	Code   int
	Body   string
	Late   []string      // sent after Body, every so often
	Every  time.Duration // the time between them; 0 is half a minute
	Then   error         // how the body ends; nil is an orderly end
	Stall  bool          // the body never ends
	Silent bool          // there is no answer
	Wait   time.Duration // before the answer
	Lasts  time.Duration
	Due    bool // the body ends in order after the request's timeoutSeconds
	Again  bool // also the answer to every later request
	Header http.Header
}

// An Upstream gives its answers in order. It is a transport. Without further answers, its
// streams send the event again that follows their RV, and never end.
type Upstream struct {
	T       testing.TB
	Answers []Answer
	Asked   []time.Time          // when the requests came
	sent    map[string]sentEvent // by name and RV
}

// A sentEvent is an event, or an object of a list, that an upstream has sent.
type sentEvent struct {
	rv   int
	text string // of the event
}

// sentObjects matches the objects of Pod, and what is in front of them in an event.
var sentObjects = regexp.MustCompile(`(?:"type":"(\w+)","object":)?(\{"kind":"Pod","apiVersion":"v1","metadata":\{"name":"([^"]*)","namespace".*?"resourceVersion":"(\d+)".*?\}\})`)

// note remembers the events in a body.
func (s *Upstream) note(body string) {
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
func (s *Upstream) repeated(query url.Values, a Answer) (events string) {
	from, err := strconv.Atoi(query.Get("resourceVersion"))
	_, after, ok := strings.Cut(a.Want, "resourceVersion=")
	after, _, _ = strings.Cut(after, " ")
	to, _ := strconv.Atoi(after)
	if len(s.Answers) == 0 && a.Want == "" {
		ok, to = true, from+1 // a check asks for the last one
	}
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

// RoundTrip answers a request.
func (s *Upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	s.Asked = append(s.Asked, time.Now())
	a := Answer{Stall: true}
	if req.URL.RawQuery == "limit=1" && (len(s.Answers) == 0 || s.Answers[0].Want != "limit=1") {
		a = At(9999) // a probe for which the test has no answer
	} else if len(s.Answers) == 0 {
		a.Body = s.repeated(req.URL.Query(), a)
	} else {
		if a = s.Answers[0]; !a.Again {
			s.Answers = s.Answers[1:]
		}
		events := s.repeated(req.URL.Query(), a)
		for _, part := range strings.Fields(a.Want) {
			if !slices.Contains(strings.Split(req.URL.RawQuery, "&"), part) && !(events != "" && strings.HasPrefix(part, "resourceVersion=")) {
				s.T.Errorf("request %d: query %q lacks %q", len(s.Asked), req.URL.RawQuery, part)
			}
		}
		if a.Code == 0 && (a.Then == nil || a.Body != "") {
			a.Body = events + a.Body
		}
	}
	for _, text := range append(a.Late, a.Body) {
		s.note(text)
	}
	if a.Silent {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	time.Sleep(a.Wait)
	if a.Code == 0 && a.Then != nil && a.Body == "" {
		return nil, a.Then
	}
	if a.Every == 0 {
		a.Every = time.Minute / 2
	}
	pr, pw := io.Pipe()
	go func() {
		<-req.Context().Done()
		pw.CloseWithError(req.Context().Err())
	}()
	go func() {
		_, _ = io.WriteString(pw, a.Body)
		for _, text := range a.Late {
			time.Sleep(a.Every)
			_, _ = io.WriteString(pw, text)
		}
		if seconds, err := strconv.Atoi(req.URL.Query().Get("timeoutSeconds")); a.Due && err == nil {
			a.Lasts = time.Duration(seconds) * time.Second
		}
		select {
		case <-time.After(a.Lasts):
		case <-req.Context().Done():
		}
		if !a.Stall {
			pw.CloseWithError(a.Then)
		}
	}()
	if a.Code == 0 {
		a.Code = http.StatusOK
	}
	if a.Header == nil {
		a.Header = http.Header{}
	}
	return &http.Response{StatusCode: a.Code, Header: a.Header, Body: pr, Request: req}, nil
}

// Pod returns a Pod in JSON.
func Pod(name string, rv int) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns","uid":"u","resourceVersion":"%d"},"spec":{}}`, name, rv)
}

// Event returns a frame of a watch, with a Pod.
func Event(typ, name string, rv int) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", typ, Pod(name, rv))
}

// Bookmark returns a bookmark; with end, the one that ends the initial events.
func Bookmark(rv int, end bool) string {
	annotations := ""
	if end {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s},"spec":{"containers":null}}}`+"\n", rv, annotations)
}

// Page returns a page of a list of Pods. next is its continue token.
func Page(rv int, next string, items ...string) string {
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`+"\n", rv, next, strings.Join(items, ","))
}

// Status returns a Status with a code.
func Status(code int) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","code":%d}`, code)
}

// TooLarge is the Status for an RV that is higher than the API server's.
const TooLarge = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 10, current: 9",` +
	`"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`

var (
	// Probe answers the list before the first one.
	Probe = At(5)
	// Streaming is what the query of a streaming list has.
	Streaming = "watch=true sendInitialEvents=true resourceVersionMatch=NotOlderThan allowWatchBookmarks=true"
	// Synced is a streaming list of one Pod, and the end of its stream.
	Synced = Answer{Want: Streaming, Body: Event("ADDED", "a", 3) + Bookmark(10, true)}
)

// At answers the consistent list with limit=1 by which the reflector learns the
// collection's kind and the upstream's RV.
func At(rv int) Answer { return Answer{Want: "limit=1", Body: Page(rv, "")} }

// From is what the query of a watch from an RV has.
func From(rv int) string {
	return fmt.Sprintf("watch=true allowWatchBookmarks=true resourceVersion=%d", rv)
}
