// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

const initialWindow = http2.SettingInitialWindowSize

// refusal is what a server does about a frame: GOAWAY, or RST_STREAM on the stream.
type refusal struct {
	connection bool
	code       http2.ErrCode
}

// TestWindowErrors sends frames that are invalid for flow control (RFC 9113, section 6.9).
func TestWindowErrors(t *testing.T) {
	const overflow = 1<<31 - 1
	for name, one := range map[string]struct {
		write func(f *http2.Framer, id uint32)
		want  refusal
	}{
		"0 for the connection": {func(f *http2.Framer, _ uint32) { _ = f.WriteWindowUpdate(0, 0) }, refusal{true, http2.ErrCodeProtocol}},
		"0 for a stream":       {func(f *http2.Framer, id uint32) { _ = f.WriteWindowUpdate(id, 0) }, refusal{false, http2.ErrCodeProtocol}},
		"connection overflow":  {func(f *http2.Framer, _ uint32) { _ = f.WriteWindowUpdate(0, overflow) }, refusal{true, http2.ErrCodeFlowControl}},
		"stream overflow":      {func(f *http2.Framer, id uint32) { _ = f.WriteWindowUpdate(id, overflow) }, refusal{false, http2.ErrCodeFlowControl}},
		"idle stream":          {func(f *http2.Framer, _ uint32) { _ = f.WriteWindowUpdate(99, 1) }, refusal{true, http2.ErrCodeProtocol}},
		"wrong length":         {func(f *http2.Framer, id uint32) { _ = f.WriteRawFrame(http2.FrameWindowUpdate, 0, id, make([]byte, 3)) }, refusal{true, http2.ErrCodeFrameSize}},
		"initial size overflows": {func(f *http2.Framer, id uint32) {
			_ = f.WriteWindowUpdate(id, 1<<30)
			_ = f.WriteSettings(http2.Setting{ID: initialWindow, Val: 1<<31 - 1})
		}, refusal{true, http2.ErrCodeFlowControl}},
		"initial size too large": {func(f *http2.Framer, _ uint32) { _ = f.WriteSettings(http2.Setting{ID: initialWindow, Val: 1 << 31}) }, refusal{true, http2.ErrCodeFlowControl}},
		"DATA over the window": {func(f *http2.Framer, id uint32) {
			for range (8 << 20) / 16384 { // the handler does not read
				_ = f.WriteData(id, false, make([]byte, 16384))
			}
		}, refusal{false, http2.ErrCodeFlowControl}},
	} {
		bubble(t, name, func(t *testing.T) {
			handler, open := gate(t)
			s := start(t, handler)
			c := h2test.New(t, s.Connect(t))
			id, err := c.Open(false, h2test.Request("POST", "/")...)
			if err != nil {
				t.Fatal(err)
			}
			if name == "initial size overflows" || name == "initial size too large" {
				c.ExpectSettings(-1)
			}
			_ = c.Frames(func(f *http2.Framer) { one.write(f, id) }) // fails when the server has disconnected
			err = c.Await(func(s *h2test.State) bool { return s.GoAway || s.Streams[id].Reset })
			c.Look(func(s *h2test.State) {
				got := refusal{s.GoAway, s.GoAwayCode}
				if !s.GoAway {
					got.code = s.Streams[id].Code
				}
				// A stream error may be taken for a connection error (section 5.4.1).
				if got.code != one.want.code || one.want.connection && !got.connection || err != nil {
					t.Errorf("got %+v, want %+v (%v)", got, one.want, err)
				}
			})
			open()
		})
	}
}

