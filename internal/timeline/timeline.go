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

// minCheckpoint is how many events lie between two checkpoints at the least;
// in a large collection it is a quarter of its objects. It is what a snapshot
// in the past has to undo at the most.
const minCheckpoint = 1024

// Options bound a timeline. The zero value means the defaults.
type Options struct {
	// WindowBytes is how many bytes of events the log holds at the most
	// (T10), with what it takes to hold them. The default is 64 MiB.
	WindowBytes int64
	// WindowAge is how long the log holds an event; 0 means as long as
	// WindowBytes allows.
	WindowAge time.Duration
}

// A Timeline is one resource's log and snapshots. Its writing methods are for
// one goroutine (T1), but for Advance; all others may be called by any.
type Timeline struct {
	opts   Options
	view   atomic.Pointer[View]
	synced chan struct{} // closed with the first view
	events atomic.Uint64
	held   atomic.Uint64 // see Hold; 0 is nothing

	index index // of the selective watchers

	cloneMu sync.Mutex // serialises Clone of published trees

	attributes attributes // by which snapshots are selected from

	mu    sync.Mutex // guards what follows; readers never take it
	tree  *tree
	next  View    // the view in the making
	times []stamp // when events entered the log, coarsely
	size  int64   // bytes of the log
	dead  int     // dropped events that the log's array still holds
	bytes int64   // bytes of the live objects
	extra int64   // what they take besides
	dirty bool
	news  bool // something besides events, that all watchers are to know

	checkpointEvery int // minCheckpoint, but for tests
	sinceCheckpoint int
}

// A stamp says when the event with the sequence number entered the log.
type stamp struct {
	seq uint64
	at  time.Time
}

// New returns an empty timeline.
func New(opts Options) *Timeline {
	if opts.WindowBytes <= 0 {
		opts.WindowBytes = 64 << 20
	}
	t := &Timeline{
		opts: opts, synced: make(chan struct{}), tree: newTree(), checkpointEvery: minCheckpoint,
		attributes: attributes{least: minIndexed},
	}
	t.index.init()
	return t
}

// heldWindows is how many times WindowBytes the log may take while it is held.
const heldWindows = 4

// Hold has the log keep the events above rv, 0 for none, from now on: up to four
// times WindowBytes of them. It is for who has to have every event, and now and
// then comes to a halt.
func (t *Timeline) Hold(rv uint64) { t.held.Store(rv) }

// View returns the current view, nil until there is a first list.
func (t *Timeline) View() *View { return t.view.Load() }

// Synced returns a channel that is closed when there is a first view.
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
	switch {
	case v == nil:
		return nil, ErrNotReady
	case rv > v.RV:
		return nil, fmt.Errorf("%w: %d, the head is %d", ErrFutureRV, rv, v.RV)
	case rv < v.Start || v.inGap(rv):
		return nil, fmt.Errorf("%w: %d, the window begins at %d", ErrCompacted, rv, v.Start)
	}
	n := v.after(rv) // the state is that after n events of the log
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
	Overhead  int64  // about what they take besides: rows, attributes, trees, indexes
	LogEvents int    // events in the window
	LogBytes  int64  // what the events in the window count as
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
