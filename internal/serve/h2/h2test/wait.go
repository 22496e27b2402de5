// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2test

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/http2"
)

// Track makes the client expect answers on a stream that the test opens with frames of its
// own.
func (c *Conn) Track(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Streams[id] == nil {
		c.state.Streams[id] = &Stream{ID: id}
	}
}

// Forget drops what is known of a stream that has ended.
func (c *Conn) Forget(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.state.Streams, id)
}

// Patience makes writing fail when the server takes nothing for a time from now on.
func (c *Conn) Patience(d time.Duration) { _ = c.conn.SetWriteDeadline(time.Now().Add(d)) }

// Windows returns how much the server may send on a stream, and on the connection. They
// are exact while nothing is on its way.
func (c *Conn) Windows(id uint32) (stream, connection int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.state.Streams[id]; s != nil {
		stream = c.windowLocked(s)
	}
	return stream, c.credit
}

// Look calls a function with the state.
func (c *Conn) Look(see func(*State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	see(&c.state)
}

// Wait waits until a condition holds for the state. When the server closes the connection
// before, the test fails, unless the condition is about that.
func (c *Conn) Wait(what string, condition func(*State) bool) {
	c.t.Helper()
	if err := c.Await(condition); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
}

// Await is Wait that returns an error.
func (c *Conn) Await(condition func(*State) bool) error {
	expired := false
	timer := time.AfterFunc(watchdog, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		expired = true
		c.changed.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case condition(&c.state):
			return nil
		case c.state.Closed:
			return errors.New("the server has closed the connection: " + c.state.end())
		case expired:
			return errors.New("it does not happen: " + c.state.end())
		}
		c.changed.Wait()
	}
}

// Exchange sends a GET and waits for its answer, to see that the connection works.
func (c *Conn) Exchange(path string, more ...string) *Stream {
	c.t.Helper()
	id, err := c.Get(path, more...)
	if err != nil {
		c.t.Fatalf("GET %s: %v", path, err)
	}
	return c.Answer(id)
}

// Refused reports whether the server has ended the connection, or is about to because of
// an error. It may read for a while what the client sends, so that writing is no sign.
func (c *Conn) Refused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Closed || c.state.GoAway && c.state.GoAwayCode != http2.ErrCodeNo
}

// Answer waits for the end of a stream and returns a copy of it.
func (c *Conn) Answer(id uint32) *Stream {
	c.t.Helper()
	var answer Stream
	c.Wait(fmt.Sprintf("an answer on stream %d", id), func(s *State) bool {
		answer = *s.Streams[id]
		return answer.Done()
	})
	return &answer
}

// Sync waits until the server has processed all frames sent so far.
func (c *Conn) Sync() error {
	c.writing.Lock()
	id := uint64(c.written)
	c.writing.Unlock()
	data := [8]byte{0xff, byte(id >> 48), byte(id >> 40), byte(id >> 32), byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
	if err := c.Ping(data); err != nil {
		return err
	}
	return c.Await(func(*State) bool { return c.pings[data] == 0 })
}
