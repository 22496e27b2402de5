// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

const (
	// maxBatch is about how many bytes one write has. Larger ones are not cheaper.
	maxBatch = 128 << 10
	// maxTurn is how many bytes of one stream are written before the others have their
	// turn.
	maxTurn = 32 << 10
)

// A batch is what is written at once, and the streams concerned. Connections share
// batches, since one needs it only while it writes.
type batch struct {
	buf   []byte
	turn  []*Stream // that are served in this batch
	later []*Stream // that are served in the next one
	sent  []*Stream // whose feeds have parts in it
	done  []Feed    // whose end is in it
	left  []Feed    // that have left the writer, with parts in it
}

var batches = sync.Pool{New: func() any { return &batch{buf: make([]byte, 0, maxBatch+maxTurn+maxFrameSize)} }}

// enqueue puts a stream into the list of those to serve. It may be called with any lock
// held.
func (c *conn) enqueue(st *Stream) {
	c.readyMu.Lock()
	queued := st.queued
	if !queued {
		st.queued = true
		c.ready = append(c.ready, st)
	}
	c.readyMu.Unlock()
	if !queued {
		c.wakeWriter()
	}
}

// wakeWriter starts the writer, unless it runs. An idle connection has none.
func (c *conn) wakeWriter() {
	if c.wakes.Add(1) == 1 {
		go c.write()
	}
}

// write writes what there is.
func (c *conn) write() {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	for {
		seen := c.wakes.Load()
		for c.fill(b) {
			err := c.flush(b)
			c.flushed(b)
			if err != nil {
				c.end(err)
				break
			}
		}
		b.buf = b.buf[:0]
		if c.finished() {
			close(c.writerDone)
			return // wakes remains above 0, so that no other is started
		}
		if c.wakes.CompareAndSwap(seen, 0) {
			return
		}
	}
}

// fill collects a batch. It returns false if there is nothing to write.
func (c *conn) fill(b *batch) bool {
	if c.window.Load() > 0 {
		c.unblock()
	}
	// Before the control frames, so that a header comes before what follows it.
	c.takeReady(b)
	c.mu.Lock()
	b.buf = append(b.buf[:0], c.control...)
	if c.control = c.control[:0]; cap(c.control) > maxFrameSize {
		c.control = nil
	}
	c.replies = 0
	c.batch++
	over := c.over
	c.mu.Unlock()
	if over {
		b.buf = b.buf[:0]
	}
	for len(b.turn) > 0 {
		for i, st := range b.turn {
			if len(b.buf) >= maxBatch {
				b.later = append(b.later, b.turn[i:]...)
				break
			}
			c.readyMu.Lock()
			st.queued = false
			c.readyMu.Unlock()
			c.serveTurn(b, st)
		}
		clear(b.turn)
		b.turn = b.turn[:0]
		if len(b.buf) < maxBatch {
			c.takeReady(b)
		}
	}
	c.putBack(b.later)
	clear(b.later)
	b.later = b.later[:0]
	return len(b.buf) > 0
}

// takeReady takes the streams to serve.
func (c *conn) takeReady(b *batch) {
	c.readyMu.Lock()
	defer c.readyMu.Unlock()
	b.turn = append(b.turn[:0], c.ready...)
	clear(c.ready)
	c.ready = c.ready[:0]
}

// putBack puts streams that had no turn before all others.
func (c *conn) putBack(streams []*Stream) {
	if len(streams) == 0 {
		return
	}
	c.readyMu.Lock()
	defer c.readyMu.Unlock()
	c.ready = slices.Concat(streams, c.ready)
	c.wakeWriter()
}

