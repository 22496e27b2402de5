// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/attempt"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
)

// Options configure an informer. The zero value watches all namespaces and
// decodes on demand.
type Options struct {
	// Namespaces are watched by one list+watch each. The default, none, watches all
	// namespaces by one list+watch, as does "" among them.
	Namespaces []string
	// LabelSelector and FieldSelector select objects, as kubectl's --selector
	// and --field-selector do. An object that no longer matches is Deleted.
	LabelSelector, FieldSelector string
	// MetadataOnly requests nothing but the metadata of objects: the Codec receives a
	// PartialObjectMetadata of meta.k8s.io/v1.
	MetadataOnly bool
	// JSON requests JSON even if the Codec takes protobuf, for API servers that have no
	// protobuf, as that of package informertest. The Codec has to decode both, as those
	// of package typed do.
	JSON bool
	// KeepManagedFields keeps metadata.managedFields, often a third of an
	// object. The default removes it.
	KeepManagedFields bool
	// Decoded decodes each object when it arrives and keeps the result next to
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
	// DetectMutation is for tests. It panics if the program has modified what
	// [Ref.Object] or [Ref.Raw] returned, which is shared: objects have to be copied
	// first (DeepCopy). Once a second while the informer runs, and when the run ends, it
	// compares each object that was read in the last two minutes with another decoding
	// of its bytes, by reflect.DeepEqual; until then both are in memory. The Codec has to
	// decode the same bytes to equal objects: without NaN, functions, or fields that
	// methods of the object set.
	DetectMutation bool
	// Metrics is called once, by [New], and returns the Metrics of the informer. status
	// returns the informer's Status. The same Options can serve several informers, of
	// one collection too. The default, nil, reports nothing.
	Metrics func(of Collection, status func() Status) Metrics
}

const defaultBacklog = 1024

// An Informer keeps a copy of a collection and reports its changes to
// subscribers. Make it with [New]. Any goroutine may call its methods before,
// while and after it runs.
//
// Lock order: namespacesMu, mu, then the lock of a reflector, a watchdog, a reconciler or a
// mutationDetector. No lock is held while a handler, a reconcile function or Metrics are
// called; mu may be held while the function of an index is.
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
	run      *activeRun    // the last one; nil before the first
	runs     int           // how many there were
	refusals int           // of runs, in a row, without a list in between
	synced   bool          // Synced has been published
	changed  chan struct{} // closed at the next change of the state; nil without a waiter
}

// An activeRun is one call of Run or Start. The informer's lock guards stopping and err,
// until it has ended.
type activeRun struct {
	ctx        context.Context
	cancel     context.CancelCauseFunc
	began      time.Time
	notBefore  time.Time // of its first request
	refusal    error     // of the run before, because of which it waits
	goroutines sync.WaitGroup
	stopping   bool          // no goroutine may start
	err        error         // the refusal that ended it; nil if its context did
	ended      chan struct{} // closed when it has ended
}

// isActive reports whether the run has begun and not ended.
func (r *activeRun) isActive() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// A task is a function that runs while the informer does.
type task struct {
	do     func(ctx context.Context)
	queued func() int         // events waiting in it; nil if there is no queue
	cancel context.CancelFunc // ends it in the current run; nil if it does not run
	done   chan struct{}      // closed when it is no longer in tasks and does not run
}

