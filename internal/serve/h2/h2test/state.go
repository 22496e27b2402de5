// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2test

import (
	"fmt"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A State is what the server has sent.
type State struct {
	Settings     map[http2.SettingID]uint32
	Streams      map[uint32]*Stream
	SettingsAcks int
	PingAcks     int
	// Received is how much DATA there was.
	Received int64
	Headers  int // HEADERS frames
	Resets   int // RST_STREAM frames
	// GoAway is the last GOAWAY frame, and GoAwayCode its code.
	GoAway     bool
	GoAwayCode http2.ErrCode
	LastStream uint32
	// FirstLast is the LastStream of the first GOAWAY.
	FirstLast uint32
	// Window is how much DATA the server accepts on the connection.
	Window int64
	// Closed is set when the server has closed the connection.
	Closed bool
	// Violations are what the server must not do.
	Violations []string
}

// A Stream is what the server has sent on a stream.
type Stream struct {
	ID       uint32
	Status   string
	Header   []hpack.HeaderField // without :status
	Trailer  []hpack.HeaderField
	Interim  []string // 1xx statuses
	Body     []byte
	Ended    bool // END_STREAM
	Reset    bool
	Code     http2.ErrCode // of RST_STREAM
	granted  int64         // by WINDOW_UPDATE
	received int64         // bytes of DATA, with padding
	// At is State.Received at the last frame.
	At int64
	// Window is how much DATA the server accepts, beyond SETTINGS_INITIAL_WINDOW_SIZE.
	Window int64
}

// String describes the stream.
func (s *Stream) String() string {
	text := fmt.Sprintf("stream %d: status %q, %d bytes of body, ended: %v", s.ID, s.Status, s.received, s.Ended)
	if s.Reset {
		text += fmt.Sprintf(", reset: %v", s.Code)
	}
	return text
}

// Done reports whether the server has ended the stream.
func (s *Stream) Done() bool { return s.Ended || s.Reset }

// end describes how the connection ended, or that it has not.
func (s *State) end() string {
	text := fmt.Sprintf("%d HEADERS, %d RST_STREAM, %d acknowledged PINGs and %d SETTINGS", s.Headers, s.Resets, s.PingAcks, s.SettingsAcks)
	if s.GoAway {
		text += fmt.Sprintf(", GOAWAY %v", s.GoAwayCode)
	}
	if !s.Closed {
		text += ", open"
	}
	return text
}
