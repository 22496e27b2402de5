// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// rawRequest sends text in one write over a new connection.
func rawRequest(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(addr, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// watchText is the request for a watch of Pods.
func watchText(query string, headers ...string) string {
	return "GET /api/v1/pods?watch=1&" + query + " HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
}

// whole reads until the connection is closed.
func whole(t *testing.T, conn net.Conn) string {
	t.Helper()
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%v after %q", err, all)
	}
	return string(all)
}

// notHijackable is a ResponseWriter that cannot be hijacked.
type notHijackable struct{ http.ResponseWriter }

func (w notHijackable) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w notHijackable) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

var date = regexp.MustCompile(`Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n`)

// body returns the body of an answer.
func body(t *testing.T, answer string) string {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// TestHijackedLikeNetHTTP: a hijacked watch answers as net/http does to a client that
// sends Connection: close; a watch without events byte for byte.
func TestHijackedLikeNetHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t, podList(10))
	b.apply(kube.Added, pod("d", "a", 11))
	b.apply(kube.Added, pod("d", "b", 12))
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.serve(notHijackable{w}, r)
	}))
	defer plain.Close()
	type exchange struct {
		query        string
		headers      []string
		ours, theirs net.Conn
	}
	var all []exchange // at the same time, since most watches last for a second
	for _, query := range []string{"resourceVersion=10&timeoutSeconds=-1", "resourceVersion=10&timeoutSeconds=1", "resourceVersion=0&timeoutSeconds=1&allowWatchBookmarks=1"} {
		for _, headers := range [][]string{nil, {"Connection: close"}, {"Accept: application/vnd.kubernetes.protobuf"}} {
			all = append(all, exchange{query, headers, rawRequest(t, b.server.URL, watchText(query, headers...)),
				rawRequest(t, plain.URL, watchText(query, append(headers, "Connection: close")...))})
		}
	}
	for _, x := range all {
		query, headers := x.query, x.headers
		got, want := whole(t, x.ours), whole(t, x.theirs)
		if !date.MatchString(got) {
			t.Errorf("no date in %q", got)
		}
		got, want = date.ReplaceAllString(got, "Date: now\r\n"), date.ReplaceAllString(want, "Date: now\r\n")
		gotHead, _, _ := strings.Cut(got, "\r\n\r\n")
		wantHead, _, _ := strings.Cut(want, "\r\n\r\n")
		if gotHead != wantHead {
			t.Errorf("%s %q:\ngot  %q\nwant %q", query, headers, gotHead, wantHead)
		}
		if got, want := body(t, got), body(t, want); got != want {
			t.Errorf("%s %q:\ngot  %q\nwant %q", query, headers, got, want)
		}
		if strings.Contains(query, "-1") && got != want {
			t.Errorf("%s %q:\ngot  %q\nwant %q", query, headers, got, want)
		}
	}
}

// TestNotHijacked: requests whose connections are not hijacked.
func TestNotHijacked(t *testing.T) {
	t.Parallel()
	b := newBench(t, podList(10))
	b.apply(kube.Added, pod("d", "a", 11))
	const path = "/api/v1/pods?watch=1&resourceVersion=10&timeoutSeconds=1"
	event := `{"type":"ADDED","object":` + pod("d", "a", 11).JSON + "}\n"
	old := whole(t, rawRequest(t, b.server.URL, "GET "+path+" HTTP/1.0\r\n\r\n"))
	if head, body, _ := strings.Cut(old, "\r\n\r\n"); !strings.HasPrefix(old, "HTTP/1.0 200 OK\r\n") || strings.Contains(head, "chunked") || body != event {
		t.Errorf("HTTP/1.0: %q", old)
	}
	// After a request with a body, the next one on its connection is answered.
	two := rawRequest(t, b.server.URL, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"+
		"GET /api/v1/pods?resourceVersion=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	in := bufio.NewReader(two)
	for i, want := range []string{event, `"kind":"PodList"`} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), want) {
			t.Errorf("answer %d: %q, %v", i, body, err)
		}
	}
	if head := whole(t, rawRequest(t, b.server.URL, "HEAD "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")); !strings.HasPrefix(head, "HTTP/1.1 418 ") {
		t.Errorf("HEAD: %q", head)
	}
}

