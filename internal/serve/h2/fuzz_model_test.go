// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// maxWindow is the maximum size of a flow-control window.
const maxWindow = 1<<31 - 1

// A phase is the state of a stream for the server (RFC 9113, section 5.1), as far as
// the client decides it. That the server has ended the stream is observed.
type phase int

const (
	idle     phase = iota
	skipped        // a higher ID was opened before
	open           // the request goes on
	complete       // the request has ended
	byClient       // reset by the client
	byServer       // reset by the server, or refused
)

// A verdict is what the server has to do about a frame. Where RFC 9113 permits several
// answers, several are listed.
type verdict struct {
	stream     []http2.ErrCode // RST_STREAM with one of these, or
	connection []http2.ErrCode // GOAWAY with one of these
	nothing    bool            // it may go on as if nothing were wrong
}

var fine = verdict{nothing: true}

// streamError is a stream error, which may be taken for a connection error (5.4.1).
func streamError(codes ...http2.ErrCode) verdict { return verdict{stream: codes, connection: codes} }

func connectionError(codes ...http2.ErrCode) verdict { return verdict{connection: codes} }

// tolerant permits that the server ignores the frame.
func (v verdict) tolerant() verdict {
	v.nothing = true
	return v
}

// A model knows the streams of a connection.
type model struct {
	c       *h2test.Conn
	phases  map[uint32]phase
	answers map[uint32]int  // how long the answer is
	refused map[uint32]bool // skipped, and perhaps reset by the server for a later frame
	lastID  uint32
	unsure  bool // nothing is expected any more, except what always holds
	dead    bool // there was a connection error
}

func newModel(c *h2test.Conn) *model {
	return &model{c: c, phases: map[uint32]phase{}, answers: map[uint32]int{}, refused: map[uint32]bool{}}
}

func (m *model) phase(id uint32) phase {
	p := m.phases[id]
	if p == idle && id%2 == 1 && id < m.lastID {
		return skipped
	}
	return p
}

// ended reports whether the server has sent the whole answer.
func (m *model) ended(id uint32) (ended bool) {
	m.c.Look(func(s *h2test.State) { ended = s.Streams[id] != nil && s.Streams[id].Ended })
	return ended
}

// running returns how many streams are not closed.
func (m *model) running() (n int) {
	for id, p := range m.phases {
		if p == open || p == complete && !m.ended(id) {
			n++
		}
	}
	return n
}

// opens notes that a frame opens a stream.
func (m *model) opens(id uint32, p phase, answer int) {
	m.c.Track(id)
	m.phases[id], m.answers[id], m.lastID = p, answer, max(m.lastID, id)
}

// headers is the verdict about a HEADERS frame, valid as a request or not, and notes what
// it does.
func (m *model) headers(id uint32, end, valid bool, answer int) verdict {
	if id == 0 || id%2 == 0 {
		return connectionError(http2.ErrCodeProtocol)
	}
	switch p := m.phase(id); p {
	case idle:
		switch {
		case m.running() >= maxStreams:
			m.opens(id, byServer, 0)
			return streamError(http2.ErrCodeRefusedStream, http2.ErrCodeProtocol)
		case !valid:
			m.opens(id, byServer, 0)
			return streamError(http2.ErrCodeProtocol)
		case end:
			m.opens(id, complete, answer)
		default:
			m.opens(id, open, answer)
		}
		return fine
	case skipped:
		v := connectionError(http2.ErrCodeProtocol, http2.ErrCodeStreamClosed)
		v.nothing = m.refused[id] // it may have crossed with the reset
		return v
	case open: // a valid request has pseudo-headers, which trailers must not have
		m.phases[id] = byServer
		if m.ended(id) {
			return streamError(http2.ErrCodeProtocol).tolerant()
		}
		return streamError(http2.ErrCodeProtocol)
	default:
		return m.closed(id, p)
	}
}

// trailers is the verdict about a HEADERS frame without pseudo-headers.
func (m *model) trailers(id uint32, end bool) verdict {
	if m.phase(id) == open && end && id%2 == 1 {
		m.phases[id] = complete
		return fine
	}
	return m.headers(id, end, false, 0)
}

