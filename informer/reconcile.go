// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/attempt"
)

// ReconcileOptions configure [Reconcile]. The zero value has a queue per object
// and retries forever.
type ReconcileOptions[T any] struct {
	// Workers is how many calls of the function run at a time. The default is
	// 4.
	Workers int
	// QueueBy names the queue of an event. It must return the same name for all events
	// of an object, such as a hash of its key or its namespace, but not a label, which
	// may change. An event with another name than those of its object that are pending
	// follows them in their queue, and the first one is logged as an error. If it panics,
	// the program ends, and if it calls runtime.Goexit, the handling in this run. The
	// default, nil, gives each object a queue.
	QueueBy func(Event[T]) string
	// EveryEvent calls the function for each event. The default merges the
	// events of an object that wait in its queue, so that the function sees
	// the latest state. With EveryEvent, events are still merged when the
	// informer coalesces them ([Options].Backlog), when their queue has more
	// than 128 events, or all queues together have more than 10,000.
	EveryEvent bool
	// BeforeSynced calls the function as soon as there are events. The default
	// waits until the copy is complete (see [Informer.WaitSynced]), so that the
	// function finds the objects that belong together.
	BeforeSynced bool
	// MaxRetries is how often a failed event is retried before it goes to
	// DeadLetter. The default, 0, retries forever; a negative number does not retry.
	MaxRetries int
	// DeadLetter receives an event whose retries are exhausted, and its last
	// error, before its queue continues. It may be nil.
	DeadLetter func(Event[T], error)
	// MinBackoff and MaxBackoff are the pauses before the first retry and the
	// longest one. Pauses double in between, and half of each is random. The
	// defaults are 100 ms and 30 s. A new event of the object ends the pause, but
	// not before MinBackoff has passed, and the pauses begin again at MinBackoff.
	// With EveryEvent it does not: the failed event comes first.
	MinBackoff, MaxBackoff time.Duration
	// Panics lets a panic of the function or of DeadLetter end the program. By
	// default it is a failure like others, a [*PanicError].
	Panics bool
}

const (
	// Limits of EveryEvent.
	maxQueueEvents = 128
	maxTotalEvents = 10_000
)

// Reconcile calls f for each Added, Updated and Deleted event while the informer
// runs, until stop is called. Events of one queue are handled one after the
// other. If f returns an error, the event is retried, and its queue waits for
// it; other queues continue. Failures go to the informer's Logger. An event is done
// when f has returned nil or DeadLetter has returned. An event that is being handled
// when the informer stops is handled again in the next run. A call of runtime.Goexit
// in f is a failure. Reconcile panics if i or f is nil.
//
// stop ends the contexts of the calls and does not wait, so that f may call it. done
// is closed when the last call of f or DeadLetter has returned: at once if the informer
// does not run. After "<-stop()", another Reconcile cannot overlap this one; within a
// call of f it would wait forever. stop may be called again, and returns the same channel.
func Reconcile[T any](i *Informer[T], opts ReconcileOptions[T], f func(context.Context, Event[T]) error) (stop func() (done <-chan struct{})) {
	if i == nil || f == nil {
		panic("informer: Reconcile needs an informer and a function")
	}
	return newReconciler(i, opts, f).start()
}

func newReconciler[T any](i *Informer[T], opts ReconcileOptions[T], f func(context.Context, Event[T]) error) *reconciler[T] {
	opts.Workers, opts.MinBackoff, opts.MaxBackoff = attempt.Limits(opts.Workers, opts.MinBackoff, opts.MaxBackoff)
	r := &reconciler[T]{of: i, opts: opts, f: f, sub: i.subscribe(allRuns), queues: map[string]*queue[T]{}}
	r.wake.L = &r.mu
	if opts.QueueBy != nil {
		r.pending = map[string]*pending[T]{}
	}
	return r
}

type reconciler[T any] struct {
	of   *Informer[T]
	opts ReconcileOptions[T]
	f    func(context.Context, Event[T]) error
	sub  *subscription[T]

	mu       sync.Mutex // guards all below
	wake     sync.Cond  // there is a ready queue, or the run ends
	queues   map[string]*queue[T]
	pending  map[string]*pending[T] // by object, where its items are; nil without QueueBy
	ready    []*queue[T]            // in the order in which workers take them
	total    int                    // items in all queues
	misnamed bool                   // an event with another queue than its object was logged
}

func (r *reconciler[T]) start() (stop func() (done <-chan struct{})) {
	stopTask := r.of.addTask(&task{do: r.run, queued: r.queued})
	return func() <-chan struct{} {
		defer r.of.unsubscribe(r.sub)
		return stopTask()
	}
}

func (r *reconciler[T]) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	stopWake := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wake.Broadcast()
	})
	defer stopWake()
	defer func() { // also if QueueBy ends this goroutine
		cancel()
		workers.Wait()
		r.endPauses()
	}()
	workers.Go(func() {
		synced := func() (bool, error) { return r.of.syncedLocked(), nil }
		if !r.opts.BeforeSynced && r.of.wait(ctx, synced) != nil {
			return
		}
		for range r.opts.Workers {
			workers.Go(func() { r.work(ctx, &workers) })
		}
	})
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
}

