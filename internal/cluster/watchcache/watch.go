// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A watch owns the upstream watch of one resource for as long as clients that read it,
// or its record, need it. It runs one [round] after the other.
type watch struct {
	cache *Cache
	id    kube.Resource
	log   *slog.Logger

	reflector atomic.Pointer[reflector.Reflector[*scan.Object]] // the last one; nil before
	suspect   atomic.Bool                                       // see reflector.Options

	mu      sync.Mutex // guards what follows; locked after Cache.mu
	changed chan struct{}
	reader  *Resource  // the resource that needs a timeline; nil without readers
	record  *recordUse // nil while the resource is not recorded
}

// A recordUse is a record, with the number of its users.
type recordUse struct {
	Record
	users int // guarded by watch.mu
}

func newWatch(c *Cache, id kube.Resource) *watch {
	return &watch{cache: c, id: id, log: c.opts.Logger.With("resource", id.String()), changed: make(chan struct{})}
}

// update changes the watch and wakes the callers of wait.
func (w *watch) update(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.changed)
	w.changed = make(chan struct{})
}

// wait waits until ok, which is called with mu held. It fails when ctx ends.
func (w *watch) wait(ctx context.Context, ok func() bool) error {
	for {
		w.mu.Lock()
		done, changed := ok(), w.changed
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// needs returns the reader and the record that need the watch, and a channel that is
// closed at the next change.
func (w *watch) needs() (reader *Resource, record *recordUse, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reader, w.record, w.changed
}

// use adds a user of the record, unless its recording has ended.
func (w *watch) use(record *recordUse) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if record == nil || w.record != record {
		return false
	}
	record.users++
	return true
}

// release removes a user that use added.
func (w *watch) release(record *recordUse) { w.update(func() { record.users-- }) }

// leave removes a reader.
func (w *watch) leave(res *Resource) {
	w.update(func() {
		if w.reader == res {
			w.reader = nil
		}
	})
}

// run watches until the watch is not needed any more, or ctx ends.
func (w *watch) run(ctx context.Context) {
	pause := time.Duration(0)
	var paused *recordUse // the record to which pause applies
	for w.needed(ctx, paused, pause) {
		if reader, _, _ := w.needs(); reader != nil && w.cache.opts.Await != nil {
			w.cache.opts.Await(ctx)
			reader.seedBy = time.Now().Add(w.cache.opts.DiskTimeout)
		}
		reader, record, _ := w.needs()
		r := &round{w: w, reader: reader, record: record}
		pause = r.run(ctx)
		paused = r.record
	}
}

// needed waits until there is a reader, or a record that is not paused any more. It
// reports false, and the watch is forgotten, if there is neither.
func (w *watch) needed(ctx context.Context, paused *recordUse, pause time.Duration) bool {
	over := time.NewTimer(pause)
	defer over.Stop()
	for {
		if w.cache.forget(ctx, w) {
			return false
		}
		reader, record, changed := w.needs()
		if reader != nil || record != nil && (pause <= 0 || record != paused) {
			return true
		}
		select {
		case <-changed:
		case <-over.C:
			pause = 0
		case <-ctx.Done():
		}
	}
}

// forget removes a watch that is not needed, or whose cache has ended: its reader
// ends with it. It reports whether it removed the watch.
func (c *Cache) forget(ctx context.Context, w *watch) bool {
	c.mu.Lock()
	w.mu.Lock()
	reader := w.reader
	gone := ctx.Err() != nil || reader == nil && w.record == nil
	if gone {
		delete(c.watches, w.id)
	}
	w.mu.Unlock()
	c.mu.Unlock()
	if gone && reader != nil {
		reader.end(nil)
	}
	return gone
}

// watchOf returns the watch of a resource, which it starts if there is none. The
// caller holds mu and makes itself needed before it unlocks mu.
func (c *Cache) watchOf(id kube.Resource) *watch {
	w := c.watches[id]
	if w == nil {
		w = newWatch(c, id)
		c.watches[id] = w
		c.wg.Go(func() { w.run(c.ctx) })
	}
	return w
}

// Check makes sure that the watch of a resource, if it is open, is not only so in appearance,
// see [reflector.Reflector.Check].
func (c *Cache) Check(ctx context.Context, id kube.Resource) (current bool) {
	r := c.reflector(id)
	return r != nil && r.Check(ctx)
}

// Current returns when the watch of a resource was last known to lack nothing, see
// [reflector.Reflector.Current].
func (c *Cache) Current(id kube.Resource) (at time.Time) {
	if r := c.reflector(id); r != nil {
		at = r.Current()
	}
	return at
}

// Doubt ends the watch of a resource, if it is open, with an error, see
// [reflector.Reflector.Doubt].
func (c *Cache) Doubt(id kube.Resource, err error) {
	if r := c.reflector(id); r != nil {
		r.Doubt(err)
	}
}

// reflector returns the reflector of a resource, nil if there is none.
func (c *Cache) reflector(id kube.Resource) *reflector.Reflector[*scan.Object] {
	c.mu.Lock()
	w := c.watches[id]
	c.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.reflector.Load()
}

// Record records all changes of a resource from the call on until ctx ends. The caller
// has to call wait, which returns when ctx has ended and the record has no users any
// more. A resource has one record at a time.
func (c *Cache) Record(ctx context.Context, id kube.Resource, record Record) (wait func()) {
	use := &recordUse{Record: record}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return func() { <-ctx.Done() }
	}
	w := c.watchOf(id)
	w.update(func() { w.record = use })
	return func() {
		<-ctx.Done()
		w.update(func() {
			if w.record == use {
				w.record = nil
			}
		})
		_ = w.wait(context.Background(), func() bool { return use.users == 0 })
	}
}
