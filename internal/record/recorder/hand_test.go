// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A handOwner leaves the upstream watches to a cache, except those of resources whose
// timelines a test writes itself.
type handOwner struct {
	cache *watchcache.Cache
	mu    sync.Mutex
	hands map[kube.Resource]*hand
}

// A hand is one resource of a handOwner.
type hand struct {
	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	record  *resourceRecorder // while the resource is recorded
	reading *reading          // the test's, nil while the cache has the resource
	cached  bool              // set while the cache uses the record
	stop    func()            // makes the cache stop using the record
}

func (o *handOwner) hand(id kube.Resource) *hand {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.hands[id]
	if h == nil {
		h = &hand{}
		h.changed = sync.NewCond(&h.mu)
		o.hands[id] = h
	}
	return h
}

// Check implements Owner.
func (o *handOwner) Check(ctx context.Context, id kube.Resource) bool { return true }

// Current implements Owner.
func (o *handOwner) Current(id kube.Resource) time.Time { return o.cache.Current(id) }

// Doubt implements Owner.
func (o *handOwner) Doubt(id kube.Resource, err error) { o.cache.Doubt(id, err) }

// Record implements Owner.
func (o *handOwner) Record(ctx context.Context, id kube.Resource, record watchcache.Record) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.record(ctx, o.hand(id), record)
	}()
	return func() { <-done }
}

func (o *handOwner) record(ctx context.Context, h *hand, record watchcache.Record) {
	defer context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.changed.Broadcast()
	})()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.record = record.(*resourceRecorder)
	defer func() { h.record = nil }()
	for ctx.Err() == nil {
		if r := h.reading; r != nil {
			if r.follows {
				r.following.Add(1)
				run := record.Follow(r.tl, r.epoch)
				r.epoch = 0 // the continuity keeps it for later sessions
				r.known = true
				h.changed.Broadcast()
				h.mu.Unlock()
				run()
				r.following.Done()
				h.mu.Lock()
			}
			for h.reading == r && ctx.Err() == nil {
				h.changed.Wait()
			}
			continue
		}
		var cached context.Context
		cached, h.stop = context.WithCancel(ctx)
		h.cached = true
		h.mu.Unlock()
		o.cache.Record(cached, record.(*resourceRecorder).id, record)()
		h.mu.Lock()
		h.stop()
		h.cached = false
		h.changed.Broadcast()
	}
}

// A reading is a timeline of Pods that the test writes.
type reading struct {
	t         testing.TB
	h         *hand
	tl        *timeline.Timeline
	seed      *watchcache.Seed
	epoch     uint64
	follows   bool // the record has to follow the timeline
	known     bool // Follow was called
	following sync.WaitGroup
}

// hold takes Pods from the cache. The record, if there is one, waits.
func (g *rig) hold() (h *hand, record *resourceRecorder) {
	h = g.owner.hand(pods)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = &reading{}
	if h.cached {
		h.stop()
	}
	for h.cached {
		h.changed.Wait()
	}
	return h, h.record
}

// read takes Pods from the cache and loads the record into a timeline, which the record
// then follows.
func (g *rig) read(opts timeline.Options) *reading {
	g.t.Helper()
	h, record := g.hold()
	r := &reading{t: g.t, h: h, tl: timeline.New(opts)}
	if record != nil {
		r.load(record.Seed(g.t.Context()))
	}
	r.follow()
	if record != nil {
		// The cache's round tells the record of its end only after it has released it. What it
		// says then must not follow what this reading says.
		for range 100 {
			if record.w.position().RV == 0 || record.w.silence.get().unwatched {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		record.Continuity(reflector.Watched)
	}
	return r
}

// load loads a seed into the timeline; it ignores nil.
func (r *reading) load(seed *watchcache.Seed) {
	if r.seed = seed; seed == nil {
		return
	}
	if seed.Template.RV != 0 {
		r.tl.Bookmark(scan.Frame{Type: kube.Bookmark, Object: seed.Template})
	}
	r.tl.Reset(seed.List)
	r.epoch = r.tl.View().Epoch()
}

// follow makes the record follow the timeline.
func (r *reading) follow() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.follows, r.h.reading = true, r
	r.h.changed.Broadcast()
	for r.h.record != nil && !r.known {
		r.h.changed.Wait()
	}
}

// end closes the timeline and gives Pods back to the cache.
func (r *reading) end() {
	r.tl.Close()
	r.following.Wait()
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.h.reading = nil
	r.h.changed.Broadcast()
}

func (r *reading) apply(typ kube.EventType, o *scan.Object) {
	r.t.Helper()
	if err := r.tl.Apply(scan.Frame{Type: typ, Object: o}); err != nil {
		r.t.Fatal(err)
	}
	r.tl.Flush()
}

func list(rv uint64, objects ...*scan.Object) *scan.List {
	return &scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true, RV: rv, Items: objects}
}

// TestWritesAreShort: many events are written before the delay of a few is over, and
// not again at once.
func TestWritesAreShort(t *testing.T) {
	for _, test := range []struct {
		pending int
		written time.Duration // ago
		now     bool
	}{
		{1, time.Hour, false},
		{minWrite - 1, time.Hour, false},
		{minWrite, time.Hour, true},
		{minWrite, time.Second, false},
	} {
		w := &writer{
			mu: watchcache.NewMutex(), delay: delays{events: time.Hour, head: time.Hour},
			pending: make([]history.Event, test.pending), oldest: time.Now(), written: time.Now().Add(-test.written),
		}
		if wait := w.wait(); (wait <= 0) != test.now {
			t.Errorf("%+v: the write waits %v", test, wait)
		}
	}
}
