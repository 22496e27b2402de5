// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// minCheckpointInterval is the least number of events between two checkpoints;
// in a large collection the interval is a quarter of its objects. A snapshot of
// the past undoes at most one interval of events.
const minCheckpointInterval = 1024

// defaultWindowBytes is the default of Options.WindowBytes.
const defaultWindowBytes = 64 << 20

// maxHeldWindows is how many times WindowBytes the log may take while events are
// held.
const maxHeldWindows = 4

// Options bound a timeline. The zero value means the defaults.
type Options struct {
	// WindowBytes bounds the events of the log (T10), including what it takes
	// to hold them. The default is 64 MiB.
	WindowBytes int64
	// WindowAge is how long the log holds an event; by default, as long as
	// WindowBytes allows.
	WindowAge time.Duration
	// Now is the clock of View.At and Event.At; the default is time.Now.
	Now func() time.Time
}

// A Timeline is one resource's log and snapshots. Its writing methods, except
// Advance, are for one goroutine (T1); all other methods may be called by any.
type Timeline struct {
	opts   Options
	view   atomic.Pointer[View]
	synced chan struct{} // closed with the first view
	events atomic.Uint64 // appended since the timeline began
	held   atomic.Uint64 // events above this RV are held; 0 for none

	interests interestIndex // of the selective watchers
	waiting   waiting       // of the other ones
	indexes   listIndexes   // by which Select finds objects

	cloneMu sync.Mutex // guards Clone of published trees, which writes to them

	// mu guards the fields below and indexes.byName; readers take it only to
	// add a list index.
	mu          sync.Mutex
	tree        *tree
	next        View    // what publish makes the current view
	times       []stamp // at most one per 1/64 of WindowAge
	logBytes    int64
	dropped     int64 // bytes of dropped events that the log's array still holds
	objectBytes int64 // JSON of the live objects
	overhead    int64 // other memory of the live objects
	dirty       bool  // next is not the current view
	wakeAll     bool  // next has something besides events, such as a gap, for all watchers

	checkpointInterval int // minCheckpointInterval, except in tests
	sinceCheckpoint    int // events
}

// A stamp says when the event with a sequence number entered the log.
type stamp struct {
	seq uint64
	at  time.Time
}

// New returns an empty timeline.
func New(opts Options) *Timeline {
	if opts.WindowBytes <= 0 {
		opts.WindowBytes = defaultWindowBytes
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	t := &Timeline{
		opts: opts, synced: make(chan struct{}), tree: newTree(), checkpointInterval: minCheckpointInterval,
		indexes: listIndexes{minObjects: minIndexedObjects},
	}
	t.interests.init()
	return t
}

// Hold keeps the events above rv in the log beyond WindowAge, up to four times WindowBytes; 0
// holds none. It serves a reader that needs every event and sometimes stalls.
func (t *Timeline) Hold(rv uint64) { t.held.Store(rv) }

// View returns the current view, nil before the first list.
func (t *Timeline) View() *View { return t.view.Load() }

// Synced returns a channel that is closed with the first view.
func (t *Timeline) Synced() <-chan struct{} { return t.synced }

// WaitRV waits until the head is at least rv and returns a view there. It
// fails with the context's error or [ErrClosed].
func (t *Timeline) WaitRV(ctx context.Context, rv uint64) (*View, error) {
	select {
	case <-t.synced:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for {
		v := t.View()
		switch {
		case v.closed:
			return nil, ErrClosed
		case v.RV >= rv:
			return v, nil
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// At returns the state at exactly rv (T2). It fails with [ErrNotReady],
// [ErrFutureRV] or [ErrCompacted].
func (t *Timeline) At(rv uint64) (*Snapshot, error) {
	v := t.View()
	if v == nil {
		return nil, ErrNotReady
	}
	return t.AtOf(v, rv)
}

// AtOf is At of a view that the caller has loaded: a newer one may begin later, or be of
// another epoch.
func (t *Timeline) AtOf(v *View, rv uint64) (*Snapshot, error) {
	switch {
	case rv > v.RV:
		return nil, fmt.Errorf("%w: %d, the head is %d", ErrFutureRV, rv, v.RV)
	case rv < v.Start || v.inGap(rv):
		return nil, fmt.Errorf("%w: %d, the window begins at %d", ErrCompacted, rv, v.Start)
	}
	n := v.after(rv) // the state is the one after n events of the log
	if n == len(v.log) {
		s := v.Snapshot
		s.RV = rv
		return &s, nil
	}
	base, end := v.tree, len(v.log)
	i, _ := slices.BinarySearchFunc(v.checkpoints, v.first+uint64(n), func(c checkpoint, seq uint64) int {
		return int(int64(c.seq - seq))
	})
	if i < len(v.checkpoints) {
		base, end = v.checkpoints[i].tree, int(v.checkpoints[i].seq-v.first)
	}
	t.cloneMu.Lock()
	past := base.Clone()
	t.cloneMu.Unlock()
	for _, e := range slices.Backward(v.log[n:end]) {
		if e.Prev == nil {
			past.Delete(e.Object)
		} else {
			past.ReplaceOrInsert(e.Prev)
		}
	}
	return &Snapshot{RV: rv, tree: past}, nil
}

// Stats are the sizes of a timeline.
type Stats struct {
	Objects   int    // live objects
	Bytes     int64  // JSON of the live objects
	Overhead  int64  // estimate of their other memory: rows, attributes, trees, indexes
	LogEvents int    // events in the window
	LogBytes  int64  // estimate of the memory of the events in the window
	Events    uint64 // events since the timeline began
	Gaps      int    // gaps in the window
}

// Stats returns the sizes as of the current view.
func (t *Timeline) Stats() Stats {
	v := t.View()
	if v == nil {
		return Stats{}
	}
	s := v.stats
	s.Objects, s.LogEvents, s.Gaps = v.Len(), len(v.log), v.gapsInWindow()
	s.Events = t.events.Load()
	return s
}
