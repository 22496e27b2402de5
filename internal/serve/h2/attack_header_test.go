// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// allocated returns how many bytes a function has allocated, with the goroutines that ran
// meanwhile.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestContinuationFlood sends a header block that does not end (CVE-2023-45288). The
// server disconnects the client after a multiple of the allowed size, whatever is in the
// block, and on whatever stream.
func TestContinuationFlood(t *testing.T) {
	// maxRaw is how much of a header block the server may read.
	const maxRaw = 4 * maxHeaderBytes
	for name, part := range map[string][]byte{
		"empty frames":            {},
		"one byte, a short field": {0x82 + 14}, // accept-charset, with an empty value
		"long fields":             append([]byte{0x00, 0x01, 'x', 0x7f, 0x81, 0x7c}, make([]byte, 16000)...),
		"incomplete fields":       append([]byte{0x00, 0x01, 'x', 0x7f, 0x80, 0xff, 0xff, 0x01}, make([]byte, 16000)...),
	} {
		for stream, prepare := range map[string]func(*testing.T, *h2test.Conn) uint32{
			"new stream": func(*testing.T, *h2test.Conn) uint32 { return 1 },
			"trailers": func(t *testing.T, c *h2test.Conn) uint32 {
				id, err := c.Open(false, h2test.Request("POST", "/")...)
				if err != nil {
					t.Fatal(err)
				}
				return id
			},
			"refused stream": func(t *testing.T, c *h2test.Conn) uint32 {
				for range maxStreams {
					if _, err := c.Open(false, h2test.Request("POST", "/")...); err != nil {
						t.Fatal(err)
					}
				}
				return 2*maxStreams + 1
			},
			"stream that was reset": func(t *testing.T, c *h2test.Conn) uint32 {
				id, err := c.Open(false, h2test.Request("POST", "/")...)
				if err == nil {
					err = c.Reset(id, http2.ErrCodeCancel)
				}
				if err != nil {
					t.Fatal(err)
				}
				return id
			},
		} {
			bubble(t, name+", "+stream, func(t *testing.T) {
				s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
				c := h2test.New(t, s.Connect(t))
				id := prepare(t, c)
				c.Track(id)
				before := c.Written()
				block := c.Encode(":method", "GET", ":scheme", "http", ":path", "/")
				if stream == "trailers" {
					block = nil
				}
				err := c.Frames(func(f *http2.Framer) {
					_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: true, BlockFragment: block})
				})
				frames := 0
				for ; err == nil && !c.Refused() && frames < 100_000; frames++ {
					err = c.Frames(func(f *http2.Framer) { _ = f.WriteContinuation(id, false, part) })
					synctest.Wait() // the server has seen it
				}
				if err == nil && !c.Refused() {
					t.Fatalf("the connection is open after %d CONTINUATION frames", frames)
				}
				if took := c.Written() - before; took > maxRaw {
					t.Errorf("the server took %d bytes in %d frames of a header block", took, frames)
				}
				c.Wait("the end of the connection", func(s *h2test.State) bool { return s.Closed })
			})
		}
	}
}

