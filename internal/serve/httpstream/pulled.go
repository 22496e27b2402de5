// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A carrier is a connection of a watch, or a stream of one, that can pull the watch: it
// calls Next when there may be something to write. Its Wake makes it call Next.
type carrier interface {
	timeline.Waker
	output
	// pulls reports whether it can pull at all.
	pulls() bool
	// pull makes it pull the watch from now on.
	pull(*pulled)
	// gone is closed when the client has disconnected.
	gone() <-chan struct{}
	// end ends the answer, and reset breaks it off.
	end()
	reset()
}

// A pulled is a watch that its connection pulls: over our HTTP/2 (package h2), and over
// HTTP/1.1 without TLS. A goroutine writes its initial events, what it reads from the
// disk, and what a slow HTTP/1.1 client does not take at once. Otherwise an idle watch has
// no goroutine. It implements h2.Feed.
type pulled struct {
	watch   *Watch
	carrier carrier
	parts   []string    // of the frames that the last step wrote
	shared  *wire.Frame // that is all of them; nil if they are not one that watches share
	// published is when the events that are being sent were published; zero for none.
	published time.Time
	stopOver  func() bool // releases Watch.Over
	begun     bool        // the initial events were written
	done      atomic.Bool // the watch has been released
}

// carry gives a watch to a carrier. [pulled.Run] begins it.
func (s *Watch) carry(c carrier) {
	s.pulled.watch, s.pulled.carrier = s, c
	s.begin(c)
}

// canPull reports whether the watch can be pulled from now on.
func (s *Watch) canPull() bool {
	if s.pulled.carrier == nil || !s.pulled.carrier.pulls() || s.Live != nil || s.Replayed != nil && !s.Replayed().IsZero() {
		return false
	}
	// The source yields a batch, which may be empty, if it is in the timeline.
	b, ok, err := s.Source.TryNext()
	if !ok || err != nil {
		return false
	}
	s.batch, s.within = b, true
	return true
}

// Run runs the watch until it ends or can be pulled.
func (p *pulled) Run() {
	s := p.watch
	defer p.recover()
	p.hold()
	run := s.follow
	if !p.begun {
		p.begun, run = true, s.run
	}
	if !run() {
		s.timer.writing()
		p.carrier.end()
		s.timer.written()
		p.Done()
		return
	}
	s.gone, s.sharer, s.sink = nil, pulledSink{p}, pulledSink{p}
	s.timer.puller.Store(&p.carrier)
	if s.Over != nil && p.stopOver == nil {
		p.stopOver = context.AfterFunc(s.Over, s.Wake)
	}
	p.carrier.pull(p)
}

// hold makes the watch one that a goroutine runs.
func (p *pulled) hold() {
	s := p.watch
	s.timer.puller.Store(nil)
	if s.gone == nil {
		sink := &httpSink{out: p.carrier, timer: &s.timer}
		s.gone, s.sink, s.sharer = p.carrier.gone(), sink, sink
	}
}

// Wake makes a watch look at what has happened to it. It does not block.
func (s *Watch) Wake() {
	s.timer.wakePuller()
}

// Next implements h2.Feed.
func (p *pulled) Next() (parts []string, next h2.Next) {
	s := p.watch
	defer p.recover()
	next = h2.Wait // after a panic
	clear(p.parts) // an idle watch keeps no objects
	p.parts, p.shared = p.parts[:0], nil
	for !s.ended {
		phase := s.step(false)
		s.ended = s.ended || phase == ended
		switch {
		case phase == away:
			return nil, h2.Leave
		case len(p.parts) > 0:
			s.timer.writing()
			return p.parts, h2.More
		case phase == idle && !s.happened() && s.Source.Await(p.carrier):
			return nil, h2.Wait
		}
	}
	return nil, h2.End
}

// Sent implements h2.Feed.
func (p *pulled) Sent() {
	p.watch.timer.written()
	if !p.published.IsZero() {
		p.watch.tracker.lag.Observe(time.Since(p.published).Seconds())
		p.published = time.Time{}
	}
}

// Done implements h2.Feed: it gives back what the watch holds, once.
func (p *pulled) Done() {
	if p.done.Swap(true) {
		return
	}
	s := p.watch
	if p.stopOver != nil {
		p.stopOver()
	}
	s.timer.puller.Store(nil)
	s.Close()
	s.finish()
}

// recover ends the stream after a panic: as in net/http, it does not end the process.
func (p *pulled) recover() {
	if cause := recover(); cause != nil {
		p.watch.tracker.log.Error("panic in a watch", "resource", p.watch.Encoder.Resource.String(), "panic", cause)
		p.watch.ended = true
		go func() { // not on the goroutine that may be the carrier's writer
			p.carrier.reset()
			p.Done()
		}()
	}
}

// A pulledSink collects the parts of frames, which the connection's writer copies.
type pulledSink struct{ p *pulled }

func (s pulledSink) frame(parts []string) error {
	s.p.parts, s.p.shared = append(s.p.parts, parts...), nil
	return nil
}

// share implements frameSharer.
func (s pulledSink) share(f *wire.Frame) error {
	shared := f
	if len(s.p.parts) > 0 {
		shared = nil
	}
	s.p.parts, s.p.shared = append(s.p.parts, f.Text()), shared
	return nil
}

func (pulledSink) flush() error { return nil }
func (pulledSink) release()     {}

// A streamCarrier is a stream of an HTTP/2 connection.
type streamCarrier struct{ *h2.Stream }

func (c streamCarrier) writeFrame(f *wire.Frame) error { return c.write(f.Bytes()) }
func (c streamCarrier) writeBlock(b *block) error      { return c.write(b.bytes()) }

func (c streamCarrier) write(p []byte) error {
	_, err := c.Write(p)
	return err
}

func (c streamCarrier) abort() { c.Reset() }
func (c streamCarrier) cut()   { time.AfterFunc(lastWrites, c.Reset) }

func (streamCarrier) pulls() bool             { return true }
func (c streamCarrier) pull(p *pulled)        { c.Pull(p) }
func (c streamCarrier) gone() <-chan struct{} { return c.Gone() }
func (c streamCarrier) end()                  { c.End() }
func (c streamCarrier) reset()                { c.Reset() }
