// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"context"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/h2"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A pulled is a watch over our HTTP/2 (package h2). A goroutine writes its initial events
// and what it reads from the disk. Then the connection's writer pulls it: an idle watch
// has no goroutine.
type pulled struct {
	watch  *Watch
	stream *h2.Stream
	parts  []string // of the frames that the last step wrote
	// published is when the events that are being sent were published; zero for none.
	published time.Time
	stopOver  func() bool // releases Watch.Over
	begun     bool        // the initial events were written
	over      bool        // the watch has been released
}

// canPull reports whether the watch can be pulled from now on.
func (s *Watch) canPull() bool {
	if s.pulled.stream == nil || s.Live != nil || s.Replayed != nil && !s.Replayed().IsZero() {
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

// Run implements h2.Feed: it runs the watch until it ends or can be pulled.
func (p *pulled) Run() {
	s := p.watch
	defer p.recover()
	s.timer.puller.Store(nil)
	s.gone = p.stream.Gone()
	run := s.follow
	if !p.begun {
		p.begun, run = true, s.run
	}
	if !run() {
		p.stream.End()
		p.release()
		return
	}
	s.gone, s.sharer, s.sink = nil, nil, pulledSink{p}
	s.timer.puller.Store(p.stream)
	if s.Over != nil && p.stopOver == nil {
		p.stopOver = context.AfterFunc(s.Over, s.Wake)
	}
	p.stream.Pull(p)
}

// Wake makes a watch look at what has happened to it. It does not block.
func (s *Watch) Wake() {
	if puller := s.timer.puller.Load(); puller != nil {
		puller.Wake()
	}
}

// Next implements h2.Feed.
func (p *pulled) Next() (parts []string, next h2.Next) {
	s := p.watch
	defer p.recover()
	next = h2.Wait // after a panic
	clear(p.parts) // an idle watch keeps no objects
	p.parts = p.parts[:0]
	for !s.ended {
		phase := s.step(s.Source.TryNext)
		s.ended = s.ended || phase == ended
		switch {
		case phase == away:
			sink := &httpSink{out: streamOutput{p.stream}, timer: &s.timer}
			s.sink, s.sharer = sink, sink
			return nil, h2.Leave
		case len(p.parts) > 0:
			s.timer.writing()
			return p.parts, h2.More
		case phase == idle && s.Source.Await(p.stream):
			return nil, h2.Wait
		}
	}
	p.release()
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

// Gone implements h2.Feed.
func (p *pulled) Gone() { p.release() }

// release gives back what the watch holds, once.
func (p *pulled) release() {
	if p.over {
		return
	}
	p.over = true
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
		p.release()
		p.stream.Reset()
	}
}

// A pulledSink collects the parts of frames, which the connection's writer copies.
type pulledSink struct{ p *pulled }

func (s pulledSink) frame(parts []string) error {
	s.p.parts = append(s.p.parts, parts...)
	return nil
}

func (pulledSink) flush() error { return nil }
func (pulledSink) release()     {}

// A streamOutput is an HTTP/2 stream that a goroutine writes to.
type streamOutput struct{ stream *h2.Stream }

func (o streamOutput) writeFrame(f *wire.Frame) error { return o.write(f.Bytes()) }
func (o streamOutput) writeBlock(b *block) error      { return o.write(b.bytes()) }

func (o streamOutput) write(p []byte) error {
	_, err := o.stream.Write(p)
	return err
}

func (o streamOutput) abort() { o.stream.Reset() }
func (o streamOutput) cut()   { time.AfterFunc(lastWrites, o.stream.Reset) }
