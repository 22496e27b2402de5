// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// ReconcileOptions configure [Reconcile]. The zero value has a queue per object
// and retries forever.
type ReconcileOptions[T any] struct {
	// Workers is how many calls of the function run at a time. The default is
	// 4.
	Workers int
	// QueueBy names the queue of an event. It must return the same name for
	// all events of an object. The default, nil, gives each object a queue.
	QueueBy func(Event[T]) string
	// EveryEvent calls the function for each event. The default merges the
	// events of an object that wait in its queue, so that the function sees
	// the latest state. With EveryEvent, events are still merged when the
	// informer coalesces them ([Options].Backlog), when their queue has more
	// than 128 events, or all queues together have more than 10,000.
	EveryEvent bool
	// MaxRetries is how often a failed event is retried before it goes to
	// DeadLetter. The default, 0, retries forever.
	MaxRetries int
	// DeadLetter receives an event whose retries are exhausted, and its last
	// error, before its queue continues. It may be nil.
	DeadLetter func(Event[T], error)
	// MinBackoff and MaxBackoff are the pauses before the first retry and the
	// longest one. Pauses double in between, and half of each is random. The
	// defaults are 100 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration
}

const (
	defaultWorkers    = 4
	defaultMinBackoff = 100 * time.Millisecond
	defaultMaxBackoff = 30 * time.Second

	// Limits of EveryEvent.
	maxQueueEvents = 128
	maxTotalEvents = 10_000
)

// Reconcile calls f for each Added, Updated and Deleted event while the informer
// runs, until stop is called. Events of one queue are handled one after the
// other. If f returns an error, the event is retried, and its queue waits for
// it; other queues continue. An event is done when f has returned nil or DeadLetter
// has returned. An event that is being handled when the informer stops is
// handled again in the next run. stop does not wait for calls of f: Run does.
func Reconcile[T any](i *Informer[T], opts ReconcileOptions[T], f func(context.Context, Event[T]) error) (stop func()) {
	return newReconciler(i, opts, f).start()
}

func newReconciler[T any](i *Informer[T], opts ReconcileOptions[T], f func(context.Context, Event[T]) error) *reconciler[T] {
	opts.Workers = cmp.Or(max(opts.Workers, 0), defaultWorkers)
	opts.MinBackoff = cmp.Or(max(opts.MinBackoff, 0), defaultMinBackoff)
	opts.MaxBackoff = max(cmp.Or(max(opts.MaxBackoff, 0), defaultMaxBackoff), opts.MinBackoff)
	r := &reconciler[T]{of: i, opts: opts, f: f, sub: i.subscribe(allRuns), queues: map[string]*queue[T]{}}
	r.wake.L = &r.mu
	return r
}

type reconciler[T any] struct {
	of   *Informer[T]
	opts ReconcileOptions[T]
	f    func(context.Context, Event[T]) error
	sub  *subscription[T]

	mu     sync.Mutex // guards all below
	wake   sync.Cond  // there is a ready queue, or the run ends
	queues map[string]*queue[T]
	ready  []*queue[T] // in the order in which workers take them
	total  int         // items in all queues
}

// A queue has events that are handled one after the other. It exists while it
// has items. A queue is ready, with a worker, or paused.
type queue[T any] struct {
	name     string
	items    []*item[T]          // the first is being handled, or next
	last     map[string]*item[T] // by object, the item that further events are merged into
	failures int                 // of the first item, in a row
	pause    *time.Timer         // until the first item is retried; nil unless paused
}

// An item has the coalesced events of an object.
type item[T any] struct {
	key string
	coalesced[T]
	started []entry[T] // the rest of the entries, once the first was handled
	since   time.Time  // arrival of the first event
}

func (r *reconciler[T]) start() (stop func()) {
	stopTask := r.of.addTask(&task{do: r.run, queued: r.queued})
	return func() {
		stopTask()
		r.of.unsubscribe(r.sub)
	}
}

func (r *reconciler[T]) run(ctx context.Context) {
	var workers sync.WaitGroup
	stopWake := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wake.Broadcast()
	})
	defer stopWake()
	for range r.opts.Workers {
		workers.Go(func() { r.work(ctx) })
	}
	for {
		e, ok := r.of.next(ctx, r.sub)
		if !ok {
			break
		}
		if e.object() != nil {
			r.add(e)
		}
	}
	<-ctx.Done() // a closed subscription comes from stop, which has ended ctx
	workers.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queues {
		if q.pause != nil {
			r.endPause(q)
		}
	}
}