// TestReceiveWindows fills the windows that the server gives, of a stream and of the
// connection, to the last byte, while handlers do not read. One byte more is an error.
func TestReceiveWindows(t *testing.T) {
	for _, streams := range []int{1, maxStreams} {
		bubble(t, fmt.Sprint(streams, " streams"), func(t *testing.T) {
			handler, open := gate(t)
			s := start(t, handler)
			c := h2test.New(t, s.Connect(t))
			var ids []uint32
			for range streams {
				id, err := c.Open(false, h2test.Request("POST", "/")...)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			synctest.Wait()
			var last uint32 // the stream with room for a byte in its own window, if there is one
			for _, id := range ids {
				for {
					var n int64
					c.Look(func(*h2test.State) {
						n = c.MayUpload(id, 16384)
						c.Uploaded(id, int(n))
					})
					if last = id; n == 0 {
						break
					}
					if err := c.Data(id, false, make([]byte, n)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := c.Sync(); err != nil {
				t.Fatalf("within the windows: %v", err)
			}
			connection := false
			c.Look(func(s *h2test.State) {
				connection = s.Window == 0
				if connection != (streams > 1) || s.Resets > 0 {
					t.Fatalf("the connection's window is %d, %d resets", s.Window, s.Resets)
				}
			})
			_ = c.Data(last, false, []byte("x"))
			err := c.Await(func(s *h2test.State) bool { return s.GoAway || s.Streams[last].Reset })
			c.Look(func(s *h2test.State) {
				a := s.Streams[last]
				if err != nil || s.GoAway && s.GoAwayCode != http2.ErrCodeFlowControl || a.Reset && a.Code != http2.ErrCodeFlowControl || connection && !s.GoAway {
					t.Errorf("%v, GOAWAY %v %v, %v", err, s.GoAway, s.GoAwayCode, a)
				}
			})
			open()
		})
	}
}

// pattern is a body of which every position is known.
func pattern(n int) []byte {
	body := make([]byte, n)
	for i := range body {
		body[i] = byte(i % 251)
	}
	return body
}

// TestWindows opens the windows in small random steps, of streams and of the connection,
// and changes SETTINGS_INITIAL_WINDOW_SIZE meanwhile, down to 0 and below what was sent.
// The client fails the test if the server sends more than it may. In the end each stream
// has its whole body.
func TestWindows(t *testing.T) {
	const size = 200_000
	for seed := range uint64(8) {
		bubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			body := pattern(size)
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for rest := body; len(rest) > 0; {
					part := rest[:min(len(rest), 1+len(r.URL.Path)*1000)]
					rest = rest[len(part):]
					if _, err := w.Write(part); err != nil {
						t.Error(err)
						return
					}
					if len(r.URL.Path)%2 == 0 {
						_ = http.NewResponseController(w).Flush()
					}
				}
			}), transports[seed%2](t))
			c := h2test.New(t, s.Connect(t), h2test.With(http2.Setting{ID: initialWindow, Val: uint32(random.IntN(100_000))}))
			var ids []uint32
			for i := range 5 {
				id, err := c.Get("/" + string(bytes.Repeat([]byte("x"), i)))
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			for range 500 {
				var err error
				switch random.IntN(8) {
				case 0:
					err = c.Settings(http2.Setting{ID: initialWindow, Val: []uint32{0, 1, 1000, 65535, 100_000}[random.IntN(5)]})
				case 1, 2:
					err = c.Grant(0, 1+uint32(random.IntN(20_000)))
				case 3:
					synctest.Wait()
				default:
					err = c.Grant(ids[random.IntN(len(ids))], 1+uint32(random.IntN(5000)))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := both(c.Settings(http2.Setting{ID: initialWindow, Val: 1 << 20}), c.Grant(0, 1<<30)); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				if a := c.Answer(id); !a.Ended || !bytes.Equal(a.Body, body) {
					t.Errorf("%v", a)
				}
			}
		})
	}
}

// TestZeroWindow has clients that give no window (CVE-2019-9517), or one byte at a time
// (CVE-2019-9511). What their handlers can write before they have to wait is bounded, and
// streams with a window are served.
func TestZeroWindow(t *testing.T) {
	// maxBuffered is how much a handler may write on a stream that sends nothing.
	const maxBuffered = 128 << 10
	bubble(t, "streams", func(t *testing.T) {
		var written atomic.Int64
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hello" {
				hello(w, r)
				return
			}
			for {
				n, err := w.Write(make([]byte, 1000))
				if written.Add(int64(n)); err != nil {
					return
				}
			}
		}))
		c := h2test.New(t, s.Connect(t), h2test.With(http2.Setting{ID: initialWindow, Val: 0}))
		var ids []uint32
		for range maxStreams - 1 {
			id, err := c.Get("/endless")
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		synctest.Wait()
		if n := written.Load(); n > maxBuffered*int64(len(ids)) {
			t.Errorf("%d bytes are buffered for %d streams", n, len(ids))
		}
		id, err := c.Get("/hello")
		if err == nil {
			err = c.Grant(id, 100)
		}
		if err != nil {
			t.Fatal(err)
		}
		if a := c.Answer(id); string(a.Body) != "hello" {
			t.Errorf("beside the others: %v", a)
		}
		for range 1000 {
			for _, id := range ids {
				if err := c.Grant(id, 1); err != nil {
					t.Logf("the server disconnects a client of one-byte windows: %v", err)
					return
				}
			}
		}
		c.Wait("all bytes", func(s *h2test.State) bool {
			for _, id := range ids {
				if len(s.Streams[id].Body) != 1000 {
					return false
				}
			}
			return true
		})
	})
	bubble(t, "the connection", func(t *testing.T) {
		var written atomic.Int64
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for {
				n, err := w.Write(make([]byte, 1000))
				if written.Add(int64(n)); err != nil {
					return
				}
			}
		}))
		c := h2test.New(t, s.Connect(t), h2test.With(http2.Setting{ID: initialWindow, Val: 1<<31 - 1}))
		for range maxStreams {
			if _, err := c.Get("/endless"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := written.Load(); n > maxBuffered*maxStreams+65535 {
			t.Errorf("%d bytes are buffered for %d streams", n, maxStreams)
		}
	})
}

