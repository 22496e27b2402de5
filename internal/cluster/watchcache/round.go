// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const (
	defaultDiskTimeout = 2 * time.Second // see Options.DiskTimeout
	// minDiskTimeout is the minimum wait for a reflector that was stopped.
	minDiskTimeout = 100 * time.Millisecond
	// maxSeeds is how often a timeline is loaded from the record before it starts
	// from a list instead: each list that the reflector takes meanwhile makes a
	// seed obsolete.
	maxSeeds = 3
)

// A state says which sink the reflector feeds. The package documentation has the
// transitions.
type state int

const (
	// recording: the reflector feeds the record.
	recording state = iota
	// seeding: the reflector feeds the record, while a timeline is loaded from it.
	seeding
	// caching: the reflector feeds the timeline. The record, if there is one,
	// follows the timeline, so that the disk never blocks the upstream watch.
	caching
)

// A round is the run of one reflector. Its fields belong to the goroutine of
// watch.run.
type round struct {
	w      *watch
	reader *Resource  // nil unless state is caching, apart from start
	record *recordUse // the record that is fed or follows the timeline; may be nil
	state  state

	feed      *feed
	resumed   bool // the reflector begins with a watch, not with a list
	reflector *reflector.Reflector[*scan.Object]
	cancel    context.CancelFunc
	ended     chan error // receives the result of the reflector

	// fed is the record that the reflector feeds as one of its users;
	// guarded by watch.mu.
	fed *recordUse
	// following is the last recording of the timeline; nil before caching.
	following *following
	// damaged is closed when the fed record turns out to be damaged.
	damaged <-chan struct{}
}

// run runs a reflector until it is refused, has to start over, or is not needed any
// more. It returns how long to wait before the record is fed again.
func (r *round) run(ctx context.Context) (pause time.Duration) {
	ctx, r.cancel = context.WithCancel(ctx)
	defer r.cancel()
	resume, kind, err := r.start(ctx)
	if err != nil {
		return r.pause(err)
	}
	r.resumed = resume != nil
	r.reflector = reflector.New(reflector.Objects(true), r.feed, reflector.Options{
		Transport:  r.w.cache.opts.Upstream.Agent(),
		URL:        r.w.cache.opts.Upstream.URL(r.w.id.Path(), ""),
		Kind:       kind,
		Watchdog:   true,
		Suspect:    &r.w.suspect,
		Resume:     resume,
		Continuity: r.continuity,
		Ready:      r.ready,
		Logger:     r.w.cache.opts.Upstream.Quiet(r.w.log),
	})
	r.w.reflector.Store(r.reflector)
	if r.reader != nil {
		r.reader.reflector.Store(r.reflector)
	}
	r.ended = make(chan error, 1)
	go func() {
		err := r.reflector.Run(ctx)
		r.unfeed()
		r.ended <- err
	}()
	return r.pause(r.supervise(ctx))
}

// ready returns since when the API server is ready, zero if it is not.
func (r *round) ready(ctx context.Context) time.Time {
	since, err := r.w.cache.opts.Upstream.ReadySince(ctx)
	if err != nil {
		return time.Time{}
	}
	return since
}

// continuity passes on what the reflector knows about the upstream's history.
func (r *round) continuity(c reflector.Continuity) {
	if _, record, _ := r.w.needs(); record != nil {
		record.Continuity(c)
	}
	r.feed.trust.learn(c)
}

// errStopped is the result of a round that was stopped, or has to start over at once.
var errStopped = errors.New("stopped")

// start makes the sink that the reflector begins with, and returns what the
// reflector resumes from.
func (r *round) start(ctx context.Context) (resume *reflector.Resume, kind string, err error) {
	if r.reader == nil {
		return r.startRecording(ctx)
	}
	epoch := uint64(0)
	soon, cancel := context.WithDeadline(ctx, r.reader.seedBy)
	defer cancel()
	if seed := r.seed(ctx, soon); seed != nil {
		r.reader.begin(seed)
		resume, epoch = &seed.Resume, r.reader.Timeline.View().Epoch()
	}
	r.state, r.feed = caching, newFeed(r.reader.sink())
	r.reader.feed.Store(r.feed)
	r.follow(epoch)
	return resume, r.reader.Info.Kind, nil
}

