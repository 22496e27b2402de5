// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/watchkeeper/watchkeeper/internal/h2"
)

// maxPulled is how many bytes of a watch are written before the others have their turn.
const maxPulled = 256 << 10

// writers write the pulled watches of HTTP/1.1 connections: a goroutine per processor,
// while there is something to write. One that had to be woken for each watch would take
// half as long again.
type writers struct {
	mu      sync.Mutex // guards the fields below, and clientConn.turn
	ready   []*clientConn
	running int
}

// A turn is the state of a connection with the writers. It is guarded by writers.mu.
type turn struct {
	watch *pulled // nil while a goroutine runs the watch
	state turnState
}

type turnState uint8

const (
	resting turnState = iota
	queued            // in writers.ready
	serving           // a writer serves it
	again             // and it was woken meanwhile
)

// pulls reports whether the writers can write to the connection.
func (c *clientConn) pulls() bool { return c.raw != nil }

// pull makes the writers write the watch from now on.
func (c *clientConn) pull(p *pulled) {
	c.writers.mu.Lock()
	c.turn.watch = p
	c.writers.mu.Unlock()
	c.Wake()
}

// Wake implements timeline.Waker.
func (c *clientConn) Wake() {
	w := c.writers
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c.turn.watch == nil: // whoever runs it finds out
	case c.turn.state == resting:
		w.enqueueLocked(c)
	case c.turn.state == serving:
		c.turn.state = again
	}
}

func (w *writers) enqueueLocked(c *clientConn) {
	c.turn.state = queued
	w.ready = append(w.ready, c)
	if w.running < runtime.GOMAXPROCS(0) {
		w.running++
		go w.run()
	}
}

// run serves connections while there are any.
func (w *writers) run() {
	b := blocks.Get().(*block)
	defer blocks.Put(b)
	var some [16]*clientConn
	var watches [len(some)]*pulled
	for {
		w.mu.Lock()
		n := copy(some[:], w.ready)
		clear(w.ready[:n])
		if w.ready = w.ready[n:]; n == 0 {
			w.ready = nil
			w.running--
			w.mu.Unlock()
			return
		}
		for i, c := range some[:n] {
			c.turn.state, watches[i] = serving, c.turn.watch
		}
		w.mu.Unlock()
		for i, c := range some[:n] {
			c.serveTurn(watches[i], b)
			b.n = 0
			some[i], watches[i] = nil, nil
		}
	}
}

// rest ends a turn. With more, the connection gets another.
func (c *clientConn) rest(more bool) {
	w := c.writers
	w.mu.Lock()
	defer w.mu.Unlock()
	if more || c.turn.state == again {
		w.enqueueLocked(c)
		return
	}
	c.turn.state = resting
}

// leave takes the watch from the writers, and continues on a goroutine.
func (c *clientConn) leave(then func()) {
	c.writers.mu.Lock()
	c.turn = turn{}
	c.writers.mu.Unlock()
	go then()
}

// serveTurn writes what a watch has.
func (c *clientConn) serveTurn(p *pulled, b *block) {
	select {
	case <-c.closed:
		c.leave(func() { c.finish(p) })
		return
	default:
	}
	for wrote := 0; ; {
		parts, next := p.Next()
		for i, part := range parts {
			for rest := fill(b, part); rest != ""; rest = fill(b, rest) {
				if wrote += b.n; !c.tryWrite(p, b, rest+strings.Join(parts[i+1:], "")) {
					return
				}
			}
		}
		full := wrote+b.n >= maxPulled
		if next == h2.More && !full {
			continue
		}
		if b.n > 0 && !c.tryWrite(p, b, "") {
			return
		}
		switch next {
		case h2.Leave:
			c.leave(p.Run)
			return
		case h2.End:
			c.leave(func() { c.finish(p) })
			return
		}
		p.Sent()
		c.rest(full)
		return
	}
}

// tryWrite writes a block. If the connection does not take all of it at once, a goroutine
// writes what is left, and rest, and continues the watch; then it returns false.
func (c *clientConn) tryWrite(p *pulled, b *block, rest string) bool {
	chunk := b.chunk()
	n, err := 0, error(nil)
	failed := c.raw.Write(func(fd uintptr) bool {
		n, err = syscall.Write(int(fd), chunk)
		return true // it does not wait
	})
	b.n = 0
	if failed == nil && err == nil && n == len(chunk) {
		return true
	}
	left := slices.Clone(chunk[max(n, 0):])
	c.leave(func() { c.catchUp(p, left, rest) })
	return false
}

// catchUp writes to a client that reads slowly, or finds out that it is gone.
func (c *clientConn) catchUp(p *pulled, left []byte, rest string) {
	s := p.watch
	p.hold()
	s.timer.writing()
	err := c.write(left)
	s.timer.written()
	if err == nil && rest != "" {
		s.dirty = true
		err = s.sink.frame([]string{rest})
	}
	if err != nil {
		c.reset()
		p.Done()
		return
	}
	p.Run()
}

// finish ends the answer and the watch.
func (c *clientConn) finish(p *pulled) {
	p.watch.timer.writing()
	c.end()
	p.Done()
}
