// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// multiwatchURL returns the request of the watches.
func multiwatchURL(server string, watches ...string) string {
	return server + multiwatchPath + "?" + url.Values{"watch": watches}.Encode()
}

// serveMultiwatch serves multiwatches whose watches answer serves.
func serveMultiwatch(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(&multiwatch{answer: answer, log: slog.New(slog.DiscardHandler)})
	t.Cleanup(server.Close)
	return server
}

// nextLine reads a line in short: the watch, and the event in brief.
func nextLine(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	if !lines.Scan() {
		return fmt.Sprint("end ", lines.Err())
	}
	var line struct {
		Watch  *int
		Type   string
		Object struct {
			Metadata struct{ Name, ResourceVersion string }
			Code     int
			Kind     string
			Message  string
		}
	}
	if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Watch == nil {
		t.Fatalf("%q: %v", lines.Text(), err)
	}
	o := line.Object
	switch line.Type {
	case "ERROR":
		return fmt.Sprintf("%d ERROR %s %d %s", *line.Watch, o.Kind, o.Code, o.Message)
	case "END":
		return fmt.Sprintf("%d END", *line.Watch)
	}
	return fmt.Sprintf("%d %s %s@%s", *line.Watch, line.Type, o.Metadata.Name, o.Metadata.ResourceVersion)
}

