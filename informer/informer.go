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

// Options configure an informer. The zero value is a good one.
type Options struct {
	// Namespaces are those to watch, by a list+watch each. None means all, by
	// one list+watch.
	Namespaces []string
	// LabelSelector and FieldSelector select objects, as in kubectl's
	// --selector and --field-selector. An object that no longer matches is
	// Deleted.
	LabelSelector, FieldSelector string
	// KeepManagedFields keeps metadata.managedFields, which often are a third
	// of an object.
	KeepManagedFields bool
	// Decoded decodes each object as it comes and keeps it with its bytes: for
	// objects that are read over and over. The default decodes on demand.
	Decoded bool
	// Compression keeps the bytes of objects compressed. The default, nil,
	// keeps them as they are.
	Compression Compression
	// Backlog is how many events a subscriber may be behind before its events
	// are coalesced. The default is 1024.
	Backlog int
	// Logger gets a line per notable thing. The default discards.
	Logger *slog.Logger
	// Metrics is called once, by [New], for what is to be told of the
	// informer's work; status tells its Status, at any time. So the same
	// options do for several informers. The default is that nobody is told.
	Metrics func(res Resource, status func() Status) Metrics
}

// An Informer keeps a copy of a collection and tells subscribers what changes
// in it. Make it with [New]; its methods may be called by any goroutine, before,
// while and after it runs.
type Informer[T any] struct {
	src     *Source
	res     Resource
	opts    Options
	metrics Metrics
	how     *reading[T]

	scopes sync.Mutex // held while namespaces are added and removed

	mu      sync.RWMutex // guards all below
	shards  map[string]*shard[T]
	hub     hub[T]
	indexes []indexer[T]
	tasks   map[*task]bool
	run     *running      // nil while it does not run
	synced  bool          // Synced has been published
	failed  int           // failures in a row, without a list in between
	lastErr error         // the last of them, or what Run returned last
	runs    int           // that have begun
	ended   bool          // the last one has returned
	changed chan struct{} // closed when something of the state has; nil if nobody waits
}

// running is one call of Run.
type running struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	all    sync.WaitGroup
	over   bool // nothing is to be started any more; guarded by the informer's lock
}

// A task is something that runs while the informer does.
type task struct {
	do     func(ctx context.Context)
	queued func() int         // what waits in it; nil if nothing ever does
	cancel context.CancelFunc // of the current run; nil if there is none
}

// New returns an informer of a collection. Nothing happens before it runs.
func New[T any](src *Source, res Resource, codec Codec[T], opts Options) *Informer[T] {
	opts.Backlog = cmp.Or(max(opts.Backlog, 0), 1024)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	i := &Informer[T]{
		src: src, res: res, opts: opts, metrics: noMetrics{}, how: &reading[T]{codec, opts.Compression},
		shards: map[string]*shard[T]{}, tasks: map[*task]bool{},
		hub: hub[T]{bound: opts.Backlog, subs: map[*subscription[T]]bool{}},
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

// Run keeps the copy up to date until ctx ends, and then returns nil; or until
// the API server refuses the collection, in any of the namespaces: a
// [*RefusedError]. When it returns, all goroutines that it started have ended.
// What the informer holds stays, and it may be run again.
func (i *Informer[T]) Run(ctx context.Context) error {
	i.mu.Lock()
	if i.run != nil {
		i.mu.Unlock()
		return ErrRunning
	}
	r := &running{}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	i.run, i.ended, i.failed, i.lastErr = r, false, 0, nil
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
	r.over = true
	i.mu.Unlock()
	r.all.Wait()
	err := context.Cause(r.ctx)
	if _, refused := errors.AsType[*RefusedError](err); !refused {
		err = nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.run, i.ended, i.lastErr = nil, true, cmp.Or(err, i.lastErr)
	for t := range i.tasks {
		t.cancel = nil
	}
	for s := range i.hub.subs {
		s.notify()
	}
	i.changeLocked()
	return err
}

// startLocked starts a task in the current run.
func (i *Informer[T]) startLocked(t *task) {
	r := i.run
	if r == nil || r.over {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	t.cancel = cancel
	r.all.Go(func() {
		defer cancel()
		t.do(ctx)
	})
}

// addTask has something run whenever the informer runs, until stop is called.
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

// watchLocked starts the reflector of a shard in the current run.
func (i *Informer[T]) watchLocked(s *shard[T]) {
	r := i.run
	if r == nil || r.over {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	s.reflector = newReflector(ReflectorOptions{
		Transport: i.src.transport,
		URL:       i.src.url(i.res, s.namespace, &i.opts),
		Logger:    i.opts.Logger.With("resource", i.res.Name, "namespace", s.namespace),
		Watchdog:  true,
		failed:    i.fail,
		metrics:   i.metrics,
	}, itemForm{i.how.codec.Protobuf()}, s)
	done := make(chan struct{})
	s.stop = func() {
		cancel()
		<-done
	}
	r.all.Go(func() {
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

// fail tells of a failure.
func (i *Informer[T]) fail(err error) {
	i.metrics.Failed(err)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failed++
	i.lastErr = err
	i.hub.publish(entry[T]{err: err})
	i.changeLocked()
}

// changeLocked wakes those who wait for a change of the state.
func (i *Informer[T]) changeLocked() {
	if i.changed != nil {
		close(i.changed)
		i.changed = nil
	}
}

// wait waits until done, which is called with the lock held, returns true.
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

// patience is how many failures in a row WaitSynced bears.
const patience = 3

// WaitSynced waits until there has been a list, of every namespace. It does not
// wait for what will not come: its error wraps [ErrNotSynced] and the reason,
// which is the refusal of the API server at once, or its failure to answer three
// times in a row, or, if ctx ends before, that of ctx and of the last failure.
// Run goes on trying after failures, so WaitSynced may be called again.
func (i *Informer[T]) WaitSynced(ctx context.Context) error {
	var last error
	err := i.wait(ctx, func() (bool, error) {
		last = i.lastErr
		switch {
		case i.syncedLocked():
			return true, nil
		case i.ended:
			return false, cmp.Or(i.lastErr, errors.New("the informer has stopped"))
		case i.failed >= patience:
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

// WaitRV waits until the copy is at rv or beyond it: then it shows what the
// write that was answered with that resourceVersion has done. With several
// namespaces watched, give the one that was written to: without it, all of them
// are to get there, which for a quiet one takes until its next bookmark, a
// minute or so.
func (i *Informer[T]) WaitRV(ctx context.Context, rv string, namespaces ...string) error {
	want, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return fmt.Errorf("resourceVersion %q is not a number", rv)
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