// New returns an informer of a collection. It sends no request and starts no
// goroutine before Run. It panics without a source, a resource or a codec, and if a name
// cannot be part of a URL's path, as "..".
func New[T any](src *Source, res Resource, codec Codec[T], opts Options) *Informer[T] {
	switch {
	case src == nil:
		panic("informer: New needs a Source")
	case res.Version == "" || res.Name == "" || !isSegment(res.Group) || !isSegment(res.Version) || !isSegment(res.Name):
		panic(fmt.Sprintf("informer: New needs a Resource with version and name, not %+v", res))
	case codec == nil:
		panic("informer: New needs a Codec, such as that of JSON, Raw or package typed")
	}
	opts.Backlog = cmp.Or(max(opts.Backlog, 0), defaultBacklog)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	i := &Informer[T]{
		src: src, res: res, opts: opts, format: &format[T]{codec: codec, protobuf: codec.Protobuf() && !opts.JSON, compression: opts.Compression},
		shards: map[string]*shard[T]{}, tasks: map[*task]bool{},
		events: eventLog[T]{maxEntries: opts.Backlog, subs: map[*subscription[T]]bool{}},
	}
	if opts.DetectMutation {
		i.format.mutations = newMutationDetector[T](res)
	}
	if len(opts.Namespaces) == 0 || slices.Contains(opts.Namespaces, "") {
		opts.Namespaces = nil
		i.shards[""] = newShard(i, "")
	}
	for _, ns := range opts.Namespaces {
		if !isSegment(ns) {
			panic(fmt.Sprintf("informer: New: a namespace cannot have the name %q", ns))
		}
		i.shards[ns] = newShard(i, ns)
	}
	var metrics Metrics
	if opts.Metrics != nil {
		metrics = opts.Metrics(Collection{res, slices.Compact(slices.Sorted(slices.Values(opts.Namespaces))), opts.LabelSelector, opts.FieldSelector}, i.Status)
	}
	i.metrics = metrics.complete()
	return i
}

// Resource returns the resource that the informer watches.
func (i *Informer[T]) Resource() Resource { return i.res }

// Run keeps the copy up to date until ctx ends, and then returns nil. If the API
// server refuses the collection, Run returns an error that wraps a [*RefusedError]. It
// does so at once if there was no list yet or the answer is 404; other refusals are
// retried for half a minute, other failures without limit. A refusal in a namespace
// that [Informer.AddNamespace] has added does not end Run. If the informer is already
// running, Run returns [ErrRunning].
//
// When Run returns, every goroutine that it started has ended. The copy is
// kept, and Run may be called again. After a refusal it waits up to 8 s before its
// first request.
func (i *Informer[T]) Run(ctx context.Context) error {
	r, err := i.begin(ctx)
	if err != nil {
		return err
	}
	i.end(r)
	return r.err
}

// Start begins to do what [Informer.Run] does, and returns. From then on every wait
// is for the new run: after "go i.Run(ctx)" it may still be for the one before. If
// the informer is already running, Start returns [ErrRunning].
func (i *Informer[T]) Start(ctx context.Context) error {
	r, err := i.begin(ctx)
	if err != nil {
		return err
	}
	go i.end(r)
	return nil
}

// Wait waits until the informer has stopped running, and returns what Run returns.
// If it was never started, Wait returns [ErrStopped]. Within a call of a handler or a
// reconcile function it would wait forever.
func (i *Informer[T]) Wait() error {
	i.mu.RLock()
	r := i.run
	i.mu.RUnlock()
	if r == nil {
		return ErrStopped
	}
	<-r.ended
	return r.err
}

