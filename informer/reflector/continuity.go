// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Continuity is what a reflector knows about the upstream's history: whether it
// continues the sink's. An etcd restored from a backup does not, and may have
// passed the sink's head with other events.
type Continuity int

const (
	// Doubtful: a watch ended as it does when the upstream stops. Before the
	// next one, the upstream has to prove its history. Proven, Diverged or a
	// list follows.
	Doubtful Continuity = iota
	// Proven: the upstream has sent the sink's last events again.
	Proven
	// Diverged: the upstream has another history. A list follows, which the
	// sink has to take as it is.
	Diverged
	// Watched: a list is complete, or a watch is open that sends what follows the sink's
	// head. It is reported for each, before Proven; after Silent once a check of the watch has
	// found nothing missing, from another goroutine, and perhaps after Proven. When there is no
	// such watch any more, Ended, Silent, Doubtful or Diverged follows.
	Watched
	// Ended: the upstream has ended a watch in order. Watched, Doubtful or a list follows.
	Ended
	// Silent: the watch was closed that only appeared to be open, or was behind: it was last
	// known to lack nothing at [Reflector.Current]. Doubtful follows.
	Silent
)

// setContinuity reports a continuity.
func (r *Reflector[O]) setContinuity(c Continuity) {
	switch c {
	case Watched:
		if r.watched = true; r.suspect.Load() {
			return // checked reports it
		}
		r.setCurrent(time.Now())
	case Ended, Doubtful, Diverged:
		r.watched = false
	}
	if r.opts.Continuity != nil {
		r.opts.Continuity(c)
	}
}

func (r *Reflector[O]) setCurrent(at time.Time) { r.current.Store(&at) }