// TestHeaderBombs sends header lists that exceed the limit when they are decoded. The
// request is refused, and the connection goes on: its HPACK tables are in step.
func TestHeaderBombs(t *testing.T) {
	long := strings.Repeat("a", 3000)
	short := []string{}
	for i := range 2000 {
		short = append(short, fmt.Sprint("x-", i), "")
	}
	repeated := []string{}
	for range 100_000 {
		repeated = append(repeated, "x-bomb", long) // 1 byte each: 300 MB in 100 kB
	}
	for name, fields := range map[string][]string{
		"a long value":        {"x-long", strings.Repeat("b", maxHeaderBytes+5000)},
		"a long name":         {strings.Repeat("c", maxHeaderBytes+5000), "x"},
		"many short ones":     short,
		"references to a one": repeated[:2*30_000],
		"more references":     repeated,
		"cookie crumbs":       append([]string{"cookie", "a"}, strings.Split(strings.Repeat("cookie,d=1,", 4000), ",")[:8000]...),
	} {
		bubble(t, name, func(t *testing.T) {
			var handlers gauge
			s := start(t, handlers.count(hello))
			c := h2test.New(t, s.Connect(t))
			if a := c.Exchange("/before", "x-before", "in the table"); a.Status != "200" {
				t.Fatalf("before: %v", a)
			}
			var id uint32
			block := h2test.Request("GET", "/bomb", fields...)
			size := allocated(func() {
				var err error
				if id, err = c.Open(true, block...); err != nil {
					t.Logf("while it is sent: %v", err)
				}
				_ = c.Await(func(s *h2test.State) bool { return s.Streams[id].Done() })
			})
			// The client allocates as well: for its block, and pipes for nothing.
			if limit := uint64(4<<20 + 64*len(block)); size > limit {
				t.Errorf("%d bytes were allocated, which exceeds %d", size, limit)
			}
			var closed bool
			c.Look(func(s *h2test.State) {
				closed = s.Closed
				if a := s.Streams[id]; a.Status != "431" && !(a.Reset && a.Code != http2.ErrCodeNo) && !s.GoAway {
					t.Errorf("%+v, closed: %v", a, s.Closed)
				}
			})
			if !closed {
				if a := c.Exchange("/after", "x-before", "in the table"); a.Status != "200" {
					t.Errorf("after: %v", a)
				}
			}
			if seen, _ := handlers.total(); seen > 2 || !closed && seen != 2 {
				t.Errorf("%d requests have reached a handler", seen)
			}
		})
	}
}

// largest lets a server accept headers as large as the default, on many streams.
func largest(hs *http.Server) {
	hs.MaxHeaderBytes = http.DefaultMaxHeaderBytes
	hs.HTTP2.MaxConcurrentStreams = 1000
}

// crumbs returns a request with a cookie in n parts, which are one byte each after the first.
func crumbs(n int, value string) []string {
	pairs := h2test.Request("GET", "/")
	for range n {
		pairs = append(pairs, "cookie", value)
	}
	return pairs
}

// TestCookieCrumbs sends a cookie in many parts. Joining them costs what they are long.
func TestCookieCrumbs(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		const n = 14_000
		value := strings.Repeat("a", 34)
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if all := r.Header["Cookie"]; len(all) != 1 || all[0] != strings.Repeat(value+"; ", n-1)+value {
				t.Errorf("%d cookies", len(all))
			}
		}), largest)
		c := h2test.New(t, s.Connect(t))
		pairs := crumbs(n, value)
		size := allocated(func() {
			id, err := c.Open(true, pairs...)
			if err != nil {
				t.Fatal(err)
			}
			if a := c.Answer(id); a.Status != "200" {
				t.Errorf("%v", a)
			}
		})
		if limit := uint64(64 << 20); size > limit {
			t.Errorf("%d bytes were allocated, which exceeds %d", size, limit)
		}
	})
}

// TestHeldHeaders sends requests with large headers, and takes no answer, so that their
// handlers wait. Those beyond a limit are refused; when the others have ended, a request
// is served.
func TestHeldHeaders(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		const requests, most = 100, 25
		s := start(t, http.HandlerFunc(hello), largest)
		c := h2test.New(t, s.Connect(t), h2test.With(http2.Setting{ID: initialWindow, Val: 0}))
		pairs := crumbs(240, strings.Repeat("a", 4000))
		before := heap()
		for range requests {
			if _, err := c.Open(true, pairs...); err != nil {
				t.Fatal(err)
			}
		}
		c.Wait("the answers", func(s *h2test.State) bool { return s.Resets+s.Headers == requests })
		c.Look(func(s *h2test.State) {
			if s.Headers > most || s.Resets < requests-most {
				t.Errorf("%d requests were served and %d refused", s.Headers, s.Resets)
			}
		})
		if grown := heap() - before; grown > most<<20+16<<20 {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
		if err := c.Settings(http2.Setting{ID: initialWindow, Val: 1 << 16}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if a := c.Exchange("/after"); string(a.Body) != "hello" {
			t.Errorf("afterwards: %v", a)
		}
	})
}

