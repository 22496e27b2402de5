// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// batch is how many frames a flood has in a write, and maxBatches how many writes.
const batch, maxBatches = 100, 200

// maxQueued is the maximum number of answers that wait for a client, as in net/http.
const maxQueued = 10_000

// floods are frames that cost a client little. Each has a stream that is open.
var floods = map[string]func(f *http2.Framer, id uint32, i int){
	"PING": func(f *http2.Framer, _ uint32, i int) { _ = f.WritePing(false, [8]byte{1, byte(i >> 8), byte(i)}) },
	"PING with ACK": func(f *http2.Framer, _ uint32, i int) {
		_ = f.WritePing(true, [8]byte{2, byte(i >> 8), byte(i)})
	},
	"SETTINGS": func(f *http2.Framer, _ uint32, _ int) { _ = f.WriteSettings() },
	"SETTINGS of windows": func(f *http2.Framer, _ uint32, i int) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i)})
	},
	"PRIORITY": func(f *http2.Framer, _ uint32, i int) {
		_ = f.WritePriority(uint32(2*i+1001), http2.PriorityParam{StreamDep: 1, Weight: uint8(i)})
	},
	"WINDOW_UPDATE":        func(f *http2.Framer, _ uint32, _ int) { _ = f.WriteWindowUpdate(0, 1) },
	"WINDOW_UPDATE stream": func(f *http2.Framer, id uint32, _ int) { _ = f.WriteWindowUpdate(id, 1) },
	"unknown frame":        func(f *http2.Framer, _ uint32, _ int) { _ = f.WriteRawFrame(0xfa, 0, 0, nil) },
	"PRIORITY_UPDATE":      func(f *http2.Framer, _ uint32, _ int) { _ = f.WriteRawFrame(0x10, 0, 0, []byte{0, 0, 0, 1, 'u'}) },
	"empty DATA":           func(f *http2.Framer, id uint32, _ int) { _ = f.WriteData(id, false, nil) },
	"DATA of padding": func(f *http2.Framer, id uint32, _ int) {
		_ = f.WriteDataPadded(id, false, nil, make([]byte, 2)) // within the windows: see flood
	},
	"DATA on a closed stream": func(f *http2.Framer, _ uint32, _ int) { _ = f.WriteData(1, false, nil) },
	"RST_STREAM again":        func(f *http2.Framer, _ uint32, _ int) { _ = f.WriteRSTStream(1, http2.ErrCodeCancel) },
}

// flood sends frames until the server refuses more, and returns how many. The second of two streams is open, the first is closed.
func flood(t *testing.T, c *h2test.Conn, frame func(*http2.Framer, uint32, int)) (frames int, refused bool) {
	t.Helper()
	first, err := c.Open(false, h2test.Request("POST", "/first")...)
	if err == nil {
		err = c.Reset(first, http2.ErrCodeCancel)
	}
	if err != nil {
		t.Fatal(err)
	}
	id, err := c.Open(false, h2test.Request("POST", "/second")...)
	if err != nil {
		t.Fatal(err)
	}
	for frames < batch*maxBatches {
		err := c.Frames(func(f *http2.Framer) {
			for range batch {
				frame(f, id, frames)
				frames++
			}
		})
		synctest.Wait() // the server has seen them
		if err != nil || c.Refused() {
			return frames, true
		}
	}
	return frames, false
}

// drain is a handler that reads its request to the end.
func drain(_ http.ResponseWriter, r *http.Request) {
	buffer := make([]byte, 4096)
	for {
		if _, err := r.Body.Read(buffer); err != nil {
			return
		}
	}
}

// TestFloodUnread floods the server and reads nothing (CVE-2019-9512, -9515). What it has
// to answer is queued up to a bound. Then the client is disconnected; frames without an
// answer may also be ignored. In both cases the memory of the server is bounded.
func TestFloodUnread(t *testing.T) {
	for name, frame := range floods {
		bubble(t, name, func(t *testing.T) {
			s := start(t, http.HandlerFunc(drain))
			c := h2test.New(t, s.Connect(t), h2test.Deaf)
			before := heap()
			frames, _ := flood(t, c, func(f *http2.Framer, id uint32, i int) {
				announce(c, name, i)
				frame(f, id, i)
			})
			if grown := heap() - before; grown > 16<<20 {
				t.Errorf("the heap has grown by %d bytes", grown)
			}
			c.Listen()
			_ = c.Await(func(s *h2test.State) bool { return s.GoAway })
			c.Look(func(s *h2test.State) {
				answers := s.PingAcks + s.SettingsAcks + s.Resets
				if answers > maxQueued+2*batch || answers > 100 && answers < frames && !s.Closed && !s.GoAway {
					t.Errorf("%d answers to %d frames, closed: %v", answers, frames, s.Closed)
				}
				t.Logf("%d frames, %d answers, GOAWAY %v", frames, answers, s.GoAwayCode)
			})
		})
	}
}

