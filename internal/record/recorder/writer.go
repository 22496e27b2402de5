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
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// maxPendingBytes is about the maximum size of a batch of events.
const maxPendingBytes = 4 << 20

// A writer writes one resource's events to its stream, in batches: a durable write
// costs a sync, whatever its size. Any goroutine may use it, but only one at a time
// adds events.
type writer struct {
	store    *history.Store
	place    func() error // fails if the store's directory is gone
	pulse    func()       // notices a pause of the program
	resource kube.Resource
	delay    delays
	count    counts
	log      *slog.Logger

	// published has copies of fields below, for callers that must not wait for the
	// disk.
	published struct {
		stream atomic.Pointer[history.Stream]
		head   atomic.Pointer[history.Moment]
		oldest atomic.Pointer[time.Time]
		lost   atomic.Pointer[chan struct{}]
	}

	silence silence

	mu      watchcache.Mutex // guards what follows; held while writing
	stream  *history.Stream
	head    history.Moment // everything up to here is in the stream or pending; zero if no list was recorded
	pending []history.Event
	size    int
	oldest  time.Time // when the first pending event was added
	written time.Time // when the head was last written
	// template is a newer bookmark than the one in the stream's form; nil if there
	// is none. lastTemplate is the one that was passed last.
	template, lastTemplate *scan.Object
	// definition identifies the definition at the last list, see
	// upstream.Server.DefinitionID.
	definition string
	moved      chan struct{} // closed when the head, or the stream's head, has moved
	lost       chan struct{} // closed when the record turns out to be damaged
	defined    chan struct{} // receives a value when a definition has changed; nil if these are none
	wake       chan struct{} // has a value if there is something to write
	hurry      chan struct{} // has a value if a caller waits for the write
}

// delays are how long a write waits for more events: a write with events, and a write
// that only advances the head.
type delays struct{ events, head time.Duration }

// newWriter returns the writer of a resource, which continues a stream. One of another API version
// is not continued: the first list begins a new epoch.
func newWriter(s *session, resource kube.Resource, stream *history.Stream) *writer {
	w := &writer{
		store: s.store, place: s.r.checkPlace, pulse: s.feelPulse, resource: resource, delay: s.r.delay, count: s.r.metrics.of(resource),
		log: s.r.log.With("resource", resource.String()), lost: make(chan struct{}),
		mu: watchcache.NewMutex(), stream: stream,
		silence: silence{least: s.r.minSilence},
		moved:   make(chan struct{}), wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
	}
	if stream.Resource() == resource {
		w.head, w.definition = stream.Head(), stream.Form().Definition
	}
	if slices.Contains(defining, w.resource.Name) {
		w.defined = s.defined
	}
	if w.head.RV != 0 {
		w.silence.begun(w.head.At, s.r.opts.Now())
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
	oldest := w.oldest
	w.published.oldest.Store(&oldest)
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
		for wait := w.held(); wait > 0; wait = w.held() {
			if !sleep(ctx, wait) {
				return nil
			}
		}
		if err := w.flush(); err != nil && !errors.Is(err, errDamaged) {
			return err
		}
	}
}

// minWrite is about how many events are written before their delay is over. A write takes
// some microseconds of a processor for each event: a thousand of them would keep it from
// the watchers for several milliseconds.
const minWrite = 32

// wait returns how long the next write can wait.
func (w *writer) wait() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.pending); n > 0 {
		wait := w.delay.events - time.Since(w.oldest)
		if n >= minWrite {
			wait = min(wait, w.delay.events/32-time.Since(w.written))
		}
		return wait
	}
	if s := w.silence.get(); !s.watched.IsZero() {
		return s.settling()
	}
	return w.delay.head - time.Since(w.written)
}

// maxHold is how long events of a silence wait for its end, so that they get one time.
const maxHold = 3 * time.Second