// serveTurn adds to a batch what a stream has to send, up to maxTurn.
func (c *conn) serveTurn(b *batch, st *Stream) {
	c.mu.Lock()
	if st.headerIn > c.batch && st.state != closed { // its header is in the next batch
		c.mu.Unlock()
		c.readyMu.Lock()
		if !st.queued {
			st.queued = true
			b.later = append(b.later, st)
		}
		c.readyMu.Unlock()
		return
	}
	st.active = st.feed
	if st.active == nil {
		c.serveHandlerLocked(b, st)
		c.mu.Unlock()
		return
	}
	ended := st.state == closed
	if ended {
		st.feed = nil
		c.feeds--
		c.ended--
		c.readyMu.Lock()
		delete(c.blocked, st)
		c.readyMu.Unlock()
	}
	c.mu.Unlock()
	if ended {
		st.rest, st.sending = "", false
		feed := st.active
		st.active = nil
		feed.Done()
		return
	}
	c.serveFeed(b, st)
}

// serveHandlerLocked adds what a handler writes.
func (c *conn) serveHandlerLocked(b *batch, st *Stream) {
	o := st.out
	if o == nil || st.state == closed || st.state == halfClosedLocal {
		return
	}
	limit := len(b.buf) + maxTurn
	for len(o.pending) > 0 && len(b.buf) < limit {
		n := c.room(st, len(o.pending))
		if n == 0 {
			return
		}
		p := o.pending[:n]
		o.pending = o.pending[n:]
		end := o.end && len(o.pending) == 0
		b.buf = append(appendHeader(b.buf, n, http2.FrameData, endFlag(end), st.id), p...)
		if end {
			o.end = false
			c.endLocked(st)
		}
	}
	switch {
	case len(o.pending) > 0:
		c.enqueue(st)
		return
	case o.end:
		b.buf = appendHeader(b.buf, 0, http2.FrameData, http2.FlagDataEndStream, st.id)
		o.end = false
		c.endLocked(st)
	}
	o.changed.Broadcast()
}

// serveFeed adds what a feed yields. A feed is called even if the window is closed, but
// not while something waits for the window.
func (c *conn) serveFeed(b *batch, st *Stream) {
	limit := len(b.buf) + maxTurn
	if st.rest != "" {
		rest := [1]string{st.rest}
		c.sendParts(b, st, rest[:], limit)
	}
	for st.rest == "" {
		if len(b.buf) >= limit {
			c.enqueue(st)
			return
		}
		parts, next := st.active.Next()
		switch next {
		case More:
			c.sendParts(b, st, parts, limit)
		case Wait:
			return
		case End:
			b.buf = appendHeader(b.buf, 0, http2.FrameData, http2.FlagDataEndStream, st.id)
			b.done = append(b.done, st.active)
			c.release(st, func() { c.endLocked(st) })
			return
		case Leave:
			feed := st.active
			c.release(st, func() { st.out = c.newOutgoing() })
			if st.sending {
				b.left = append(b.left, feed)
			} else {
				go feed.Run()
			}
			return
		}
	}
}

// sendParts adds parts as frames, up to the limit and as the windows allow. The rest is
// kept.
func (c *conn) sendParts(b *batch, st *Stream, parts []string, limit int) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	part, at := 0, 0 // the next byte is parts[part][at]
	for size > 0 {
		n := 0
		if len(b.buf) >= limit {
			c.enqueue(st)
		} else {
			n = c.room(st, size)
		}
		if n == 0 {
			st.rest = parts[part][at:] + strings.Join(parts[part+1:], "")
			return
		}
		if !st.sending {
			st.sending = true
			b.sent = append(b.sent, st)
		}
		b.buf = appendHeader(b.buf, n, http2.FrameData, 0, st.id)
		size -= n
		for n > 0 {
			p := parts[part][at:]
			if len(p) <= n {
				part, at = part+1, 0
			} else {
				p = p[:n]
				at += n
			}
			b.buf = append(b.buf, p...)
			n -= len(p)
		}
	}
	st.rest = ""
}

// release takes the feed from a stream.
func (c *conn) release(st *Stream, then func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st.active, st.feed, st.rest = nil, nil, ""
	c.feeds--
	if st.state == closed { // meanwhile
		c.ended--
	}
	then()
}

