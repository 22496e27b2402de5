// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
)

// Options configure an informer. The zero value watches all namespaces and
// decodes on demand.
type Options struct {
	// Namespaces are watched by one list+watch each. The default, none,
	// watches all namespaces by one list+watch.
	Namespaces []string
	// LabelSelector and FieldSelector select objects, as kubectl's --selector
	// and --field-selector do. An object that no longer matches is Deleted.
	LabelSelector, FieldSelector string
	// KeepManagedFields keeps metadata.managedFields, often a third of an
	// object. The default removes it.
	KeepManagedFields bool
	// Decoded decodes each object when it arrives and keeps the result beside
	// the bytes, for programs that read most objects often. The default
	// decodes on demand.
	Decoded bool
	// Compression compresses the bytes of objects. The default, nil, keeps
	// them as they are.
	Compression Compression
	// Backlog is the number of events by which a subscriber may lag before its
	// events are coalesced. The default is 1024.
	Backlog int
	// Logger gets relists and failures. The default discards them.
	Logger *slog.Logger
	// Metrics is called once, by [New], and returns the Metrics of the informer,
	// or nil for none. status returns the informer's Status. The same Options can
	// serve several informers. The default, nil, reports nothing.
	Metrics func(res Resource, status func() Status) Metrics
}

const defaultBacklog = 1024

// An Informer keeps a copy of a collection and reports its changes to
// subscribers. Make it with [New]. Any goroutine may call its methods before,
// while and after it runs.
//
// Lock order: namespacesMu, mu, then the lock of a reflector, a watchdog or a
// reconciler. No lock is held while a handler, a reconcile function or Metrics
// are called; mu may be held while the function of an index is.
type Informer[T any] struct {
	src     *Source
	res     Resource
	opts    Options
	metrics Metrics
	format  *format[T]

	namespacesMu sync.Mutex // serializes AddNamespace and RemoveNamespace

	mu       sync.RWMutex // guards all below
	shards   map[string]*shard[T]
	events   eventLog[T]
	indexes  []indexer[T]
	tasks    map[*task]bool
	run      *activeRun    // nil unless it runs
	synced   bool          // Synced has been published
	failures int           // in a row, without a list in between
	lastErr  error         // the last failure, or what Run returned last
	runs     int           // calls of Run so far
	changed  chan struct{} // closed at the next change of the state; nil without a waiter
}

// An activeRun is one call of Run.
type activeRun struct {
	ctx        context.Context
	cancel     context.CancelCauseFunc
	goroutines sync.WaitGroup
	stopping   bool // no goroutine may start; guarded by the informer's lock
}

// A task is a function that runs while the informer does.
type task struct {
	do     func(ctx context.Context)
	queued func() int         // events waiting in it; nil if there is no queue
	cancel context.CancelFunc // ends it in the current run; nil if there is none
}

// New returns an informer of a collection. It sends no request and starts no
// goroutine before Run.
func New[T any](src *Source, res Resource, codec Codec[T], opts Options) *Informer[T] {
	opts.Backlog = cmp.Or(max(opts.Backlog, 0), defaultBacklog)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	i := &Informer[T]{
		src: src, res: res, opts: opts, metrics: noMetrics{}, format: &format[T]{codec, opts.Compression},
		shards: map[string]*shard[T]{}, tasks: map[*task]bool{},
		events: eventLog[T]{maxEntries: opts.Backlog, subs: map[*subscription[T]]bool{}},
	}
	if len(opts.Namespaces) == 0 {
		i.shards[""] = newShard(i, "")
	}
	for _, ns := range opts.Namespaces {
		i.shards[ns] = newShard(i, ns)
	}
	if opts.Metrics != nil {
		if m := opts.Metrics(res, i.Status); m != nil {
			i.metrics = m
		}
	}
	return i
}

