// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/watchcache"
)

// maxPendingBytes is about the maximum size of a batch of events.
const maxPendingBytes = 4 << 20

// A writer writes one resource's events to its stream, in batches: a durable write
// costs a sync, whatever its size. Any goroutine may use it, but only one at a time
// adds events.
type writer struct {
	store    *history.Store
	resource kube.Resource
	delay    delays
	count    counts
	log      *slog.Logger

	// published has copies of fields below, for callers that must not wait for the
	// disk.
	published struct {
		stream atomic.Pointer[history.Stream]
		head   atomic.Pointer[history.Moment]
		oldest atomic.Int64 // ms since 1970
		lost   atomic.Pointer[chan struct{}]
	}

	mu      watchcache.Mutex // guards what follows; held while writing
	stream  *history.Stream
	head    history.Moment // everything up to here is in the stream or pending
	pending []history.Event
	size    int
	oldest  time.Time // when the first pending event was observed
	// template is a newer bookmark than the one in the stream's form; nil if there
	// is none. lastTemplate is the one that was passed last.
	template, lastTemplate *scan.Object
	// definition identifies the definition at the last list, see
	// upstream.Server.DefinitionID.
	definition string
	moved      chan struct{} // closed when the head, or the stream's head, has moved
	lost       chan struct{} // closed when the record turns out to be damaged
	wake       chan struct{} // has a value if there is something to write
	hurry      chan struct{} // has a value if a caller waits for the write
}

// delays are how long a write waits for more events: a write with events, and a write
// that only advances the head.
type delays struct{ events, head time.Duration }

func newWriter(s *session, stream *history.Stream) *writer {
	w := &writer{
		store: s.store, resource: stream.Resource(), delay: s.r.delay, count: s.r.metrics.of(stream.Resource()),
		log: s.r.log.With("resource", stream.Resource().String()), lost: make(chan struct{}),
		mu: watchcache.NewMutex(), stream: stream, head: stream.Head(), definition: stream.Form().Definition,
		moved: make(chan struct{}), wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
	}
	w.publish()
	return w
}

// publish updates the published copies. The caller holds mu.
func (w *writer) publish() {
	w.published.stream.Store(w.stream)
	lost := w.lost
	w.published.lost.Store(&lost)
	head := w.head
	w.published.head.Store(&head)
	oldest := int64(0)
	if !w.oldest.IsZero() {
		oldest = w.oldest.UnixMilli()
	}
	w.published.oldest.Store(oldest)
}

// notify wakes callers that wait for the head. The caller holds mu.
func (w *writer) notify() {
	w.publish()
	close(w.moved)
	w.moved = make(chan struct{})
}

// run writes what is pending after its delay, until ctx ends or a write fails.
func (w *writer) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.hurry:
		case <-w.wake:
			for wait := w.wait(); wait > 0; wait = w.wait() {
				hurried := false
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(wait):
				case <-w.wake:
				case <-w.hurry:
					hurried = true
				}
				if hurried {
					break
				}
			}
		}
		if err := w.flush(); err != nil && !errors.Is(err, errDamaged) {
			return err
		}
	}
}

// wait returns how long the next write can wait.
func (w *writer) wait() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) > 0 {
		return w.delay.events - time.Since(w.oldest)
	}
	return w.delay.head - time.Since(w.stream.Head().At)
}