// TestHijackedInput: bytes that a client sends after its request are dropped; only the
// end of the connection ends the stream.
func TestHijackedInput(t *testing.T) {
	b := newBench(t, podList(10))
	text := watchText("resourceVersion=10")
	conn := rawRequest(t, b.server.URL, text+text+strings.Repeat("x", 10000))
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || !resp.Close {
		t.Fatal(resp, err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	for rv := range uint64(3) {
		b.apply(kube.Added, pod("d", fmt.Sprint("a", rv), 11+rv))
		if !lines.Scan() || brief(t, lines.Text()) != fmt.Sprintf("ADDED a%d@%d", rv, 11+rv) {
			t.Fatalf("%q, %v", lines.Text(), lines.Err())
		}
	}
	// As in net/http, a half-close by the client ends the watch.
	_ = conn.(*net.TCPConn).CloseWrite()
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
		t.Errorf("after the answer: %q, %v", rest, err)
	}
}

// TestHijackedIdleClientLeaves: the gateway notices that a client has left while there is
// nothing to write, and releases what it held for the watch.
func TestHijackedIdleClientLeaves(t *testing.T) {
	b := newBench(t, podList(10))
	var conns []net.Conn
	for range 20 {
		conn := rawRequest(t, b.server.URL, watchText("resourceVersion=10"))
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	if n := b.res.OpenWatches(); n != 20 {
		t.Errorf("%d watches", n)
	}
	for _, conn := range conns {
		conn.Close()
	}
	<-b.reads.tracker.Idle()
	if n := b.res.OpenWatches(); n != 0 {
		t.Errorf("%d watches are left", n)
	}
	<-b.reads.tracker.Idle()
}

// TestHijackedSlowClient: a client that does not read for a while gets every event (T4),
// and delays no other; its events are larger than a block.
func TestHijackedSlowClient(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5)))
	slow := rawRequest(t, b.server.URL, watchText("resourceVersion=10"))
	if err := slow.(*net.TCPConn).SetReadBuffer(readBuffer); err != nil {
		t.Fatal(err)
	}
	quick := rawRequest(t, b.server.URL, watchText("resourceVersion=10"))
	const events = 40
	filling := strings.Repeat("x", 200<<10)
	for i := range uint64(events) {
		b.apply(kube.Modified, pod("d", "a", 11+i, "filling", filling))
	}
	for _, conn := range []net.Conn{quick, slow} {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(resp.Body)
		for i := range uint64(events) {
			want := `{"type":"MODIFIED","object":` + pod("d", "a", 11+i, "filling", filling).JSON + "}\n"
			if got, err := in.ReadString('\n'); err != nil || got != want {
				t.Fatalf("got %.200s as number %d, %v", got, i, err)
			}
		}
	}
}

// TestHijackedDrain: a drain ends hijacked streams cleanly, and waits for them.
func TestHijackedDrain(t *testing.T) {
	f := newFakeAPI(t)
	g, url := f.front()
	f.write("ns", "a", 10)
	res := podsOf(t, g)
	rv := f.write("ns", "b", 10)
	until(t, "the event", func() bool { return res.Timeline.View().RV >= rv })
	conn := rawRequest(t, url, watchText("resourceVersion=0&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"))
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	for range 3 {
		lines.Scan()
	}
	if got, want := brief(t, lines.Text()), fmt.Sprintf("BOOKMARK @%d end", rv); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	rv = f.write("ns", "c", 10)
	if lines.Scan(); brief(t, lines.Text()) != fmt.Sprintf("ADDED c@%d", rv) {
		t.Fatal(lines.Text())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g.Drain(ctx)
	if ctx.Err() != nil || res.OpenWatches() != 0 {
		t.Errorf("%v, %d watches are left", ctx.Err(), res.OpenWatches())
	}
	if lines.Scan(); brief(t, lines.Text()) != fmt.Sprintf("BOOKMARK @%d", rv) {
		t.Fatal(lines.Text())
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}
}

// TestHijackedTLS: a watch over TLS and HTTP/1.1 ends with close_notify.
func TestHijackedTLS(t *testing.T) {
	t.Parallel()
	b := newBench(t, podList(10))
	server := httptest.NewTLSServer(b.server.Config.Handler)
	defer server.Close()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(server.URL, "https://"), server.Client().Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, watchText("resourceVersion=10&timeoutSeconds=2"))
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.reads.tracker.Active() != 1 {
		t.Error("the watch is not counted")
	}
	b.apply(kube.Added, pod("d", "a", 11))
	lines := bufio.NewScanner(resp.Body)
	if lines.Scan(); brief(t, lines.Text()) != "ADDED a@11" {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
		t.Errorf("after the answer: %q, %v", rest, err)
	}
}

// TestHijackedPanic: a panic in a watch affects no other request, and its stream does not
// end cleanly.
func TestHijackedPanic(t *testing.T) {
	b := newBench(t, podList(10))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &responseRecorder{ResponseWriter: w, metrics: b.metrics, request: r}
		if b.reads.serve(rec, r) != nil {
			t.Error("not served")
		}
		rec.stream.Interest.Match = func(*scan.Object) bool { panic("a fault") }
		b.reads.tracker.Serve(rec, r, rec.stream)
	}))
	defer server.Close()
	conn := rawRequest(t, server.URL, watchText("resourceVersion=10"))
	b.apply(kube.Added, pod("d", "a", 11))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(resp.Body); err != io.ErrUnexpectedEOF {
		t.Errorf("%q, %v", rest, err)
	}
	<-b.reads.tracker.Idle()
	if n := b.res.OpenWatches(); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}
