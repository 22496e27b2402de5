// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/informer"
)

// A registration is an event handler of an informer.
type registration[T runtime.Object] struct {
	syncState
	of      *Informer[T]
	handler cache.ResourceEventHandler
	period  time.Duration // of resyncs; 0 for none
	stop    func()        // does not wait: the handler may remove itself
	removed chan struct{} // closed by stop

	mu    sync.Mutex                       // held while the handler is called
	known map[informer.Key]informer.Ref[T] // what the handler received; nil without resyncs
}

// minResync is client-go's.
const minResync = time.Second

// AddEventHandler implements cache.SharedInformer.
func (a *Informer[T]) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return a.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (a *Informer[T]) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return a.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements cache.SharedInformer. It does not use the
// options' Logger.
func (a *Informer[T]) AddEventHandlerWithOptions(h cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.closedLocked(); err != nil {
		return nil, err
	}
	if h == nil {
		return nil, errors.New("the event handler is nil")
	}
	r := &registration[T]{syncState: newSyncState("handler of " + a.typeName()), of: a, handler: h, period: a.resync, removed: make(chan struct{})}
	if opts.ResyncPeriod != nil {
		r.period = *opts.ResyncPeriod
	}
	if r.period > 0 {
		r.period = max(r.period, minResync)
		r.known = map[informer.Key]informer.Ref[T]{}
	}
	unsubscribe := a.inf.Handle(informer.Handler[T]{Event: r.dispatch, Synced: func() { a.whenTransformed(r.set) }})
	r.stop = func() {
		close(r.removed)
		unsubscribe()
	}
	a.handlers[r] = true
	r.startResyncLocked()
	return r, nil
}

// RemoveEventHandler implements cache.SharedInformer. It does not wait for a call of
// the handler that is in progress or about to begin: at most that one call is seen after
// RemoveEventHandler has returned.
func (a *Informer[T]) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration[T])
	if !ok || r.of != a {
		return fmt.Errorf("remove event handler: %T is not of this informer", handle)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.handlers[r] {
		delete(a.handlers, r)
		r.stop()
	}
	return nil
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r *registration[T]) HasSynced() bool { return r.syncState.HasSynced() }

// dispatch calls the handler for an event.
func (r *registration[T]) dispatch(e informer.Event[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known != nil {
		if r.known[e.Key] = e.New; e.Type == informer.Deleted {
			delete(r.known, e.Key)
		}
	}
	o, ok := object(e.Ref())
	if !ok {
		return
	}
	var old T
	hasOld := false // false if the handler has never received it
	if e.Type == informer.Updated {
		old, hasOld = object(e.Old)
	}
	// After the decoding, which may take long, and perhaps a resync.
	if r.isRemoved() {
		return
	}
	switch {
	case e.Type == informer.Added:
		r.handler.OnAdd(o, e.Initial)
	case hasOld:
		r.handler.OnUpdate(old, o)
	case e.Type == informer.Updated:
		r.handler.OnAdd(o, false)
	case e.Inferred:
		r.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: e.Key.String(), Obj: o})
	default:
		r.handler.OnDelete(o)
	}
}

func (r *registration[T]) isRemoved() bool {
	select {
	case <-r.removed:
		return true
	default:
		return false
	}
}

// object decodes an object and reports an error to utilruntime.
func object[T runtime.Object](ref informer.Ref[T]) (o T, ok bool) {
	o, err := ref.Object()
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("%T %s at %s: %w", o, ref.Key(), ref.RV(), err))
	}
	return o, err == nil
}

// startResyncLocked starts the handler's resyncs if it has a period and the
// informer runs.
func (r *registration[T]) startResyncLocked() {
	a := r.of
	if r.period <= 0 || a.runCtx == nil {
		return
	}
	a.resyncs.Go(func() {
		t := time.NewTicker(r.period)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				r.resync(a.runCtx)
			case <-r.removed:
				return
			case <-a.runCtx.Done():
				return
			}
		}
	})
}

// resync calls the handler for each object that it knows.
func (r *registration[T]) resync(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range r.known {
		o, ok := object(ref)
		if ctx.Err() != nil || r.isRemoved() {
			return
		}
		if ok {
			r.handler.OnUpdate(o, o)
		}
	}
}
