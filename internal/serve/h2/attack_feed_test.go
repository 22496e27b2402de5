// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// A queueFeed is a feed of texts that a test adds. Like a watch it keeps only what is not
// sent yet.
type queueFeed struct {
	stream *h2.Stream

	mu                sync.Mutex // guards the fields below
	waits             []string
	nexts, sent, gone int
	end               bool
	after             bool // Next or Sent was called after Done
}

func (f *queueFeed) Next() ([]string, h2.Next) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nexts++
	f.after = f.after || f.gone > 0
	switch {
	case len(f.waits) > 0:
		all := f.waits
		f.waits = nil
		return all, h2.More
	case f.end:
		return nil, h2.End
	}
	return nil, h2.Wait
}

func (f *queueFeed) Sent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	f.after = f.after || f.gone > 0
}

func (f *queueFeed) Done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone++
}

func (*queueFeed) Run() { panic("the feed never leaves") }

// add adds texts, and wakes the writer.
func (f *queueFeed) add(texts ...string) {
	f.mu.Lock()
	f.waits = append(f.waits, texts...)
	f.mu.Unlock()
	f.stream.Wake()
}

// feeds is a handler whose answers are feeds.
type feeds struct {
	mu  sync.Mutex // guards the field below
	all []*queueFeed
}

func (h *feeds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/hello" {
		hello(w, r)
		return
	}
	f := &queueFeed{stream: h2.TakeOver(w)}
	h.mu.Lock()
	h.all = append(h.all, f)
	h.mu.Unlock()
	f.stream.Pull(f)
}

// open opens feeds, and returns them with their streams' IDs.
func (h *feeds) open(t *testing.T, c *h2test.Conn, n int) (opened []*queueFeed, ids []uint32) {
	t.Helper()
	for range n {
		id, err := c.Get("/watch")
		if err != nil {
			t.Fatal(err)
		}
		c.Wait("the header", func(s *h2test.State) bool { return s.Streams[id].Status == "200" })
		synctest.Wait()
		ids = append(ids, id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[len(h.all)-n:], ids
}

// ends checks that each feed is told once that it is gone, and nothing afterwards.
func (h *feeds) ends(t *testing.T) {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, f := range h.all {
		f.mu.Lock()
		if f.gone != 1 || f.after {
			t.Errorf("feed %d: Done called %d times, other calls afterwards: %v", i, f.gone, f.after)
		}
		f.mu.Unlock()
	}
}

// TestBlockedFeed wakes feeds again and again, while the client gives no window. What
// waits does not grow, and a stream with a window is served.
func TestBlockedFeed(t *testing.T) {
	if standard {
		t.Skip("net/http has no feeds")
	}
	for name, blocked := range map[string]func(c *h2test.Conn) error{
		"the stream's window": func(c *h2test.Conn) error { return c.Settings(http2.Setting{ID: initialWindow, Val: 10}) },
		"the connection's window": func(c *h2test.Conn) error {
			return c.Settings(http2.Setting{ID: initialWindow, Val: 1 << 20})
		},
	} {
		bubble(t, name, func(t *testing.T) {
			var h feeds
			s := start(t, &h)
			c := h2test.New(t, s.Connect(t))
			if err := blocked(c); err != nil {
				t.Fatal(err)
			}
			all, _ := h.open(t, c, maxStreams)
			for _, f := range all {
				f.add(strings.Repeat("x", 10_000))
			}
			synctest.Wait()
			calls := func() (n int) {
				for _, f := range all {
					f.mu.Lock()
					n += f.nexts
					f.mu.Unlock()
				}
				return n
			}
			before, called := heap(), calls()
			for range 10_000 {
				for _, f := range all {
					f.stream.Wake()
				}
				synctest.Wait()
				if t.Failed() {
					return
				}
			}
			if grown := heap() - before; grown > 1<<19 {
				t.Errorf("the heap has grown by %d bytes", grown)
			}
			t.Logf("Next was called %d times meanwhile", calls()-called)
			c.Close()
			h.ends(t)
		})
	}
}

// TestFeeds ends feeds in each way while they send: every one is told once. What arrives
// is what they returned, in order.
func TestFeeds(t *testing.T) {
	if standard {
		t.Skip("net/http has no feeds")
	}
	for name, end := range map[string]func(t *testing.T, s *h2test.Server, c *h2test.Conn, ids []uint32){
		"the client resets": func(t *testing.T, _ *h2test.Server, c *h2test.Conn, ids []uint32) {
			for _, id := range ids {
				if err := c.Reset(id, http2.ErrCodeCancel); err != nil {
					t.Fatal(err)
				}
			}
		},
		"the client closes":  func(_ *testing.T, _ *h2test.Server, c *h2test.Conn, _ []uint32) { c.Close() },
		"the server closes":  func(_ *testing.T, s *h2test.Server, _ *h2test.Conn, _ []uint32) { s.HTTP.Close() },
		"a connection error": func(_ *testing.T, _ *h2test.Server, c *h2test.Conn, _ []uint32) { _ = c.Grant(0, 0) },
		"a stream error": func(t *testing.T, _ *h2test.Server, c *h2test.Conn, ids []uint32) {
			for _, id := range ids {
				if err := c.Grant(id, 0); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		for i, transport := range transports {
			bubble(t, fmt.Sprint(name, ", TLS: ", i == 1), func(t *testing.T) {
				var h feeds
				s := start(t, &h, transport(t))
				c := h2test.New(t, s.Connect(t))
				all, ids := h.open(t, c, maxStreams)
				want := ""
				for i := range 20 {
					text := fmt.Sprint("event ", i, "\n")
					want += text
					for _, f := range all {
						f.add(text[:3], text[3:])
					}
				}
				for _, id := range ids {
					c.Wait("the events", func(s *h2test.State) bool { return string(s.Streams[id].Body) == want })
				}
				for _, f := range all {
					f.add(strings.Repeat("y", 100_000)) // does not fit
				}
				end(t, s, c, ids)
				time.Sleep(time.Minute)
				h.ends(t)
			})
		}
	}
	bubble(t, "the feed ends", func(t *testing.T) {
		var h feeds
		s := start(t, &h)
		c := h2test.New(t, s.Connect(t))
		all, ids := h.open(t, c, maxStreams)
		for _, f := range all {
			f.mu.Lock()
			f.end = true
			f.mu.Unlock()
			f.add("last")
		}
		for _, id := range ids {
			if a := c.Answer(id); string(a.Body) != "last" || !a.Ended {
				t.Errorf("%v", a)
			}
		}
		h.ends(t)
		if a := c.Exchange("/hello"); string(a.Body) != "hello" {
			t.Errorf("afterwards: %v", a)
		}
	})
}
