// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bytes"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// maxAttack is how many times a client repeats what the server has to end.
const maxAttack = 50_000

// attack repeats a step until the server ends the connection, and checks that the cause
// was a flood.
func attack(t *testing.T, c *h2test.Conn, step func() error) {
	t.Helper()
	for i := range maxAttack {
		err := step()
		if i%10 == 0 {
			synctest.Wait() // the server has seen it
		}
		if err != nil || c.Refused() {
			t.Logf("refused after %d steps", i)
			expelled(t, c)
			return
		}
	}
	t.Errorf("the connection is open after %d steps", maxAttack)
}

// expelled waits for the end of a connection, of which the client was told the cause.
func expelled(t *testing.T, c *h2test.Conn) {
	t.Helper()
	c.Wait("the end of the connection", func(s *h2test.State) bool { return s.Closed })
	c.Look(func(s *h2test.State) {
		if !s.GoAway || s.GoAwayCode != http2.ErrCodeEnhanceYourCalm {
			t.Errorf("closed without ENHANCE_YOUR_CALM: GOAWAY %v, %v", s.GoAway, s.GoAwayCode)
		}
	})
}

// TestRapidReset opens streams and cancels them at once (CVE-2023-44487). A handler that
// has not ended counts as a stream, also when its stream was reset, so the number of
// handlers is bounded by that of streams. The client is disconnected.
func TestRapidReset(t *testing.T) {
	for name, slow := range map[string]bool{"handlers that end": false, "handlers that go on": true} {
		bubble(t, name, func(t *testing.T) {
			var handlers gauge
			var open func()
			handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handlers.count(handler)(w, r) }))
			if slow {
				handler, open = gate(t)
			}
			c := h2test.New(t, s.Connect(t))
			attack(t, c, func() error {
				id, err := c.Get("/")
				if err != nil {
					return err
				}
				return c.Reset(id, http2.ErrCodeCancel)
			})
			if open != nil {
				open()
			}
			if _, most := handlers.total(); most > maxStreams {
				t.Errorf("%d handlers at the same time for %d streams", most, maxStreams)
			}
		})
	}
}

// TestServerReset makes the server reset the streams, by invalid frames (CVE-2025-8671).
// It is the same as when the client resets them.
func TestServerReset(t *testing.T) {
	for name, provoke := range map[string]func(f *http2.Framer, id uint32){
		"WINDOW_UPDATE of 0":            func(f *http2.Framer, id uint32) { _ = f.WriteWindowUpdate(id, 0) },
		"WINDOW_UPDATE that overflows":  func(f *http2.Framer, id uint32) { _ = f.WriteWindowUpdate(id, 1<<31-1) },
		"more DATA than Content-Length": func(f *http2.Framer, id uint32) { _ = f.WriteData(id, false, []byte("too long")) },
		"less DATA than Content-Length": func(f *http2.Framer, id uint32) { _ = f.WriteData(id, true, nil) },
		"DATA after END_STREAM": func(f *http2.Framer, id uint32) {
			_ = f.WriteData(id, true, []byte("1234"))
			_ = f.WriteData(id, true, nil)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			var handlers gauge
			handler, open := gate(t)
			s := start(t, handlers.count(handler))
			c := h2test.New(t, s.Connect(t))
			attack(t, c, func() error {
				id, err := c.Open(false, h2test.Request("POST", "/", "content-length", "4")...)
				if err != nil {
					return err
				}
				return c.Frames(func(f *http2.Framer) { provoke(f, id) })
			})
			open()
			if _, most := handlers.total(); most > maxStreams {
				t.Errorf("%d handlers at the same time for %d streams", most, maxStreams)
			}
		})
	}
}

