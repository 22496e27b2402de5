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
// is entered by its namespace, then by the name of its attribute, then by each
// of its values. An event is dispatched by what its object has, and had before
// the change.
type interestIndex struct {
	// dispatched is the position up to which all events have been dispatched.
	dispatched atomic.Pointer[position]

	maxPending int // the constant, except in tests

	// mu guards the fields below. Readers take it only to add or remove a
	// watcher, and when a watcher lags by more than maxPending.
	mu         sync.Mutex
	namespaces map[string]*namespaceWatchers // "" for watchers of all namespaces
	fields     int                           // watchers with a field as their attribute
	woken      []*watcher                    // reused by dispatch
}

// A position is a point of the log, after the events up to rv.
type position struct{ seq, rv, epoch uint64 }

type watchers map[*watcher]struct{}

// namespaceWatchers are the watchers with an equal namespace.
type namespaceWatchers struct {
	all    watchers                      // without an attribute
	labels map[string]*attributeWatchers // by key
	fields map[string]*attributeWatchers // by name
}

// attributeWatchers are watchers with an equal namespace and label or field.
type attributeWatchers struct {
	fieldValue func(*scan.Object) string // nil for a label
	any        watchers
	values     map[string]watchers
}

func (x *interestIndex) init() {
	x.maxPending = maxPending
	x.namespaces = map[string]*namespaceWatchers{}
	x.dispatched.Store(&position{})
}

// add enters a watcher. Later events are dispatched to it; it reads those
// published before from the log.
func (x *interestIndex) add(w *watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.namespaces[w.in.Namespace]
	if n == nil {
		n = &namespaceWatchers{watchers{}, map[string]*attributeWatchers{}, map[string]*attributeWatchers{}}
		x.namespaces[w.in.Namespace] = n
	}
	if a := w.in.Attribute; a == nil {
		n.all[w] = struct{}{}
	} else {
		attributes, name := n.attributes(a)
		if attributes[name] == nil {
			attributes[name] = &attributeWatchers{a.FieldValue, watchers{}, map[string]watchers{}}
		}
		attributes[name].add(w, a.Values)
		if a.Label == "" {
			x.fields++
		}
	}
	w.logEnd = x.dispatched.Load().seq
}

func (x *interestIndex) remove(w *watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.namespaces[w.in.Namespace]
	if a := w.in.Attribute; a == nil {
		delete(n.all, w)
	} else {
		attributes, name := n.attributes(a)
		if attributes[name].remove(w, a.Values); attributes[name].empty() {
			delete(attributes, name)
		}
		if a.Label == "" {
			x.fields--
		}
	}
	if len(n.all)+len(n.labels)+len(n.fields) == 0 {
		delete(x.namespaces, w.in.Namespace)
	}
}

// attributes returns the map that an attribute is entered in, and its key there.
func (n *namespaceWatchers) attributes(a *Attribute) (attributes map[string]*attributeWatchers, name string) {
	if a.Label != "" {
		return n.labels, a.Label
	}
	return n.fields, a.Field
}

func (a *attributeWatchers) add(w *watcher, values []string) {
	if len(values) == 0 {
		a.any[w] = struct{}{}
	}
	for _, value := range values {
		if a.values[value] == nil {
			a.values[value] = watchers{}
		}
		a.values[value][w] = struct{}{}
	}
}

func (a *attributeWatchers) remove(w *watcher, values []string) {
	delete(a.any, w)
	for _, value := range values {
		if delete(a.values[value], w); len(a.values[value]) == 0 {
			delete(a.values, value)
		}
	}
}

func (a *attributeWatchers) empty() bool { return len(a.any)+len(a.values) == 0 }

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
	if len(x.namespaces) > 0 {
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

// each calls f for every watcher, once for each value of its attribute.
func (x *interestIndex) each(f func(*watcher)) {
	call := func(ws watchers) {
		for w := range ws {
			f(w)
		}
	}
	for _, n := range x.namespaces {
		call(n.all)
		for _, attributes := range []map[string]*attributeWatchers{n.labels, n.fields} {
			for _, a := range attributes {
				call(a.any)
				for _, ws := range a.values {
					call(ws)
				}
			}
		}
	}
}

func (x *interestIndex) dispatchEvent(seq uint64, e *Event) {
	x.dispatchBy(e.Object, seq, e)
	if e.Prev != nil && (x.fields > 0 || !slices.Equal(e.Prev.Labels, e.Object.Labels)) {
		x.dispatchBy(e.Prev, seq, e)
	}
}

// dispatchBy dispatches an event by what an object has.
func (x *interestIndex) dispatchBy(o *scan.Object, seq uint64, e *Event) {
	x.dispatchIn("", o, seq, e)
	if namespace := o.Key.Namespace(); namespace != "" {
		x.dispatchIn(namespace, o, seq, e)
	}
}

func (x *interestIndex) dispatchIn(namespace string, o *scan.Object, seq uint64, e *Event) {
	n := x.namespaces[namespace]
	if n == nil {
		return
	}
	x.dispatchTo(n.all, seq, e)
	if len(n.labels) > 0 {
		for _, l := range o.Labels {
			if a := n.labels[l.Key]; a != nil {
				x.dispatchTo(a.any, seq, e)
				x.dispatchTo(a.values[l.Value], seq, e)
			}
		}
	}
	for _, a := range n.fields {
		x.dispatchTo(a.any, seq, e)
		x.dispatchTo(a.values[a.fieldValue(o)], seq, e)
	}
}

// dispatchTo dispatches an event to those of some watchers that it concerns. A
// watcher may get it twice.
func (x *interestIndex) dispatchTo(ws watchers, seq uint64, e *Event) {
	for w := range ws {
		if w.in.concerns(e) {
			w.add(seq, x.maxPending)
			x.woken = append(x.woken, w)
		}
	}
}
