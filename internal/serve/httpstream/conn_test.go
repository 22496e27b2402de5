// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// newWatch returns a watch of a timeline of Pods from an RV.
func newWatch(t *testing.T, tl *timeline.Timeline, rv uint64) *Watch {
	t.Helper()
	v := tl.View()
	cursor, err := tl.WatchFrom(v, rv, timeline.Interest{})
	if err != nil {
		t.Fatal(err)
	}
	enc := &wire.Encoder{Resource: pasttest.Pods, Cache: wire.NewCache(1 << 20)}
	s := &Watch{Owner: owner{}, Source: cursor, Encoder: enc, Wire: enc.Stream(wire.Form{}, false), BookmarkTemplate: v.BookmarkTemplate}
	s.SetTimeout(time.Hour)
	return s
}

// TestStuckClient: Cut and abort end the stream of a client that does not read.
func TestStuckClient(t *testing.T) {
	for name, end := range map[string]func(*Tracker){
		"cut": (*Tracker).Cut,
		"abort": func(requests *Tracker) {
			requests.mu.Lock()
			defer requests.mu.Unlock()
			for s := range requests.adopted {
				s.timer.out.abort()
			}
		},
	} {
		tl := timeline.New(timeline.Options{})
		tl.Reset(pasttest.List(10))
		filling := strings.Repeat("x", 1<<20)
		for i := range uint64(24) {
			if err := tl.Apply(scan.Frame{Type: kube.Modified, Object: pasttest.Pod("d", "a", 11+i, "filling", filling)}); err != nil {
				t.Fatal(err)
			}
		}
		tl.Flush()
		tracker := NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{}))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tracker.Serve(w, r, newWatch(t, tl, 10))
		}))
		conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		end(tracker)
		select {
		case <-tracker.Idle():
		case <-time.After(time.Minute):
			t.Errorf("%s does not end the stream", name)
		}
		conn.Close()
		server.Close()
	}
}

// TestBlock: text that is added to blocks is written as chunks.
func TestBlock(t *testing.T) {
	var out chunks
	s := httpSink{out: &out, timer: &watchTimer{}}
	var want bytes.Buffer
	for i := range 40 {
		parts := []string{fmt.Sprint("head ", i), strings.Repeat("x", i*1000), "tail\n"}
		want.WriteString(strings.Join(parts, ""))
		if err := s.frame(parts); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	out.WriteString("0\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+out.String())), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want.String() {
		t.Errorf("%d bytes were written as %d, %v", want.Len(), len(got), err)
	}
	if s.block != nil {
		t.Error("a block is kept")
	}
}

// chunks is an output that keeps the written chunks.
type chunks struct{ bytes.Buffer }

func (c *chunks) writeFrame(f *wire.Frame) error { c.Write(f.Chunk()); return nil }
func (c *chunks) writeBlock(b *block) error      { c.Write(b.chunk()); return nil }
func (c *chunks) abort()                         {}
func (c *chunks) cut()                           {}
