// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A direct is the sink of the recorder's own reflector: it does what a timeline
// does with what it is told, for a resource of which nothing is in memory. When a
// write fails, it tells so and takes nothing any more.
type direct struct {
	w      *writer
	recent *recent
	failed func(error)
	define func() string // which definition of a custom resource there is
	same   func() error  // whether the cluster is still that which is recorded
	other  func() bool   // whether its history is another

	err        error
	items      []*scan.Object // of the list that is being taken
	definition string         // that it is under
	listed     func()         // is called after each list that was taken
	heard      func()         // is called when the upstream has gone on from what is recorded
}

// Head implements informer.Sink.
func (d *direct) Head() uint64 {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.w.head.RV
}

// Begin implements informer.Sink.
func (d *direct) Begin(bool) { d.items, d.definition = nil, d.define() }

// Item implements informer.Sink.
func (d *direct) Item(o *scan.Object) { d.items = append(d.items, o) }

// End implements informer.Sink.
func (d *direct) End(list *scan.List) (continued bool) {
	whole := *list
	whole.Items, d.items = d.items, nil
	d.recent.clear()
	if d.err != nil {
		return false
	}
	now := time.Now()
	if d.err = d.same(); d.err == nil {
		continued, d.err = d.w.take(&whole, d.definition, d.other(), now)
	}
	if d.check(); d.err == nil {
		d.listed()
	}
	return continued
}

// Apply implements informer.Sink.
func (d *direct) Apply(typ kube.EventType, o *scan.Object) error {
	if d.err != nil {
		return d.err
	}
	head := d.Head()
	if o.RV < head {
		return fmt.Errorf("%w: %s %s at %d, the head is %d", timeline.ErrOutOfOrder, typ, o.Key, o.RV, head)
	}
	prev, err := d.last(o.Key)
	now := time.Now()
	switch {
	case err != nil:
		d.err = err
	case typ == kube.Deleted && prev.rv == 0: // seen before, or never known
		d.err = d.w.add(nil, o.RV, now)
	case prev.rv >= o.RV: // seen before
	default:
		e := history.Event{Type: typ, Object: o, Prev: prev.object, At: now}
		if typ != kube.Deleted {
			// What the upstream calls it depends on what it holds.
			if e.Type = kube.Added; prev.rv != 0 {
				e.Type = kube.Modified
			}
		}
		d.recent.set(o, e.Type == kube.Deleted)
		d.err = d.w.add([]history.Event{e}, o.RV, now)
	}
	if d.check(); d.err == nil {
		d.heard()
	}
	return d.err
}

// last returns what the object was last.
func (d *direct) last(key kube.Key) (version, error) {
	if v, ok := d.recent.get(key); ok {
		return v, nil
	}
	// It is not pending: that would be recent.
	o, err := d.w.newest(key)
	if o == nil || err != nil {
		return version{}, err
	}
	return version{o.RV, o}, nil
}

// Bookmark implements informer.Sink.
func (d *direct) Bookmark(rv uint64, o *scan.Object) {
	if d.err == nil {
		d.err = d.w.bookmark(rv, o)
		d.check()
		d.heard()
	}
}

// Flush implements informer.Sink: the writer writes by itself.
func (d *direct) Flush() {}

func (d *direct) check() {
	if d.err != nil && !errors.Is(d.err, context.Canceled) { // who is no longer to record has not failed
		d.failed(d.err)
	}
}

// A version is what an object was last: the RV is 0 if there is none.
type version struct {
	rv     uint64
	object *scan.Object
}

// recentBytes bounds the versions that are kept since they were written last,
// about: of one resource, and at least those that are pending.
const recentBytes = 2 * mostPending

// recent holds the last versions of objects that have changed lately, so that
// they need not be read from disk when they change again. When the younger half
// is full, the older is dropped.
type recent struct {
	young, old map[kube.Key]version
	size       int // of young
}

func (c *recent) get(key kube.Key) (version, bool) {
	v, ok := c.young[key]
	if !ok {
		v, ok = c.old[key]
	}
	return v, ok
}

func (c *recent) set(o *scan.Object, deleted bool) {
	if c.size += len(o.JSON) + eventOverhead; c.size > recentBytes/2 || c.young == nil {
		c.young, c.old, c.size = map[kube.Key]version{}, c.young, len(o.JSON)+eventOverhead
	}
	v := version{o.RV, o}
	if deleted {
		v = version{}
	}
	c.young[o.Key] = v
}

func (c *recent) clear() { *c = recent{} }
