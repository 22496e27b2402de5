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

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// maxAhead is how much of other streams may come before something short, when they wait as
// well: a turn of each of them and a batch.
const maxAhead = 256 << 10

// TestFairness has endless answers on a connection, which use up its window. A PING is
// answered all the same. As soon as the window opens, an event of a watch and a short
// answer come among the first.
func TestFairness(t *testing.T) {
	if standard {
		t.Skip("net/http has no feeds")
	}
	bubble(t, "one connection", func(t *testing.T) {
		var watches feeds
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/endless" {
				watches.ServeHTTP(w, r)
				return
			}
			for {
				if _, err := w.Write(make([]byte, 100_000)); err != nil {
					return
				}
			}
		}))
		c := h2test.New(t, s.Connect(t), h2test.With(http2.Setting{ID: initialWindow, Val: 1 << 30}))
		all, ids := watches.open(t, c, 1)
		for range 5 {
			if _, err := c.Get("/endless"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		want := ""
		for i := range 20 {
			event := fmt.Sprint("event ", i)
			want += event
			all[0].add(event)
			hello, err := c.Get("/hello")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Sync(); err != nil {
				t.Fatalf("a PING without a window: %v", err)
			}
			synctest.Wait()
			var before int64
			c.Look(func(s *h2test.State) { before = s.Received })
			if err := c.Grant(0, 1<<20); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			c.Look(func(s *h2test.State) {
				watch, short := s.Streams[ids[0]], s.Streams[hello]
				if string(watch.Body) != want || watch.At-before > maxAhead {
					t.Errorf("the event came after %d bytes: %v", watch.At-before, watch)
				}
				if !short.Ended || short.At-before > maxAhead {
					t.Errorf("the short answer came after %d bytes: %v", short.At-before, short)
				}
				if s.Received-before != 1<<20 {
					t.Errorf("%d bytes came in all", s.Received-before)
				}
			})
		}
	})
}

// A leavingFeed leaves the writer for every third text, which it writes itself.
type leavingFeed struct {
	queueFeed
	texts   int
	running sync.WaitGroup
}

func (f *leavingFeed) Next() ([]string, h2.Next) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.waits) > 0 && f.texts%3 == 2:
		f.running.Add(1)
		return nil, h2.Leave
	case len(f.waits) > 0:
		one := f.waits[:1:1]
		f.waits = f.waits[1:]
		f.texts++
		return one, h2.More
	case f.end:
		return nil, h2.End
	}
	return nil, h2.Wait
}

func (f *leavingFeed) Run() {
	defer f.running.Done()
	f.mu.Lock()
	one := f.waits[0]
	f.waits = f.waits[1:]
	f.texts++
	f.mu.Unlock()
	for _, part := range strings.SplitAfter(one, " ") {
		if _, err := f.stream.Write([]byte(part)); err != nil {
			f.Done()
			return
		}
	}
	f.stream.Pull(f)
}

// TestLeavingFeeds has feeds that leave the writer and come back, with windows that open
// little by little, and clients that reset some of them at any time. What arrives is
// complete and in order, and every feed is told once that it is over.
func TestLeavingFeeds(t *testing.T) {
	if standard {
		t.Skip("net/http has no feeds")
	}
	for _, window := range []uint32{0, 7, 1000, 65535} {
		bubble(t, fmt.Sprint("a window of ", window), func(t *testing.T) {
			var mu sync.Mutex // guards all
			var all []*leavingFeed
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				f := &leavingFeed{}
				f.stream = h2.TakeOver(w)
				mu.Lock()
				all = append(all, f)
				mu.Unlock()
				f.stream.Pull(f)
			}))
			c := h2test.New(t, s.Connect(t), h2test.With(http2.Setting{ID: initialWindow, Val: window}))
			if err := c.Grant(0, 1<<30); err != nil {
				t.Fatal(err)
			}
			var ids []uint32
			for range maxStreams {
				id, err := c.Get("/watch")
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // the feeds are in the order of the streams
				ids = append(ids, id)
			}
			want := ""
			for i := range 50 {
				text := fmt.Sprintf("text %d of %s\n", i, strings.Repeat("x", i*i))
				want += text
				for n, f := range all {
					f.add(text)
					if i == 2*n && n%3 == 0 {
						if err := c.Reset(ids[n], http2.ErrCodeCancel); err != nil {
							t.Fatal(err)
						}
					}
				}
				for _, id := range ids {
					if err := c.Grant(id, uint32(i*20+1)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for n, f := range all {
				f.mu.Lock()
				f.end = true
				f.mu.Unlock()
				f.stream.Wake()
				if err := c.Grant(ids[n], 1<<20); err != nil {
					t.Fatal(err)
				}
			}
			for n, id := range ids {
				if n%3 == 0 {
					continue // was reset
				}
				if a := c.Answer(id); !a.Ended || string(a.Body) != want {
					t.Errorf("%v, not %d bytes", a, len(want))
				}
			}
			synctest.Wait()
			for n, f := range all {
				f.running.Wait()
				f.mu.Lock()
				if f.gone != 1 {
					t.Errorf("feed %d was told %d times that it is over", n, f.gone)
				}
				f.mu.Unlock()
			}
		})
	}
}
