// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A moodySource is a cursor that sometimes claims to have to read from the disk, and
// sometimes to have more when it has not.
type moodySource struct {
	*timeline.Cursor
	random *rand.Rand
}

func (s moodySource) TryNext() (b timeline.Batch, ok bool, err error) {
	if s.random.IntN(8) == 0 {
		return b, false, nil
	}
	return s.Cursor.TryNext()
}

func (s moodySource) Await(w timeline.Waker) bool {
	return s.random.IntN(4) != 0 && s.Cursor.Await(w)
}

// carriers serves a handler over everything that carries watches, and returns clients. The
// receive buffers are small, so that slow clients are noticed.
func carriers(t *testing.T, handler http.Handler) map[string]func() (io.ReadCloser, error) {
	t.Helper()
	all := map[string]func() (io.ReadCloser, error){}
	for _, name := range []string{"HTTP/1.1", "HTTP/1.1 with TLS", "HTTP/2", "HTTP/2 with TLS", "HTTP/2 of net/http with TLS"} {
		server := httptest.NewUnstartedServer(handler)
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetHTTP1(true)
		server.Config.Protocols.SetHTTP2(true)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
		standard := strings.Contains(name, "net/http")
		if !standard {
			h2.Configure(server.Config)
		}
		secure, two := strings.HasSuffix(name, "TLS"), strings.HasPrefix(name, "HTTP/2")
		transport := &http.Transport{
			Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				if tcp, ok := conn.(*net.TCPConn); ok {
					err = tcp.SetReadBuffer(128 << 10)
				}
				return conn, err
			},
		}
		transport.Protocols.SetHTTP1(!two)
		transport.Protocols.SetHTTP2(two && secure)
		transport.Protocols.SetUnencryptedHTTP2(two && !secure)
		if secure {
			server.EnableHTTP2 = true
			if !standard {
				server.Listener = h2.Listener(server.Listener)
			}
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(func() {
			transport.CloseIdleConnections()
			server.Close()
		})
		all[name] = func() (io.ReadCloser, error) {
			resp, err := (&http.Client{Transport: transport}).Get(server.URL)
			if err != nil {
				return nil, err
			}
			if resp.ProtoMajor == 2 != two {
				return nil, fmt.Errorf("%s is %s", name, resp.Proto)
			}
			return resp.Body, nil
		}
	}
	return all
}

// TestPulled: clients get every event once and in order (T4), whoever writes them: the
// goroutine of a watch, or the writer that pulls it.
func TestPulled(t *testing.T) {
	events, clients := 600, 6
	if testing.Short() {
		events, clients = 200, 4
	}
	tl := timeline.New(timeline.Options{})
	tl.Reset(pasttest.List(10))
	tracker := NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{}))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	seeds := rand.New(rand.NewPCG(seed, 0))
	open := carriers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := newWatch(t, tl, 10)
		mu.Lock()
		s.Source = moodySource{s.Source.(*timeline.Cursor), rand.New(rand.NewPCG(seeds.Uint64(), 0))}
		mu.Unlock()
		tracker.Serve(w, r, s)
	}))
	var reading sync.WaitGroup
	for name, open := range open {
		for i := range clients {
			body, err := open()
			if err != nil {
				t.Fatal(err)
			}
			reading.Go(func() {
				defer body.Close()
				lines := bufio.NewReader(body)
				for n := range events {
					if i%2 == 0 && n%50 == 0 { // a slow client
						time.Sleep(10 * time.Millisecond)
					}
					line, err := lines.ReadString('\n')
					if want := fmt.Sprintf(`"resourceVersion":"%d"`, 11+n); err != nil || !strings.Contains(line, want) || !strings.HasSuffix(line, "}\n") {
						t.Errorf("%s: %.200q, %v; want %s", name, line, err, want)
						return
					}
				}
				if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
					t.Errorf("%s: after the end: %.200q, %v", name, rest, err)
				}
			})
		}
	}
	for n := range uint64(events) {
		size := 100 + int(n%7)*3000
		if n%100 == 99 {
			size = 200 << 10 // several blocks and frames
		}
		if err := tl.Apply(scan.Frame{Type: kube.Modified, Object: pasttest.Pod("d", "a", 11+n, "filling", strings.Repeat("x", size))}); err != nil {
			t.Fatal(err)
		}
		if n%3 == 0 {
			tl.Flush()
		}
		if n%40 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	tl.Flush()
	tl.Close() // every watch ends after the last event
	reading.Wait()
	<-tracker.Idle()
	if n := len(tracker.adopted); n > 0 {
		t.Errorf("%d watches are left", n)
	}
}

// TestPulledEnds: a watch that is idle ends for every cause, and at once.
func TestPulledEnds(t *testing.T) {
	for name, end := range map[string]func(s *Watch, tl *timeline.Timeline, tracker *Tracker, over func(), revoke func()){
		"its definition changes": func(_ *Watch, _ *timeline.Timeline, _ *Tracker, over, _ func()) { over() },
		"its right is revoked":   func(s *Watch, _ *timeline.Timeline, _ *Tracker, _, revoke func()) { revoke(); s.Wake() },
		"the gateway drains":     func(_ *Watch, _ *timeline.Timeline, tracker *Tracker, _, _ func()) { tracker.Drain(0) },
		"the gateway stops":      func(_ *Watch, _ *timeline.Timeline, tracker *Tracker, _, _ func()) { tracker.Cut() },
		"the timeline ends":      func(_ *Watch, tl *timeline.Timeline, _ *Tracker, _, _ func()) { tl.Close() },
		"its time is up":         func(s *Watch, _ *timeline.Timeline, _ *Tracker, _, _ func()) { s.timer.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			tl := timeline.New(timeline.Options{})
			tl.Reset(pasttest.List(10))
			tracker := NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{}))
			watches := make(chan *Watch, 1)
			over, end1 := context.WithCancel(t.Context())
			defer end1()
			revoked := make(chan struct{})
			open := carriers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s := newWatch(t, tl, 10)
				s.Over, s.Revoked = over, revoked
				watches <- s
				tracker.Serve(w, r, s)
			}))
			var bodies []io.ReadCloser
			var all []*Watch
			for _, open := range open {
				body, err := open()
				if err != nil {
					t.Fatal(err)
				}
				defer body.Close()
				bodies, all = append(bodies, body), append(all, <-watches)
			}
			until(t, "watches that are pulled", func() bool {
				n := 0
				for _, s := range all {
					if s.timer.puller.Load() != nil {
						n++
					}
				}
				return n == 2 // those over package h2
			})
			once := sync.OnceFunc(func() { close(revoked) })
			for _, s := range all {
				end(s, tl, tracker, end1, once)
			}
			for _, body := range bodies {
				if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
					t.Errorf("%.200q, %v", rest, err)
				}
			}
			<-tracker.Idle()
		})
	}
}

// TestPulledClientLeaves: a watch that is idle notices that its client has gone.
func TestPulledClientLeaves(t *testing.T) {
	tl := timeline.New(timeline.Options{})
	tl.Reset(pasttest.List(10))
	tracker := NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{}))
	open := carriers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tracker.Serve(w, r, newWatch(t, tl, 10))
	}))
	for _, open := range open {
		for range 20 {
			body, err := open()
			if err != nil {
				t.Fatal(err)
			}
			body.Close()
		}
	}
	until(t, "the end of all watches", func() bool { return tracker.Active() == 0 })
}
