// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

const (
	defaultIdleTimeout = 30 * time.Minute
	// maxResources bounds what is watched; a cluster has some hundreds.
	maxResources = 2000
	// refusedPause is how long a refused resource is not tried again. gonePause is the
	// same for a resource that the API server does not have: it may be created soon.
	refusedPause = 30 * time.Second
	gonePause    = time.Second
)

// Options configure a [Cache]. Upstream, Background, Discovery and Logger are
// required.
type Options struct {
	Upstream   *upstream.Server
	Background *upstream.Background
	Discovery  *upstream.Discovery
	Logger     *slog.Logger

	// IdleTimeout is how long a resource without readers stays watched. Zero means
	// 30 minutes.
	IdleTimeout time.Duration
	// Window bounds the events that the timelines keep.
	Window timeline.Options
	// Await is called before a resource is watched for its first reader. It returns
	// once the resources that were recorded before are recorded again (see
	// [Cache.Record]), or when that takes too long. Nil means that nothing is
	// recorded.
	Await func(context.Context)
	// DiskTimeout is how long a reader waits for the disk before its timeline starts
	// from a list instead of the record. Zero means 2 seconds.
	DiskTimeout time.Duration
}

// A Cache watches resources from their first use on.
type Cache struct {
	opts Options

	ctx  context.Context // of all watches
	stop context.CancelFunc
	wg   sync.WaitGroup // of the watches
	// compared limits what the upstream lists for proofs of the state, see [prover].
	compared *rate.Limiter

	mu      sync.Mutex // guards what follows, and the readers of resources
	watches map[kube.Resource]*watch
	watched map[kube.Resource]*Resource // those with a timeline
	refused map[kube.Resource]refused
	closed  bool // no new resources
	ended   bool // no new watches
}

// refused is a resource that is not tried again for a while, and the upstream's
// reason.
type refused struct {
	until time.Time
	why   *reflector.RefusedError
}

// New returns a cache that watches nothing yet. [Cache.Run] ends what it starts.
func New(opts Options) *Cache {
	opts.IdleTimeout = cmp.Or(opts.IdleTimeout, defaultIdleTimeout)
	opts.DiskTimeout = cmp.Or(opts.DiskTimeout, defaultDiskTimeout)
	ctx, stop := context.WithCancel(context.Background())
	return &Cache{
		opts: opts, ctx: ctx, stop: stop, compared: newCompared(),
		watches: map[kube.Resource]*watch{},
		watched: map[kube.Resource]*Resource{},
		refused: map[kube.Resource]refused{},
	}
}

// Acquire returns the resource, which it starts to watch if necessary, and holds it
// until [Resource.Release]. nil means that the resource cannot be watched now: the
// API server does not have it, refused it, or does not answer, or the cache is closed.
func (c *Cache) Acquire(ctx context.Context, id kube.Resource) *Resource {
	if res, known := c.hold(id); known {
		return res
	}
	// The strings kept from here on must not keep the request's text alive.
	id = kube.Resource{Group: strings.Clone(id.Group), Version: strings.Clone(id.Version), Name: strings.Clone(id.Name)}
	info, err := c.opts.Discovery.Lookup(ctx, id, time.Time{})
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if res := c.watched[id]; res != nil { // another request was faster
		res.readers++
		return res
	}
	if c.closed || len(c.watched) >= maxResources {
		return nil
	}
	res := newResource(c, id, info)
	res.readers = 1
	c.watched[id] = res
	res.watch = c.watchOf(id)
	res.watch.update(func() { res.watch.reader = res })
	return res
}

// hold is Acquire for a resource that is being watched, or that is known not to be
// watched (nil).
func (c *Cache) hold(id kube.Resource) (res *Resource, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if res := c.watched[id]; res != nil {
		res.readers++
		return res, true
	}
	return nil, c.closed || time.Now().Before(c.refused[id].until)
}

// Watched returns the resource if it is being watched, else nil. It does not hold
// it.
func (c *Cache) Watched(id kube.Resource) *Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watched[id]
}

// Refused returns why the upstream refused the resource a short time ago, nil if it
// did not.
func (c *Cache) Refused(id kube.Resource) *reflector.RefusedError {
	c.mu.Lock()
	res, last := c.watched[id], c.refused[id]
	c.mu.Unlock()
	if time.Now().Before(last.until) {
		return last.why
	}
	if res == nil {
		return nil
	}
	// The answer has come, and the resource is about to be removed.
	why, _ := errors.AsType[*reflector.RefusedError](res.Status().LastError)
	return why
}

// Sizes returns how many resources are watched, and how many are remembered as
// refused.
func (c *Cache) Sizes() (watched, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.watched), len(c.refused)
}

// Remove removes a resource whose timeline has ended; refusal is the reason, nil if
// the cache ended it.
func (c *Cache) Remove(res *Resource, refusal *reflector.RefusedError) {
	c.opts.Discovery.Forget(res.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	res.leave()
	if c.watched[res.ID] != res {
		return
	}
	delete(c.watched, res.ID)
	if refusal == nil {
		return
	}
	if len(c.refused) >= maxResources {
		clear(c.refused)
	}
	pause := refusedPause
	if refusal.Code == http.StatusNotFound {
		pause = gonePause
	}
	c.refused[res.ID] = refused{until: time.Now().Add(pause), why: refusal}
}

// drop stops watching a resource; its open watches end. It may be acquired again at
// once.
func (c *Cache) drop(res *Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[res.ID] == res {
		delete(c.watched, res.ID)
	}
	res.dropped.Store(true)
	res.leave()
}

// Run stops resources that are idle. When ctx ends, it stops all of them and returns
// once they have stopped. A goroutine that a disk blocks in a record is left: the end of
// [Cache.Record] waits for it.
func (c *Cache) Run(ctx context.Context) {
	tick := time.NewTicker(max(c.opts.IdleTimeout/8, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.stopIdle(c.opts.IdleTimeout)
		case <-ctx.Done():
			c.mu.Lock()
			c.closed, c.ended = true, true
			c.mu.Unlock()
			c.stop()
			c.wg.Wait()
			return
		}
	}
}

// Close refuses resources that are not watched yet.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

func (c *Cache) stopIdle(idle time.Duration) {
	for _, id := range c.dropIdle(idle) {
		c.opts.Logger.Info("stopped caching: the resource was idle", "resource", id.String(), "idle", idle)
	}
}

func (c *Cache) dropIdle(idle time.Duration) (dropped []kube.Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, res := range c.watched {
		if res.readers == 0 && time.Since(res.lastUsed) > idle {
			delete(c.watched, id)
			res.leave()
			dropped = append(dropped, id)
		}
	}
	return dropped
}

// All returns the resources being watched.
func (c *Cache) All() []*Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*Resource, 0, len(c.watched))
	for _, res := range c.watched {
		out = append(out, res)
	}
	return out
}

// OpenWatches returns how many watches read the timelines.
func (c *Cache) OpenWatches() (n int64) {
	for _, res := range c.All() {
		n += res.OpenWatches()
	}
	return n
}

// Insert adds a resource without a reflector, whose timeline the caller writes. It is
// for tests.
func (c *Cache) Insert(id kube.Resource, info metav1.APIResource) *Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	res := newResource(c, id, info)
	c.watched[id] = res
	return res
}
