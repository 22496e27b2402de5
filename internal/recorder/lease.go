// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A place is one resource, and who watches it upstream: the gateway, while it
// holds a lease, or the recorder. It is there for as long as the recorder is.
type place struct {
	mu      sync.Mutex // guards what follows
	changed chan struct{}
	leased  bool
	// timeline is the lease's, once there is one.
	timeline *timeline.Timeline
	// joined is the epoch of the timeline that continues what is recorded: it began
	// with that, or has been compared with it. 0 if there is none.
	joined uint64
	// sure is set when, in this session, the upstream was seen to have what is
	// recorded: who goes on from there need not look again.
	sure bool
	// track is the recording, nil while there is none.
	track *track
	// busy is set while the track watches, or follows a timeline, which it does to
	// its end.
	busy bool
	// anew is set when what is recorded is not to be gone on from without a list:
	// the same versions may look otherwise by now.
	anew bool
	// other is set when the upstream's history has turned out to be another than
	// what is recorded: the next list begins an epoch, whatever it has.
	other bool
}

func newPlace() *place { return &place{changed: make(chan struct{})} }

// notify tells those who wait that something has changed. The caller holds mu.
func (p *place) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// update changes the place.
func (p *place) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.notify()
}

// wait waits until ok says so, which is called with mu held.
func (p *place) wait(ctx context.Context, ok func() bool) error {
	for {
		p.mu.Lock()
		done := ok() // which may notify
		changed := p.changed
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A Lease is the right to watch a resource upstream: nobody else does, meanwhile,
// on this recorder's behalf. A nil Lease is one of a resource that is not
// recorded.
type Lease struct {
	p    *place
	seed *Seed
}

// A Seed is what is recorded of a resource.
type Seed struct {
	// List is the state at the recorded head, its RV.
	List *scan.List

	resume informer.Resume
	form   *scan.Object
}

// Take takes the resource for one who watches it, of whom there is one at a
// time: it waits until the one before has ended its lease, and until the
// recorder's own watch has ended. It fails when ctx ends. A nil Recorder has nil
// leases.
//
// Nobody waits long for a disk that hangs: the lease has no seed then. What the
// recorder still holds is written first, whenever that is, and then the lease's
// timeline is compared with it.
func (r *Recorder) Take(ctx context.Context, id kube.Resource) (*Lease, error) {
	if r == nil {
		return nil, nil
	}
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	p := r.place(id)
	err := p.wait(ctx, func() bool {
		if p.leased {
			return false
		}
		p.leased = true
		return true
	})
	if err != nil {
		return nil, err
	}
	p.update(func() {})
	l := &Lease{p: p}
	var t *track
	soon, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	switch err := p.wait(soon, func() bool { t = p.track; return !p.busy }); {
	case ctx.Err() != nil:
		l.End(false)
		return nil, context.Cause(ctx)
	case err != nil:
		r.log.Warn("the disk is slow: the resource is served without what is recorded", "resource", id.String())
	case t != nil:
		l.seed = t.seed(ctx)
	}
	return l, nil
}

// Seed returns what is recorded, nil if there is nothing to go on from.
func (l *Lease) Seed() *Seed {
	if l == nil {
		return nil
	}
	return l.seed
}

// Load loads the state into an empty timeline.
func (s *Seed) Load(t *timeline.Timeline) {
	if s.form.RV != 0 { // a bookmark
		t.Bookmark(scan.Frame{Type: kube.Bookmark, Object: s.form})
	}
	t.Reset(s.List)
}

// Resume is what a reflector of the timeline resumes from.
func (s *Seed) Resume() informer.Resume { return s.resume }

// Follow has the timeline be recorded, from its first view until it is closed. If
// there is a seed, it has been loaded.
func (l *Lease) Follow(t *timeline.Timeline) {
	if l == nil {
		return
	}
	joined := uint64(0)
	if l.seed != nil {
		joined = t.View().Epoch()
	}
	l.seed = nil // a copy of all there is
	l.p.update(func() { l.p.timeline, l.p.joined = t, joined })
}

// End ends the lease; the timeline has been closed. anew tells that what is
// recorded is not to be gone on from without a list: the resource has gone, or
// has become another.
func (l *Lease) End(anew bool) {
	if l != nil {
		l.p.update(func() {
			l.p.leased, l.p.timeline, l.p.joined = false, nil, 0
			l.p.anew = l.p.anew || anew
		})
	}
}

// seed returns what a reader may go on from, unless the disk does not bring it:
// nothing of it for a while.
func (t *track) seed(ctx context.Context) *Seed {
	stream := t.w.current()
	soon, cancel := context.WithTimeout(ctx, t.s.r.patience)
	defer cancel()
	if stream.Head().RV == 0 || !t.continues(soon, stream) {
		return nil
	}
	var read atomic.Int64
	done := make(chan *Seed, 1)
	go func() { done <- t.load(stream, &read) }()
	for before := int64(0); ; {
		select {
		case s := <-done:
			return s
		case <-ctx.Done():
			return nil
		case <-time.After(t.s.r.patience):
			n := read.Load()
			if n == before {
				t.log.Warn("the disk is slow: the resource is served without what is recorded", "objects", n)
				return nil
			}
			before = n
		}
	}
}

// load reads a seed, and counts its objects meanwhile.
func (t *track) load(stream *history.Stream, read *atomic.Int64) *Seed {
	list, err := stateOf(stream, read)
	if err == nil {
		newest := newestOf(slices.Values(list.Items)) // not when asked: that would keep the list
		var resume *informer.Resume
		resume, err = t.resumeOf(stream, func(context.Context) ([]informer.Known, error) { return newest, nil })
		if err == nil {
			return &Seed{List: list, resume: *resume, form: stream.Form().Item}
		}
	}
	if t.ctx.Err() == nil { // it may have taken longer than the recording
		t.fail(t.w.damaged(stream, err))
	}
	return nil
}
