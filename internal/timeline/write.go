// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// Head returns the RV to resume the upstream watch from, 0 when there is none
// yet. It is the writer's own: what is not yet flushed counts.
func (t *Timeline) Head() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next.RV
}

// Apply takes one event of the upstream watch. Readers see it after Flush. An
// event that is already there is dropped; one below the head is
// [ErrOutOfOrder].
func (t *Timeline) Apply(f scan.Frame) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := f.Object
	prev, _ := t.tree.Get(o)
	switch {
	case o.RV < t.next.RV:
		return fmt.Errorf("%w: %s %s at %d, the head is %d", ErrOutOfOrder, f.Type, o.Key, o.RV, t.next.RV)
	case f.Type == kube.Deleted && prev == nil:
		t.advance(o.RV) // seen before, or never known
		return nil
	case prev != nil && prev.RV >= o.RV:
		return nil // seen before
	}
	e := &Event{Type: f.Type, RV: o.RV, Object: o, Prev: prev}
	if f.Type != kube.Deleted {
		// What the upstream calls it depends on what it holds; here
		// it depends on what we hold.
		if e.Type = kube.Added; prev != nil {
			e.Type = kube.Modified
		}
	}
	t.append(e)
	t.trim()
	return nil
}

// Bookmark takes a bookmark of the upstream watch: every event ≤ its RV has
// been applied.
func (t *Timeline) Bookmark(f scan.Frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next.BookmarkForm, t.dirty = f.Object, true
	t.advance(f.Object.RV)
	t.trim()
}

// Advance moves the head to rv and publishes that. The caller knows from
// elsewhere that nothing happened between the view's RV and rv, and that a list
// given to Replace from now on is not below rv. Unlike the other writing
// methods it may be called by any goroutine. Where the timeline has been
// reset since the view, or is beyond rv, nothing happens.
func (t *Timeline) Advance(v *View, rv uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next.epoch == v.epoch && t.next.RV < rv {
		t.advance(rv)
		t.publish()
	}
}

func (t *Timeline) advance(rv uint64) {
	if rv > t.next.RV {
		t.next.RV, t.dirty = rv, true
	}
}

// Flush publishes what was written since the last call.
func (t *Timeline) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dirty {
		t.publish()
	}
}

// Reset takes a first list, or one after which nothing before is to be served:
// cursors fail with [ErrCompacted].
func (t *Timeline) Reset(list *scan.List) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reset(list)
}

func (t *Timeline) reset(list *scan.List) {
	t.tree, t.bytes, t.extra = newTree(), 0, 0
	t.attributes.reset()
	for _, o := range list.Items {
		t.set(o)
	}
	form := t.next.BookmarkForm
	if form == nil {
		form = list.EmptyItem()
	}
	var gaps []Gap
	if list.RV >= t.next.RV { // it is of the same history
		gaps = t.next.gaps
	}
	t.next = View{
		Start: list.RV, gaps: gaps, BookmarkForm: form, ListKind: list.Kind,
		epoch: t.next.epoch + 1,
		first: t.next.end(),
	}
	t.next.RV = list.RV
	t.print(list)
	t.times, t.size, t.dead = nil, 0, 0
	t.news = true
	t.publish()
}

// Close ends the timeline: cursors fail with [ErrClosed] once they have
// yielded what there is.
func (t *Timeline) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next.closed, t.news = true, true
	t.publish()
}

// set puts an object into the tree.
func (t *Timeline) set(o *scan.Object) {
	t.count(o, 1)
	old, ok := t.tree.ReplaceOrInsert(o)
	if ok {
		t.count(old, -1)
	}
	t.attributes.change(old, o)
}

// count counts a live object that comes (1) or goes (-1).
func (t *Timeline) count(o *scan.Object, n int64) {
	const slot = 16 // of the tree, whose nodes are half to wholly full
	t.bytes += n * int64(len(o.JSON))
	t.extra += n * int64(len(o.Row)+len(o.Key)+slot+int(unsafe.Sizeof(*o))+len(o.Labels)*int(unsafe.Sizeof(scan.Label{})))
}

