// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A pipeWriter is a ResponseWriter whose writes block until the client has read them.
type pipeWriter struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (w pipeWriter) Write(p []byte) (int, error)        { return w.conn.Write(p) }
func (w pipeWriter) SetWriteDeadline(t time.Time) error { return w.conn.SetWriteDeadline(t) }

// read reads n bytes at a time, with a pause before each, until the end.
func read(conn net.Conn, n int, pause time.Duration) {
	buffer := make([]byte, n)
	for {
		time.Sleep(pause)
		if _, err := io.ReadFull(conn, buffer); err != nil {
			return
		}
	}
}

// TestDeadlineWriter: a client has to take each write within the timeout, and the whole
// answer within the timeout and a second per minRate bytes. What the gateway itself
// takes between two writes does not count.
func TestDeadlineWriter(t *testing.T) {
	const timeout = time.Minute
	for _, test := range []struct {
		name         string
		read         int           // bytes that the client reads at a time
		pause        time.Duration // before each
		writes, size int           // of the answer
		work         time.Duration // before each write
		ended        bool          // the client gets all of it
		atMost       time.Duration // that the writes block
	}{
		{"fast", 1 << 10, 0, 10, 1 << 20, 0, true, 0},
		{"one byte a minute", 1, 59 * time.Second, 1, 1 << 10, 0, false, timeout},
		{"a little before each deadline", 1 << 10, 59 * time.Second, 1 << 20, 1 << 10, 0, false, 2 * timeout},
		{"half of the least rate", minRate, 2 * time.Second, 1000, minRate, 0, false, 3 * timeout},
		{"the least rate", minRate, time.Second, 1000, minRate, 0, true, 1001 * time.Second},
		{"one large write", minRate, time.Second, 1, 100 << 20, 0, true, 1601 * time.Second},
		{"a pause", 10 << 20, 50 * time.Second, 10, 1 << 20, 0, true, timeout},
		{"the gateway is slow", 1 << 10, 0, 100, 1 << 10, time.Hour, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := net.Pipe()
				var reading sync.WaitGroup
				reading.Go(func() { read(client, test.read, test.pause) })
				out := NewDeadlineWriter(pipeWriter{httptest.NewRecorder(), server}, timeout)
				var err error
				var blocked time.Duration
				piece := make([]byte, test.size)
				for i := 0; i < test.writes && err == nil; i++ {
					time.Sleep(test.work)
					start := time.Now()
					_, err = out.Write(piece)
					blocked += time.Since(start)
				}
				out.Clear()
				if test.ended != (err == nil) || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("ended with %v", err)
				}
				if blocked > test.atMost {
					t.Errorf("blocked for %v, more than %v", blocked, test.atMost)
				}
				server.Close()
				reading.Wait()
			})
		})
	}
}

// slowWatch serves a watch with these initial events to a client that pauses before each
// 64 KiB that it reads. The results are how long the watch lasted, and how long its
// initial events take at the least rate.
func slowWatch(t *testing.T, initial []*scan.Object, timeout, pause time.Duration) (lasted, atRate time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tl := timeline.New(timeline.Options{})
		tl.Reset(pasttest.List(10))
		s := newWatch(t, tl, 10)
		bytes := int64(0)
		for _, o := range initial {
			s.Initial = append(s.Initial, o)
			bytes += int64(len(o.JSON))
		}
		s.SetTimeout(timeout)
		s.tracker = NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{}))
		server, client := net.Pipe()
		var reading sync.WaitGroup
		const header = "HTTP/1.1 200 OK\r\n\r\n"
		reading.Go(func() {
			_, _ = io.ReadFull(client, make([]byte, len(header)))
			read(client, 64<<10, pause)
		})
		conn := &clientConn{conn: server, closed: make(chan struct{})}
		start := time.Now()
		s.gone = conn.closed
		s.begin(conn)
		conn.serve(s, []byte(header))
		lasted, atRate = time.Since(start), atMinRate(bytes)
		reading.Wait()
	})
	return lasted, atRate
}

// TestSlowWatch: a client that reads little by little holds the initial events of a
// watch neither for long after its timeout nor, if that is far, below the least rate.
func TestSlowWatch(t *testing.T) {
	const pause = WriteTimeout - 2*time.Minute
	var initial []*scan.Object
	for i := range uint64(500) {
		initial = append(initial, pasttest.Pod("d", "a", i+1, "filling", strings.Repeat("x", 60<<10)))
	}
	for _, timeout := range []time.Duration{time.Second, 5 * time.Minute, 1000 * time.Hour} {
		got, atRate := slowWatch(t, initial, timeout, pause)
		if most := min(timeout, atRate) + WriteTimeout + bookmarkInterval; got > most || got < WriteTimeout {
			t.Errorf("%v lasted %v, more than %v", timeout, got, most)
		}
	}
	// A client that is faster than the least rate receives them all, even after the
	// timeout, and the watch then lasts until its timeout.
	if got, atRate := slowWatch(t, initial, 2*time.Hour, 500*time.Millisecond); got != 2*time.Hour {
		t.Errorf("with a client of twice the least rate (%v) it lasted %v", atRate, got)
	}
}

// TestLateWebSocket: a message long after the end of its watch is not written, however
// fast the messages before were.
func TestLateWebSocket(t *testing.T) {
	s := webSocketSink{timer: &watchTimer{deadline: time.Now().Add(-WriteTimeout)}}
	if err := s.frame([]string{"{}"}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
