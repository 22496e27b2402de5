// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import (
	"io"
	"slices"

	"golang.org/x/net/http2"
)

var (
	errTooMuch = connectionError{http2.ErrCodeEnhanceYourCalm, "too many frames that carry nothing"}
	errIdle    = connectionError{http2.ErrCodeProtocol, "a frame on a stream that was never opened"}
)

// process handles a frame. The error is one that judge knows.
func (c *conn) process(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.HeadersFrame:
		return c.processHeaders(f)
	case *http2.DataFrame:
		return c.processData(f)
	case *http2.RSTStreamFrame:
		return c.processReset(f)
	case *http2.WindowUpdateFrame:
		return c.processWindowUpdate(f)
	case *http2.PushPromiseFrame:
		return connectionError{http2.ErrCodeProtocol, "PUSH_PROMISE from a client"}
	case *http2.GoAwayFrame:
		c.drain()
		return nil
	}
	// The others carry nothing that is for a stream.
	if !c.noise.spend() {
		return errTooMuch
	}
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		return c.processSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.reply(append(appendHeader(nil, len(f.Data), http2.FramePing, http2.FlagPingAck, 0), f.Data[:]...))
		}
		if string(f.Data[:]) == drainPing {
			c.drainFinally()
		}
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return c.selfDependent(f.StreamID)
		}
	}
	return nil // frames of unknown types are ignored (RFC 9113, 4.1)
}

// selfDependent refuses a PRIORITY frame that makes a stream depend on itself. Other
// priorities have no effect (RFC 9113, 5.3.2).
func (c *conn) selfDependent(id uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch st, err := c.streamLocked(id); {
	case err != nil:
		return connectionError{http2.ErrCodeProtocol, "a stream that depends on itself"}
	case st != nil:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	return nil
}

func (c *conn) processSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		if c.unacked--; c.unacked < 0 {
			return connectionError{http2.ErrCodeProtocol, "SETTINGS were acknowledged that were not sent"}
		}
		return nil
	}
	if f.NumSettings() > 100 {
		return errTooMuch
	}
	// Only the last value of a setting counts, but all have to be valid. The encoder has to
	// tell the client of the smallest table in between (RFC 7541, 4.2).
	window := int64(-1)
	var tables []uint32
	err := f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingInitialWindowSize:
			window = int64(s.Val)
		case http2.SettingHeaderTableSize:
			tables = append(tables, s.Val)
		}
		return s.Valid()
	})
	if err != nil {
		return err
	}
	if err := c.set(window, tables); err != nil {
		return err
	}
	return c.reply(appendHeader(nil, 0, http2.FrameSettings, http2.FlagSettingsAck, 0))
}

// set applies the client's settings; a window of -1 is for none.
func (c *conn) set(window int64, tables []uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(tables) > 0 {
		c.encoder.SetMaxDynamicTableSize(slices.Min(tables))
		c.encoder.SetMaxDynamicTableSize(tables[len(tables)-1])
	}
	if window < 0 || window == c.initial {
		return nil
	}
	change := window - c.initial
	c.initial = window
	n := 0
	for _, st := range c.streams {
		if n++; n%streamsPerFrame == 0 && !c.noise.spend() {
			return errTooMuch
		}
		if !c.widen(st, change) {
			return connectionError{http2.ErrCodeFlowControl, "a window exceeds 2^31-1 bytes"}
		}
	}
	return nil
}

// widen changes the window of a stream. It returns false if the window is too large then.
func (c *conn) widen(st *Stream, n int64) bool {
	if st.window.Add(n) > 1<<31-1 {
		return false
	}
	if st.blocked.CompareAndSwap(true, false) {
		c.enqueue(st)
	}
	return true
}

func (c *conn) processWindowUpdate(f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		if c.window.Add(int64(f.Increment)) > 1<<31-1 {
			return connectionError{http2.ErrCodeFlowControl, "the connection's window exceeds 2^31-1 bytes"}
		}
		c.unblock()
		return nil
	}
	c.mu.Lock()
	st, err := c.streamLocked(f.StreamID)
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case st == nil: // usual after a response: a client sends them as it reads
		if c.late++; c.late > idleFrames+c.sent.Load()/bytesPerUpdate {
			return errTooMuch
		}
	case !c.widen(st, int64(f.Increment)):
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	return nil
}

// streamLocked returns an open stream, nil if it is closed or ignored. It fails if the
// stream was never opened.
func (c *conn) streamLocked(id uint32) (*Stream, error) {
	st := c.streams[id]
	if st == nil && (id%2 == 0 || id > c.maxID && c.drained != finalGoAway) {
		return nil, errIdle
	}
	return st, nil
}

func (c *conn) processReset(f *http2.RSTStreamFrame) error {
	c.mu.Lock()
	st, err := c.streamLocked(f.StreamID)
	early := st != nil && st.headerIn == 0
	if st != nil {
		c.closeLocked(st, errReset, closedThere)
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case early && !c.resets.spend():
		return connectionError{http2.ErrCodeEnhanceYourCalm, "too many requests are reset"}
	case st == nil && !c.noise.spend():
		return errTooMuch
	}
	return nil
}

func (c *conn) processData(f *http2.DataFrame) error {
	data, length := f.Data(), int(f.Length) // with padding
	if length == 0 && !f.StreamEnded() && !c.noise.spend() {
		return errTooMuch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st, err := c.streamLocked(f.StreamID)
	if err != nil {
		return err
	}
	if c.unread -= length; c.unread < 0 {
		return connectionError{http2.ErrCodeFlowControl, "more DATA than the connection's window"}
	}
	if st == nil || !st.state.receives() || st.in == nil {
		c.returnLocked(length)
		switch {
		case st != nil && st.state.receives(): // the handler has returned without reading this
			if f.StreamEnded() {
				c.remoteEndLocked(st)
			}
			return nil
		case st == nil && (f.StreamID > c.maxID || c.closed.ending(f.StreamID) == closedHere):
			return nil // it crossed with our GOAWAY or reset
		}
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	in := st.in
	if in.window -= length; in.window < 0 {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	in.received += int64(len(data))
	if in.declared >= 0 && (in.received > in.declared || f.StreamEnded() && in.received != in.declared) {
		c.returnLocked(length)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	}
	if in.unwanted {
		data = nil
	} else {
		in.data = append(in.data, data...)
		in.changed.Broadcast()
	}
	if unused := length - len(data); unused > 0 {
		c.returnLocked(unused)
		c.giveLocked(st, unused)
	}
	if f.StreamEnded() {
		c.remoteEndLocked(st)
	}
	return nil
}

// remoteEndLocked notes that the client has sent the whole request.
func (c *conn) remoteEndLocked(st *Stream) {
	if st.in != nil {
		st.in.end(io.EOF)
	}
	switch st.state {
	case open:
		st.state = halfClosedRemote
	case halfClosedLocal:
		c.closeLocked(st, errGivenUp, closedOrderly)
	}
}

// returnLocked gives n bytes of the connection's window back to the client.
func (c *conn) returnLocked(n int) {
	if c.returned += n; c.returned >= connWindow/4 {
		c.controlLocked(appendWindowUpdate(nil, 0, c.returned))
		c.unread += c.returned
		c.returned = 0
	}
}

// giveLocked gives n bytes of a stream's window back, unless the request is complete.
func (c *conn) giveLocked(st *Stream, n int) {
	in := st.in
	if in == nil || !st.state.receives() {
		return
	}
	if in.returned += n; in.returned >= streamWindow/4 {
		c.controlLocked(appendWindowUpdate(nil, st.id, in.returned))
		in.window += in.returned
		in.returned = 0
	}
}