// TestTooLargeWithBody sends a header that is too large, and a body directly after it. It is
// answered as one without a body.
func TestTooLargeWithBody(t *testing.T) {
	for name, fields := range map[string][]string{"with Content-Length": {"content-length", "4"}, "without": nil} {
		bubble(t, name, func(t *testing.T) {
			s := start(t, http.HandlerFunc(hello))
			c := h2test.New(t, s.Connect(t))
			for range 20 {
				fields = append(fields, "x-long", strings.Repeat("b", 3000))
			}
			const id = 1
			block := c.Encode(h2test.Request("POST", "/", fields...)...)
			c.Track(id)
			err := c.Frames(func(f *http2.Framer) {
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
				_ = f.WriteData(id, true, []byte("body"))
			})
			if err != nil {
				t.Fatal(err)
			}
			if a := c.Answer(id); a.Status != "431" || a.Reset && a.Code != http2.ErrCodeNo {
				t.Errorf("%v", a)
			}
		})
	}
}

// TestLargeHeaders sends headers just below the limit, in many frames. They are served.
func TestLargeHeaders(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, len(r.Header.Get("X-Long")))
		}))
		c := h2test.New(t, s.Connect(t))
		const size = maxHeaderBytes - 1000
		pairs := h2test.Request("GET", "/", "x-long", strings.Repeat("~", size)) // incompressible
		block := c.Encode(pairs...)
		c.Track(1)
		err := c.Frames(func(f *http2.Framer) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, BlockFragment: block[:100]})
			for block = block[100:]; len(block) > 4000; block = block[4000:] {
				_ = f.WriteContinuation(1, false, block[:4000])
			}
			_ = f.WriteContinuation(1, true, block)
		})
		if err != nil {
			t.Fatal(err)
		}
		if a := c.Answer(1); a.Status != "200" || string(a.Body) != fmt.Sprint(size) {
			t.Errorf("%s: %s", a.Status, a.Body)
		}
	})
}

// TestFrameSize sends frames as large as SETTINGS_MAX_FRAME_SIZE allows, and larger ones,
// which end the connection before they are read.
func TestFrameSize(t *testing.T) {
	for size, valid := range map[int]bool{1 << 14: true, 1<<14 + 1: false, 1<<24 - 1: false} {
		bubble(t, fmt.Sprint(size), func(t *testing.T) {
			s := start(t, http.HandlerFunc(drain))
			c := h2test.New(t, s.Connect(t))
			id, err := c.Open(false, h2test.Request("POST", "/")...)
			if err != nil {
				t.Fatal(err)
			}
			before := c.Written()
			c.Patience(10 * time.Second)
			_ = c.Data(id, true, make([]byte, size)) // fails when the server disconnects
			if valid {
				if a := c.Answer(id); a.Status != "200" {
					t.Errorf("%v", a)
				}
				return
			}
			c.Wait("the end of the connection", func(s *h2test.State) bool { return s.Closed })
			c.Look(func(s *h2test.State) {
				if s.GoAwayCode != http2.ErrCodeFrameSize {
					t.Errorf("GOAWAY %v, %v, after %d bytes", s.GoAway, s.GoAwayCode, c.Written()-before)
				}
			})
		})
	}
}

// TestPadding sends frames whose padding is longer than they are. The header block of such
// a HEADERS frame is lost, and the tables with it, so each ends the connection.
func TestPadding(t *testing.T) {
	for name, kind := range map[string]http2.FrameType{"DATA": http2.FrameData, "HEADERS": http2.FrameHeaders} {
		bubble(t, name, func(t *testing.T) {
			s := start(t, http.HandlerFunc(drain))
			c := h2test.New(t, s.Connect(t))
			id, err := c.Open(false, h2test.Request("POST", "/")...)
			if err == nil {
				if kind == http2.FrameHeaders {
					id += 2
				}
				err = c.Frames(func(f *http2.Framer) {
					_ = f.WriteRawFrame(kind, http2.FlagDataPadded|http2.FlagHeadersEndHeaders, id, []byte{200, 0x82, 0x86, 0x84})
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Wait("the end of the connection", func(s *h2test.State) bool { return s.Closed })
			c.Look(func(s *h2test.State) {
				if s.GoAwayCode != http2.ErrCodeProtocol {
					t.Errorf("GOAWAY %v, %v", s.GoAway, s.GoAwayCode)
				}
			})
		})
	}
}