// held returns how long a write has to wait for the end of a silence.
func (w *writer) held() time.Duration {
	s := w.silence.get()
	if s.since.IsZero() || !s.watched.IsZero() {
		return s.settling()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) == 0 || time.Since(w.oldest) >= maxHold {
		return 0
	}
	return w.delay.events / 10
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
		w.oldest = time.Now()
	}
	w.pending = append(w.pending, events...)
	for i := range events {
		w.size += len(events[i].Object.JSON) + timeline.EventOverhead
	}
	if len(events) > 0 {
		w.define()
	}
	w.move(rv, at)
	if w.size >= maxPendingBytes {
		return w.startEpoch(w.stream, w.write())
	}
	w.awake()
	return nil
}

// define makes the session look for new resources if these are their definitions.
func (w *writer) define() {
	select {
	case w.defined <- struct{}{}:
	default:
	}
}

// awake makes run look at what there is to write.
func (w *writer) awake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// hasten makes run write without a delay.
func (w *writer) hasten() {
	select {
	case w.hurry <- struct{}{}:
	default:
	}
}

func (w *writer) move(rv uint64, at time.Time) {
	w.head = history.Moment{RV: max(w.head.RV, rv), At: at}
	w.notify()
}

// flush writes what is pending.
func (w *writer) flush() error {
	if err := w.place(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.startEpoch(w.stream, w.write())
}

// quiet returns the stream if it has everything that was observed, else nil.
func (w *writer) quiet() *history.Stream {
	if !w.mu.TryLock() { // it is being written
		return nil
	}
	defer w.mu.Unlock()
	if !w.silence.get().since.IsZero() || len(w.pending) > 0 || w.head.RV == 0 || w.head.RV != w.stream.Head().RV {
		return nil
	}
	return w.stream
}

// end writes what is pending, and until when the resource was watched, by the present clock.
func (w *writer) end(now time.Time) error {
	if err := w.flush(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.silence.get()
	if w.head.RV == 0 || s.start || s.since.IsZero() {
		return nil
	}
	if history.ClockSet(s.since, now) { // then the head's time is not one of the present clock
		return nil
	}
	return w.store.Observed(map[*history.Stream]time.Time{w.stream: s.since})
}

func (w *writer) write() error {
	w.pulse()
	s := w.silence.get()
	if s.withdraw && w.head.RV != 0 {
		if err := w.stream.Withdraw(context.Background(), s.since); err != nil {
			return err
		}
		w.silence.withdrawn()
	}
	if w.head.RV == 0 || len(w.pending) == 0 && w.head.RV == w.stream.Head().RV && !s.over(w.head.RV) {
		return nil
	}
	if err := w.append(s); err != nil {
		return err
	}
	w.count.events.Add(float64(len(w.pending)))
	w.pending, w.size, w.oldest, w.written = nil, 0, time.Time{}, time.Now()
	w.notify()
	return w.setForm(w.stream.Form().ListKind)
}

// append appends what is pending to the stream: what was observed before a silence, and
// what came at its end.
func (w *writer) append(s silent) error {
	before, late := s.split(w.pending)
	until := s.until(late, w.head.At)
	ends := len(late) > 0 || s.over(w.head.RV) || w.head.At.After(s.found)
	if s.since.IsZero() || !s.start && until.Sub(s.since) < w.silence.least || !ends {
		if err := w.stream.Append(w.pending, w.head.RV, w.head.At); err != nil {
			return err
		}
	} else {
		if n := len(before); n > 0 {
			if err := w.stream.Append(before, before[n-1].Object.RV, before[n-1].At); err != nil {
				return err
			}
		}
		if err := w.stream.AppendLate(late, w.head.RV, s.since, until); err != nil {
			return err
		}
		w.log.Debug("the events of a time came at its end", "since", s.since, "until", until, "events", len(late))
		w.head.At = until
	}
	if s.over(w.head.RV) {
		w.silence.settle(w.head.RV)
	}
	return nil
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
func (w *writer) bookmark(rv uint64, o *scan.Object, at time.Time) error {
	w.setTemplate(o)
	return w.add(nil, rv, at)
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
			w.hasten()
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

// lag returns how long the oldest pending event has waited.
func (w *writer) lag() time.Duration {
	oldest := w.published.oldest.Load()
	if oldest.IsZero() {
		return 0
	}
	return time.Since(*oldest)
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
