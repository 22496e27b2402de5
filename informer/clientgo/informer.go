// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/watchkeeper/watchkeeper/informer"
)

// An Informer implements cache.SharedIndexInformer with an [informer.Informer].
// Make it with [New] or [Wrap]. Any goroutine may call its methods. It has a method
// HasSyncedChecker if client-go's interface has it, since 0.36.
//
// Lock order: that of a registration, which is held while its handler is called
// and may call the informer; mu; that of the indexer; those of the informer below.
type Informer[T runtime.Object] struct {
	syncState
	inf    *informer.Informer[T]
	codec  *transformCodec[T] // nil if made by Wrap: no transform then
	resync time.Duration      // default period of handlers; 0 for none
	store  *indexer[T]
	// configErr is why the informer cannot run; nil if it can.
	configErr error

	mu           sync.Mutex // guards all below
	phase        phase
	runCtx       context.Context // nil before the start
	resyncs      sync.WaitGroup
	handlers     map[*registration[T]]bool
	transformed  bool     // the transform has not failed for an object of the first list
	synced       []func() // called then
	errorHandler cache.WatchErrorHandlerWithContext
}

// A phase of an informer follows the one before; none is entered twice.
type phase int

const (
	created phase = iota
	started
	stopped
)

var _ cache.SharedIndexInformer = (*Informer[runtime.Object])(nil)

var (
	errStarted = errors.New("informer has started")
	errStopped = errors.New("informer has stopped")
)

// New returns an informer of a collection. resync, where 0 is none, and indexers
// are those of cache.NewSharedIndexInformer. The codec of generated types is
// [typed.Protobuf], and [typed.Unstructured] fits every kind. Like [informer.New], New
// panics without a source, a resource or a codec, and if the function of an index is nil.
func New[T runtime.Object](src *informer.Source, res informer.Resource, codec informer.Codec[T], opts informer.Options,
	resync time.Duration, indexers cache.Indexers,
) *Informer[T] {
	if codec == nil {
		panic("clientgo: New needs a Codec, such as those of package typed")
	}
	c := &transformCodec[T]{Codec: codec}
	return wrap(informer.New(src, res, c, opts), c, resync, indexers)
}

// Wrap returns an adapter for an existing informer. Call the adapter's Run
// instead of inf's. It cannot have a transform. Wrap panics without an informer, and if
// the function of an index is nil.
func Wrap[T runtime.Object](inf *informer.Informer[T], resync time.Duration, indexers cache.Indexers) *Informer[T] {
	if inf == nil {
		panic("clientgo: Wrap needs an Informer")
	}
	return wrap(inf, nil, resync, indexers)
}

func wrap[T runtime.Object](inf *informer.Informer[T], codec *transformCodec[T], resync time.Duration, indexers cache.Indexers) *Informer[T] {
	a := &Informer[T]{
		inf: inf, codec: codec, resync: resync,
		store:    &indexer[T]{inf: inf, indexes: map[string]*index[T]{}},
		handlers: map[*registration[T]]bool{}, errorHandler: cache.DefaultWatchErrorHandler,
	}
	a.syncState = newSyncState("informer of " + a.typeName())
	if err := a.store.AddIndexers(indexers); err != nil { // a nil function: no index exists yet
		panic("clientgo: " + err.Error())
	}
	return a
}

// Lister returns an untyped lister of the informer's store. For a generated type
// use k8s.io/client-go/listers with GetIndexer.
func (a *Informer[T]) Lister(resource schema.GroupResource) cache.GenericLister {
	return cache.NewGenericLister(a.store, resource)
}

// Run implements cache.SharedInformer.
func (a *Informer[T]) Run(stop <-chan struct{}) { a.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext implements cache.SharedInformer. As in client-go, refusals of
// the API server are passed to the watch error handler and retried. When it
// returns, every goroutine that it started has ended. An informer runs once.
func (a *Informer[T]) RunWithContext(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := a.start(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Informer not started")
		return
	}
	var transforms sync.WaitGroup
	defer transforms.Wait()
	a.whenTransformed(a.set)
	stopHandler := a.inf.Handle(informer.Handler[T]{
		Synced: func() { transforms.Go(func() { a.transform(ctx) }) },
		Error: func(err error) {
			// Run returns refusals: they are passed on below.
			if _, ok := errors.AsType[*informer.RefusedError](err); !ok {
				a.fail(ctx, err)
			}
		},
	})
	const resetAfter = 2 * time.Minute // as client-go's reflector
	for pause := minPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		began := time.Now()
		if err := a.inf.Run(ctx); err != nil {
			a.fail(ctx, err)
		}
		if time.Since(began) > resetAfter {
			pause = minPause
		}
		sleep(ctx, pause)
	}
	stopHandler()
	a.stop()
}

// The pauses after a failure, as of client-go's reflector.
const minPause, maxPause = 800 * time.Millisecond, 30 * time.Second

func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause + rand.N(pause)):
	}
}

// transform waits until the transform fails for no object of the first list. As with client-go,
// the informer and its handlers have not synced before, and the watch error handler gets the
// failures: objects that cannot be transformed cannot be read.
func (a *Informer[T]) transform(ctx context.Context) {
	for pause := minPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		err := a.transformAll()
		if err == nil {
			a.mu.Lock()
			synced := a.synced
			a.transformed, a.synced = true, nil
			a.mu.Unlock()
			for _, do := range synced {
				do()
			}
			return
		}
		a.fail(ctx, err)
		sleep(ctx, pause)
	}
}

