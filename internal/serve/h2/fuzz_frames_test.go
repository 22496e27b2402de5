// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// maxSteps is how many frames a program has. More would exceed the server's limits of
// resets, which are another test's.
const maxSteps = 200

// A program is a sequence of bytes that choose frames.
type program struct{ rest []byte }

func (p *program) next() byte {
	if len(p.rest) == 0 {
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

// stream chooses a stream: one whose request goes on, any so far, the next, or a wrong one.
func (p *program) stream(m *model) uint32 {
	n := uint32(p.next())
	if n < 100 {
		var going []uint32
		for id := uint32(1); id <= m.lastID; id += 2 {
			if m.phases[id] == open {
				going = append(going, id)
			}
		}
		if len(going) > 0 {
			return going[n%uint32(len(going))]
		}
	}
	switch {
	case n < 128:
		return 2*(n%(m.lastID/2+1)) + 1
	case n < 232:
		return m.lastID - (m.lastID+1)%2 + 2
	case n < 240:
		return m.lastID + 2*(n-231) + 1
	case n < 248:
		return 2 * (n - 239)
	}
	return 0
}

// step sends one frame, and returns the stream and the verdict.
func (p *program) step(t *testing.T, m *model) (uint32, verdict) {
	c := m.c
	write := func(f func(*http2.Framer)) { _ = c.Frames(f) } // fails when the server has disconnected
	operation := p.next() % 20
	id := p.stream(m)
	flag := p.next()
	end := flag&1 != 0
	if m.phase(id) == skipped {
		c.Track(id) // may be reset
	}
	switch operation {
	default: // a request, most often
		answer := int(p.next()) * 40
		pairs := h2test.Request("GET", fmt.Sprint("/", answer))
		v := m.headers(id, end, true, answer)
		block := c.Encode(pairs...)
		if flag&2 != 0 && id != 0 { // in three frames
			write(func(f *http2.Framer) {
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, BlockFragment: block[:2]})
				_ = f.WriteContinuation(id, false, nil)
				_ = f.WriteContinuation(id, true, block[2:])
			})
			return id, v
		}
		write(func(f *http2.Framer) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: true, BlockFragment: block, PadLength: flag >> 4})
		})
		return id, v
	case 1: // trailers
		v := m.trailers(id, end)
		block := c.Encode("x-trailer", "1")
		write(func(f *http2.Framer) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: true, BlockFragment: block})
		})
		return id, v
	case 2: // a malformed request
		pairs := [][]string{{"X", "y"}, {"connection", "close"}, {":path", "/"}, {"a", "\n"}}[flag>>1%4]
		v := m.headers(id, end, false, 0)
		block := c.Encode(h2test.Request("GET", "/0", pairs...)...)
		write(func(f *http2.Framer) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: true, BlockFragment: block})
		})
		return id, v
	case 3, 4, 5: // DATA
		data, padding := make([]byte, int(p.next())*64), []byte(nil)
		length := len(data)
		if flag&2 != 0 {
			padding = make([]byte, flag>>2)
			length += 1 + len(padding)
		}
		v := m.data(id, int64(length), end)
		write(func(f *http2.Framer) { _ = f.WriteDataPadded(id, end, data, padding) })
		return id, v
	case 6: // RST_STREAM
		v := m.reset(id)
		write(func(f *http2.Framer) { _ = f.WriteRSTStream(id, http2.ErrCode(flag)) })
		return id, v
	case 7, 8: // WINDOW_UPDATE
		n := uint32(flag) << (p.next() % 24)
		v := m.grant(id, n)
		if v.nothing && len(v.stream)+len(v.connection) == 0 {
			_ = c.Grant(id, n)
		} else {
			write(func(f *http2.Framer) { _ = f.WriteWindowUpdate(id, n) })
		}
		return id, v
	case 9: // SETTINGS that are valid
		return 0, m.window(uint32(flag) << (p.next() % 25))
	case 10: // SETTINGS that are not
		one := []struct {
			s    http2.Setting
			code http2.ErrCode
		}{
			{http2.Setting{ID: http2.SettingEnablePush, Val: 2}, http2.ErrCodeProtocol},
			{http2.Setting{ID: initialWindow, Val: maxWindow + 1}, http2.ErrCodeFlowControl},
			{http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16383}, http2.ErrCodeProtocol},
			{http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 24}, http2.ErrCodeProtocol},
		}[flag%4]
		write(func(f *http2.Framer) { _ = f.WriteSettings(one.s) })
		return 0, connectionError(one.code)
	case 11: // frames of a wrong length
		kind := []http2.FrameType{http2.FrameSettings, http2.FramePing, http2.FrameRSTStream, http2.FrameWindowUpdate, http2.FrameGoAway}[flag%5]
		on := uint32(0)
		if kind == http2.FrameRSTStream {
			on = 1
		}
		write(func(f *http2.Framer) { _ = f.WriteRawFrame(kind, 0, on, make([]byte, 7)) })
		if kind == http2.FrameRSTStream && m.phase(1) == idle {
			return 0, connectionError(http2.ErrCodeFrameSize, http2.ErrCodeProtocol)
		}
		return 0, connectionError(http2.ErrCodeFrameSize)
	case 12: // frames of a connection on a stream
		kind := []http2.FrameType{http2.FrameSettings, http2.FramePing, http2.FrameGoAway}[flag%3]
		payload := map[http2.FrameType]int{http2.FramePing: 8, http2.FrameGoAway: 8}[kind]
		write(func(f *http2.Framer) { _ = f.WriteRawFrame(kind, 0, 1, make([]byte, payload)) })
		return 0, connectionError(http2.ErrCodeProtocol)
	case 13: // PRIORITY
		write(func(f *http2.Framer) { _ = f.WritePriority(id, http2.PriorityParam{StreamDep: id ^ 2, Weight: flag}) })
		if id == 0 {
			return 0, connectionError(http2.ErrCodeProtocol)
		}
		return id, fine
	case 14: // what a client does not send
		if flag%2 == 0 {
			write(func(f *http2.Framer) { _ = f.WriteRawFrame(http2.FramePushPromise, 4, id|1, []byte{0, 0, 0, 2, 0x82}) })
		} else {
			write(func(f *http2.Framer) { _ = f.WriteContinuation(id|1, true, nil) })
		}
		return 0, connectionError(http2.ErrCodeProtocol)
	case 15: // a header block that something interrupts
		write(func(f *http2.Framer) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: m.lastID + 1 | 1, BlockFragment: []byte{0x82}})
			if flag%2 == 0 {
				_ = f.WritePing(false, [8]byte{})
			} else {
				_ = f.WriteContinuation(m.lastID+4|1, true, []byte{0x86, 0x84})
			}
		})
		return 0, connectionError(http2.ErrCodeProtocol)
	case 16: // unknown frames are ignored
		write(func(f *http2.Framer) {
			_ = f.WriteRawFrame(http2.FrameType(64+flag%128), http2.Flags(flag), id, make([]byte, flag))
		})
		return 0, fine
	case 17:
		if err := c.Ping([8]byte{flag, p.next()}); err == nil {
			synctest.Wait()
		}
		return 0, fine
	case 18:
		time.Sleep(time.Duration(flag) * time.Millisecond)
		return 0, fine
	case 19: // anything: from now on, only what always holds is checked
		if flag < 200 {
			return 0, fine
		}
		m.unsure = true
		size := min(int(p.next()), len(p.rest))
		payload := p.rest[:size]
		p.rest = p.rest[size:]
		c.Track(id)
		// No WINDOW_UPDATE and SETTINGS: the client has to know the windows.
		kind := []http2.FrameType{http2.FrameData, http2.FrameHeaders, http2.FramePriority, http2.FrameRSTStream, http2.FramePushPromise, http2.FramePing, http2.FrameGoAway, http2.FrameContinuation, 10}[flag%9]
		if kind == http2.FramePing && size == 8 {
			c.ExpectPing([8]byte(payload))
		}
		write(func(f *http2.Framer) { _ = f.WriteRawFrame(kind, http2.Flags(p.next()), id, payload) })
		return id, fine
	}
}