// Run keeps the copy up to date until ctx ends, and then returns nil. If the API
// server refuses the collection in any of the namespaces, Run returns a
// [*RefusedError]. It does so at once if there was no list yet or the answer is
// 404; other refusals are retried for half a minute, other failures without
// limit. If the informer is already running, Run returns [ErrRunning].
//
// When Run returns, every goroutine that it started has ended. The copy is
// kept, and Run may be called again.
func (i *Informer[T]) Run(ctx context.Context) error {
	i.mu.Lock()
	if i.run != nil {
		i.mu.Unlock()
		return ErrRunning
	}
	r := &activeRun{}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	i.run, i.failures, i.lastErr = r, 0, nil
	i.runs++
	for t := range i.tasks {
		i.startLocked(t)
	}
	for _, s := range i.shards {
		i.watchLocked(s)
	}
	i.mu.Unlock()

	<-r.ctx.Done()
	i.mu.Lock()
	r.stopping = true
	i.mu.Unlock()
	r.goroutines.Wait()
	err := context.Cause(r.ctx)
	if _, refused := errors.AsType[*RefusedError](err); !refused {
		err = nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.run, i.lastErr = nil, cmp.Or(err, i.lastErr)
	for t := range i.tasks {
		t.cancel = nil
	}
	for s := range i.events.subs {
		s.signal()
	}
	i.changeLocked()
	return err
}

// endedLocked reports whether the last call of Run has returned.
func (i *Informer[T]) endedLocked() bool { return i.run == nil && i.runs > 0 }

// startLocked starts a task in the current run, if there is one.
func (i *Informer[T]) startLocked(t *task) {
	r := i.run
	if r == nil || r.stopping {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	t.cancel = cancel
	r.goroutines.Go(func() {
		defer cancel()
		t.do(ctx)
	})
}

// addTask adds a task to the current run and all later ones, until stop is
// called. stop does not wait for the task.
func (i *Informer[T]) addTask(t *task) (stop func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tasks[t] = true
	i.startLocked(t)
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.tasks, t)
		if t.cancel != nil {
			t.cancel()
		}
	}
}

// watchLocked starts the reflector of a shard in the current run, if there is
// one.
func (i *Informer[T]) watchLocked(s *shard[T]) {
	r := i.run
	if r == nil || r.stopping {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	s.reflector = newReflector(ReflectorOptions{
		Transport: i.src.transport,
		URL:       i.src.url(i.res, s.namespace, &i.opts),
		Logger:    i.opts.Logger.With("resource", i.res.Name, "namespace", s.namespace),
		Watchdog:  true,
		onFailure: i.fail,
		metrics:   i.metrics,
	}, itemEncoding{i.format.codec.Protobuf()}, s)
	done := make(chan struct{})
	s.stop = func() {
		cancel()
		<-done
	}
	r.goroutines.Go(func() {
		defer close(done)
		defer cancel()
		if err := s.reflector.Run(ctx); err != nil {
			if s.namespace != "" {
				err = fmt.Errorf("namespace %s: %w", s.namespace, err)
			}
			r.cancel(err)
		}
	})
}

// fail reports a failure of a reflector.
func (i *Informer[T]) fail(err error) {
	i.metrics.Failed(err)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failures++
	i.lastErr = err
	i.events.publish(entry[T]{err: err})
	i.changeLocked()
}

// changeLocked wakes the callers of wait.
func (i *Informer[T]) changeLocked() {
	if i.changed != nil {
		close(i.changed)
		i.changed = nil
	}
}

// wait waits until done returns true or an error. done is called with the lock
// held, at each change of the state.
func (i *Informer[T]) wait(ctx context.Context, done func() (bool, error)) error {
	for {
		i.mu.Lock()
		ok, err := done()
		if i.changed == nil {
			i.changed = make(chan struct{})
		}
		changed := i.changed
		i.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// maxFailures is how many failures in a row end WaitSynced.
const maxFailures = 3

// WaitSynced waits for the first complete list of every namespace. Its error
// wraps [ErrNotSynced] and the reason: the API server's refusal, at once; the
// last of three failures in a row; or the end of ctx, with the last failure if
// there was one. Run continues after failures, so WaitSynced may be called again.
func (i *Informer[T]) WaitSynced(ctx context.Context) error {
	var last error
	err := i.wait(ctx, func() (bool, error) {
		last = i.lastErr
		switch {
		case i.syncedLocked():
			return true, nil
		case i.endedLocked():
			return false, cmp.Or(i.lastErr, errors.New("informer has stopped"))
		case i.failures >= maxFailures:
			return false, i.lastErr
		}
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil && !errors.Is(err, last):
		return fmt.Errorf("%w: %w: %w", ErrNotSynced, err, last)
	}
	return fmt.Errorf("%w: %w", ErrNotSynced, err)
}

func (i *Informer[T]) syncedLocked() bool {
	for _, s := range i.shards {
		if !s.synced {
			return false
		}
	}
	return true
}

// WaitRV waits until the copy has reached rv, the resourceVersion in the
// response to a write: from then on it shows the effect of that write. If the
// informer watches several namespaces, pass the one that was written to.
// Otherwise WaitRV waits for all of them, and a quiet namespace advances only
// with its next bookmark, about once a minute. It fails if rv is not a number
// or ctx ends.
func (i *Informer[T]) WaitRV(ctx context.Context, rv string, namespaces ...string) error {
	want, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return fmt.Errorf("wait: resourceVersion %q is not a number", rv)
	}
	return i.wait(ctx, func() (bool, error) {
		for ns, s := range i.shards {
			if s.head < want && (ns == "" || len(namespaces) == 0 || slices.Contains(namespaces, ns)) {
				return false, nil
			}
		}
		return true, nil
	})
}
