// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
)

// A pulled is a watch over our HTTP/2 (package h2), whose connection's writer pulls it: it
// calls Next when there may be something to write. A goroutine writes its initial events, and
// what it reads from the disk. Otherwise an idle watch has no goroutine. It implements h2.Feed.
type pulled struct {
	watch  *Watch
	stream *h2.Stream
	parts  []string // of the frames that the last step wrote
	// published is when the events that are being sent were published; zero for none.
	published time.Time
	stopOver  func() bool // releases Watch.Over
	begun     bool        // the initial events were written
	done      atomic.Bool // the watch has been released
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

// Run runs the watch until it ends or can be pulled.
func (p *pulled) Run() {
	s := p.watch
	defer s.recovered(p.breakOff)
	p.hold()
	run := s.follow
	if !p.begun {
		p.begun, run = true, s.run
	}
	if !run() {
		s.endGzip()
		s.timer.writing()
		p.stream.End()
		s.timer.written()
		p.Done()
		return
	}
	s.gone = nil
	s.sendTo(pulledSink{p}, pulledSink{p})
	s.timer.puller.Store(p.stream)
	if s.Over != nil && p.stopOver == nil {
		p.stopOver = context.AfterFunc(s.Over, s.Wake)
	}
	p.stream.Pull(p)
}

// hold makes the watch one that a goroutine runs.
func (p *pulled) hold() {
	s := p.watch
	s.timer.puller.Store(nil)
	if s.gone == nil {
		s.gone = p.stream.Gone()
		s.writeTo(streamOutput{p.stream})
	}
}

// Wake makes a watch look at what has happened to it. It does not block.
func (s *Watch) Wake() {
	s.timer.wakePuller()
}

// Next implements h2.Feed.
func (p *pulled) Next() (parts []string, next h2.Next) {
	s := p.watch
	defer s.recovered(p.breakOff)
	next = h2.Wait // after a panic
	clear(p.parts) // an idle watch keeps no objects
	p.parts = p.parts[:0]
	for !s.ended {
		phase := s.step(false)
		s.ended = s.ended || phase == ended
		switch {
		case phase == away:
			return nil, h2.Leave
		case len(p.parts) > 0:
			s.timer.writing()
			return p.parts, h2.More
		case phase == idle && !s.happened() && s.Source.Await(p.stream):
			return nil, h2.Wait
		}
	}
	if end := s.zip.end(); end != "" {
		s.timer.writing()
		p.parts = append(p.parts, end)
		return p.parts, h2.More
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

// recovered ends the watch after a panic: as in net/http, it does not end the process.
func (s *Watch) recovered(then func()) {
	if cause := recover(); cause != nil {
		s.tracker.log.Error("panic in a watch", "resource", s.Encoder.Resource.String(), "panic", cause)
		s.ended = true
		if then != nil {
			then()
		}
	}
}

// breakOff ends the stream without its end.
func (p *pulled) breakOff() {
	go func() { // not on the goroutine that may be the connection's writer
		p.stream.Reset()
		p.Done()
	}()
}

// A pulledSink collects the parts of frames, which the connection's writer copies.
type pulledSink struct{ p *pulled }

func (s pulledSink) frame(parts []string) error {
	s.p.parts = append(s.p.parts, parts...)
	return nil
}

// share implements frameSharer.
func (s pulledSink) share(f *wire.Frame) error { return s.frame([]string{f.Text()}) }

func (pulledSink) flush() error { return nil }
func (pulledSink) release()     {}

// A streamOutput is a stream of an HTTP/2 connection.
type streamOutput struct{ *h2.Stream }

func (o streamOutput) writeFrame(f *wire.Frame) error { return o.write(f.Bytes()) }
func (o streamOutput) writeBlock(b *block) error      { return o.write(b.bytes()) }

func (o streamOutput) write(p []byte) error {
	_, err := o.Write(p)
	return err
}

func (o streamOutput) abort() { o.Reset() }
func (o streamOutput) cut()   { time.AfterFunc(lastWrites, o.Reset) }