// TestMultiwatch: several watches on one response, each with its selectors; one
// that the API server has an error for does not end the others.
func TestMultiwatch(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5, "color", "red"), pod("e", "b", 6)))
	server := serveMultiwatch(t, func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w, metrics: b.metrics, requests: &b.requests, request: r}
		if !b.cache.serve(rec, r) {
			writeStatus(w, r, newStatus(http.StatusForbidden, "Forbidden", "passed through"))
		} else if rec.stream != nil {
			rec.stream.serve(rec)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, multiwatchURL(server.URL,
		"/api/v1/pods?watch=1&resourceVersion=0&labelSelector=color%3Dred",
		"/api/v1/watch/namespaces/e/pods?resourceVersion=10",
		"/api/v1/secrets?watch=1",
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	got := map[string]bool{}
	for range 3 { // in any order
		got[nextLine(t, lines)] = true
	}
	want := map[string]bool{"0 ADDED a@5": true, "2 ERROR Status 403 passed through": true, "2 END": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	for _, change := range []struct {
		typ    kube.EventType
		object *scan.Object
		want   string
	}{
		{kube.Modified, pod("e", "b", 11), "1 MODIFIED b@11"},
		{kube.Modified, pod("d", "a", 12, "color", "blue"), "0 DELETED a@12"},
		{kube.Added, pod("e", "c", 13, "color", "blue"), "1 ADDED c@13"},
	} {
		b.apply(change.typ, change.object)
		if got := nextLine(t, lines); got != change.want {
			t.Fatalf("got %q, want %q", got, change.want)
		}
	}
	b.res.timeline.Close() // ends both
	for range 2 {
		if got := nextLine(t, lines); !strings.HasSuffix(got, " END") {
			t.Fatalf("got %q, want an end", got)
		}
	}
	if got := nextLine(t, lines); got != "end <nil>" {
		t.Errorf("behind the last: %s", got)
	}
}

// TestMultiwatchEnds: the watches end with their client.
func TestMultiwatchEnds(t *testing.T) {
	var open atomic.Int32
	both := make(chan struct{})
	server := serveMultiwatch(t, func(w http.ResponseWriter, r *http.Request) {
		if open.Add(1) == 2 {
			close(both)
		}
		<-r.Context().Done()
		open.Add(-1)
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, multiwatchURL(server.URL, "/api/v1/pods?watch=1", "/api/v1/nodes?watch=1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	<-both
	cancel()
	resp.Body.Close()
	server.Close() // waits for the handlers
	if n := open.Load(); n != 0 {
		t.Errorf("%d watches are still open", n)
	}
}

// TestMultiwatchOddAnswers: whatever a watch is answered with, its lines are
// JSON and say what is wrong.
func TestMultiwatchOddAnswers(t *testing.T) {
	server := serveMultiwatch(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(strings.NewReader(r.URL.Query().Get("body")))
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		if code := r.URL.Query().Get("code"); code != "" {
			var n int
			fmt.Sscan(code, &n)
			w.WriteHeader(n)
		}
		if r.URL.Query().Has("panic") {
			panic("on purpose")
		}
		for len(body) > 0 { // in pieces that split lines
			n := min(7, len(body))
			_, _ = w.Write(body[:n])
			_ = http.NewResponseController(w).Flush()
			body = body[n:]
		}
	})
	event := `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}}`
	for name, test := range map[string]struct {
		query url.Values
		want  []string
	}{
		"lines":      {url.Values{"type": {"application/json"}, "body": {event + "\n\n" + event + "\n"}}, []string{"0 ADDED a@5", "0 ADDED a@5"}},
		"cut off":    {url.Values{"type": {"application/json;stream=watch"}, "body": {event + "\n" + event[:20]}}, []string{"0 ADDED a@5"}},
		"not JSON":   {url.Values{"type": {"application/json"}, "body": {"<html>\n"}}, []string{`0 ERROR Status 502 the answer to the watch is not one: it has a line that begins with "<html>"`}},
		"protobuf":   {url.Values{"type": {"application/vnd.kubernetes.protobuf"}, "body": {"k8s"}}, []string{`0 ERROR Status 406 a multiwatch is JSON, and by its Accept header this watch is "application/vnd.kubernetes.protobuf"`}},
		"a Status":   {url.Values{"type": {"application/json"}, "code": {"410"}, "body": {"{\n \"kind\":\"Status\",\"code\":410,\"message\":\"gone\"}\n"}}, []string{"0 ERROR Status 410 gone"}},
		"plain text": {url.Values{"type": {"text/plain"}, "code": {"503"}, "body": {"no\nserver"}}, []string{"0 ERROR Status 503 no\nserver"}},
		"a panic":    {url.Values{"type": {"application/json"}, "panic": {""}}, []string{"0 ERROR Status 500 the gateway failed: see its log"}},
		"nothing":    {url.Values{"type": {"application/json"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.query.Set("watch", "1")
			resp, err := http.Get(multiwatchURL(server.URL, "/api/v1/pods?"+test.query.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			for _, want := range append(test.want, "0 END", "end <nil>") {
				if got := nextLine(t, lines); got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
			}
		})
	}
}

// TestMultiwatchRequests are requests that are refused.
func TestMultiwatchRequests(t *testing.T) {
	server := serveMultiwatch(t, func(http.ResponseWriter, *http.Request) { t.Error("it was served") })
	many := make([]string, mostWatches+1)
	for i := range many {
		many[i] = "/api/v1/pods?watch=1"
	}
	for name, path := range map[string]string{
		"none":       multiwatchURL(""),
		"too many":   multiwatchURL("", many...),
		"a list":     multiwatchURL("", "/api/v1/pods?watch=1", "/api/v1/pods"),
		"no path":    multiwatchURL("", "pods?watch=1"),
		"a host":     multiwatchURL("", "http://example.com/api/v1/pods?watch=1"),
		"two slash":  multiwatchURL("", "//example.com/api/v1/pods?watch=1"),
		"not a path": multiwatchURL("", "/%zz?watch=1"),
		"a log":      multiwatchURL("", "/api/v1/namespaces/d/pods/a/log?follow=1&watch=1"),
		"itself":     multiwatchURL("", multiwatchPath+"?watch=1"),
		"a query":    multiwatchPath + "?watch=%zz",
	} {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var s struct{ Kind, Message string }
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil || resp.StatusCode != http.StatusBadRequest || s.Kind != "Status" || s.Message == "" {
			t.Errorf("%s: %s %+v, %v", name, resp.Status, s, err)
		}
		resp.Body.Close()
	}
	resp, err := http.Post(server.URL+multiwatchURL(""), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %s", resp.Status)
	}
}