// append enters an event into the tree and the log.
func (t *Timeline) append(e *Event) {
	if e.Type == kube.Deleted {
		if old, ok := t.tree.Delete(e.Object); ok {
			t.count(old, -1)
			t.attributes.change(old, nil)
		}
	} else {
		t.set(e.Object)
	}
	n := &t.next
	n.log = append(n.log, e)
	t.size += e.size()
	t.advance(e.RV)
	t.dirty = true
	t.events.Add(1)

	seq := n.end()
	// A checkpoint keeps the parts of the tree that have changed since.
	if t.sinceCheckpoint++; t.sinceCheckpoint >= max(t.checkpointEvery, t.tree.Len()/4) {
		t.sinceCheckpoint = 0
		n.checkpoints = append(n.checkpoints, checkpoint{seq, t.tree.Clone()})
		t.attributes.expire(indexUnused)
	}
	if t.opts.WindowAge > 0 {
		now := time.Now()
		if k := len(t.times); k == 0 || now.Sub(t.times[k-1].at) > t.opts.WindowAge/64 {
			t.times = append(t.times, stamp{seq - 1, now})
		}
	}
}

// eventOverhead is about what an event takes besides its JSON: itself, the
// scan.Object with its labels, and its share of checkpoints.
const eventOverhead = 1 << 10

// size is what an event is counted as in the log.
func (e *Event) size() int64 { return int64(len(e.Object.JSON)+len(e.Object.Row)) + eventOverhead }

// trim drops the oldest events while the log is over its bounds.
func (t *Timeline) trim() {
	n, drop, held := &t.next, 0, t.held.Load()
	for t.size > t.opts.WindowBytes && drop < len(n.log)-1 {
		if held != 0 && n.log[drop].RV > held && t.size <= heldWindows*t.opts.WindowBytes {
			break
		}
		t.size -= n.log[drop].size()
		drop++
	}
	// A stamp tells that events before the one behind it are older.
	for len(t.times) > 1 && time.Since(t.times[1].at) > t.opts.WindowAge {
		for n.first+uint64(drop) < t.times[1].seq {
			t.size -= n.log[drop].size()
			drop++
		}
		t.times = t.times[1:]
	}
	if drop == 0 {
		return
	}
	t.dirty = true
	// Events of one RV stay or go together.
	for drop < len(n.log) && n.log[drop].RV == n.log[drop-1].RV {
		t.size -= n.log[drop].size()
		drop++
	}
	n.Start = n.log[drop-1].RV
	n.first += uint64(drop)
	n.log = n.log[drop:]
	// The array below still holds what was dropped: move when that is most
	// of it.
	if t.dead += drop; t.dead > len(n.log)+minCheckpoint {
		n.log, t.dead = slices.Clone(n.log), 0
	}
	n.checkpoints = slices.DeleteFunc(slices.Clone(n.checkpoints), func(c checkpoint) bool { return c.seq <= n.first })
}

// publish makes the view in the making the current one.
func (t *Timeline) publish() {
	v, old := t.next, t.View()
	v.tree, v.timeline, v.indexes = t.tree.Clone(), t, t.attributes.publish()
	v.At = time.Now()
	known := v.first
	if old != nil {
		known = max(known, old.end())
	}
	for _, e := range v.log[known-v.first:] {
		e.At = v.At
	}
	v.changed = make(chan struct{})
	v.stats = Stats{Bytes: t.bytes, LogBytes: t.size, Overhead: t.extra + t.attributes.size()}
	t.dirty = false
	if t.view.Swap(&v); old == nil {
		close(t.synced)
	} else {
		close(old.changed)
	}
	t.index.tell(&v, t.news)
	t.news = false
}
