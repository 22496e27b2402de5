// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
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
func (c *clientConn) pulls() bool { return writesNow && c.raw != nil }

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

// A writer is one of the writers' goroutines.
type writer struct {
	block *block      // what it has to write, or
	one   *wire.Frame // the only frame that it has to write, without a copy
	// What try writes, and its result.
	text []byte
	n    int
	err  error
	try  func(fd uintptr) bool
}

func newWriter() *writer {
	o := &writer{block: blocks.Get().(*block)}
	o.try = func(fd uintptr) bool {
		o.n, o.err = writeNow(fd, o.text)
		return true // it does not wait
	}
	return o
}

// run serves connections while there are any.
func (w *writers) run() {
	o := newWriter()
	defer blocks.Put(o.block)
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
			o.serve(c, watches[i])
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

// serve writes what a watch has.
func (o *writer) serve(c *clientConn, p *pulled) {
	select {
	case <-c.closed:
		c.leave(func() { c.finish(p) })
		return
	default:
	}
	for wrote := 0; ; {
		parts, next := p.Next()
		if next == h2.More && p.shared != nil && o.one == nil && o.block.n == 0 {
			o.one = p.shared
			continue
		}
		if next == h2.More && o.one != nil {
			parts = append([]string{o.one.Text()}, parts...)
			o.one = nil
		}
		for i, part := range parts {
			for rest := fill(o.block, part); rest != ""; rest = fill(o.block, rest) {
				if wrote += o.block.n; !o.write(c, p, rest+strings.Join(parts[i+1:], "")) {
					return
				}
			}
		}
		full := wrote+o.block.n >= maxPulled
		if next == h2.More && !full {
			continue
		}
		if !o.write(c, p, "") {
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

// write writes what there is. If the connection does not take all of it at once, a
// goroutine writes what is left, and rest, and continues the watch; then it returns false.
func (o *writer) write(c *clientConn, p *pulled, rest string) bool {
	switch {
	case o.one != nil:
		o.text = o.one.Chunk()
	case o.block.n > 0:
		o.text = o.block.chunk()
	default:
		return true
	}
	o.one, o.block.n, o.n, o.err = nil, 0, 0, nil
	failed := c.raw.Write(o.try)
	left := o.text[max(o.n, 0):]
	o.text = nil
	if failed == nil && o.err == nil && len(left) == 0 {
		return true
	}
	left = slices.Clone(left)
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
