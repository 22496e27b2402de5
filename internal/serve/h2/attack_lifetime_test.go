// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// TestHandlerOutlives has handlers that go on after the end of their stream or connection.
// Their context has ended, writing and reading fail, and nothing is left of them
// afterwards.
func TestHandlerOutlives(t *testing.T) {
	for name, end := range map[string]func(c *h2test.Conn, id uint32) error{
		"the client resets the stream":     func(c *h2test.Conn, id uint32) error { return c.Reset(id, http2.ErrCodeCancel) },
		"the client closes the connection": func(c *h2test.Conn, _ uint32) error { c.Close(); return nil },
		"the client breaks the protocol":   func(c *h2test.Conn, _ uint32) error { return c.Data(99, true, nil) },
		"the client breaks the stream": func(c *h2test.Conn, id uint32) error {
			return c.Frames(func(f *http2.Framer) { _ = f.WriteWindowUpdate(id, 0) })
		},
	} {
		bubble(t, name, func(t *testing.T) {
			wait, open := gate(t)
			result := make(chan error, 3)
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				wait(w, r)
				_, err := w.Write(make([]byte, 100_000))
				result <- err
				_, err = r.Body.Read(make([]byte, 10))
				result <- err
				result <- http.NewResponseController(w).Flush()
			}))
			c := h2test.New(t, s.Connect(t))
			id, err := c.Open(false, h2test.Request("POST", "/")...)
			if err == nil {
				synctest.Wait()
				err = end(c, id)
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			open()
			for _, what := range []string{"Write", "Read", "Flush"} {
				if err := <-result; err == nil || errors.Is(err, io.EOF) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestHalfClosed has clients that begin a body and do nothing more. They occupy streams of
// their own connection only, and their handlers end with it.
func TestHalfClosed(t *testing.T) {
	bubble(t, "bodies that do not end", func(t *testing.T) {
		var ended atomic.Int64
		s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				<-r.Context().Done()
				ended.Add(1)
			}
		}))
		c := h2test.New(t, s.Connect(t))
		for range maxStreams {
			id, err := c.Open(false, h2test.Request("POST", "/")...)
			if err == nil {
				err = c.Data(id, false, []byte("beginning"))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		other := h2test.New(t, s.Connect(t))
		if a := other.Exchange("/"); a.Status != "200" {
			t.Errorf("on another connection: %v", a)
		}
		c.Close()
		synctest.Wait()
		if n := ended.Load(); n != maxStreams {
			t.Errorf("%d handlers of %d have ended with their connection", n, maxStreams)
		}
	})
}

// TestSlowStart has clients that begin a connection and stop, at different points. All are
// disconnected, as they have no request.
func TestSlowStart(t *testing.T) {
	const preface = http2.ClientPreface
	settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for name, sent := range map[string]string{
		"the preface":                 preface,
		"half a SETTINGS":             preface + settings[:5],
		"SETTINGS":                    preface + settings,
		"half a frame header":         preface + settings + "\x00\x00",
		"half a HEADERS":              preface + settings + "\x00\x00\x10\x01\x04\x00\x00\x00\x01\x82",
		"HEADERS that do not end":     preface + settings + "\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82",
		"a request that was answered": preface + settings + "\x00\x00\x03\x01\x05\x00\x00\x00\x01" + string(minimal),
	} {
		bubble(t, name, func(t *testing.T) {
			s := start(t, http.HandlerFunc(hello), func(hs *http.Server) {
				hs.ReadHeaderTimeout = 10 * time.Second
				if strings.HasPrefix(sent, preface+settings) {
					hs.IdleTimeout = time.Minute // before, another time is the limit
				}
			})
			c := h2test.Bare(t, s.Pipe(t))
			c.Track(1)
			c.ExpectSettings(-1)
			c.Listen()
			if err := c.Write([]byte(sent)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			closed := false
			if c.Look(func(s *h2test.State) { closed = s.Closed }); !closed {
				t.Error("the connection is open after ten minutes")
			}
		})
	}
}

// TestShutdown drains a connection: requests on it are completed, also one that crosses
// with the notice, and it is closed then.
func TestShutdown(t *testing.T) {
	for name, transport := range map[string]func(*testing.T) func(*http.Server){"cleartext": plain, "TLS": secured} {
		bubble(t, name, func(t *testing.T) { shutDown(t, transport(t)) })
	}
}

func shutDown(t *testing.T, transport func(*http.Server)) {
	wait, open := gate(t)
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			wait(w, r)
		}
		hello(w, r)
	}), transport)
	c := h2test.New(t, s.Connect(t), h2test.Deaf)
	waiting, err := c.Get("/wait")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	down := make(chan error, 1)
	go func() { down <- s.HTTP.Shutdown(context.Background()) }()
	synctest.Wait()
	crossing, err := c.Get("/crossing") // the client has not read the GOAWAY yet
	if err != nil {
		t.Fatal(err)
	}
	c.Listen()
	if a := c.Answer(crossing); string(a.Body) != "hello" {
		t.Errorf("crossing: %v", a)
	}
	c.Wait("the last GOAWAY", func(s *h2test.State) bool { return s.GoAway && s.LastStream == crossing })
	late, err := c.Get("/late")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	c.Look(func(s *h2test.State) {
		if s.FirstLast != 1<<31-1 { // so that no request that crosses is lost (RFC 9113, 6.8)
			t.Errorf("the first GOAWAY has the last stream %d", s.FirstLast)
		}
		if s.GoAwayCode != http2.ErrCodeNo || s.Closed {
			t.Errorf("GOAWAY %v, closed: %v", s.GoAwayCode, s.Closed)
		}
		if a := s.Streams[late]; a.Status != "" {
			t.Errorf("after the last GOAWAY: %v", a)
		}
	})
	open()
	if a := c.Answer(waiting); string(a.Body) != "hello" {
		t.Errorf("waiting: %v", a)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	c.Wait("the end", func(s *h2test.State) bool { return s.Closed })
}

// TestPanics ends streams whose handlers panic, before and after the header, and no others.
func TestPanics(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/before":
				panic("before")
			case "/after":
				hello(w, r)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
			hello(w, r)
		}))
		c := h2test.New(t, s.Connect(t))
		for range 5 {
			for _, path := range []string{"/before", "/after"} {
				if a := c.Exchange(path); !a.Reset || a.Ended || a.Code == http2.ErrCodeNo {
					t.Errorf("%s: %v", path, a)
				}
			}
			if a := c.Exchange("/fine"); string(a.Body) != "hello" {
				t.Errorf("%v", a)
			}
		}
	})
}

// TestUnreadAnswers sends requests whose answers are only headers, and does not read. The
// answers that wait are bounded.
func TestUnreadAnswers(t *testing.T) {
	for name, status := range map[string]int{"empty": 200, "no content": 204, "redirect": 307} {
		bubble(t, name, func(t *testing.T) {
			var handlers gauge
			s := start(t, handlers.count(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", r.URL.Path)
				w.WriteHeader(status)
			}))
			c := h2test.New(t, s.Connect(t), h2test.Deaf)
			before := heap()
			long := "/" + strings.Repeat("~", 20_000)
			for range 700 { // 14 MB of answers
				c.Patience(10 * time.Second) // a server may stop reading
				id, err := c.Get(long)
				if err != nil {
					break
				}
				c.Forget(id)
			}
			if grown := heap() - before; grown > 8<<20 {
				seen, _ := handlers.total()
				t.Errorf("the heap has grown by %d bytes, for %d requests", grown, seen)
			}
		})
	}
}