func (i *Informer[T]) begin(ctx context.Context) (*activeRun, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.run.isActive() {
		return nil, ErrRunning
	}
	r := &activeRun{began: time.Now(), ended: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if i.run != nil && i.run.err != nil {
		i.refusals++
		r.refusal = i.run.err
		r.notBefore = r.began.Add(attempt.Backoff(i.refusals, reflector.MinBackoff, reflector.MaxBackoff))
	}
	i.run = r
	i.runs++
	for t := range i.tasks {
		i.startLocked(t)
	}
	for _, s := range i.shards {
		if !s.removed {
			i.watchLocked(s)
		}
	}
	if m := i.format.mutations; m != nil {
		r.goroutines.Go(func() { m.run(r.ctx) })
	}
	return r, nil
}

// end waits until a run has ended.
func (i *Informer[T]) end(r *activeRun) {
	<-r.ctx.Done()
	i.mu.Lock()
	r.stopping = true
	i.mu.Unlock()
	r.goroutines.Wait()
	i.format.mutations.enforce()
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := context.Cause(r.ctx); isRefusal(err) {
		r.err = err
	}
	r.cancel(nil)
	close(r.ended)
	for s := range i.events.subs {
		s.signal()
	}
	i.changeLocked()
}

// stoppedLocked is stopped of the last run.
func (i *Informer[T]) stoppedLocked() error { return i.run.stopped() }

// stopped returns an error if the run has ended: ErrStopped, with the refusal if there was
// one.
func (r *activeRun) stopped() error {
	switch {
	case r == nil || r.isActive():
		return nil
	case r.err != nil:
		return fmt.Errorf("%w: %w", ErrStopped, r.err)
	}
	return ErrStopped
}

// startLocked starts a task in the current run, if there is one.
func (i *Informer[T]) startLocked(t *task) {
	r := i.run
	if !r.isActive() || r.stopping {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	t.cancel = cancel
	r.goroutines.Go(func() {
		defer i.ended(t)
		t.do(ctx)
	})
}

// ended is called when a task has ended in a run.
func (i *Informer[T]) ended(t *task) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t.cancel()
	if t.cancel = nil; !i.tasks[t] {
		close(t.done)
	}
}

// addTask adds a task to the current run and all later ones, until stop is
// called. stop does not wait for the task; done is closed when it has ended.
func (i *Informer[T]) addTask(t *task) (stop func() (done <-chan struct{})) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t.done = make(chan struct{})
	i.tasks[t] = true
	i.startLocked(t)
	return func() <-chan struct{} {
		i.mu.Lock()
		defer i.mu.Unlock()
		switch {
		case !i.tasks[t]: // stopped before
		case t.cancel != nil:
			t.cancel()
		default:
			close(t.done)
		}
		delete(i.tasks, t)
		return t.done
	}
}

// watchLocked starts the reflector of a shard in the current run, if there is
// one.
func (i *Informer[T]) watchLocked(s *shard[T]) {
	s.failures, s.lastErr, s.refused = 0, nil, nil
	r := i.run
	if !r.isActive() || r.stopping {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	u := i.src.url(i.res, s.namespace, &i.opts)
	encoding := reflector.Items(i.format.protobuf, i.opts.MetadataOnly)
	s.reflector = reflector.New(encoding, s, reflector.Options{
		Transport: i.src.transport,
		URL:       u,
		Logger:    i.opts.Logger.With("resource", i.res.Name, "namespace", s.namespace),
		Watchdog:  true,
		Failed: func(verb string, err error) {
			i.fail(s, fmt.Errorf("%s %s: %w%s", verb, u.Redacted(), err, i.src.missing(ctx, i.res, s.namespace, err)))
		},
		Listed:  i.metrics.Listed,
		Watched: i.metrics.Watched,
	})
	done := make(chan struct{})
	s.stop = func() {
		cancel()
		<-done
	}
	r.goroutines.Go(func() {
		defer close(done)
		defer cancel()
		if pause := time.Until(r.notBefore); pause > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
		if s.reflector.Run(ctx) != nil {
			i.refuse(s, r)
		}
	})
}

// fail reports a failure of a reflector.
func (i *Informer[T]) fail(s *shard[T], err error) {
	i.metrics.Failed(err)
	i.mu.Lock()
	defer i.mu.Unlock()
	s.failures++
	s.lastErr = err
	i.events.publish(entry[T]{err: err})
	i.changeLocked()
}

// refuse handles the final refusal of a namespace, which is its last failure. It
// ends the run unless AddNamespace has added the namespace.
func (i *Informer[T]) refuse(s *shard[T], r *activeRun) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !s.added {
		r.cancel(s.lastErr)
		return
	}
	s.refused = s.lastErr
	i.syncLocked()
	i.changeLocked()
}