// TestStalled has a client that reads nothing at all. It is disconnected, and its handlers
// end.
func TestStalled(t *testing.T) {
	for name, transport := range map[string]func(*testing.T) func(*http.Server){"cleartext": plain, "TLS": secured} {
		bubble(t, name, func(t *testing.T) {
			const requests = 5
			var ended atomic.Int64
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer ended.Add(1)
				for {
					if _, err := w.Write(make([]byte, 1000)); err != nil {
						<-r.Context().Done() // has ended as well
						return
					}
				}
			}), transport(t), func(hs *http.Server) { hs.HTTP2.WriteByteTimeout = 30 * time.Second })
			c := h2test.New(t, s.Connect(t), h2test.Deaf, h2test.With(http2.Setting{ID: initialWindow, Val: 1 << 30}))
			if err := c.Grant(0, 1<<30); err != nil {
				t.Fatal(err)
			}
			for range requests {
				if _, err := c.Get("/endless"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
			if n := ended.Load(); n != requests {
				t.Errorf("%d of %d handlers have ended after an hour", n, requests)
			}
			if err := c.Ping([8]byte{}); err == nil {
				t.Error("the connection is open after an hour")
			}
		})
	}
}

// TestUploadWindow sends bodies that handlers read, or do not read. The server gives back
// the window of the connection in both cases, so that later requests are not starved.
func TestUploadWindow(t *testing.T) {
	const uploads, size = 20, 200_000
	for name, handler := range map[string]http.HandlerFunc{
		"read":         func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"half read":    func(_ http.ResponseWriter, r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, size/2) },
		"not read":     func(http.ResponseWriter, *http.Request) {},
		"closed":       func(_ http.ResponseWriter, r *http.Request) { r.Body.Close() },
		"panic":        func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"slowly ended": func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) },
	} {
		bubble(t, name, func(t *testing.T) {
			s := start(t, handler)
			c := h2test.New(t, s.Connect(t))
			for range uploads {
				id, err := c.Open(false, h2test.Request("POST", "/upload")...)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Upload(id, pattern(size)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	bubble(t, "told to stop", func(t *testing.T) {
		s := start(t, http.HandlerFunc(hello))
		c := h2test.New(t, s.Connect(t))
		id, err := c.Open(false, h2test.Request("POST", "/upload")...)
		if err != nil {
			t.Fatal(err)
		}
		c.Wait("RST_STREAM after the answer", func(s *h2test.State) bool { return s.Streams[id].Reset })
		if a := c.Answer(id); a.Code != http2.ErrCodeNo || !a.Ended || string(a.Body) != "hello" {
			t.Errorf("%v", a)
		}
	})
	bubble(t, "padding only", func(t *testing.T) {
		s := start(t, http.HandlerFunc(drain))
		c := h2test.New(t, s.Connect(t))
		id, err := c.Open(false, h2test.Request("POST", "/upload")...)
		if err != nil {
			t.Fatal(err)
		}
		for sent := range 6_000 { // 1.5 MB, which the handler never sees
			err := c.Await(func(*h2test.State) bool { return c.MayUpload(id, 256) == 256 })
			if err == nil {
				c.Look(func(*h2test.State) { c.Uploaded(id, 256) })
				err = c.Frames(func(f *http2.Framer) { _ = f.WriteDataPadded(id, false, nil, make([]byte, 255)) })
			}
			if err != nil {
				t.Logf("after %d frames: %v", sent, err)
				expelled(t, c)
				return
			}
		}
	})
}
