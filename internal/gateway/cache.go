// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	recording "github.com/watchkeeper/watchkeeper/internal/recorder"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

const (
	// syncWait is how long the first reader of a resource waits for its
	// first list before the upstream is asked instead. A LIST that waits gets
	// an RV that the timeline already holds, so that the WATCH behind it is
	// served from here.
	syncWait = 5 * time.Second
	// mostResources bounds what is watched; a cluster has some hundreds.
	mostResources = 2000
	// encodingBytes bounds what is kept of objects in other encodings than the
	// API server's JSON.
	encodingBytes = 64 << 20
	// refusedFor is how long a refused resource is not tried again, goneFor how
	// long one that was gone: another may come under its name.
	refusedFor = 30 * time.Second
	goneFor    = time.Second
)

// cache is the reader: it watches resources from their first use on and
// answers from their timelines.
type cache struct {
	up        *Upstream
	log       *slog.Logger
	idle      time.Duration
	window    timeline.Options // of all timelines
	discovery discovery
	encodings *wire.Cache // of all resources' objects
	metrics   *cacheMetrics
	history   *recording.Recorder // nil if nothing is recorded
	past      *past               // nil for none
	// Of the past:
	disclosure disclosure
	lists      *places // whole ones
	exports    *places

	still bool // the upstream is a recording, in which nothing happens

	ctx      context.Context // of all reflectors
	stop     context.CancelFunc
	wg       sync.WaitGroup
	draining chan struct{} // closed when watches are to end
	spread   time.Duration // over which they do; set before draining is closed

	mu      sync.Mutex // guards what follows, and the readers of resources
	watched map[kube.Resource]*resource
	refused map[kube.Resource]refused
	stopped bool // no new resources, no new watches
}

// refused is a resource that is not tried again for a while, and what the upstream said of it.
type refused struct {
	until time.Time
	why   *informer.RefusedError
}

func newCache(up *Upstream, idle time.Duration, log *slog.Logger) *cache {
	ctx, stop := context.WithCancel(context.Background())
	c := &cache{
		up: up, log: log, idle: idle,
		ctx: ctx, stop: stop,
		draining:  make(chan struct{}),
		encodings: wire.NewCache(encodingBytes),
		lists:     newPlaces("list", mostReads, readWait),
		exports:   newPlaces("export", mostExports, 0),
		watched:   map[kube.Resource]*resource{},
		refused:   map[kube.Resource]refused{},
	}
	c.discovery = discovery{up: up, asked: shared[groupVersion]{begin: c.begin, timeout: discoveryTimeout}}
	c.disclosure = disclosure{up: up, begin: c.begin}
	c.metrics = newCacheMetrics(c)
	return c
}

// serve implements reader.
func (c *cache) serve(w *recorder, r *http.Request) bool {
	parse := parseRead
	if c.still {
		parse = parseAnyRead
	}
	rd, ok := parse(r)
	if c.still && ok {
		rd.standStill()
	}
	if asksFields(r) {
		if !ok {
			rd = nil
		}
		c.serveFields(w, r, rd)
		return true
	}
	if ok && rd.verb == verbWatch && asksSpeed(r) {
		c.serveReplay(w, r, rd)
		return true
	}
	return ok && c.answer(w, r, rd)
}

// answer serves a read, if it can do so exactly.
func (c *cache) answer(w *recorder, r *http.Request, rd *read) bool {
	res := c.acquire(r.Context(), rd.resource)
	if res == nil {
		return false
	}
	defer c.release(res)
	if rd.namespace != "" && !res.info.Namespaced || rd.name != "" && rd.namespace == "" && res.info.Namespaced {
		return false // the API server has an error for it
	}
	v, status, ok := res.viewFor(r.Context(), rd.verb)
	if !ok {
		return false
	}
	if !res.access.allows(r.Context(), rd.verb) {
		return rd.refuse(forbidden(fmt.Sprintf("the gateway may not %s %s in all namespaces, and so does not serve them from its cache", rd.verb, res.id.GroupResource())))
	}
	lists := generation(status)
	if !c.stands(r.Context(), res, lists) {
		return false
	}
	if rd.verb != verbGet && !rd.selectors(res.info.Namespaced, res.fields(r.Context(), lists)) {
		return rd.refuse(badRequest("fields: the field selector is not one that is answered from the cache"))
	}
	offersCBOR := func() bool { return res.offersCBOR(r.Context(), c.up) }
	if !rd.negotiate(r, v.BookmarkForm.Typed(), offersCBOR) || res.unwritable.has(rd.form) {
		return false
	}
	if rd.over, ok = res.definition(r.Context(), lists); !ok {
		return false
	}
	if rd.fields == nil && rd.consistentList() && !res.prover.pays(&v.Snapshot, rd) {
		return false
	}
	if v, ok = rd.reach(r.Context(), res, v); !ok {
		return false
	}
	rd.warnings = status.Warnings
	switch rd.verb {
	case verbGet:
		return c.serveGet(w, r, rd, res, v)
	case verbList:
		return c.serveList(w, r, rd, res, v)
	default:
		return c.serveWatch(w, r, rd, res, v)
	}
}