// TestPatientFlood sends PINGs at a rate that is allowed, for ten minutes, and reads
// nothing. The answers that wait are bounded as well.
func TestPatientFlood(t *testing.T) {
	bubble(t, "unread PINGs", func(t *testing.T) {
		const perSecond, seconds = 100, 600
		s := start(t, http.HandlerFunc(drain), func(hs *http.Server) { hs.HTTP2.WriteByteTimeout = time.Hour })
		c := h2test.New(t, s.Connect(t), h2test.Deaf)
		for second := range seconds {
			err := c.Frames(func(f *http2.Framer) {
				for i := range perSecond {
					data := [8]byte{4, byte(second >> 8), byte(second), byte(i)}
					c.ExpectPing(data)
					_ = f.WritePing(false, data)
				}
			})
			if err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		c.Listen()
		_ = c.Await(func(s *h2test.State) bool { return s.GoAway || s.PingAcks == perSecond*seconds })
		c.Look(func(s *h2test.State) {
			if s.PingAcks > maxQueued+2*perSecond {
				t.Errorf("%d answers to %d PINGs were queued", s.PingAcks, perSecond*seconds)
			}
		})
	})
}

// announce tells the client about a frame of a flood.
func announce(c *h2test.Conn, name string, i int) {
	switch name {
	case "PING":
		c.ExpectPing([8]byte{1, byte(i >> 8), byte(i)})
	case "SETTINGS":
		c.ExpectSettings(-1)
	case "SETTINGS of windows":
		c.ExpectSettings(int64(i))
	}
}

// TestFlood floods the server and reads its answers. It answers all, or disconnects the
// client and names the cause. Frames that make the server work without progress of a
// request end in a disconnection (CVE-2019-9513, -9518).
func TestFlood(t *testing.T) {
	ends := map[string]bool{"empty DATA": true, "PRIORITY": true, "SETTINGS": true}
	for name, frame := range floods {
		bubble(t, name, func(t *testing.T) {
			s := start(t, http.HandlerFunc(drain))
			c := h2test.New(t, s.Connect(t))
			before := heap()
			frames, refused := flood(t, c, func(f *http2.Framer, id uint32, i int) {
				announce(c, name, i)
				frame(f, id, i)
			})
			if refused {
				c.Wait("the end of the connection", func(s *h2test.State) bool { return s.Closed })
				c.Look(func(s *h2test.State) {
					if !s.GoAway || s.GoAwayCode == http2.ErrCodeNo || s.GoAwayCode == http2.ErrCodeInternal {
						t.Errorf("closed after %d frames without a cause: GOAWAY %v, %v", frames, s.GoAway, s.GoAwayCode)
					}
				})
			} else if ends[name] {
				t.Errorf("the connection is open after %d frames", frames)
			} else if err := c.Sync(); err != nil {
				t.Error(err)
			}
			if grown := heap() - before; grown > 16<<20 {
				t.Errorf("the heap has grown by %d bytes", grown)
			}
			t.Logf("%d frames, refused: %v", frames, refused)
		})
	}
}

// heap returns the size of the live heap.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestKeepalive has a client that is idle but for a PING each second, for an hour, with a
// watch. It is no flood.
func TestKeepalive(t *testing.T) {
	bubble(t, "PING each second", func(t *testing.T) {
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}), func(hs *http.Server) { hs.IdleTimeout = time.Minute })
		c := h2test.New(t, s.Connect(t))
		id, err := c.Get("/watch")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3600 {
			time.Sleep(time.Second)
			if err := c.Ping([8]byte{3, byte(i >> 8), byte(i)}); err != nil {
				t.Fatalf("after %d PINGs: %v", i, err)
			}
		}
		c.Wait("the last answer", func(s *h2test.State) bool { return s.PingAcks == 3600 })
		c.Look(func(s *h2test.State) {
			if a := s.Streams[id]; a.Done() || a.Status != "200" {
				t.Errorf("the watch: %v", a)
			}
		})
	})
}
