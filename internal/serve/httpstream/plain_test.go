// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A plainServer serves watches of a timeline over HTTP/1.1, and knows what each has to
// send.
type plainServer struct {
	t       *testing.T
	tl      *timeline.Timeline
	tracker *Tracker
	server  *httptest.Server
	first   uint64
	want    []string // the lines of the events after first
}

func newPlainServer(t *testing.T) *plainServer {
	t.Helper()
	goroutines, files := runtime.NumGoroutine(), openFiles()
	s := &plainServer{t: t, tl: timeline.New(timeline.Options{}), first: 10,
		tracker: NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{}))}
	s.tl.Reset(pasttest.List(s.first))
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.tracker.Serve(w, r, newWatch(t, s.tl, s.first))
	}))
	t.Cleanup(func() {
		s.server.Close()
		until(t, "the end of all goroutines and connections", func() bool {
			return runtime.NumGoroutine() <= goroutines && openFiles() <= files
		})
	})
	return s
}

// openFiles returns the number of open files, with connections; 0 where that is not known.
func openFiles() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

// apply publishes an event, alone or with the next ones.
func (s *plainServer) apply(size int, flush bool) {
	s.t.Helper()
	rv := s.first + uint64(len(s.want)) + 1
	o := pasttest.Pod("d", "a", rv, "filling", strings.Repeat("x", size))
	typ := kube.Modified
	if len(s.want) == 0 {
		typ = kube.Added
	}
	if err := s.tl.Apply(scan.Frame{Type: typ, Object: o}); err != nil {
		s.t.Fatal(err)
	}
	s.want = append(s.want, fmt.Sprintf(`{"type":"%s","object":%s}`+"\n", typ, o.JSON))
	if flush {
		s.tl.Flush()
	}
}

// A plainClient is a client of a watch.
type plainClient struct {
	conn *net.TCPConn
	body io.Reader
}

// dial starts a watch. buffer is the size of the kernel's buffer for what the client has
// not read, 0 for the default.
func (s *plainServer) dial(buffer int) *plainClient {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	c := &plainClient{conn: conn.(*net.TCPConn)}
	if buffer > 0 {
		if err := c.conn.SetReadBuffer(buffer); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 4<<10), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || len(resp.TransferEncoding) != 1 {
		s.t.Fatalf("%v", resp)
	}
	c.body = resp.Body
	return c
}

// compare reads lines and compares them with what was published, until all have come, or
// for a client that is not to get them all, until an error. It returns how many came.
func compare(body io.Reader, want []string, pause func(i int)) (n int, err error) {
	lines := bufio.NewReaderSize(body, 1<<10)
	for i, line := range want {
		if pause != nil {
			pause(i)
		}
		got, err := lines.ReadString('\n')
		if err != nil {
			return i, err
		}
		if got != line {
			return i, fmt.Errorf("line %d is %.200q… of %d bytes, not %.200q… of %d", i, got, len(got), line, len(line))
		}
	}
	return len(want), nil
}

// burst reports whether an event is published with those before and after it: they are
// more than watches share the frames of.
func burst(i int) bool { return i%200 < 2*maxSharedEvents }

// TestClients has clients of all kinds at once, while events of different sizes are
// published: those that read at once, slowly, or nothing for a while; those that go away
// in the middle, in order or not; and those that close their side. A client that stays
// gets each event once, in order and complete, however slow others are; the others leave
// nothing behind.
func TestClients(t *testing.T) {
	events, each := 800, 4
	if testing.Short() {
		events = 240
	}
	s := newPlainServer(t)
	random := rand.New(rand.NewPCG(1, 1))
	type client struct {
		*plainClient
		kind  string
		stops int // the line at which it does something
	}
	var clients []client
	for i := range each {
		for kind, buffer := range map[string]int{"fast": 0, "slow": 128 << 10, "stalls": 128 << 10, "small buffer": 64 << 10, "leaves": 128 << 10, "is killed": 128 << 10, "closes its side": 0} {
			clients = append(clients, client{s.dial(buffer), kind, i * events / each / 2})
		}
	}
	until(t, "all watches", func() bool { return s.tracker.Active() == len(clients) })

	// What is wanted is known before it is published.
	all := &plainServer{t: t, tl: timeline.New(timeline.Options{}), first: s.first}
	all.tl.Reset(pasttest.List(s.first))
	sizes := make([]int, events)
	for i := range sizes {
		switch sizes[i] = random.IntN(2000); {
		case burst(i):
			sizes[i] *= 20
		case random.IntN(100) == 0:
			sizes[i] = random.IntN(400_000)
		}
		all.apply(sizes[i], i%64 == 0)
	}
	published := make(chan struct{})
	var running sync.WaitGroup
	for i, c := range clients {
		running.Go(func() {
			pause := func(line int) {
				switch {
				case c.kind == "slow" && line%20 == i%20:
					time.Sleep(time.Millisecond)
				case c.kind == "stalls" && line == c.stops:
					<-published // all of them wait in the gateway
				}
			}
			want := all.want
			switch c.kind {
			case "leaves", "is killed", "closes its side":
				want = want[:c.stops]
			}
			if n, err := compare(c.body, want, pause); err != nil {
				t.Errorf("%s: after %d lines: %v", c.kind, n, err)
			}
			switch c.kind {
			case "is killed":
				_ = c.conn.SetLinger(0) // RST, with unread bytes
				c.conn.Close()
			case "leaves":
				c.conn.Close()
			case "closes its side":
				_ = c.conn.CloseWrite()
				// The answer ends in order: with complete events, and its last chunk.
				rest, err := io.ReadAll(c.body)
				if err != nil || len(rest) > 0 && !strings.HasSuffix(string(rest), "}\n") {
					t.Errorf("%s: the rest of %d bytes: %v", c.kind, len(rest), err)
				}
				c.conn.Close()
			}
		})
	}
	for i, size := range sizes {
		s.apply(size, !burst(i) && random.IntN(3) > 0 || i == events-1)
		if random.IntN(20) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	close(published)
	running.Wait()
	until(t, "the end of those that went", func() bool { return s.tracker.Active() == 4*each })
	s.tracker.Cut()
	for _, c := range clients {
		if _, err := io.Copy(io.Discard, c.body); err != nil && c.kind != "leaves" && c.kind != "is killed" && c.kind != "closes its side" {
			t.Errorf("%s: the end: %v", c.kind, err)
		}
		c.conn.Close()
	}
	<-s.tracker.Idle()
}
