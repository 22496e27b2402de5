// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"fmt"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A Feed collects what happens to the objects of a resource until a table takes it. It is a
// reflector's sink.
type Feed struct {
	printer *Printer
	keep    func(kube.Key) bool // nil keeps all objects
	wake    func()

	// The fields below belong to the reflector's goroutine.

	head      uint64
	held      map[kube.Key]uint64 // RVs, of all objects, also those that keep leaves out
	listing   map[kube.Key]uint64
	list      []table.Data
	overwrite bool

	mu      sync.Mutex // guards what follows
	pending Changes
	at      map[kube.Key]int // index in pending.Events
}

// Changes are what has happened since they were last taken.
type Changes struct {
	// List, with Listed, is a new complete list; Events follow it.
	Listed  bool
	Columns []table.Column
	List    []table.Data
	Events  []Event
	// Merged is the number of events that are not in Events since a later one of the same
	// object is.
	Merged int
}

// An Event says that an object is as in Data or, with Deleted, gone.
type Event struct {
	table.Data
	Deleted bool
}

// New returns a feed that calls wake when there is something to take. keep, if it is not nil,
// says which objects to show.
func New(p *Printer, keep func(kube.Key) bool, wake func()) *Feed {
	return &Feed{printer: p, keep: keep, wake: wake, held: map[kube.Key]uint64{}, at: map[kube.Key]int{}}
}

// Drain returns what has happened since the last call. Any goroutine may call it.
func (f *Feed) Drain() Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.pending
	f.pending = Changes{}
	clear(f.at)
	return c
}

// Waiting returns the number of events that Drain would return, with those merged.
func (f *Feed) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pending.Events) + f.pending.Merged
}

// Apply brings a table up to date.
func (c Changes) Apply(t *table.Table, now time.Time) {
	if c.Listed {
		t.Replace(c.Columns, c.List, now)
	}
	for _, e := range c.Events {
		if e.Deleted {
			t.Delete(e.Key, now)
		} else {
			t.Put(e.Data, now)
		}
	}
	if c.Merged > 0 {
		t.Count(c.Merged, now)
	}
}

// Head implements reflector.Sink, as the methods below do.
func (f *Feed) Head() uint64 { return f.head }

// Holds reports whether there is an object.
func (f *Feed) Holds(key kube.Key) bool {
	_, ok := f.held[key]
	return ok
}

// Begin starts a list.
func (f *Feed) Begin(overwrite bool) {
	f.listing, f.list, f.overwrite = make(map[kube.Key]uint64, len(f.held)), make([]table.Data, 0, len(f.held)), overwrite
}

// Item takes an object of the list.
func (f *Feed) Item(o *scan.Object) error {
	if rv := f.held[o.Key]; rv > o.RV && !f.overwrite {
		return fmt.Errorf("%s is at %d in the list, and was at %d", o.Key, o.RV, rv)
	}
	d, err := f.printer.Data(o)
	if err != nil {
		return err
	}
	f.listing[d.Key] = o.RV
	if f.keep == nil || f.keep(d.Key) {
		f.list = append(f.list, d)
	}
	return nil
}

// End completes the list. The table compares it with what it has.
func (f *Feed) End(list *scan.List) (continued bool) {
	continued = f.head != 0
	columns, err := f.printer.Columns(list.Columns)
	if err != nil { // the list is empty: Item would have failed
		columns, _ = f.printer.Columns("")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	merged := len(f.pending.Events) + f.pending.Merged
	f.pending = Changes{Listed: true, Columns: clone(columns), List: f.list, Merged: merged}
	clear(f.at)
	f.held, f.listing, f.list, f.head = f.listing, nil, nil, list.RV
	return continued
}

// Apply takes an event.
func (f *Feed) Apply(typ kube.EventType, o *scan.Object) error {
	if f.head = max(f.head, o.RV); typ != kube.Deleted && f.held[o.Key] == o.RV {
		return nil // repeated
	}
	e := Event{Deleted: typ == kube.Deleted}
	if e.Deleted {
		e.Key = o.Key
		delete(f.held, o.Key)
	} else {
		var err error
		if e.Data, err = f.printer.Data(o); err != nil {
			return err
		}
		f.held[e.Key] = o.RV
	}
	if f.keep != nil && !f.keep(e.Key) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok := f.at[e.Key]; ok {
		f.pending.Events[i] = e
		f.pending.Merged++
		return nil
	}
	f.at[e.Key] = len(f.pending.Events)
	f.pending.Events = append(f.pending.Events, e)
	return nil
}

// Bookmark moves the head.
func (f *Feed) Bookmark(rv uint64, _ *scan.Object) { f.head = max(f.head, rv) }

// Flush wakes whoever drains the feed.
func (f *Feed) Flush() { f.wake() }