// window changes SETTINGS_INITIAL_WINDOW_SIZE.
func (m *model) window(n uint32) verdict {
	v := fine
	if n > maxWindow {
		v = connectionError(http2.ErrCodeFlowControl)
	}
	_, _ = m.c.Windows(0)
	_ = m.c.Settings(http2.Setting{ID: initialWindow, Val: n})
	for id, p := range m.phases {
		if stream, _ := m.c.Windows(id); stream > maxWindow && (p == open || p == complete && !m.ended(id)) {
			v = connectionError(http2.ErrCodeFlowControl)
		}
	}
	return v
}

// run runs a program against a server.
func run(t *testing.T, input []byte, options ...func(*http.Server)) {
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		n, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil {
			t.Errorf("a handler has seen %s %s", r.Method, r.URL)
		}
		_, _ = w.Write(pattern(n))
	}), options...)
	c := h2test.New(t, s.Connect(t))
	m := newModel(c)
	p := &program{rest: input}
	steps := 0
	for ; len(p.rest) > 0 && steps < maxSteps && !m.dead; steps++ {
		resets := 0
		c.Look(func(s *h2test.State) { resets = s.Resets })
		begin := p.rest
		id, v := p.step(t, m)
		synctest.Wait()
		if err := m.check(id, v, resets); err != nil {
			t.Fatalf("step %d, %x on stream %d (phase %d): %v", steps, begin[:len(begin)-len(p.rest)], id, m.phases[id], err)
		}
	}
	m.finish(t)
	t.Logf("%d steps, up to stream %d, dead: %v, unsure: %v", steps, m.lastID, m.dead, m.unsure)
}