// endPauses makes all queues ready for the next run.
func (r *reconciler[T]) endPauses() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queues {
		if q.pause != nil {
			r.endPause(q)
		}
	}
}

// queued returns the number of events in all queues.
func (r *reconciler[T]) queued() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// work handles events until ctx ends. If the function ends the goroutine, another one goes
// on.
func (r *reconciler[T]) work(ctx context.Context, workers *sync.WaitGroup) {
	ended := false
	defer func() {
		if !ended {
			workers.Go(func() { r.work(ctx, workers) })
		}
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.ready) == 0 && ctx.Err() == nil {
			r.wake.Wait()
		}
		if ctx.Err() != nil {
			ended = true
			return
		}
		q := r.ready[0]
		r.ready[0] = nil
		r.ready = r.ready[1:]
		r.handleFirst(ctx, q)
	}
}

// handleFirst calls the function for the first event of a queue. The lock is
// held, except during calls.
func (r *reconciler[T]) handleFirst(ctx context.Context, q *queue[T]) {
	// Deferred as below: the function, and DeadLetter, may end this goroutine.
	defer func() {
		if len(q.items) == 0 {
			delete(r.queues, q.name)
		}
	}()
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
	err := attempt.ErrGoexit // unless the function returns
	defer func() { r.handled(ctx, q, it, event, err) }()
	since, began := it.since, time.Now()
	err = r.unlocked(func() error {
		err := attempt.ErrGoexit
		defer func() { r.of.metrics.Reconciled(began.Sub(since), time.Since(began), err) }()
		err = r.call(func() error { return r.f(ctx, event) })
		return err
	})
}

// unlocked calls f without the lock, which is held before and afterwards.
func (r *reconciler[T]) unlocked(f func() error) error {
	r.mu.Unlock()
	defer r.mu.Lock()
	return f()
}

// call calls a function of the program, and returns its panic as an error.
func (r *reconciler[T]) call(f func() error) error {
	if r.opts.Panics {
		return f()
	}
	return attempt.Recover(f, func(value any, stack []byte) error { return &PanicError{value, stack} })
}

// handled takes the result of the function for the first event of a queue. The lock is
// held, except during calls of DeadLetter and the Logger.
func (r *reconciler[T]) handled(ctx context.Context, q *queue[T], it *item[T], event Event[T], err error) {
	switch {
	case err != nil && ctx.Err() != nil: // interrupted: handled again in the next run
		r.makeReady(q)
		return
	case err != nil && (r.opts.MaxRetries == 0 || q.failures < r.opts.MaxRetries):
		q.failures++
		pause := attempt.Backoff(q.failures, r.opts.MinBackoff, r.opts.MaxBackoff)
		r.failed(slog.LevelWarn, "reconciling failed", event, err, "attempt", q.failures, "retry_in", pause.Round(time.Millisecond))
		q.soonest, q.retry = time.Now().Add(r.opts.MinBackoff), time.Now().Add(pause)
		q.pause = time.AfterFunc(pause, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.endPause(q)
		})
		if q.last[it.key] != nil { // a new event has come during the call
			r.hasten(q)
		}
		return
	}
	defer r.done(q, it) // also if DeadLetter ends this goroutine
	if err != nil {
		r.failed(slog.LevelError, "reconciling failed for the last time", event, err, "attempt", q.failures+1)
		if r.opts.DeadLetter != nil {
			r.giveUp(event, err)
		}
	}
}

// done makes the queue continue after its first event.
func (r *reconciler[T]) done(q *queue[T], it *item[T]) {
	q.failures = 0
	if it.started = it.started[1:]; len(it.started) == 0 {
		r.remove(q, it)
	}
	if len(q.items) > 0 {
		r.makeReady(q)
	}
}

// giveUp calls DeadLetter. The lock is held, except during the call.
func (r *reconciler[T]) giveUp(event Event[T], err error) {
	err = r.unlocked(func() error {
		return r.call(func() error {
			r.opts.DeadLetter(event, err)
			return nil
		})
	})
	if err != nil {
		r.failed(slog.LevelError, "DeadLetter failed", event, err)
	}
}

// logMisnamed logs that QueueBy has named another queue than that in which an object is.
// The lock is held, except during the call of the Logger.
func (r *reconciler[T]) logMisnamed(key Key, queue, other string) {
	_ = r.unlocked(func() error {
		r.of.opts.Logger.Error("QueueBy names another queue for an object with pending events, which keeps its queue",
			"resource", r.of.res.Name, "key", key, "queue", queue, "other", other)
		return nil
	})
}

// failed logs a failure. The lock is held, except during the call of the Logger.
func (r *reconciler[T]) failed(level slog.Level, what string, event Event[T], err error, more ...any) {
	more = append([]any{"resource", r.of.res.Name, "key", event.Key, "event", event.Type}, more...)
	if p, ok := errors.AsType[*PanicError](err); ok {
		more = append(more, "stack", string(p.Stack))
	}
	_ = r.unlocked(func() error {
		r.of.opts.Logger.Log(context.Background(), level, what, append(more, "err", err)...)
		return nil
	})
}
