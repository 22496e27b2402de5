// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// gap records a gap from the head to rv, with its known events.
func (w *writer) gap(events []history.Event, rv uint64, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head.RV == 0 {
		return errDamaged
	}
	return w.startEpoch(w.stream, w.writeGap(events, rv, at))
}

func (w *writer) writeGap(events []history.Event, rv uint64, at time.Time) error {
	if err := w.write(); err != nil {
		return err
	}
	from := w.stream.Head().RV
	if err := w.stream.AppendGap(events, rv, at); err != nil {
		return err
	}
	w.count.events.Add(float64(len(events)))
	if rv > from {
		w.count.gaps.Inc()
	}
	w.silence.clear(at)
	w.move(rv, at)
	return nil
}

// begin records a list that is the first one, or does not continue the record.
func (w *writer) begin(list *scan.List, definition string, at time.Time) error {
	if w.stream.Head().RV != 0 || w.stream.Resource() != w.resource {
		next, err := w.store.NewEpoch(w.resource)
		if err != nil {
			return err
		}
		w.stream = next
	}
	w.definition = definition
	form := history.Form{ListKind: list.Kind, Item: list.EmptyItem(), Definition: definition}
	if err := w.stream.Begin(form, slices.Values(list.Items), list.RV, at); err != nil {
		return err
	}
	w.silence.clear(at)
	w.head = history.Moment{}
	w.move(list.RV, at)
	return nil
}

// take records a list and the definition under which it was taken. It records the
// difference from the recorded state as a gap. continued is false if a new epoch has begun:
// without a difference if that is not possible, or if diverged says that the list is of
// another history; after it if objects that have not changed have another form, which has
// no RV of its own. The recorded state is in memory meanwhile.
//
// The list is observed when reads begin to wait for it: a read before that was answered
// without it, and so must be the same read later.
func (w *writer) take(list *scan.List, definition string, diverged bool, now func() time.Time) (continued bool, err error) {
	defer w.define()
	w.mu.Lock()
	defer w.mu.Unlock()
	at := now()
	if w.head.RV != 0 {
		continued, err = w.compare(list, definition, diverged, at)
		err = w.startEpoch(w.stream, err)
	}
	if w.head.RV == 0 {
		return false, w.begin(list, definition, at)
	}
	return continued, err
}

// compare is take for a stream that is not empty.
func (w *writer) compare(list *scan.List, definition string, diverged bool, at time.Time) (continued bool, err error) {
	if err := w.write(); err != nil {
		return false, err
	}
	if diverged {
		return false, w.begin(list, definition, at)
	}
	held, err := stateOf(context.Background(), w.stream, new(atomic.Int64))
	if err != nil {
		return false, err
	}
	t := timeline.New(timeline.Options{})
	t.Reset(held)
	difference, reformed, ok := t.Difference(list)
	if !ok {
		return false, w.begin(list, definition, at)
	}
	events := appendEvents(nil, difference)
	for i := range events {
		events[i].At = at
	}
	if reformed {
		if err := w.writeGap(events, list.RV, at); err != nil {
			return false, err
		}
		if end := w.stream.Head().At; at.Before(end) { // the clock is a little behind
			at = end
		}
		return false, w.begin(list, definition, at)
	}
	w.template = list.EmptyItem()
	if held := w.stream.Form().Item; held.Columns == list.Columns && held.APIVersion == list.APIVersion && held.Kind == list.ItemKind {
		w.template = nil // keep held, which may be a bookmark of the upstream
	}
	if err := w.writeGap(events, list.RV, at); err != nil {
		return false, err
	}
	w.definition = definition // only now: after a crash before it, the list is taken again
	return true, w.setForm(list.Kind)
}

// appendEvents appends a timeline's events.
func appendEvents(to []history.Event, events []*timeline.Event) []history.Event {
	for _, e := range events {
		to = append(to, history.Event{Type: e.Type, Object: e.Object, Prev: e.Prev, Inferred: e.Inferred, At: e.At})
	}
	return to
}

// listOf returns the metadata of a list, from a recorded form.
func listOf(form history.Form, rv uint64) *scan.List {
	return &scan.List{
		Kind: form.ListKind, APIVersion: form.Item.APIVersion, ItemKind: form.Item.Kind, Typed: form.Item.Typed(),
		Columns: form.Item.Columns, RV: rv,
	}
}

// stateOf returns the state at a stream's head. It counts the objects in read.
func stateOf(ctx context.Context, st *history.Stream, read *atomic.Int64) (*scan.List, error) {
	list := listOf(st.Form(), st.Head().RV)
	for o, err := range st.List(ctx, list.RV, "", "") {
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, o)
		read.Add(1)
	}
	return list, nil
}

// newest returns the last recorded version of an object, nil if there is none.
func (w *writer) newest(key kube.Key) (*scan.Object, error) {
	stream := w.current()
	o, err := stream.Get(context.Background(), stream.Head().RV, key)
	return o, w.damaged(stream, err)
}