// Current returns when the sink was last known to lack nothing: a list was complete, a watch was
// opened, unless one before was silent, or a check of it began that found nothing. It is zero
// before the first list. Any goroutine may call it.
func (r *Reflector[O]) Current() time.Time {
	if at := r.current.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

const maxTail = 8 // events in recent.tail

// A recent is what a reflector remembers of its sink's history, to recognize it.
//
//	list 3000: a@2990 ── bookmark: head 3100        since 2989, listed 3000, tail [a@2990]
//	list 3000: a@2990 ── b@3005 ── c@3017           since 3000, listed 3000, tail [b@3005 c@3017]
type recent struct {
	known bool // false: nothing is known
	// tail has the last events up to the head: all those after since, apart from two
	// kinds. At the RV dropped, events may be missing in front. Up to the RV listed, only
	// the last event of an object of the list is known.
	since   uint64
	dropped uint64
	listed  uint64
	tail    []Known
	// newestAt, unless nil, returns the only event of the tail.
	newestAt func(context.Context) (*Known, error)
}

// isNewest reports whether an object with this RV is the newest of the list so far.
func (c *recent) isNewest(rv uint64) bool { return len(c.tail) == 0 || rv > c.tail[0].RV }

// item adds the newest object of the list so far: its last event is known.
func (c *recent) item(k Known) { c.tail, c.since = []Known{k}, k.RV-1 }

// end completes the list.
func (c *recent) end(rv uint64) {
	if c.known, c.listed = true, rv; len(c.tail) == 0 {
		c.since = rv
	}
}

// event adds the event that the sink has received last.
func (c *recent) event(k Known) {
	n := len(c.tail)
	if n > 0 && c.tail[n-1] == k {
		return // repeated
	}
	if n == 0 || c.tail[n-1].RV <= c.listed { // the first event
		c.tail, c.since = nil, c.listed
		if k.RV <= c.listed { // a deletion that shares the RV of the head resumed from
			c.since, c.dropped = k.RV-1, k.RV
		}
	}
	c.known, c.newestAt = true, nil
	c.tail = append(c.tail, k)
	if n := len(c.tail) - maxTail; n > 0 {
		c.dropped = c.tail[n-1].RV
		c.tail = slices.Delete(c.tail, 0, n)
		c.since = c.tail[0].RV - 1
	}
}

// shorten forgets all events but the last: an upstream that does not have the others any
// more may still have that one. It returns false if there are no others.
func (c *recent) shorten() bool {
	n := len(c.tail)
	if n < 2 {
		return false
	}
	last := c.tail[n-1]
	c.tail, c.since, c.dropped = []Known{last}, last.RV-1, last.RV
	return true
}

// A continuityCheck compares what a watch sends with the events that the sink knows.
type continuityCheck struct {
	known   map[versionID]Known // the tail
	missing map[versionID]bool  // events of the tail that were not received so far
	// passing are objects with an unknown event that have to be deleted before the list.
	passing map[kube.Key]bool
}

// A versionID identifies a version of an object in a history.
type versionID struct {
	key kube.Key
	rv  uint64
}

// An overlap is what a list in pages and the watch that was opened before it have in
// common: the events after the start of the watch, up to the list.
//
//	watch  10 ── a@11 ── b@12 ── −a@14 ── c@17 ── b@21
//	list                                     20  (b@12, c@17)
//
// The watch sends the last event of each newer object of the list, and at the end the
// list has the objects that the watch has not deleted. It does not if the list's RV is
// inside a gap of a gateway's history: the watch's events in the gap do not say in which
// order they happened, and do not mention an object that was only there inside the gap.
type overlap struct {
	from, to uint64             // RVs of the watch's start and of the list
	missing  map[versionID]bool // newer objects of the list that the watch has not sent
	differ   map[kube.Key]bool  // objects that only one of the two has, so far
	ended    time.Time          // when the list was complete
}

func newOverlap(from uint64) *overlap {
	return &overlap{from: from, missing: map[versionID]bool{}, differ: map[kube.Key]bool{}}
}

// checkOverlap compares a frame up to the list's RV with the list.
func (r *Reflector[O]) checkOverlap(o *overlap, f frame[O]) {
	if f.typ == kube.Bookmark {
		return
	}
	deleted := f.typ == kube.Deleted
	key := r.encoding.known(f.object, deleted).Key
	if !deleted {
		delete(o.missing, versionID{key, f.rv})
	}
	if r.sink.Holds(key) == deleted {
		o.differ[key] = true
	} else {
		delete(o.differ, key)
	}
}

// end fails if the watch cannot continue the list.
func (o *overlap) end() error {
	if len(o.missing) == 0 && len(o.differ) == 0 {
		return nil
	}
	return fmt.Errorf("%w: between %d and %d, the watch lacks %d events of the list, and %d objects differ",
		errExpired, o.from, o.to, len(o.missing), len(o.differ))
}

// Doubt ends the open watch, if there is one, with an error: before the next one, the upstream
// has to prove its history. It is for a caller whose own requests show that the upstream has
// another history than the sink, while the watch appears to be open. Any goroutine may call
// it.
func (r *Reflector[O]) Doubt(err error) {
	if w := r.watchdog.Load(); w != nil {
		w.end(err)
	}
}

// doubt makes the upstream prove its history before the next watch.
func (r *Reflector[O]) doubt() {
	if r.state = stateVerify; r.recent.known {
		r.state = stateProve
		r.setContinuity(Doubtful)
	}
}

// sameHistory ends the proof.
func (r *Reflector[O]) sameHistory() {
	r.state = stateWatch
	r.setContinuity(Proven)
}

// startProof returns the RV from which the next watch has to send the last known events
// again. If none are known, the collection has to be empty, as it was: empty says whether
// it is.
func (r *Reflector[O]) startProof(ctx context.Context, empty bool) (since uint64, err error) {
	c := &r.recent
	if c.newestAt != nil && len(c.tail) == 0 {
		k, err := c.newestAt(ctx)
		if err != nil {
			return 0, fmt.Errorf("%w: read the newest known object: %w", errExpired, err)
		}
		if k != nil {
			c.item(*k)
		}
		c.newestAt = nil
	}
	if len(c.tail) == 0 && !empty {
		return 0, fmt.Errorf("%w: no event proves the history up to %d", errExpired, r.sink.Head())
	}
	r.check = &continuityCheck{known: map[versionID]Known{}, missing: map[versionID]bool{}, passing: map[kube.Key]bool{}}
	since = max(c.since, 1) // 0 would be any RV
	for _, k := range c.tail {
		id := versionID{k.Key, k.RV}
		r.check.known[id] = k
		if k.RV > since {
			r.check.missing[id] = true
		}
	}
	return since, nil
}

// checkFrame compares a frame of the watch that has to send the tail again with the
// sink's events. isNew reports whether the sink has to receive the frame.
func (r *Reflector[O]) checkFrame(f frame[O]) (isNew bool, err error) {
	c, head := r.check, r.sink.Head()
	switch {
	case f.rv > head || f.typ == kube.Bookmark && f.rv == head:
		if n := len(c.missing); n > 0 {
			return false, fmt.Errorf("%w: %d of the last events up to %d are missing", errDiverged, n, head)
		}
		if n := len(c.passing); n > 0 {
			return false, fmt.Errorf("%w: %d objects below %d were not in the list", errDiverged, n, r.recent.listed)
		}
		r.sameHistory()
		return true, nil
	case f.typ == kube.Bookmark:
		return false, nil
	}
	deleted := f.typ == kube.Deleted
	o := r.encoding.known(f.object, deleted)
	id := versionID{o.Key, f.rv}
	k, ok := c.known[id]
	switch {
	case ok && k.UID == o.UID && k.Deleted == deleted:
		if k.Sum != 0 && k.Sum != o.Sum {
			// The list shows whether it is another history: an API server of another
			// version may only have another form of the object.
			return false, fmt.Errorf("%w: %s has another content at %d", errExpired, o.Key, f.rv)
		}
		if delete(c.missing, id); len(c.missing) == 0 {
			r.watching()
			if f.rv == head && len(c.passing) == 0 {
				r.sameHistory()
			}
		}
		return false, nil
	case !ok && deleted && f.rv == r.recent.dropped:
		return false, nil // one of several deletions that share the RV of the first known event
	case !ok && f.rv <= r.recent.listed && !r.sink.Holds(o.Key):
		if delete(c.passing, o.Key); !deleted {
			c.passing[o.Key] = true
		}
		return false, nil
	case !ok && deleted && f.rv == head && len(c.missing) == 0 && len(c.passing) == 0:
		r.sameHistory()
		return true, nil // one of several deletions that share the head's RV
	}
	return false, fmt.Errorf("%w: unknown event %s %s at %d", errDiverged, f.typ, o.Key, f.rv)
}

// A Resume is the state of an earlier reflector at the sink's head. With it,
// [Reflector.Run] begins with a watch from the head.
//
// An upstream whose RV is not below the head may still have another history:
// an etcd restored from a backup continues at a lower RV and may have passed
// the head with other events. So the first watch begins before the last known
// events, and the upstream has to send them again:
//
//	known       ──── a@12 ── b@15 ──── head 20
//	same        ──── a@12 ── b@15 ─────────────── c@23    resumed
//	restored    ─ backup 10 ─── a@14 ──────────── c@23    relisted
//
// If the upstream has compacted these events, a list follows.
type Resume struct {
	// List is the metadata of the last list: its kind, form and columns. Items
	// are ignored. Without it, Run begins with a list.
	List *scan.List
	// AfterDelete says that the last event was a deletion at the head. Others
	// with the same RV may follow.
	AfterDelete bool
	// Tail has the last events up to the head, in order and without a gap. It
	// may be empty.
	Tail []Known
	// Newest returns the object that has the highest RV at the head, nil if there is
	// none: its last event has to be sent again if Tail is empty. It is called by the
	// goroutine of Run, and not after the first event. Without it and a Tail, the
	// upstream's RV only has to be at the head or above.
	Newest func(context.Context) (*Known, error)
}

// A Known is a version of an object that the sink has received.
type Known struct {
	Key     kube.Key
	UID     string
	RV      uint64
	Deleted bool   // RV is that of the deletion
	Sum     uint64 // hash of its content, see [scan.Object]; 0 is not compared
}

// KnownOf returns what identifies a version of an object.
func KnownOf(o *scan.Object, deleted bool) Known {
	return Known{o.Key, o.UID, o.RV, deleted, o.Sum()}
}

// resume makes Run begin with a watch.
func (r *Reflector[O]) resume(from *Resume) {
	r.collection, r.columns, r.afterDelete = from.List, from.List.Columns, from.AfterDelete
	if head := r.sink.Head(); len(from.Tail) == 0 {
		r.recent = recent{known: from.Newest != nil, since: head, listed: head, newestAt: from.Newest}
	} else {
		first := from.Tail[0].RV
		r.recent = recent{known: true, since: first - 1, dropped: first, tail: slices.Clone(from.Tail)}
	}
	r.state = stateVerify // the upstream may have been restored since
	if r.recent.known {
		r.state = stateProve
	}
}