// add adds events, in order, and the head after them. It writes once there are many.
func (w *writer) add(events []history.Event, rv uint64, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head.RV == 0 {
		return errDamaged
	}
	if len(events) == 0 && rv == w.head.RV {
		return nil
	}
	if len(w.pending) == 0 && len(events) > 0 {
		w.oldest = events[0].At
	}
	w.pending = append(w.pending, events...)
	for i := range events {
		w.size += len(events[i].Object.JSON) + timeline.EventOverhead
	}
	w.move(rv, at)
	if w.size >= maxPendingBytes {
		return w.startEpoch(w.stream, w.write())
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

func (w *writer) move(rv uint64, at time.Time) {
	w.head = history.Moment{RV: max(w.head.RV, rv), At: at}
	w.notify()
}

// flush writes what is pending.
func (w *writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.startEpoch(w.stream, w.write())
}

func (w *writer) write() error {
	stored := w.stream.Head().RV
	if len(w.pending) == 0 && w.head.RV == stored {
		return nil
	}
	if err := w.stream.Append(w.pending, w.head.RV, w.head.At); err != nil {
		return err
	}
	w.count.events.Add(float64(len(w.pending)))
	w.pending, w.size, w.oldest = nil, 0, time.Time{}
	w.notify()
	return w.setForm(w.stream.Form().ListKind)
}

// setForm records the newest template and the definition if they differ from the
// recorded form.
func (w *writer) setForm(listKind string) error {
	old := w.stream.Form()
	now := history.Form{ListKind: listKind, Item: w.template, Definition: w.definition}
	w.template = nil
	if now.Item == nil || alike(old.Item, now.Item) {
		now.Item = old.Item
	}
	if now == old {
		return nil
	}
	return w.stream.SetForm(now)
}

// alike reports whether two templates differ only in their RV.
func alike(a, b *scan.Object) bool {
	if a.Columns != b.Columns || a.Row != b.Row || (a.RV == 0) != (b.RV == 0) {
		return false
	}
	if a.RV != 0 {
		a = a.At(b.RV)
	}
	return a.JSON == b.JSON
}

// bookmark advances the head to a bookmark.
func (w *writer) bookmark(rv uint64, o *scan.Object) error {
	w.setTemplate(o)
	return w.add(nil, rv, time.Now())
}

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
	w.move(rv, at)
	return nil
}

// begin records a list that is the first one, or does not continue the record.
func (w *writer) begin(list *scan.List, definition string, at time.Time) error {
	if w.stream.Head().RV != 0 {
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
	w.head = history.Moment{}
	w.move(list.RV, at)
	return nil
}

// take records a list and the definition under which it was taken. It records the
// difference from the recorded state as a gap. continued is false if that is not
// possible, or if diverged says that the list is of another history: then a new epoch
// begins. The recorded state is in memory meanwhile.
func (w *writer) take(list *scan.List, definition string, diverged bool, at time.Time) (continued bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
	t := timeline.New(timeline.Options{WindowBytes: 1 << 62})
	t.Reset(held)
	if list.RV < held.RV || !t.Replace(list) {
		return false, w.begin(list, definition, at)
	}
	cursor, err := t.Watch(held.RV, timeline.Interest{})
	if err != nil {
		return false, err
	}
	var events []history.Event
	for more := true; more; {
		b, err := cursor.Next()
		if err != nil {
			return false, err
		}
		events, more = appendEvents(events, b.Events), b.More
	}
	for i := range events {
		events[i].At = at
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

// reached waits until everything up to rv is written. It fails when ctx or the
// recording ends.
func (w *writer) reached(ctx, recording context.Context, rv uint64) error {
	for {
		if !w.mu.LockBefore(ctx) {
			return context.Cause(ctx)
		}
		pending := len(w.pending) > 0 && w.pending[0].Object.RV <= rv
		if !pending && w.stream.Head().RV >= rv {
			w.mu.Unlock()
			return nil
		}
		if w.head.RV >= rv {
			select {
			case w.hurry <- struct{}{}:
			default:
			}
		}
		moved := w.moved
		w.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-recording.Done():
			return ErrNotRecorded
		}
	}
}

// errDamaged means that the record is damaged. A new epoch has begun, and needs a list.
var errDamaged = errors.New("the record is damaged: a new epoch begins")

// damaged converts an error of reading a stream: if the stream is damaged, a new epoch
// begins and the result is errDamaged.
func (w *writer) damaged(stream *history.Stream, err error) error {
	if !errors.Is(err, history.ErrCorrupt) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.startEpoch(stream, err)
}

// startEpoch is damaged for a caller that holds mu.
func (w *writer) startEpoch(stream *history.Stream, err error) error {
	if !errors.Is(err, history.ErrCorrupt) {
		return err
	}
	if stream != w.stream { // the new epoch has already begun
		return errDamaged
	}
	next, failed := w.store.NewEpoch(w.resource)
	if failed != nil {
		return failed
	}
	w.log.Error("the record of the resource is damaged: a new epoch begins, and the damaged one is kept unchanged", "cause", err)
	w.count.damaged.Inc()
	w.stream, w.head, w.pending, w.size, w.oldest = next, history.Moment{}, nil, 0, time.Time{}
	close(w.lost)
	w.lost = make(chan struct{})
	w.publish()
	return errDamaged
}

// loss returns a channel that is closed when the record turns out to be damaged.
func (w *writer) loss() <-chan struct{} { return *w.published.lost.Load() }

// lag returns how long the oldest pending event has waited.
func (w *writer) lag() time.Duration {
	oldest := w.published.oldest.Load()
	if oldest == 0 {
		return 0
	}
	return time.Since(time.UnixMilli(oldest))
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

// position returns the head: everything up to it is written or pending. It does not
// wait for the disk.
func (w *writer) position() history.Moment { return *w.published.head.Load() }

// current returns the stream that is written to. It does not wait for the disk.
func (w *writer) current() *history.Stream { return w.published.stream.Load() }

// setTemplate sets the template of bookmarks.
func (w *writer) setTemplate(o *scan.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lastTemplate != o {
		w.lastTemplate, w.template = o, o
	}
}