// seed returns the recorded state once the record has no other users, nil if that
// takes too long.
func (r *round) seed(ctx, soon context.Context) *Seed {
	if r.record == nil || soon.Err() != nil {
		return nil
	}
	if r.w.wait(soon, func() bool { return r.record.users == 0 }) != nil {
		if ctx.Err() == nil {
			r.w.log.Warn("the disk is slow: the resource is served without its record")
		}
		return nil
	}
	if !r.w.use(r.record) {
		return nil
	}
	defer r.w.release(r.record)
	return r.record.Seed(ctx)
}

// startRecording is start without a reader. A reader that arrives meanwhile does not
// wait for the disk.
func (r *round) startRecording(ctx context.Context) (resume *reflector.Resume, kind string, err error) {
	other := func() bool { return r.w.reader != nil || r.w.record != r.record }
	err = r.w.wait(ctx, func() bool { return other() || r.record.users == 0 })
	if reader, _, _ := r.w.needs(); err != nil || reader != nil || !r.w.use(r.record) {
		return nil, "", errStopped
	}
	type result struct {
		resume *reflector.Resume
		kind   string
		err    error
	}
	r.damaged = r.record.Damaged()
	done := make(chan result, 1)
	go func() {
		var out result
		out.resume, out.kind, out.err = r.record.Resume(ctx)
		done <- out
	}()
	changed, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_ = r.w.wait(changed, other)
		stop()
	}()
	select {
	case out := <-done:
		if out.err != nil {
			r.w.release(r.record)
			return nil, "", out.err
		}
		r.state, r.feed = recording, newFeed(r.record.Sink(ctx))
		r.w.update(func() { r.fed = r.record })
		return out.resume, out.kind, nil
	case <-changed.Done():
		r.cancel()
		go func() {
			<-done
			r.w.release(r.record)
		}()
		return nil, "", errStopped
	}
}

// supervise attaches and detaches the timeline as the needs change. It returns when
// the reflector has ended, with its error, or has been stopped.
func (r *round) supervise(ctx context.Context) error {
	for {
		reader, record, changed := r.w.needs()
		if !r.adjust(ctx, reader, record) {
			r.stop()
			return errStopped
		}
		var damaged <-chan struct{}
		if r.state == recording {
			damaged = r.damaged
		}
		select {
		case err := <-r.ended:
			r.unfeed() // detach may have attached the record since
			return err
		case <-damaged:
			r.stop()
			return ErrDamaged
		case <-changed:
		}
	}
}

// adjust changes the state to what is needed. It reports false if that takes another
// round.
func (r *round) adjust(ctx context.Context, reader *Resource, record *recordUse) bool {
	if r.state == recording {
		switch {
		case record != r.record:
			return false
		case reader != nil:
			return r.attach(ctx, reader)
		}
		return true
	}
	if reader != r.reader {
		if record == nil || record != r.record || r.reader.dropped.Load() || !r.detach(ctx) {
			return false
		}
		return reader == nil || r.attach(ctx, reader)
	}
	if record != r.record {
		r.record = record
		r.follow(0)
	}
	return true
}

// stop ends the reflector. A disk that hangs can block the reflector in the record's
// sink: then stop returns before the reflector ends, and the reflector remains a user
// of the record.
func (r *round) stop() {
	r.cancel()
	timeout := r.w.cache.opts.DiskTimeout
	if reader, _, _ := r.w.needs(); reader != nil {
		timeout = max(minDiskTimeout, time.Until(reader.seedBy))
	}
	select {
	case <-r.ended:
		r.unfeed()
	case <-time.After(timeout):
		r.w.log.Warn("the disk is slow: the upstream watch is stopped while its last event is being written")
	}
}

// pause ends the round: the reader, if there is one, ends with it. It returns how
// long to wait before the record is fed again.
func (r *round) pause(err error) (pause time.Duration) {
	refused, isRefused := errors.AsType[*reflector.RefusedError](err)
	if r.state == caching {
		if isRefused {
			r.w.log.Warn("stopped watching: the upstream refuses the resource", "code", refused.Code, "cause", refused.Message)
		}
		r.reader.end(refused)
		if r.reader.dropped.Load() && r.record != nil {
			r.record.RequireList()
		}
	}
	switch {
	case r.record == nil:
		return 0
	case errors.Is(err, errStopped):
		err = nil
	}
	return r.record.Pause(err)
}