// closed is the verdict about a frame on a stream whose request has ended.
func (m *model) closed(id uint32, p phase) verdict {
	v := streamError(http2.ErrCodeStreamClosed)
	if p == byServer {
		return v.tolerant() // it may have crossed with the reset
	}
	if p == complete {
		m.phases[id] = byServer
	}
	return v
}

// data is the verdict about a DATA frame of a length, with padding.
func (m *model) data(id uint32, length int64, end bool) verdict {
	if id == 0 || id%2 == 0 {
		return connectionError(http2.ErrCodeProtocol)
	}
	p := m.phase(id)
	if p == idle {
		return connectionError(http2.ErrCodeProtocol)
	}
	if p == skipped {
		m.refused[id] = true
		return streamError(http2.ErrCodeProtocol, http2.ErrCodeStreamClosed)
	}
	fits := false
	m.c.Look(func(*h2test.State) {
		if fits = m.c.MayUpload(id, maxWindow) >= length; fits {
			m.c.Uploaded(id, int(length))
		}
	})
	if !fits {
		m.unsure = true // the windows are not known any more
		return streamError(http2.ErrCodeFlowControl, http2.ErrCodeStreamClosed)
	}
	if p != open {
		return m.closed(id, p)
	}
	if end {
		m.phases[id] = complete
	}
	return fine
}

// reset is the verdict about RST_STREAM.
func (m *model) reset(id uint32) verdict {
	switch m.phase(id) {
	case idle:
		return connectionError(http2.ErrCodeProtocol)
	case skipped:
		return connectionError(http2.ErrCodeProtocol).tolerant()
	case open, complete:
		m.phases[id] = byClient
	}
	return fine
}

// grant is the verdict about WINDOW_UPDATE.
func (m *model) grant(id, n uint32) verdict {
	stream, connection := m.c.Windows(id)
	if id == 0 {
		switch {
		case n == 0:
			return connectionError(http2.ErrCodeProtocol)
		case connection+int64(n) > maxWindow:
			return connectionError(http2.ErrCodeFlowControl)
		}
		return fine
	}
	var v verdict
	switch p := m.phase(id); {
	case p == idle:
		return connectionError(http2.ErrCodeProtocol)
	case p == skipped:
		m.refused[id] = true
		return streamError(http2.ErrCodeProtocol, http2.ErrCodeStreamClosed).tolerant()
	case n == 0:
		v = streamError(http2.ErrCodeProtocol)
	case stream+int64(n) > maxWindow:
		v = streamError(http2.ErrCodeFlowControl)
	default:
		return fine
	}
	if m.phases[id] != open && (m.phases[id] != complete || m.ended(id)) {
		return v.tolerant() // the stream is closed
	}
	m.phases[id] = byServer
	return v
}

// check compares what the server has done about a frame on a stream with the verdict.
// before is the number of RST_STREAM frames before.
func (m *model) check(id uint32, v verdict, before int) error {
	var failure error
	m.c.Look(func(s *h2test.State) {
		if len(s.Violations) > 0 {
			failure = fmt.Errorf("violations: %s", strings.Join(s.Violations, "; "))
			return
		}
		refused := s.GoAway && s.GoAwayCode != http2.ErrCodeNo
		if m.dead = refused || s.Closed; m.unsure {
			return
		}
		switch {
		case refused && !slices.Contains(v.connection, s.GoAwayCode):
			failure = fmt.Errorf("GOAWAY %v; expected %+v", s.GoAwayCode, v)
		case refused:
		case s.Closed:
			failure = fmt.Errorf("closed without GOAWAY; expected %+v", v)
		case s.Resets > before:
			if st := s.Streams[id]; v.stream == nil || st == nil || st.Reset && !slices.Contains(v.stream, st.Code) && m.phases[id] != byClient {
				failure = fmt.Errorf("RST_STREAM, on %v; expected %+v", st, v)
			}
		case !v.nothing && !(v.stream != nil && s.Streams[id] != nil && s.Streams[id].Reset):
			failure = fmt.Errorf("nothing; expected %+v", v)
		}
	})
	if failure != nil || m.dead || m.unsure {
		return failure
	}
	// The server sends all that the windows allow.
	for id, p := range m.phases {
		stream, connection := m.c.Windows(id)
		if p == complete && !m.ended(id) && stream > 0 && connection > 0 {
			return fmt.Errorf("the answer on stream %d has stopped, with windows of %d and %d", id, stream, connection)
		}
	}
	return nil
}
