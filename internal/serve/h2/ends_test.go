// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// TestEndBeforeRequest ends responses that were taken over while the client still sends the
// request. The client is told to stop, and the stream is one less.
func TestEndBeforeRequest(t *testing.T) {
	if standard {
		t.Skip("net/http has no streams to take over")
	}
	for name, late := range map[string]bool{"in the handler": false, "after it": true} {
		bubble(t, name, func(t *testing.T) {
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				st := h2.TakeOver(w)
				end := func() {
					_, _ = st.Write([]byte("ERROR"))
					st.End()
				}
				if late {
					time.AfterFunc(time.Second, end)
				} else {
					end()
				}
			}))
			c := h2test.New(t, s.Connect(t))
			for range maxStreams + 1 {
				id, err := c.Open(false, h2test.Request("POST", "/?watch=1")...)
				if err != nil {
					t.Fatal(err)
				}
				c.Wait("the reset", func(s *h2test.State) bool { return s.Streams[id].Reset })
				c.Look(func(s *h2test.State) {
					if a := s.Streams[id]; a.Code != http2.ErrCodeNo || !a.Ended || string(a.Body) != "ERROR" {
						t.Errorf("%v", a)
					}
				})
			}
		})
	}
}

// A onceFeed leaves the writer after one text.
type onceFeed struct {
	stream *h2.Stream
	text   string
	sent   atomic.Int32
	ran    chan int32 // how often Sent had been called by then
}

func (f *onceFeed) Next() ([]string, h2.Next) {
	if text := f.text; text != "" {
		f.text = ""
		return []string{text}, h2.More
	}
	return nil, h2.Leave
}
func (f *onceFeed) Sent() { f.sent.Add(1) }
func (*onceFeed) Done()   {}
func (f *onceFeed) Run()  { f.ran <- f.sent.Load() }

// TestLeave lets a feed leave the writer, directly after a text and after one that had to
// wait for the window: it knows before that the text is written.
func TestLeave(t *testing.T) {
	if standard {
		t.Skip("net/http has no feeds")
	}
	for name, text := range map[string]string{"short": "x", "longer than the window": strings.Repeat("x", 70_000)} {
		bubble(t, name, func(t *testing.T) {
			f := &onceFeed{text: text, ran: make(chan int32, 1)}
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				f.stream = h2.TakeOver(w)
				f.stream.Pull(f)
			}))
			c := h2test.New(t, s.Connect(t))
			id, err := c.Get("/")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			for _, stream := range []uint32{0, id} {
				if err := c.Grant(stream, 1<<20); err != nil {
					t.Fatal(err)
				}
			}
			if n := <-f.ran; n != 1 {
				t.Errorf("Sent was called %d times before Run", n)
			}
			f.stream.End()
			if a := c.Answer(id); len(a.Body) != len(text) {
				t.Errorf("%v", a)
			}
		})
	}
}

// TestWriteAfterHandler writes to a response whose handler has returned. It fails, and
// nothing of it is in the answer to another client.
func TestWriteAfterHandler(t *testing.T) {
	if standard {
		t.Skip("net/http panics")
	}
	bubble(t, "one connection", func(t *testing.T) {
		var old http.ResponseWriter
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "the answer to "+r.URL.Path)
			if old == nil {
				old = w
				return
			}
			if n, err := io.WriteString(old, "EVIL"); err == nil || n > 0 {
				t.Errorf("%d bytes, %v", n, err)
			}
		}))
		c := h2test.New(t, s.Connect(t))
		for _, path := range []string{"/1", "/2", "/3"} {
			if a := c.Exchange(path); string(a.Body) != "the answer to "+path {
				t.Errorf("%q", a.Body)
			}
		}
	})
}

// TestLateSettings begins a connection after the server has ended it: SETTINGS come after
// the last GOAWAY. The server does not wait for more.
func TestLateSettings(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		s := start(t, http.HandlerFunc(hello))
		conn := s.Connect(t)
		var reading = make(chan struct{})
		go func() {
			defer close(reading)
			_, _ = io.Copy(io.Discard, conn)
		}()
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ended := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() { ended <- s.HTTP.Shutdown(ctx) }()
		time.Sleep(1500 * time.Millisecond) // the last GOAWAY is sent after a second
		_ = http2.NewFramer(conn, nil).WriteSettings()
		if err := <-ended; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		<-reading
	})
}

// TestInterim sends a header before the answer's, which has no fields of a connection or a
// body (the client checks that). The answer's has the length.
func TestInterim(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range map[string]string{"Content-Length": "5", "Connection": "keep-alive", "Link": "</a>; rel=preload"} {
				w.Header().Set(name, value)
			}
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = w.Write([]byte("hello"))
		}))
		c := h2test.New(t, s.Connect(t))
		a := c.Exchange("/")
		if len(a.Interim) != 1 || a.Interim[0] != "103" || a.Status != "200" || !slices.Contains(a.Header, hpack.HeaderField{Name: "content-length", Value: "5"}) {
			t.Errorf("%v then %v: %v", a.Interim, a, a.Header)
		}
	})
}

// TestHeadFlush flushes the answer to HEAD: the header is sent at once.
func TestHeadFlush(t *testing.T) {
	for name, size := range map[string]int{"short": 10, "long": 10_000} {
		bubble(t, name, func(t *testing.T) {
			wait, _ := gate(t)
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Second) // the writer sleeps
				_, _ = w.Write(make([]byte, size))
				w.(http.Flusher).Flush()
				wait(w, r)
			}))
			c := h2test.New(t, s.Connect(t))
			id, err := c.Open(true, h2test.Request("HEAD", "/")...)
			if err != nil {
				t.Fatal(err)
			}
			c.Wait("the header", func(s *h2test.State) bool { return s.Streams[id].Status == "200" })
		})
	}
}