// room takes up to n bytes, at most a frame, from the windows of a stream and of the
// connection. If it returns 0, the stream is served again when there is room.
func (c *conn) room(st *Stream, n int) int {
	n = min(n, maxFrameSize)
	for {
		if own := st.window.Load(); own <= 0 {
			st.blocked.Store(true)
			if st.window.Load() <= 0 {
				return 0
			}
			st.blocked.Store(false)
			continue
		} else if int64(n) > own {
			n = int(own)
		}
		all := c.window.Load()
		if all <= 0 {
			c.readyMu.Lock()
			if c.blocked == nil {
				c.blocked = map[*Stream]struct{}{}
			}
			c.blocked[st] = struct{}{}
			c.readyMu.Unlock()
			if c.window.Load() > 0 {
				c.unblock()
			}
			return 0
		}
		n = int(min(int64(n), all))
		st.window.Add(-int64(n))
		c.window.Add(-int64(n))
		c.sent.Add(int64(n))
		return n
	}
}

// unblock serves streams again that wait for the connection's window: some at a time, as a
// small window must not make work for all.
func (c *conn) unblock() {
	n := 1 + c.window.Load()/1024
	c.readyMu.Lock()
	woken := len(c.blocked) > 0
	for st := range c.blocked { // together, so that none gets a second turn before the others
		if n--; n < 0 {
			break
		}
		delete(c.blocked, st)
		if !st.queued {
			st.queued = true
			c.ready = append(c.ready, st)
		}
	}
	c.readyMu.Unlock()
	if woken {
		c.wakeWriter()
	}
}

// flush writes a batch.
func (c *conn) flush(b *batch) error {
	now := time.Now()
	if c.deadline.Sub(now) < c.server.writeTimeout { // rarely, because setting a deadline is expensive
		c.deadline = now.Add(c.server.writeTimeout * 3 / 2)
		c.mu.Lock()
		if !c.over && !c.failed {
			_ = c.net.SetWriteDeadline(c.deadline)
		}
		c.mu.Unlock()
	}
	if c.gather == nil {
		_, err := c.net.Write(b.buf)
		return err
	}
	c.gather.begin()
	_, err := c.net.Write(b.buf)
	return c.gather.flush(err)
}

// flushed tells the feeds with parts in a batch that it has been written.
func (c *conn) flushed(b *batch) {
	for i, st := range b.sent {
		b.sent[i] = nil
		if st.sending && st.active != nil && st.rest == "" {
			st.active.Sent()
		}
		st.sending = false
	}
	b.sent = b.sent[:0]
	for i, feed := range b.left {
		b.left[i] = nil
		feed.Sent()
		go feed.Run()
	}
	b.left = b.left[:0]
	for i, feed := range b.done {
		b.done[i] = nil
		feed.Done()
	}
	b.done = b.done[:0]
}

// finished reports whether the writer has nothing more to do. It closes the connection
// for writing after the last frame of one that ends in order.
func (c *conn) finished() bool {
	c.mu.Lock()
	if len(c.control) > 0 && !c.over {
		c.wakeWriter()
		c.mu.Unlock()
		return false
	}
	last := !c.halfClosed && !c.over && (c.failed || c.drained == finalGoAway && len(c.streams) == 0)
	c.halfClosed = c.halfClosed || last
	c.writerEnded = c.over && c.feeds == 0
	ended := c.writerEnded
	c.mu.Unlock()
	if last {
		c.closeWrite()
	}
	return ended
}

// appendHeader appends the header of a frame.
func appendHeader(b []byte, length int, typ http2.FrameType, flags http2.Flags, id uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(typ), byte(flags))
	return binary.BigEndian.AppendUint32(b, id)
}

func endFlag(end bool) http2.Flags {
	if end {
		return http2.FlagDataEndStream
	}
	return 0
}

func appendReset(b []byte, id uint32, code http2.ErrCode) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(b, 4, http2.FrameRSTStream, 0, id), uint32(code))
}

func appendWindowUpdate(b []byte, id uint32, n int) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(b, 4, http2.FrameWindowUpdate, 0, id), uint32(n))
}

func appendGoAway(b []byte, last uint32, code http2.ErrCode, why string) []byte {
	b = appendHeader(b, 8+len(why), http2.FrameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	return append(binary.BigEndian.AppendUint32(b, uint32(code)), why...)
}
