// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// TestGzipWatch: a watch with large initial events is one gzip member, over each carrier. A
// client can decompress the initial events and each later event when it has been sent, and sees
// the end.
func TestGzipWatch(t *testing.T) {
	var objects []*scan.Object
	size := 0
	for i := range 400 {
		objects = append(objects, pasttest.Pod("d", fmt.Sprintf("p%03d", i), 5, "filling", strings.Repeat(fmt.Sprint(i, "-"), 500)))
		size += len(objects[i].JSON)
	}
	tl := timeline.New(timeline.Options{})
	tl.Reset(pasttest.List(10, objects...))
	tracker := NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{}))
	open := carriers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := newWatch(t, tl, 10)
		s.Initial, s.InitialEnd, s.Bookmarks = append([]*scan.Object(nil), objects...), 10, true
		s.Compress(w.Header())
		if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Error(w.Header())
		}
		tracker.Serve(w, r, s)
	}))
	type client struct {
		name  string
		lines *bufio.Reader
		sent  *counter
	}
	var clients []client
	for name, open := range open {
		body, err := open()
		if err != nil {
			t.Fatal(name, err)
		}
		defer body.Close()
		sent := &counter{r: body}
		plain, err := gzip.NewReader(bufio.NewReader(sent))
		if err != nil {
			t.Fatal(name, err)
		}
		plain.Multistream(false)
		clients = append(clients, client{name, bufio.NewReader(plain), sent})
	}
	next := func(c client, want string) {
		t.Helper()
		if line, err := c.lines.ReadString('\n'); line != want || err != nil {
			t.Fatalf("%s: %.200q, %v; want %.200q", c.name, line, err, want)
		}
	}
	for _, c := range clients {
		for _, o := range objects {
			next(c, `{"type":"ADDED","object":`+o.JSON+"}\n")
		}
		if line, err := c.lines.ReadString('\n'); !strings.Contains(line, `"k8s.io/initial-events-end":"true"`) || err != nil {
			t.Fatalf("%s: %.200q, %v", c.name, line, err)
		}
		if c.sent.n > size/3 {
			t.Errorf("%s: %d bytes are sent as %d", c.name, size, c.sent.n)
		}
	}
	for i, filling := range []int{0, 10, maxStored - 300, maxStored, 3 * maxStored} {
		o := pasttest.Pod("d", "p000", 11+uint64(i), "filling", strings.Repeat("x", filling))
		if err := tl.Apply(scan.Frame{Type: kube.Modified, Object: o}); err != nil {
			t.Fatal(err)
		}
		tl.Flush()
		for _, c := range clients {
			next(c, `{"type":"MODIFIED","object":`+o.JSON+"}\n")
		}
	}
	tl.Close()
	for _, c := range clients {
		if rest, err := io.ReadAll(c.lines); len(rest) > 0 || err != nil { // the checksum is right
			t.Errorf("%s: after the end: %.200q, %v", c.name, rest, err)
		}
	}
	<-tracker.Idle()
}

// A counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// TestGzipWatchSmall: a watch with few initial events is not compressed.
func TestGzipWatchSmall(t *testing.T) {
	s := &Watch{Initial: []*scan.Object{pasttest.Pod("d", "a", 5)}}
	header := http.Header{}
	if s.Compress(header); len(header) > 0 || s.zip != nil {
		t.Error(header)
	}
}

// A joined sink joins frames.
type joinedSink struct{ bytes.Buffer }

func (s *joinedSink) frame(parts []string) error {
	for _, p := range parts {
		s.WriteString(p)
	}
	return nil
}
func (*joinedSink) flush() error { return nil }
func (*joinedSink) release()     {}

// TestStored: frames of every size around a block's are equal after decompression.
func TestStored(t *testing.T) {
	var to joinedSink
	s := &gzipSink{to: &to}
	var want strings.Builder
	send := func(parts ...string) {
		want.WriteString(strings.Join(parts, ""))
		if err := s.frame(parts); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.endInitial(); err != nil { // without initial events
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, maxStored - 1, maxStored, maxStored + 1, 2*maxStored - 1, 2 * maxStored, 2*maxStored + 1} {
		text := strings.Repeat("0123456789abcdef", n/16+1)[:n]
		send(text)
		send("a", text, "", "b")
		send(text[:n/2], text[n/2:])
	}
	to.WriteString(s.end())
	plain, err := gzip.NewReader(&to)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(plain); string(got) != want.String() || err != nil {
		t.Errorf("%d bytes, %v; want %d", len(got), err, want.Len())
	}
	if s.end() != "" {
		t.Error("there are two ends")
	}
}
