// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2test

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// maxBody is how much of a body a Stream keeps.
const maxBody = 1 << 20

// read reads frames until the connection ends.
func (c *Conn) read() {
	framer := http2.NewFramer(nil, c.conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.MaxHeaderListSize = 16 << 20
	framer.SetMaxReadFrameSize(16384) // the initial SETTINGS_MAX_FRAME_SIZE, which Conn does not raise
	for first := true; ; first = false {
		frame, err := framer.ReadFrame()
		c.mu.Lock()
		if err != nil {
			var connection http2.ConnectionError
			var stream http2.StreamError
			if errors.As(err, &connection) || errors.As(err, &stream) || errors.Is(err, http2.ErrFrameTooLarge) {
				c.violation("an invalid frame: %v (%v)", err, framer.ErrorDetail())
			}
			c.state.Closed = true
			c.changed.Broadcast()
			c.mu.Unlock()
			return
		}
		if _, ok := frame.(*http2.SettingsFrame); first && !ok {
			c.violation("the first frame is %v", frame.Header())
		}
		c.seeLocked(frame)
		c.changed.Broadcast()
		c.mu.Unlock()
	}
}

func (c *Conn) violation(format string, args ...any) {
	if len(c.state.Violations) < 10 {
		c.state.Violations = append(c.state.Violations, fmt.Sprintf(format, args...))
	}
}

// reply writes in the background: while it waits for the server, the reader must not.
func (c *Conn) reply(write func(*http2.Framer)) {
	if c.mute {
		return
	}
	c.reading.Go(func() { _ = c.Frames(write) })
}

func (c *Conn) seeLocked(frame http2.Frame) {
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			c.ackLocked()
			return
		}
		_ = f.ForeachSetting(func(s http2.Setting) error {
			c.state.Settings[s.ID] = s.Val
			return s.Valid()
		})
		if c.mute {
			return
		}
		c.reading.Go(func() {
			_ = c.Frames(func(f *http2.Framer) { _ = f.WriteSettingsAck() })
			c.mu.Lock()
			defer c.mu.Unlock()
			c.greeted = true
			c.changed.Broadcast()
		})
	case *http2.PingFrame:
		if !f.IsAck() {
			data := f.Data
			c.reply(func(f *http2.Framer) { _ = f.WritePing(true, data) })
			return
		}
		c.state.PingAcks++
		if c.pings[f.Data]--; c.pings[f.Data] < 0 {
			c.violation("PING acknowledged that was not sent: %x", f.Data)
		}
		if c.pings[f.Data] == 0 {
			delete(c.pings, f.Data)
		}
	case *http2.GoAwayFrame:
		if c.state.GoAway && f.LastStreamID > c.state.LastStream {
			c.violation("the last stream of GOAWAY grows from %d to %d", c.state.LastStream, f.LastStreamID)
		}
		if !c.state.GoAway {
			c.state.FirstLast = f.LastStreamID
		}
		c.state.GoAway, c.state.GoAwayCode, c.state.LastStream = true, f.ErrCode, f.LastStreamID
	case *http2.WindowUpdateFrame:
		window := &c.state.Window
		if f.StreamID != 0 {
			s := c.stream(f)
			if s == nil {
				return
			}
			window = &s.Window
		}
		if *window += int64(f.Increment); *window > 1<<31-1 {
			c.violation("the window of stream %d is %d", f.StreamID, *window)
		}
	case *http2.RSTStreamFrame:
		c.state.Resets++
		if s := c.stream(f); s != nil {
			s.Reset, s.Code = true, f.ErrCode
		}
	case *http2.MetaHeadersFrame:
		c.state.Headers++
		c.headersLocked(f)
	case *http2.DataFrame:
		c.dataLocked(f)
	case *http2.PushPromiseFrame:
		c.violation("PUSH_PROMISE on stream %d", f.StreamID)
	case *http2.PriorityFrame:
		c.stream(f)
	}
}

// stream returns the stream of a frame, which the client must have opened.
func (c *Conn) stream(frame http2.Frame) *Stream {
	s := c.state.Streams[frame.Header().StreamID]
	if s == nil {
		c.violation("a frame on a stream that was not opened: %v", frame.Header())
	}
	return s
}

func (c *Conn) headersLocked(f *http2.MetaHeadersFrame) {
	s := c.stream(f)
	if s == nil {
		return
	}
	status := f.PseudoValue("status")
	switch {
	case s.Done():
		c.violation("HEADERS on stream %d after its end", s.ID)
	case strings.HasPrefix(status, "1") && s.Status == "":
		s.Interim = append(s.Interim, status)
		for _, field := range f.RegularFields() {
			switch field.Name {
			case "connection", "transfer-encoding", "content-length":
				c.violation("status %s of stream %d has %s", status, s.ID, field.Name)
			}
		}
		if f.StreamEnded() {
			c.violation("status %s ends stream %d", status, s.ID)
		}
	case s.Status == "":
		if len(status) != 3 {
			c.violation("status %q on stream %d", status, s.ID)
		}
		s.Status, s.Header = status, f.RegularFields()
	default:
		if !f.StreamEnded() || len(f.PseudoFields()) > 0 {
			c.violation("trailers on stream %d that are not the end, or have %v", s.ID, f.PseudoFields())
		}
		s.Trailer = f.RegularFields()
	}
	s.Ended = s.Ended || f.StreamEnded()
	s.At = c.state.Received
}

func (c *Conn) dataLocked(f *http2.DataFrame) {
	s := c.stream(f)
	if s == nil {
		return
	}
	switch {
	case s.Done():
		c.violation("DATA on stream %d after its end", s.ID)
	case s.Status == "":
		c.violation("DATA on stream %d before HEADERS", s.ID)
	}
	size := int64(f.Length)
	c.credit -= size
	c.state.Received += size
	s.At = c.state.Received
	s.received += size
	if left := c.windowLocked(s); size > 0 && (left < 0 || c.credit < 0) {
		c.violation("%d bytes of DATA on stream %d, where the window is then %d, and %d on the connection", size, s.ID, left, c.credit)
	}
	s.Body = append(s.Body, f.Data()[:min(len(f.Data()), maxBody-len(s.Body))]...)
	s.Ended = s.Ended || f.StreamEnded()
}

// windowLocked returns how much the server may send on a stream. A larger initial window
// counts from when it is sent, a smaller one from its acknowledgement.
func (c *Conn) windowLocked(s *Stream) int64 {
	initial := c.base
	for _, p := range c.pending {
		initial = max(initial, p)
	}
	return initial + s.granted - s.received
}

func (c *Conn) ackLocked() {
	c.state.SettingsAcks++
	if len(c.pending) == 0 {
		c.violation("SETTINGS acknowledged that were not sent")
		return
	}
	if c.pending[0] >= 0 {
		c.base = c.pending[0]
	}
	c.pending = c.pending[1:]
}