// acquire returns the resource, which it starts to watch if need be, and holds
// it until release. nil means it is not to be watched.
func (c *cache) acquire(ctx context.Context, id kube.Resource) *resource {
	if res, known := c.hold(id); known {
		return res
	}
	// What is remembered from here on is not to keep the request's text alive.
	id = kube.Resource{Group: strings.Clone(id.Group), Version: strings.Clone(id.Version), Name: strings.Clone(id.Name)}
	info, err := c.discovery.lookup(ctx, id, time.Time{})
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if res := c.watched[id]; res != nil { // somebody was faster
		res.readers++
		return res
	}
	if c.stopped || len(c.watched) >= mostResources {
		return nil
	}
	res := newResource(c.up, id, info, c.log, c.begin, c.window)
	res.encoder.Cache = c.encodings
	if c.still {
		res.encoder.Now = c.past.end
	}
	res.defined.changed = func() { c.drop(res) }
	res.readers = 1
	c.watched[id] = res
	ctx, res.cancel = context.WithCancel(c.ctx)
	c.wg.Go(func() {
		c.remove(res, res.run(ctx, c.history, c.log))
	})
	return res
}

// hold is acquire for what is known already: a resource being watched, or nil
// for one that is not to be.
func (c *cache) hold(id kube.Resource) (res *resource, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if res := c.watched[id]; res != nil {
		res.readers++
		return res, true
	}
	return nil, c.stopped || time.Now().Before(c.refused[id].until)
}

func (c *cache) release(res *resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	res.readers--
	res.lastUsed = time.Now()
}

// begin announces work that run waits for, until end is called; the work must
// end soon after the context does. ok is false once the cache has stopped.
func (c *cache) begin() (ctx context.Context, end func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, nil, false
	}
	c.wg.Add(1)
	return c.ctx, c.wg.Done, true
}

// remove forgets a resource whose reflector has stopped, for a refusal if it was
// not stopped from here.
func (c *cache) remove(res *resource, refusal *informer.RefusedError) {
	res.cancel()
	c.discovery.forget(res.id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[res.id] == res {
		delete(c.watched, res.id)
		if refusal != nil {
			if len(c.refused) >= discoveryMost {
				clear(c.refused)
			}
			pause := refusedFor
			if refusal.Code == http.StatusNotFound {
				pause = goneFor
			}
			c.refused[res.id] = refused{until: time.Now().Add(pause), why: refusal}
		}
	}
}

// run implements reader: it stops what is idle, and at the end everything.
func (c *cache) run(ctx context.Context) error {
	tick := time.NewTicker(max(c.idle/8, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.stopIdle(c.idle)
		case <-ctx.Done():
			c.mu.Lock()
			c.stopped = true
			c.mu.Unlock()
			c.stop()
			c.wg.Wait()
			return nil
		}
	}
}

func (c *cache) stopIdle(idle time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, res := range c.watched {
		if res.readers == 0 && time.Since(res.lastUsed) > idle {
			c.log.Info("not watched any more: nobody has asked for it", "resource", id.String(), "idle", idle)
			delete(c.watched, id)
			res.cancel()
		}
	}
}

// drop has a resource be watched no more; its open watches end. It may be
// watched anew at once.
func (c *cache) drop(res *resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[res.id] == res {
		delete(c.watched, res.id)
	}
	res.dropped.Store(true)
	res.cancel()
}

// drain implements reader: it ends all watches, each with a last bookmark, a
// few at a time so that their clients do not come back all at once.
func (c *cache) drain(ctx context.Context) {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return
	}
	c.stopped = true
	watches := int64(0)
	for _, res := range c.watched {
		watches += res.watches.Load()
	}
	c.mu.Unlock()
	// A hundred a second, within four fifths of the time there is.
	c.spread = time.Duration(watches) * 10 * time.Millisecond
	if deadline, ok := ctx.Deadline(); ok {
		c.spread = min(c.spread, time.Until(deadline)*4/5)
	}
	close(c.draining)
}

// isDraining reports whether watches are ending.
func (c *cache) isDraining() bool {
	select {
	case <-c.draining:
		return true
	default:
		return false
	}
}

// all returns the resources being watched.
func (c *cache) all() []*resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*resource, 0, len(c.watched))
	for _, res := range c.watched {
		out = append(out, res)
	}
	return out
}

// resources implements reader.
func (c *cache) resources() []ResourceStatus {
	var out []ResourceStatus
	for _, res := range c.all() {
		s := res.reflector.Status()
		rs := ResourceStatus{
			Resource: res.id.String(), State: string(s.Phase), LastContact: s.LastContact,
			Watches: int(res.watches.Load()), Objects: res.timeline.Stats().Objects,
		}
		if s.LastError != nil {
			rs.LastError = cause(s.LastError)
		}
		if v := res.timeline.View(); v != nil {
			rs.RV = v.RV
		}
		out = append(out, rs)
	}
	return out
}