// transformAll returns the first failure of the transform.
func (a *Informer[T]) transformAll() error {
	if a.codec == nil || a.codec.transform == nil {
		return nil
	}
	for key, ref := range a.inf.All() {
		_, err := ref.Object()
		if _, ok := errors.AsType[transformError](err); ok {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// whenTransformed calls do when the transform has succeeded.
func (a *Informer[T]) whenTransformed(do func()) {
	a.mu.Lock()
	transformed := a.transformed
	if !transformed {
		a.synced = append(a.synced, do)
	}
	a.mu.Unlock()
	if transformed {
		do()
	}
}

func (a *Informer[T]) start(ctx context.Context) error {
	return a.configure(func() error {
		a.phase, a.runCtx = started, ctx
		for r := range a.handlers {
			r.startResyncLocked()
		}
		return nil
	})
}

func (a *Informer[T]) stop() {
	a.mu.Lock()
	a.phase = stopped
	for r := range a.handlers {
		r.stop()
	}
	clear(a.handlers)
	a.mu.Unlock()
	a.resyncs.Wait()
}

// fail passes an error to the watch error handler.
func (a *Informer[T]) fail(ctx context.Context, err error) {
	if refused, ok := errors.AsType[*informer.RefusedError](err); ok {
		status := apierrors.NewGenericServerResponse(refused.Code, "list", schema.GroupResource{}, "", refused.Message, 0, true)
		err = refusal{err, status}
	}
	a.mu.Lock()
	handler := a.errorHandler
	a.mu.Unlock()
	handler(ctx, cache.NewReflectorWithOptions(&cache.ListWatch{}, nil, a.store, cache.ReflectorOptions{
		Name: "watchkeeper", TypeDescription: a.typeName()}), err)
}

// A refusal is also an API status error, which apierrors.IsForbidden and similar
// functions recognize.
type refusal struct {
	error
	status *apierrors.StatusError
}

func (r refusal) Unwrap() []error { return []error{r.error, r.status} }

func (a *Informer[T]) typeName() string {
	var none T
	if a.codec != nil && a.codec.name != "" {
		return a.codec.name
	}
	return fmt.Sprintf("%T", none)
}

// HasSynced implements cache.SharedInformer.
func (a *Informer[T]) HasSynced() bool { return a.syncState.HasSynced() }

// LastSyncResourceVersion implements cache.SharedInformer. It is that of the last
// list, event or bookmark; "" before the first list.
func (a *Informer[T]) LastSyncResourceVersion() string { return lastRV(a.inf) }

func lastRV[T any](inf *informer.Informer[T]) string {
	if rv := inf.Status().RV; rv > 0 {
		return strconv.FormatUint(rv, 10)
	}
	return ""
}

// IsStopped implements cache.SharedInformer.
func (a *Informer[T]) IsStopped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.phase == stopped
}

// SetWatchErrorHandler implements cache.SharedInformer.
func (a *Informer[T]) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	if handler == nil {
		return a.SetWatchErrorHandlerWithContext(nil)
	}
	return a.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements cache.SharedInformer. As in client-go,
// nil is cache.DefaultWatchErrorHandler.
func (a *Informer[T]) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	if handler == nil {
		handler = cache.DefaultWatchErrorHandler
	}
	return a.configure(func() error {
		a.errorHandler = handler
		return nil
	})
}

// SetTransform implements cache.SharedInformer. It fails for an informer made
// with [Wrap].
func (a *Informer[T]) SetTransform(transform cache.TransformFunc) error {
	return a.configure(func() error {
		switch {
		case a.codec != nil:
			a.codec.transform = transform
		case transform != nil:
			return errors.New("set transform: not possible for an informer made with Wrap, use New")
		}
		return nil
	})
}

// configure calls change with the lock held. It fails after the start.
func (a *Informer[T]) configure(change func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.configErr != nil:
		return a.configErr
	case a.phase != created:
		return errStarted
	}
	return change()
}

// AddIndexers implements cache.SharedIndexInformer.
func (a *Informer[T]) AddIndexers(indexers cache.Indexers) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.closedLocked(); err != nil {
		return err
	}
	return a.store.AddIndexers(indexers)
}

// closedLocked returns why no handler or index can be added; nil if it can.
func (a *Informer[T]) closedLocked() error {
	switch {
	case a.configErr != nil:
		return a.configErr
	case a.phase == stopped:
		return errStopped
	}
	return nil
}

// GetIndexer implements cache.SharedIndexInformer.
func (a *Informer[T]) GetIndexer() cache.Indexer { return a.store }

// GetStore implements cache.SharedInformer.
func (a *Informer[T]) GetStore() cache.Store { return a.store }

// GetController implements cache.SharedInformer. The Run of the controller does
// nothing.
func (a *Informer[T]) GetController() cache.Controller { return controller[T]{a} }

type controller[T runtime.Object] struct{ *Informer[T] }

func (controller[T]) Run(<-chan struct{})            {}
func (controller[T]) RunWithContext(context.Context) {}
