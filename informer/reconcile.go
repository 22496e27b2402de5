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

// ReconcileOptions configure [Reconcile]. The zero value is a good one.
type ReconcileOptions[T any] struct {
	// Workers is how many callbacks run at a time. The default is 4.
	Workers int
	// QueueBy names the queue that an event goes to: always the same one for
	// an object. The default is a queue for each object.
	QueueBy func(Event[T]) string
	// EveryEvent has the callback called for each event. The default merges
	// what happens to an object while it waits for its turn: the latest state
	// counts. Even so events are merged where an informer's subscriber is
	// behind, or a queue has more than 128 of them, or all queues have more
	// than 10,000.
	EveryEvent bool
	// MaxRetries is how often an event that failed is tried again before it
	// goes to DeadLetter. The default, 0, is for ever.
	MaxRetries int
	// DeadLetter is told of an event that is given up, and why, before its
	// queue goes on.
	DeadLetter func(Event[T], error)
	// MinBackoff and MaxBackoff are the pauses before the first retry and the
	// longest one; they double in between, and half of each is random. The
	// defaults are 100 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration
}

const (
	queueBound = 128    // events of a queue, with EveryEvent
	totalBound = 10_000 // of all queues
)

// Reconcile has f called for what happens to objects whenever the informer
// runs, until stop is called: Added, Updated and Deleted events. Each event has
// a queue, in which one follows the other: f is never called for two events of
// a queue at a time, and an event for which it returns an error is tried again,
// while its queue waits and the others go on. An event is done with when f has
// returned nil for it, or DeadLetter was called; one that was under way when the
// informer stopped comes again when it runs again.
func Reconcile[T any](i *Informer[T], opts ReconcileOptions[T], f func(context.Context, Event[T]) error) (stop func()) {
	return newReconciler(i, opts, f).start()
}

func newReconciler[T any](i *Informer[T], opts ReconcileOptions[T], f func(context.Context, Event[T]) error) *reconciler[T] {
	opts.Workers = cmp.Or(max(opts.Workers, 0), 4)
	opts.MinBackoff = cmp.Or(max(opts.MinBackoff, 0), 100*time.Millisecond)
	opts.MaxBackoff = max(cmp.Or(max(opts.MaxBackoff, 0), 30*time.Second), opts.MinBackoff)
	r := &reconciler[T]{of: i, opts: opts, f: f, sub: i.subscribe(allRuns), queues: map[string]*queue[T]{}}
	r.some.L = &r.mu
	return r
}

type reconciler[T any] struct {
	of   *Informer[T]
	opts ReconcileOptions[T]
	f    func(context.Context, Event[T]) error
	sub  *subscription[T]

	mu     sync.Mutex // guards all below
	some   sync.Cond  // there is a ready queue, or the run is over
	queues map[string]*queue[T]
	ready  []*queue[T] // queues whose turn it is
	total  int         // items
}

// A queue is what is to be done one after the other. It is there while there is
// something to do.
type queue[T any] struct {
	name     string
	items    []*item[T]          // the first one is under way, or the next
	last     map[string]*item[T] // of each object, if its turn has not begun
	failures int                 // of the first item, in a row
	pause    *time.Timer         // before the first item is tried again
}

// An item is what there is to tell of an object.
type item[T any] struct {
	key string
	pending[T]
	begun []entry[T] // what is left to tell, once its turn has begun
	since time.Time  // when the first of it came
}

func (r *reconciler[T]) start() (stop func()) {
	end := r.of.addTask(&task{do: r.run, queued: r.queued})
	return func() {
		end()
		r.of.unsubscribe(r.sub)
	}
}

func (r *reconciler[T]) run(ctx context.Context) {
	var all sync.WaitGroup
	wake := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.some.Broadcast()
	})
	defer wake()
	for range r.opts.Workers {
		all.Go(func() { r.work(ctx) })
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
	<-ctx.Done() // the subscription ends with stop, which ends ctx
	all.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queues {
		if q.pause != nil {
			r.resume(q)
		}
	}
}

// add enters an event into its queue.
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
		r.turn(q)
	}
	it := q.last[key]
	if it == nil || r.opts.EveryEvent && !e.coalesced && len(q.items) <= queueBound && r.total <= totalBound {
		it = &item[T]{key: key, since: time.Now()}
		q.items = append(q.items, it)
		q.last[key] = it
		r.total++
	}
	if it.add(e); e.coalesced {
		it.n++ // it stands for more than itself
	}
	if it.empty() {
		r.remove(q, it)
	}
}

// queued returns how many events all queues have.
func (r *reconciler[T]) queued() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// turn makes a queue ready.
func (r *reconciler[T]) turn(q *queue[T]) {
	r.ready = append(r.ready, q)
	r.some.Signal()
}

// remove takes an item out of its queue. A queue with nothing in it is removed
// when its turn comes, or has been.
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
			r.some.Wait()
		}
		if ctx.Err() != nil {
			return
		}
		q := r.ready[0]
		r.ready[0] = nil
		r.ready = r.ready[1:]
		r.tell(ctx, q)
		if len(q.items) == 0 {
			delete(r.queues, q.name)
		}
	}
}

// tell calls the callback for the first event of a queue.
func (r *reconciler[T]) tell(ctx context.Context, q *queue[T]) {
	if len(q.items) == 0 {
		return
	}
	it := q.items[0]
	if q.failures > 0 {
		r.merge(q, it)
	}
	if it.begun == nil {
		it.begun = it.entries(nil)
		delete(q.last, it.key)
	}
	event := it.begun[0].event()
	since, began := it.since, time.Now()
	r.mu.Unlock()
	err := r.f(ctx, event)
	r.of.metrics.Reconciled(began.Sub(since), time.Since(began), err)
	r.mu.Lock()
	switch {
	case err != nil && ctx.Err() != nil: // it was interrupted
		r.turn(q)
		return
	case err != nil && (r.opts.MaxRetries == 0 || q.failures < r.opts.MaxRetries):
		q.failures++
		q.pause = time.AfterFunc(r.backoff(q.failures), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.resume(q)
		})
		return
	case err != nil && r.opts.DeadLetter != nil:
		r.mu.Unlock()
		r.opts.DeadLetter(event, err)
		r.mu.Lock()
	}
	q.failures = 0
	if it.begun = it.begun[1:]; len(it.begun) == 0 {
		r.remove(q, it)
	}
	if len(q.items) > 0 {
		r.turn(q)
	}
}

// merge has what happened to the object since be told with what failed, unless
// that was a deletion.
func (r *reconciler[T]) merge(q *queue[T], it *item[T]) {
	failed, later := it.begun[0], q.last[it.key]
	if r.opts.EveryEvent || failed.typ == Deleted || later == nil {
		return
	}
	r.remove(q, later)
	later.known = failed.old
	later.n += it.n
	it.pending, it.begun = later.pending, nil
}

// resume ends a pause.
func (r *reconciler[T]) resume(q *queue[T]) {
	if q.pause == nil {
		return
	}
	q.pause.Stop()
	q.pause = nil
	r.turn(q)
}

func (r *reconciler[T]) backoff(failures int) time.Duration {
	d := r.opts.MinBackoff
	for n := 1; n < failures && d < r.opts.MaxBackoff; n++ {
		d *= 2
	}
	d = min(d, r.opts.MaxBackoff)
	return d/2 + rand.N(d/2+1)
}