// finish completes all requests, and expects their answers.
func (m *model) finish(t *testing.T) {
	c := m.c
	if m.dead {
		time.Sleep(time.Minute)
		c.Look(func(s *h2test.State) {
			if !s.Closed {
				t.Error("the connection is open a minute after GOAWAY")
			}
		})
		return
	}
	if m.unsure {
		return
	}
	_ = c.Settings(http2.Setting{ID: initialWindow, Val: 65535})
	synctest.Wait()
	for id, p := range m.phases {
		if p == open {
			_ = c.Data(id, true, nil)
			m.phases[id] = complete
		}
		if stream, _ := c.Windows(id); p == open || p == complete {
			if stream < 1<<20 {
				_ = c.Grant(id, uint32(1<<20-stream))
			}
		}
	}
	if _, connection := c.Windows(0); connection < 1<<24 {
		_ = c.Grant(0, uint32(1<<24-connection))
	}
	synctest.Wait()
	for id, p := range m.phases {
		if p != complete && p != open {
			continue
		}
		c.Look(func(s *h2test.State) {
			if a := s.Streams[id]; !a.Ended || a.Status != "200" || !bytes.Equal(a.Body, pattern(m.answers[id])) {
				t.Errorf("%v, not %d bytes", a, m.answers[id])
			}
		})
	}
}

// FuzzFrames sends sequences of frames, valid and invalid, to a server. After each frame
// a model of the streams says what the server has to do about it: to go on, to reset the
// stream, or to disconnect the client, with which code. The client checks that the server
// keeps to the windows, and the model that it sends all that they allow. In the end all
// requests have their answers, or the connection is closed; no goroutine is left.
func FuzzFrames(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		f.Add(randomProgram(random, i%2 == 0))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		synctest.Test(t, func(t *testing.T) {
			t.Cleanup(func() { time.Sleep(time.Minute) })
			run(t, input)
		})
	})
}

// randomProgram returns a program of random bytes, or one of frames most of which are
// valid, so that it goes further.
func randomProgram(random *rand.Rand, valid bool) []byte {
	var input []byte
	if !valid {
		for range random.IntN(600) {
			input = append(input, byte(random.Uint32()))
		}
		return input
	}
	for range maxSteps {
		operation := []byte{0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 7, 8, 9, 13, 16, 17, 18}[random.IntN(19)]
		if random.IntN(maxSteps) == 0 {
			operation = byte(random.IntN(20))
		}
		stream, flag := byte(random.IntN(102)), byte(random.Uint32())
		switch {
		case operation == 0 || len(input) == 0:
			operation, stream = 0, 128
		case operation == 2:
			stream = 128
		case operation == 1 && random.IntN(4) > 0:
			operation = 5 // DATA: trailers are valid once
		}
		input = append(input, operation, stream, flag)
		switch operation {
		case 7, 8, 9:
			input = append(input, byte(random.IntN(12)))
		case 0, 3, 4, 5, 17:
			input = append(input, byte(random.Uint32()))
		}
	}
	return input
}

// TestFrames is FuzzFrames with random programs.
func TestFrames(t *testing.T) { runPrograms(t, 0, 30) }

// runPrograms runs random programs, of which most are mostly valid.
func runPrograms(t *testing.T, from, to uint64) {
	for seed := from; seed < to; seed++ {
		bubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			var options []func(*http.Server)
			if seed%5 == 0 {
				options = append(options, secured(t))
			}
			run(t, randomProgram(random, seed%4 != 0), options...)
		})
	}
}
