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

// minDropped is how many bytes of dropped events a log may keep in memory, even if it has
// fewer.
const minDropped = 1 << 20

// Head returns the RV to resume the upstream watch from, 0 before the first
// list. Events that are not yet flushed count.
func (t *Timeline) Head() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next.RV
}

// Holds reports whether the timeline has an object. Events that are not yet flushed count.
func (t *Timeline) Holds(key kube.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.tree.Get(&scan.Object{Key: key})
	return ok
}

// Apply appends one event of the upstream watch. Readers see it after Flush. An
// event that the timeline already has is dropped; for one below the head it
// returns [ErrOutOfOrder].
func (t *Timeline) Apply(f scan.Frame) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, prev, last := f.Object, (*scan.Object)(nil), uint64(0)
	if prev, _ = t.tree.Get(o); prev != nil {
		last = prev.RV
	}
	typ, err := Effect(t.next.RV, last, f.Type, o)
	switch {
	case err != nil:
		return err
	case typ == kube.Bookmark:
		t.advance(o.RV)
	case typ != "":
		t.append(&Event{Type: typ, RV: o.RV, Object: o, Prev: prev})
		t.trim()
	}
	return nil
}

// Effect decides what an event of the upstream watch does to a state whose head is
// head, and which has the object at the RV last (0 if it does not have it). It
// returns the type of the event in that state; BOOKMARK if the event only moves
// the head, "" if the state already has it, and [ErrOutOfOrder] if it is below the
// head.
func Effect(head, last uint64, typ kube.EventType, o *scan.Object) (kube.EventType, error) {
	switch {
	case o.RV < head:
		return "", fmt.Errorf("%w: %s %s at %d, the head is %d", ErrOutOfOrder, typ, o.Key, o.RV, head)
	case typ == kube.Deleted && last == 0: // already deleted, or never held
		return kube.Bookmark, nil
	case last >= o.RV:
		return "", nil
	case typ == kube.Deleted:
		return typ, nil
	case last == 0:
		// The upstream's type depends on the state that it sent before; this one on
		// the state in the timeline.
		return kube.Added, nil
	}
	return kube.Modified, nil
}

// Bookmark advances the head to a bookmark of the upstream watch: every event ≤
// its RV has been applied.
func (t *Timeline) Bookmark(f scan.Frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next.BookmarkTemplate, t.dirty = f.Object, true
	t.advance(f.Object.RV)
	t.trim()
}

// Advance moves the head to rv and publishes it. The caller has proof that
// nothing changed between the view's RV and rv, and that no later list is below
// rv. Unlike the other writing methods it may be called by any goroutine. It does
// nothing if the timeline was reset after the view, or if the head is past rv.
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

// Reset starts the timeline from a list and drops what it held: cursors fail
// with [ErrCompacted].
func (t *Timeline) Reset(list *scan.List) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reset(list, false)
}

// reset is Reset; continues says that the list is of the same history.
func (t *Timeline) reset(list *scan.List, continues bool) {
	t.tree, t.objectBytes, t.overhead = newTree(), 0, 0
	t.indexes.byName = nil
	for _, o := range list.Items {
		t.set(o)
	}
	form := t.next.BookmarkTemplate
	if form == nil {
		form = list.EmptyItem()
	}
	var gaps []Gap
	if list.RV >= t.next.RV { // RVs have not gone backwards, so the gaps keep their meaning
		gaps = t.next.gaps
	}
	epoch, began := t.next.epoch+1, t.next.began
	if !continues {
		began = epoch
	}
	t.next = View{
		Start: list.RV, gaps: gaps, BookmarkTemplate: form, ListKind: list.Kind,
		epoch: epoch, began: began,
		first: t.next.end(),

		listed: list.RV, newest: list.Newest(),
		lost: max(t.next.lost, t.next.RV),
	}
	t.next.RV = list.RV
	t.updateRows(list)
	t.times, t.logBytes, t.dropped = nil, 0, 0
	t.wakeAll = true
	t.publish()
}

// Close ends the timeline: cursors fail with [ErrClosed] once they have yielded
// the rest of the log.
func (t *Timeline) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next.closed, t.wakeAll = true, true
	t.publish()
}

// set enters an object into the tree and the indexes.
func (t *Timeline) set(o *scan.Object) {
	t.count(o, 1)
	old, ok := t.tree.ReplaceOrInsert(o)
	if ok {
		t.count(old, -1)
	}
	t.indexes.change(old, o)
}