// add adds an event to its queue.
func (r *reconciler[T]) add(e entry[T]) {
	key := e.object().key()
	name := key
	if r.opts.QueueBy != nil {
		name = r.opts.QueueBy(e.event())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queues[name]
	if q == nil {
		q = &queue[T]{name: name, last: map[string]*item[T]{}}
		r.queues[name] = q
		r.makeReady(q)
	}
	it := q.last[key]
	if it == nil || r.opts.EveryEvent && !e.coalesced && len(q.items) <= maxQueueEvents && r.total <= maxTotalEvents {
		it = &item[T]{key: key, since: time.Now()}
		q.items = append(q.items, it)
		q.last[key] = it
		r.total++
	}
	if it.add(e); e.coalesced {
		it.n++ // so that the result is marked coalesced too
	}
	if it.isEmpty() {
		r.remove(q, it)
	}
}

// queued returns the number of events in all queues.
func (r *reconciler[T]) queued() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

func (r *reconciler[T]) makeReady(q *queue[T]) {
	r.ready = append(r.ready, q)
	r.wake.Signal()
}

// remove removes an item from its queue. A queue without items is removed by
// the next worker that takes it.
func (r *reconciler[T]) remove(q *queue[T], it *item[T]) {
	for n, other := range q.items {
		if other == it {
			q.items = append(q.items[:n], q.items[n+1:]...)
			r.total--
			break
		}
	}
	if q.last[it.key] == it {
		delete(q.last, it.key)
	}
}

func (r *reconciler[T]) work(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.ready) == 0 && ctx.Err() == nil {
			r.wake.Wait()
		}
		if ctx.Err() != nil {
			return
		}
		q := r.ready[0]
		r.ready[0] = nil
		r.ready = r.ready[1:]
		r.handleFirst(ctx, q)
		if len(q.items) == 0 {
			delete(r.queues, q.name)
		}
	}
}

// handleFirst calls the function for the first event of a queue. The lock is
// held, except during calls.
func (r *reconciler[T]) handleFirst(ctx context.Context, q *queue[T]) {
	if len(q.items) == 0 {
		return
	}
	it := q.items[0]
	if q.failures > 0 {
		r.mergeLater(q, it)
	}
	if it.started == nil {
		it.started = it.appendEntries(nil)
		delete(q.last, it.key)
	}
	event := it.started[0].event()
	since, began := it.since, time.Now()
	r.mu.Unlock()
	err := r.f(ctx, event)
	r.of.metrics.Reconciled(began.Sub(since), time.Since(began), err)
	r.mu.Lock()
	switch {
	case err != nil && ctx.Err() != nil: // interrupted: handled again in the next run
		r.makeReady(q)
		return
	case err != nil && (r.opts.MaxRetries == 0 || q.failures < r.opts.MaxRetries):
		q.failures++
		q.pause = time.AfterFunc(r.backoff(q.failures), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.endPause(q)
		})
		return
	case err != nil && r.opts.DeadLetter != nil:
		r.mu.Unlock()
		r.opts.DeadLetter(event, err)
		r.mu.Lock()
	}
	q.failures = 0
	if it.started = it.started[1:]; len(it.started) == 0 {
		r.remove(q, it)
	}
	if len(q.items) > 0 {
		r.makeReady(q)
	}
}

// mergeLater merges later events of the object into an item that failed, so
// that its retry has the latest state. A failed deletion is retried as it is.
func (r *reconciler[T]) mergeLater(q *queue[T], it *item[T]) {
	failed, later := it.started[0], q.last[it.key]
	if r.opts.EveryEvent || failed.typ == Deleted || later == nil {
		return
	}
	r.remove(q, later)
	later.known = failed.old
	later.n += it.n
	it.coalesced, it.started = later.coalesced, nil
}

// endPause makes a paused queue ready. It does nothing if the queue is not
// paused: the timer and the end of a run may race.
func (r *reconciler[T]) endPause(q *queue[T]) {
	if q.pause == nil {
		return
	}
	q.pause.Stop()
	q.pause = nil
	r.makeReady(q)
}

func (r *reconciler[T]) backoff(failures int) time.Duration {
	d := r.opts.MinBackoff
	for n := 1; n < failures && d < r.opts.MaxBackoff; n++ {
		d *= 2
	}
	d = min(d, r.opts.MaxBackoff)
	return d/2 + rand.N(d/2+1)
}
