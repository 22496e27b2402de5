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

// An Informer is a cache.SharedIndexInformer over an [informer.Informer]. Make
// it with [New] or [Wrap].
type Informer[T runtime.Object] struct {
	inf    *informer.Informer[T]
	codec  *transforming[T] // nil: not ours, so there is no transform
	resync time.Duration    // of handlers that do not say; 0 for none
	store  *indexer[T]
	synced chan struct{} // closed when there has been a list
	// broken is why the informer cannot work; nil if it can.
	broken error

	mu           sync.Mutex // guards all below
	started      bool
	stopped      bool
	runCtx       context.Context // of the run; nil before it
	resyncs      sync.WaitGroup
	handlers     map[*registration[T]]bool
	errorHandler cache.WatchErrorHandlerWithContext
}

var _ cache.SharedIndexInformer = (*Informer[runtime.Object])(nil)

var (
	errStarted = errors.New("the informer has started")
	errStopped = errors.New("the informer has stopped")
)

// New returns an informer of a collection; resync and indexers are as for
// cache.NewSharedIndexInformer. For generated types there is [typed.Protobuf]
// as the codec, and [typed.Unstructured] for any kind.
func New[T runtime.Object](src *informer.Source, res informer.Resource, codec informer.Codec[T], opts informer.Options,
	resync time.Duration, indexers cache.Indexers,
) *Informer[T] {
	c := &transforming[T]{Codec: codec}
	a := Wrap(informer.New(src, res, c, opts), resync, indexers)
	a.codec = c
	return a
}

// Wrap returns an informer that is one already. It is to be run by the Run of
// the wrapper, and cannot have a transform.
func Wrap[T runtime.Object](inf *informer.Informer[T], resync time.Duration, indexers cache.Indexers) *Informer[T] {
	a := &Informer[T]{
		inf: inf, resync: resync, synced: make(chan struct{}),
		store:    &indexer[T]{inf: inf, indexes: map[string]*index[T]{}},
		handlers: map[*registration[T]]bool{}, errorHandler: cache.DefaultWatchErrorHandler,
	}
	// There is no other indexer yet that they could be at odds with.
	_ = a.store.AddIndexers(indexers)
	return a
}

// Lister returns a lister over the informer's store. One of a generated type is
// that of k8s.io/client-go/listers over GetIndexer.
func (a *Informer[T]) Lister(resource schema.GroupResource) cache.GenericLister {
	return cache.NewGenericLister(a.store, resource)
}

// Run implements cache.SharedInformer.
func (a *Informer[T]) Run(stop <-chan struct{}) { a.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext implements cache.SharedInformer. Refusals of the API server are
// told to the watch error handler and tried again, as client-go does. When it
// returns, all goroutines that it started have ended.
func (a *Informer[T]) RunWithContext(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := a.start(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "The informer does not run")
		return
	}
	unobserve := a.inf.Handle(informer.Handler[T]{
		Synced: func() { close(a.synced) },
		Error: func(err error) {
			// Run returns refusals, too.
			if _, ok := errors.AsType[*informer.RefusedError](err); !ok {
				a.fail(ctx, err)
			}
		},
	})
	const shortest, longest = 800 * time.Millisecond, 30 * time.Second
	for pause := shortest; ctx.Err() == nil; pause = min(2*pause, longest) {
		began := time.Now()
		if err := a.inf.Run(ctx); err != nil {
			a.fail(ctx, err)
		}
		if time.Since(began) > 2*time.Minute {
			pause = shortest
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause + rand.N(pause)):
		}
	}
	unobserve()
	a.stop()
}

func (a *Informer[T]) start(ctx context.Context) error {
	return a.configure(func() error {
		a.started, a.runCtx = true, ctx
		for r := range a.handlers {
			r.startResyncLocked()
		}
		return nil
	})
}

func (a *Informer[T]) stop() {
	a.mu.Lock()
	a.stopped = true
	for r := range a.handlers {
		r.stop()
	}
	clear(a.handlers)
	a.mu.Unlock()
	a.resyncs.Wait()
}

// fail tells the watch error handler.
func (a *Informer[T]) fail(ctx context.Context, err error) {
	if refused, ok := errors.AsType[*informer.RefusedError](err); ok {
		status := apierrors.NewGenericServerResponse(refused.Code, "list", schema.GroupResource{}, "", refused.Message, 0, true)
		err = refusal{refused, status}
	}
	a.mu.Lock()
	handler := a.errorHandler
	a.mu.Unlock()
	handler(ctx, cache.NewReflectorWithOptions(&cache.ListWatch{}, nil, a.store, cache.ReflectorOptions{
		Name: "watchkeeper", TypeDescription: a.typeName()}), err)
}

// A refusal is one that client-go's functions know, too.
type refusal struct {
	*informer.RefusedError
	status *apierrors.StatusError
}

func (r refusal) Unwrap() []error { return []error{r.RefusedError, r.status} }

func (a *Informer[T]) typeName() string {
	var none T
	if a.codec != nil && a.codec.name != "" {
		return a.codec.name
	}
	return fmt.Sprintf("%T", none)
}

// HasSynced implements cache.SharedInformer.
func (a *Informer[T]) HasSynced() bool { return cache.IsDone(a.HasSyncedChecker()) }

// HasSyncedChecker implements cache.SharedInformer.
func (a *Informer[T]) HasSyncedChecker() cache.DoneChecker {
	return checker{"informer of " + a.typeName(), a.synced}
}

// A checker implements cache.DoneChecker.
type checker struct {
	name string
	done chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }

// LastSyncResourceVersion implements cache.SharedInformer. It is that of the
// list or event that came last, and "" before there is one.
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
	return a.stopped
}

// SetWatchErrorHandler implements cache.SharedInformer.
func (a *Informer[T]) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return a.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements cache.SharedInformer.
func (a *Informer[T]) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	return a.configure(func() error {
		a.errorHandler = handler
		return nil
	})
}

// SetTransform implements cache.SharedInformer, of an informer made with [New].
func (a *Informer[T]) SetTransform(transform cache.TransformFunc) error {
	return a.configure(func() error {
		switch {
		case a.codec != nil:
			a.codec.transform = transform
		case transform != nil:
			return errors.New("an informer that Wrap has wrapped cannot have a transform: take New")
		}
		return nil
	})
}

// configure does, with the lock held, what may be done before the start only.
func (a *Informer[T]) configure(change func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.broken != nil:
		return a.broken
	case a.started:
		return errStarted
	}
	return change()
}

// AddIndexers implements cache.SharedIndexInformer.
func (a *Informer[T]) AddIndexers(indexers cache.Indexers) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.overLocked(); err != nil {
		return err
	}
	return a.store.AddIndexers(indexers)
}

// overLocked returns why nothing can be added any more; nil if it can.
func (a *Informer[T]) overLocked() error {
	switch {
	case a.broken != nil:
		return a.broken
	case a.stopped:
		return errStopped
	}
	return nil
}

// GetIndexer implements cache.SharedIndexInformer.
func (a *Informer[T]) GetIndexer() cache.Indexer { return a.store }

// GetStore implements cache.SharedInformer.
func (a *Informer[T]) GetStore() cache.Store { return a.store }

// GetController implements cache.SharedInformer. As in client-go, it does
// nothing useful: it does not run.
func (a *Informer[T]) GetController() cache.Controller { return controller[T]{a} }

type controller[T runtime.Object] struct{ *Informer[T] }

func (controller[T]) Run(<-chan struct{})            {}
func (controller[T]) RunWithContext(context.Context) {}