// count adds an object to the sizes of the live objects (n is 1), or takes it out
// (-1).
func (t *Timeline) count(o *scan.Object, n int64) {
	const slot = 16 // a pointer in the tree, whose nodes may be half empty
	t.objectBytes += n * int64(len(o.JSON))
	t.overhead += n * int64(len(o.Row)+len(o.Key)+slot+int(unsafe.Sizeof(*o))+len(o.Labels)*int(unsafe.Sizeof(scan.Label{})))
}

// append applies an event to the tree and appends it to the log.
func (t *Timeline) append(e *Event) {
	if e.Type == kube.Deleted {
		if old, ok := t.tree.Delete(e.Object); ok {
			t.count(old, -1)
			t.indexes.change(old, nil)
		}
	} else {
		t.set(e.Object)
	}
	n := &t.next
	n.log = append(n.log, e)
	t.logBytes += e.size()
	t.advance(e.RV)
	t.dirty = true
	t.events.Add(1)

	seq := n.end()
	// A checkpoint costs memory for each part of the tree that changes after it.
	if t.sinceCheckpoint++; t.sinceCheckpoint >= max(t.checkpointInterval, t.tree.Len()/4) {
		t.sinceCheckpoint = 0
		n.checkpoints = append(n.checkpoints, checkpoint{seq, t.tree.Clone()})
		t.indexes.expire(maxIndexIdle)
	}
	if t.opts.WindowAge > 0 {
		now := time.Now()
		if k := len(t.times); k == 0 || now.Sub(t.times[k-1].at) > t.opts.WindowAge/64 {
			t.times = append(t.times, stamp{seq - 1, now})
		}
	}
}

// EventOverhead estimates the memory of an event besides its JSON: the Event, the
// scan.Object with its labels, and its share of the checkpoints.
const EventOverhead = 1 << 10

// size estimates the memory of an event in the log.
func (e *Event) size() int64 { return int64(len(e.Object.JSON)+len(e.Object.Row)) + EventOverhead }

// trim drops the oldest events while the log exceeds its bounds (T10).
func (t *Timeline) trim() {
	n, drop, held := &t.next, 0, t.held.Load()
	take := func() {
		size := n.log[drop].size()
		t.logBytes -= size
		t.dropped += size
		drop++
	}
	// dropFirst drops the oldest event, and reports false if it is held.
	dropFirst := func() bool {
		if held != 0 && n.log[drop].RV > held && t.logBytes <= maxHeldWindows*t.opts.WindowBytes {
			return false
		}
		take()
		return true
	}
	for t.logBytes > t.opts.WindowBytes && drop < len(n.log)-1 {
		if !dropFirst() {
			break
		}
	}
	for len(t.times) > 1 && time.Since(t.times[1].at) > t.opts.WindowAge {
		if n.first+uint64(drop) >= t.times[1].seq {
			t.times = t.times[1:]
		} else if !dropFirst() { // an event before the second stamp is older than that stamp
			break
		}
	}
	if drop == 0 {
		return
	}
	t.dirty = true
	// Events at one RV are kept or dropped together: a cursor could not start
	// between them.
	for drop < len(n.log) && n.log[drop].RV == n.log[drop-1].RV {
		take()
	}
	n.Start = n.log[drop-1].RV
	n.first += uint64(drop)
	n.log = n.log[drop:]
	// The log's array still holds the dropped events: copy the log once they take an eighth
	// of the window, or more than the events in it, with room for the events until the next
	// copy.
	if t.dropped > min(t.opts.WindowBytes/8, t.logBytes+minDropped) {
		n.log, t.dropped = append(make([]*Event, 0, len(n.log)+len(n.log)/4+1), n.log...), 0
	}
	n.checkpoints = slices.DeleteFunc(slices.Clone(n.checkpoints), func(c checkpoint) bool { return c.seq <= n.first })
}

// publish makes next the current view and dispatches its new events.
func (t *Timeline) publish() {
	v, old := t.next, t.View()
	v.tree, v.timeline, v.indexes = t.tree.Clone(), t, t.indexes.publish()
	v.At = t.opts.Now()
	seen := v.first // events before it are in an earlier view
	if old != nil {
		seen = max(seen, old.end())
	}
	for _, e := range v.log[seen-v.first:] {
		e.At = v.At
	}
	v.changed = make(chan struct{})
	v.stats = Stats{Bytes: t.objectBytes, LogBytes: t.logBytes, Overhead: t.overhead + t.indexes.size()}
	t.dirty = false
	if t.view.Swap(&v); old == nil {
		close(t.synced)
	} else {
		close(old.changed)
	}
	t.waiting.wake()
	t.interests.dispatch(&v, t.wakeAll)
	t.wakeAll = false
}
