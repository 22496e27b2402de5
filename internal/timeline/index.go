// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// mostPending is how many events a watcher is told of ahead of its reading
// them. One that lags further reads the log instead.
const mostPending = 64

// An index finds the watchers that an event concerns: an event costs those it
// may concern, not those there are. A watcher is entered in a slot for each value
// that its interest names. An event looks into the slots of what its object has,
// and had before: some twenty, however many watchers there are.
type index struct {
	// told is up to where all watchers have been told of what concerns them.
	told atomic.Pointer[place]

	mostPending int // mostPending, but for tests

	// mu guards what follows. Readers take it only to come, to go and when they
	// lag far behind.
	mu     sync.Mutex
	slots  map[slot]watchers
	labels int               // watchers in slots of labels
	fields map[string]*field // by name
	woken  []*watcher        // while telling
}

// A place is a point of the log: everything up to rv is before it.
type place struct{ seq, rv, epoch uint64 }

type watchers map[*watcher]struct{}

// A slot is what watchers can be found by.
type slot struct {
	by          slotKind
	namespace   string // "" for those of all namespaces
	name, value string // of the attribute
}

type slotKind uint8

const (
	byScope    slotKind = iota // nothing but the namespace
	byLabel                    // a label's value
	byAnyLabel                 // a label's being there
	byField                    // a field's value
)

// A field is one that watchers are found by.
type field struct {
	of       func(*scan.Object) string
	watchers int
}

func (x *index) init() {
	x.mostPending = mostPending
	x.slots, x.fields = map[slot]watchers{}, map[string]*field{}
	x.told.Store(&place{})
}

// slots returns the slots of who has the interest.
func (in *Interest) slots() []slot {
	a := in.Attribute
	switch {
	case a == nil:
		return []slot{{byScope, in.Namespace, "", ""}}
	case a.Label != "" && len(a.Values) == 0:
		return []slot{{byAnyLabel, in.Namespace, a.Label, ""}}
	}
	by, name := byLabel, a.Label
	if name == "" {
		by, name = byField, a.Field
	}
	var all []slot
	for _, value := range a.Values {
		all = append(all, slot{by, in.Namespace, name, value})
	}
	return all
}

// add enters a watcher. It will be told of what is published from now on, and
// is to look through the log before that.
func (x *index) add(w *watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range w.in.slots() {
		if x.slots[s] == nil {
			x.slots[s] = watchers{}
		}
		x.slots[s][w] = struct{}{}
	}
	x.count(w.in.Attribute, 1)
	w.scan = x.told.Load().seq
}

func (x *index) remove(w *watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range w.in.slots() {
		if delete(x.slots[s], w); len(x.slots[s]) == 0 {
			delete(x.slots, s)
		}
	}
	x.count(w.in.Attribute, -1)
}

// count counts the watchers of an attribute: n more.
func (x *index) count(a *Attribute, n int) {
	switch {
	case a == nil:
	case a.Label != "":
		x.labels += n
	default:
		f := x.fields[a.Field]
		if f == nil {
			f = &field{of: a.Of}
			x.fields[a.Field] = f
		}
		if f.watchers += n; f.watchers == 0 {
			delete(x.fields, a.Field)
		}
	}
}

// catchUp sends a watcher that was not told of all to the log, up to where it
// will be told of all again.
func (x *index) catchUp(w *watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind, w.pending = false, nil
	w.scan = x.told.Load().seq
}

// tell tells the watchers of the events that are new in a view, and wakes those
// they concern; all if there is more to know than events. It is for the
// timeline's writer, after the view is published.
func (x *index) tell(v *View, all bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	to := &place{v.end(), v.RV, v.epoch}
	if len(x.slots) > 0 {
		from := x.told.Load().seq
		if from < v.first { // more came at once than the window holds
			x.each((*watcher).fallBehind)
			from, all = v.first, true
		}
		for seq := from; seq < to.seq; seq++ {
			x.event(seq, v.log[seq-v.first])
		}
	}
	x.told.Store(to)
	if all {
		x.each((*watcher).signal)
	}
	for _, w := range x.woken {
		w.signal()
	}
	clear(x.woken)
	x.woken = x.woken[:0]
}

// each calls f for every watcher, for some more than once.
func (x *index) each(f func(*watcher)) {
	for _, ws := range x.slots {
		for w := range ws {
			f(w)
		}
	}
}

// event tells the watchers that an event concerns of it.
func (x *index) event(seq uint64, e *Event) {
	x.look(seq, e, e.Object)
	if e.Prev != nil && (len(x.fields) > 0 || !slices.Equal(e.Prev.Labels, e.Object.Labels)) {
		x.look(seq, e, e.Prev)
	}
}

// look tells the watchers whom what the object has concerns, and the event, of
// the event.
func (x *index) look(seq uint64, e *Event, o *scan.Object) {
	namespace := o.Key.Namespace()
	x.lookIn("", seq, e, o)
	if namespace != "" {
		x.lookIn(namespace, seq, e, o)
	}
}

func (x *index) lookIn(namespace string, seq uint64, e *Event, o *scan.Object) {
	x.tellOf(slot{byScope, namespace, "", ""}, seq, e)
	if x.labels > 0 {
		for _, l := range o.Labels {
			x.tellOf(slot{byAnyLabel, namespace, l.Key, ""}, seq, e)
			x.tellOf(slot{byLabel, namespace, l.Key, l.Value}, seq, e)
		}
	}
	for name, f := range x.fields {
		x.tellOf(slot{byField, namespace, name, f.of(o)}, seq, e)
	}
}

// tellOf tells the watchers of a slot of an event, if it concerns them. Two slots
// may lead to one watcher.
func (x *index) tellOf(s slot, seq uint64, e *Event) {
	for w := range x.slots[s] {
		if w.in.concerns(e) {
			w.tell(seq, x.mostPending)
			x.woken = append(x.woken, w)
		}
	}
}
