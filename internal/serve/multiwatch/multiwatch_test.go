// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package multiwatch

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

const path = "/watchkeeper/v1/multiwatch"

// multiwatchURL returns the request of the watches.
func multiwatchURL(server string, watches ...string) string {
	return server + path + "?" + url.Values{"watch": watches}.Encode()
}

// serveMultiwatch serves multiwatches whose watches answer serves.
func serveMultiwatch(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(&Handler{Answer: allowed(answer), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(server.Close)
	return server
}

// allowed is an answer that is not revoked.
func allowed(answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) *metav1.Status {
	return func(w http.ResponseWriter, r *http.Request) *metav1.Status {
		answer(w, r)
		return nil
	}
}

// nextLine reads a line and abbreviates it: the watch and its event.
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

// TestMultiwatchAnswers: for any answer to a watch, its lines are JSON, and an ERROR
// names the problem.
func TestMultiwatchAnswers(t *testing.T) {
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
		if r.URL.Query().Has("abort") {
			panic(http.ErrAbortHandler)
		}
	})
	event := `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}}`
	for name, test := range map[string]struct {
		query url.Values
		want  []string
	}{
		"lines":      {url.Values{"type": {"application/json"}, "body": {event + "\n\n" + event + "\n"}}, []string{"0 ADDED a@5", "0 ADDED a@5"}},
		"cut off":    {url.Values{"type": {"application/json;stream=watch"}, "body": {event + "\n" + event[:20]}}, []string{"0 ADDED a@5", "0 ERROR Status 502 the answer to the watch is not one: it has a line without an end"}},
		"aborted":    {url.Values{"type": {"application/json"}, "body": {event + "\n"}, "abort": {""}}, []string{"0 ADDED a@5", "0 ERROR Status 502 the answer to the watch is not one: it has no end: the connection to the API server broke"}},
		"refused":    {url.Values{"type": {"application/json"}, "code": {"503"}, "body": {`{"kind":"Status","code":503,"message":"no`}, "abort": {""}}, []string{"0 ERROR Status 502 the answer to the watch is not one: it has no end: the connection to the API server broke"}},
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

// TestMultiwatchRequests: invalid requests are refused.
func TestMultiwatchRequests(t *testing.T) {
	server := serveMultiwatch(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was served") })
	many := make([]string, maxWatches+1)
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
		"itself":     multiwatchURL("", path+"?watch=1"),
		"a query":    path + "?watch=%zz",
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

// socketBuffer is the size of the kernel's buffer in each direction, so that writes to a
// client that does not read block after few bytes.
const socketBuffer = 64 << 10

// zipped asks for a multiwatch in gzip, and does not read it.
func zipped(ctx context.Context, t *testing.T, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip, deflate, br")
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(socketBuffer)
		}
		return c, err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	return resp
}

// TestMultiwatchStreams: each watch has a stream of its user before it is served, and until
// its last line is written. If a user may not have all of them, the multiwatch is refused.
func TestMultiwatchStreams(t *testing.T) {
	var open, max atomic.Int32
	answered := make(chan struct{}, 10)
	server := httptest.NewServer(&Handler{
		Answer: allowed(func(w http.ResponseWriter, r *http.Request) {
			if open.Load() != 3 {
				t.Errorf("%d streams while a watch is served", open.Load())
			}
			answered <- struct{}{}
			<-r.Context().Done()
		}),
		Open: func(*http.Request) (func(), error) {
			if open.Load() == max.Load() {
				return nil, &status.Error{Status: status.TooMany("as many as a user may have", 7)}
			}
			open.Add(1)
			return func() { open.Add(-1) }, nil
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(server.Close)
	get := func() *http.Response {
		t.Helper()
		resp, err := http.Get(multiwatchURL(server.URL, "/api/v1/pods?watch=1", "/api/v1/nodes?watch=1", "/api/v1/secrets?watch=1"))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	max.Store(2)
	resp := get()
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "7" || open.Load() != 0 || len(answered) != 0 {
		t.Errorf("%s, Retry-After %q, %d streams, %d watches", resp.Status, resp.Header.Get("Retry-After"), open.Load(), len(answered))
	}
	max.Store(3)
	resp = get()
	for range 3 {
		<-answered
	}
	resp.Body.Close()
	server.Close() // waits for the handlers
	if open.Load() != 0 {
		t.Errorf("%d streams are left", open.Load())
	}
}

// TestMultiwatchPlain: a client that does not accept gzip gets plain text.
func TestMultiwatchPlain(t *testing.T) {
	server := serveMultiwatch(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}\n")
	})
	for _, accept := range []string{"identity", "br", "gzip;q=0"} {
		r, err := http.NewRequest(http.MethodGet, multiwatchURL(server.URL, "/api/v1/pods?watch=1"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", accept)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := "{\"watch\":0,}\n{\"watch\":0,\"type\":\"END\"}\n"; err != nil || string(text) != want || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %q %v, %v", accept, text, resp.Header, err)
		}
	}
}

// TestMultiwatchSlow: a client that pauses reading gets everything later; a client that
// leaves ends its watches.
func TestMultiwatchSlow(t *testing.T) {
	const events, size = 60, 64 << 10
	line := func(i int) string {
		b := make([]byte, size/2) // random bytes do not compress
		_, _ = rand.Read(b)
		return fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"name":"n%d","resourceVersion":"%d","uid":"%s"}}}`, i, i, hex.EncodeToString(b))
	}
	var written atomic.Int32
	both := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := range events {
			if _, err := io.WriteString(w, line(i)+"\n"); err != nil {
				return
			}
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			written.Add(1)
		}
	}
	server := httptest.NewUnstartedServer(&Handler{Answer: allowed(both), Logger: slog.New(slog.DiscardHandler)})
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(socketBuffer); err != nil {
			t.Error(err)
		}
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	path := multiwatchURL(server.URL, "/api/v1/pods?watch=1", "/api/v1/nodes?watch=1")

	resp := zipped(ctx, t, path)
	// The watches are blocked: the number of written events stops growing.
	for last, same := int32(0), 0; same < 20; time.Sleep(10 * time.Millisecond) {
		if n := written.Load(); n == last && n > 0 {
			same++
		} else {
			last, same = n, 0
		}
	}
	if n := written.Load(); n == 0 || n == 2*events {
		t.Errorf("%d of %d were written to a client that does not read", n, 2*events)
	}
	plain, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 1<<20)
	next, ends := [2]int{}, 0
	for ends < 2 {
		got := nextLine(t, lines)
		var watch, i, rv int
		if strings.HasSuffix(got, " END") {
			ends++
		} else if n, _ := fmt.Sscanf(got, "%d ADDED n%d@%d", &watch, &i, &rv); n != 3 || i != next[watch] {
			t.Fatalf("got %q, after %v", got, next)
		} else {
			next[watch]++
		}
	}
	if next != [2]int{events, events} {
		t.Errorf("%v of each", next)
	}

	gone := zipped(ctx, t, path)
	_, _ = io.ReadFull(gone.Body, make([]byte, 1<<10))
	gone.Body.Close()
	server.Close() // waits for the handlers
}

// TestMultiwatchAbort: a watch whose client does not read in time disconnects the client,
// while another watch is blocked in a write. A deadline in the future has no effect.
func TestMultiwatchAbort(t *testing.T) {
	ended, set := make(chan struct{}), make(chan error, 1)
	line := strings.Repeat("x", 64<<10)
	server := serveMultiwatch(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		ctl := http.NewResponseController(w)
		if r.URL.Path == "/api/v1/nodes" {
			for _, deadline := range []time.Time{{}, time.Now().Add(time.Hour)} {
				if err := ctl.SetWriteDeadline(deadline); err != nil {
					t.Error(err)
				}
				if _, err := io.WriteString(w, "{}\n"); err != nil {
					t.Error(err)
				}
			}
			set <- ctl.SetWriteDeadline(time.Now())
			return
		}
		defer close(ended)
		if err := <-set; err != nil {
			t.Error(err)
			return
		}
		for {
			if _, err := io.WriteString(w, "{"+line+"}\n"); err != nil {
				return
			}
			if err := ctl.Flush(); err != nil {
				return
			}
		}
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, multiwatchURL(server.URL, "/api/v1/nodes?watch=1", "/api/v1/pods?watch=1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-ended
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a clean end")
	}
}
