// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// maxPending is how many events are dispatched to a watcher ahead of its reading
// them. A watcher that lags further reads the log instead.
const maxPending = 64

// An interestIndex finds the watchers that an event concerns, so that the cost
// of an event depends on those and not on how many watchers there are. A watcher
// is entered in one slot for each value of its interest's attribute. An event is
// dispatched to the slots of what its object has, and had before the change:
// about twenty.
type interestIndex struct {
	// dispatched is the position up to which all events have been dispatched.
	dispatched atomic.Pointer[position]

	maxPending int // the constant, except in tests

	// mu guards the fields below. Readers take it only to add or remove a
	// watcher, and when a watcher lags by more than maxPending.
	mu     sync.Mutex
	slots  map[slot]watchers
	labels int                      // watchers with a label as their attribute
	fields map[string]*indexedField // by name
	woken  []*watcher               // reused by dispatch
}

// A position is a point of the log, after the events up to rv.
type position struct{ seq, rv, epoch uint64 }

type watchers map[*watcher]struct{}

// A slot holds the watchers with an equal namespace and attribute.
type slot struct {
	attribute attributeName // the zero value for watchers without an attribute
	value     string
	namespace string // "" for watchers of all namespaces
}

// An indexedField is a field that watchers have as their attribute.
type indexedField struct {
	value    func(*scan.Object) string
	watchers int
}

func (x *interestIndex) init() {
	x.maxPending = maxPending
	x.slots, x.fields = map[slot]watchers{}, map[string]*indexedField{}
	x.dispatched.Store(&position{})
}

// slots returns the slots of a watcher with the interest.
func (in *Interest) slots() []slot {
	a := in.Attribute
	switch {
	case a == nil:
		return []slot{{namespace: in.Namespace}}
	case a.Label != "" && len(a.Values) == 0:
		return []slot{{namespace: in.Namespace, attribute: attributeName{labelWithAnyValue, a.Label}}}
	}
	var all []slot
	for _, value := range a.Values {
		all = append(all, slot{namespace: in.Namespace, attribute: a.name(), value: value})
	}
	return all
}

// add enters a watcher. Later events are dispatched to it; it reads those
// published before from the log.
func (x *interestIndex) add(w *watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range w.in.slots() {
		if x.slots[s] == nil {
			x.slots[s] = watchers{}
		}
		x.slots[s][w] = struct{}{}
	}
	x.count(w.in.Attribute, 1)
	w.logEnd = x.dispatched.Load().seq
}

func (x *interestIndex) remove(w *watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range w.in.slots() {
		if delete(x.slots[s], w); len(x.slots[s]) == 0 {
			delete(x.slots, s)
		}
	}
	x.count(w.in.Attribute, -1)
}

// count adds n to the number of watchers with an attribute.
func (x *interestIndex) count(a *Attribute, n int) {
	switch {
	case a == nil:
	case a.Label != "":
		x.labels += n
	default:
		f := x.fields[a.Field]
		if f == nil {
			f = &indexedField{value: a.FieldValue}
			x.fields[a.Field] = f
		}
		if f.watchers += n; f.watchers == 0 {
			delete(x.fields, a.Field)
		}
	}
}

// catchUp ends the lagging of a watcher: it reads the log up to where events are
// dispatched to it again.
func (x *interestIndex) catchUp(w *watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lagging, w.pending = false, nil
	w.logEnd = x.dispatched.Load().seq
}

// dispatch dispatches the new events of a view to the watchers that they concern
// and wakes these, or all watchers with wakeAll. The writer calls it after it has
// published the view.
func (x *interestIndex) dispatch(v *View, wakeAll bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	to := &position{v.end(), v.RV, v.epoch}
	if len(x.slots) > 0 {
		from := x.dispatched.Load().seq
		if from < v.first { // the window holds less than the new events
			x.each((*watcher).setLagging)
			from, wakeAll = v.first, true
		}
		for seq := from; seq < to.seq; seq++ {
			x.dispatchEvent(seq, v.log[seq-v.first])
		}
	}
	x.dispatched.Store(to)
	if wakeAll {
		x.each((*watcher).signal)
	}
	for _, w := range x.woken {
		w.signal()
	}
	clear(x.woken)
	x.woken = x.woken[:0]
}

// each calls f for every watcher, once for each of its slots.
func (x *interestIndex) each(f func(*watcher)) {
	for _, ws := range x.slots {
		for w := range ws {
			f(w)
		}
	}
}

func (x *interestIndex) dispatchEvent(seq uint64, e *Event) {
	x.dispatchBy(e.Object, seq, e)
	if e.Prev != nil && (len(x.fields) > 0 || !slices.Equal(e.Prev.Labels, e.Object.Labels)) {
		x.dispatchBy(e.Prev, seq, e)
	}
}

// dispatchBy dispatches an event to the slots of an object.
func (x *interestIndex) dispatchBy(o *scan.Object, seq uint64, e *Event) {
	x.dispatchIn("", o, seq, e)
	if namespace := o.Key.Namespace(); namespace != "" {
		x.dispatchIn(namespace, o, seq, e)
	}
}

func (x *interestIndex) dispatchIn(namespace string, o *scan.Object, seq uint64, e *Event) {
	x.dispatchTo(slot{namespace: namespace}, seq, e)
	if x.labels > 0 {
		for _, l := range o.Labels {
			x.dispatchTo(slot{attributeName{labelWithAnyValue, l.Key}, "", namespace}, seq, e)
			x.dispatchTo(slot{attributeName{label, l.Key}, l.Value, namespace}, seq, e)
		}
	}
	for name, f := range x.fields {
		x.dispatchTo(slot{attributeName{field, name}, f.value(o), namespace}, seq, e)
	}
}

// dispatchTo dispatches an event to the watchers of a slot that it concerns. A
// watcher may get it from two slots.
func (x *interestIndex) dispatchTo(s slot, seq uint64, e *Event) {
	for w := range x.slots[s] {
		if w.in.concerns(e) {
			w.add(seq, x.maxPending)
			x.woken = append(x.woken, w)
		}
	}
}