// TestTooManyStreams opens more streams than the server allows. The excess is refused, so
// that the client may try again, and no handler sees it. The others work.
func TestTooManyStreams(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		const excess = 10
		var handlers gauge
		handler, open := gate(t)
		s := start(t, handlers.count(handler))
		c := h2test.New(t, s.Connect(t))
		var ids []uint32
		for i := range maxStreams + excess {
			id, err := c.Get(fmt.Sprint("/", i))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		c.Wait("the refusals", func(s *h2test.State) bool { return s.Resets == excess })
		open()
		for i, id := range ids {
			a := c.Answer(id)
			switch {
			case i < maxStreams && a.Status != "200":
				t.Errorf("stream %d: %v", i, a)
			case i >= maxStreams && (!a.Reset || a.Code != http2.ErrCodeRefusedStream):
				t.Errorf("stream %d was not refused: %v", i, a)
			}
		}
		if seen, most := handlers.total(); seen != maxStreams || most > maxStreams {
			t.Errorf("%d handlers, %d at the same time, for %d streams", seen, most, maxStreams)
		}
		if a := c.Exchange("/after"); a.Status != "200" {
			t.Errorf("afterwards: %v", a)
		}
	})
}

// TestBursts has what an attack and a client in a hurry have in common. The client is not
// disconnected: 1,000 watches that end at once, twice, and 500 parallel requests.
func TestBursts(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		const watches, requests = 1000, 500
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/list" {
				_, _ = w.Write(bytes.Repeat([]byte("x"), 10_000))
				return
			}
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}), streams(3*watches)) // a handler counts until it has ended
		c := h2test.New(t, s.Connect(t), h2test.With(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}))
		if err := c.Grant(0, 1<<30); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var ids []uint32
			for range watches {
				id, err := c.Get("/watch")
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			c.Wait("the watches", func(s *h2test.State) bool {
				for _, id := range ids {
					if s.Streams[id].Status != "200" {
						return false
					}
				}
				return true
			})
			for _, id := range ids {
				if err := c.Reset(id, http2.ErrCodeCancel); err != nil {
					t.Fatal(err)
				}
			}
		}
		var ids []uint32
		for range requests {
			id, err := c.Get("/list")
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		for _, id := range ids {
			if a := c.Answer(id); a.Status != "200" || !a.Ended {
				t.Fatalf("%v", a)
			}
		}
	})
}

// A slowFeed has nothing to send, and takes a moment to end.
type slowFeed struct{ ended *atomic.Int32 }

func (slowFeed) Next() ([]string, h2.Next) { return nil, h2.Wait }
func (slowFeed) Sent()                     {}
func (slowFeed) Run()                      { panic("the feed never leaves") }
func (f slowFeed) Done() {
	time.Sleep(time.Microsecond)
	f.ended.Add(1)
}

// TestCancelMany cancels most of what a connection has open at once, as a proxy does whose
// clients have gone: watches, and requests that are not answered. The connection goes on.
func TestCancelMany(t *testing.T) {
	const all, cancelled = 3000, 2600
	for name, path := range map[string]string{"watches": "/watch", "requests": "/wait"} {
		bubble(t, name, func(t *testing.T) {
			if standard && path == "/watch" {
				t.Skip("net/http has no feeds")
			}
			var ended atomic.Int32
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/watch":
					h2.TakeOver(w).Pull(slowFeed{&ended})
				case "/wait":
					<-r.Context().Done()
					ended.Add(1)
				default:
					hello(w, r)
				}
			}), streams(all+1))
			c := h2test.New(t, s.Connect(t))
			var ids []uint32
			for range all {
				id, err := c.Get(path)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			synctest.Wait()
			err := c.Frames(func(f *http2.Framer) {
				for _, id := range ids[:cancelled] {
					_ = f.WriteRSTStream(id, http2.ErrCodeCancel)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if a := c.Exchange("/hello"); string(a.Body) != "hello" {
				t.Errorf("afterwards: %v", a)
			}
			if n := ended.Load(); n != cancelled {
				t.Errorf("%d have ended, %d were cancelled", n, cancelled)
			}
		})
	}
}
