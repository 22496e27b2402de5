// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// syncTimeout is how long the first reader of a resource waits for its first list
// before its request is passed through. A LIST that waits gets an RV that the
// timeline already holds, so that the WATCH that follows it is served from here.
const syncTimeout = 5 * time.Second

// A Resource is one watched collection: a reflector that writes a timeline, and its
// count of readers.
type Resource struct {
	ID          kube.Resource
	Info        metav1.APIResource
	Timeline    *timeline.Timeline
	Access      *access.Own
	Definitions *upstream.Definitions

	cache     *Cache
	watch     *watch // nil in tests, see Cache.Insert
	reflector atomic.Pointer[reflector.Reflector[*scan.Object]]
	feed      atomic.Pointer[feed] // of the reflector
	prover    *prover
	reacher   *reacher
	served    servedState
	log       *slog.Logger

	seedBy  time.Time     // when the timeline starts without the record
	dropped atomic.Bool   // see Cache.drop
	done    chan struct{} // closed when the timeline has ended
	seeded  atomic.Bool   // the timeline starts from the record
	live    chan struct{} // closed at the first list, or the first flush of a resumed watch
	watches atomic.Int64  // open ones
	asked   atomic.Int64  // when Heard last asked for a bookmark, in Unix nanoseconds

	// Guarded by Cache.mu.
	readers  int       // requests and watches that hold the resource
	lastUsed time.Time // when the last reader left
}

func newResource(c *Cache, id kube.Resource, info metav1.APIResource) *Resource {
	up, background := c.opts.Upstream, c.opts.Background
	res := &Resource{
		ID: id, Info: info, Timeline: timeline.New(c.opts.Window),
		Access:      access.NewOwn(up, id, background),
		Definitions: upstream.NewDefinitions(up, id, background),
		cache:       c, log: c.opts.Logger.With("resource", id.String()),
		seedBy: time.Now().Add(c.opts.DiskTimeout),
		done:   make(chan struct{}), live: make(chan struct{}),
	}
	res.Definitions.Changed = func() { c.drop(res) }
	res.prover = newProver(up, id, res.Timeline, res.Status, res.doubt, res.check, c.compared, background)
	res.reacher = &reacher{
		fresh: res.prover.fresh, head: func() uint64 { return res.Timeline.View().RV }, status: res.Status,
		needed: func() bool { return res.OpenWatches() > 0 },
	}
	return res
}

// doubt makes the reflector doubt the upstream's history.
func (res *Resource) doubt(err error) {
	if r := res.reflector.Load(); r != nil {
		r.Doubt(err)
	}
}

// check finds out in the background whether the upstream watch is only open in appearance.
func (res *Resource) check() {
	ctx, end, ok := res.cache.opts.Background.Begin()
	if !ok {
		return
	}
	go func() {
		defer end()
		res.cache.Check(ctx, res.ID)
	}()
}

// sink returns the timeline as the sink of a reflector. It is called once.
func (res *Resource) sink() *timelineSink {
	return &timelineSink{Timeline: res.Timeline, listed: res.listed, live: func() { close(res.live) }}
}

// begin starts the timeline from the record.
func (res *Resource) begin(seed *Seed) {
	res.seeded.Store(true)
	seed.load(res.Timeline)
	res.log.Info("resuming from the record", "rv", seed.List.RV, "objects", len(seed.List.Items))
}

// leave makes the resource stop needing its watch.
func (res *Resource) leave() {
	if res.watch != nil {
		res.watch.leave(res)
	}
}

// end ends the timeline, and the open watches with it; refused is the reason, nil if
// the cache ended it.
func (res *Resource) end(refused *reflector.RefusedError) {
	res.Timeline.Close()
	res.cache.Remove(res, refused)
	close(res.done)
}

// Release ends the hold of [Cache.Acquire].
func (res *Resource) Release() {
	res.cache.mu.Lock()
	defer res.cache.mu.Unlock()
	res.readers--
	res.lastUsed = time.Now()
}

// OpenWatch counts a watch, which holds the resource until CloseWatch.
func (res *Resource) OpenWatch() {
	res.watches.Add(1)
	res.cache.mu.Lock()
	defer res.cache.mu.Unlock()
	res.readers++
}

// CloseWatch ends what OpenWatch began.
func (res *Resource) CloseWatch() {
	res.watches.Add(-1)
	res.Release()
}

// OpenWatches returns how many watches are open.
func (res *Resource) OpenWatches() int64 { return res.watches.Load() }

// Status returns the reflector's status.
func (res *Resource) Status() reflector.Status {
	if r := res.reflector.Load(); r != nil {
		return r.Status()
	}
	return reflector.Status{Phase: reflector.Starting}
}

// maxIdle is after which silence the upstream is asked for a bookmark.
const maxIdle = 30 * time.Second

// Heard returns when the upstream's watch last delivered an event or a bookmark, or was
// known to have delivered everything. After a silence it asks the upstream: an API server
// sends no bookmark on a watch of an idle resource until it has answered a consistent
// read.
func (res *Resource) Heard() time.Time {
	heard, asked := res.Timeline.View().At, res.asked.Load()
	if at := time.Unix(0, res.prover.current.Load()); at.After(heard) {
		heard = at
	}
	if now := time.Now(); now.Sub(heard) > maxIdle && now.UnixNano()-asked > int64(maxIdle) && res.asked.CompareAndSwap(asked, now.UnixNano()) {
		res.prover.askBookmark()
		res.check()
	}
	return heard
}

// A State is the published view of a resource, with the reflector's status from
// which Readable was derived.
type State struct {
	View   *timeline.View
	Status reflector.Status
	// Readable is set if reads may be served from View: it has been listed, or
	// resumed from the record, the upstream's last answer was not a refusal, and
	// Trust allows it.
	Readable bool
	Trust    Trust
}

// Lists returns how many lists the reflector has taken.
func (s State) Lists() int { return Lists(s.Status) }

// Lists returns how many lists a reflector has taken.
func Lists(s reflector.Status) int {
	n := 0
	for _, lists := range s.Relists {
		n += lists
	}
	return n
}

// State returns the current state.
func (res *Resource) State() State {
	trust := res.trust() // before the view, which the next list replaces
	v, status := res.Timeline.View(), res.Status()
	ok := v != nil && !v.Closed() && status.Phase != reflector.Refused && !(res.seeded.Load() && resuming(status)) && trust.serves()
	return State{v, status, ok, trust}
}

func (res *Resource) trust() Trust {
	if f := res.feed.Load(); f != nil {
		return f.trust.get()
	}
	return Trusted
}

// WaitTrust waits a few seconds while the trust is Suspect, and returns the state then.
func (res *Resource) WaitTrust(ctx context.Context) State {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	for res.trust() == Suspect {
		if !await(ctx, res.done, time.After(trustPoll)) {
			break
		}
	}
	return res.State()
}

// trustPoll is how often WaitTrust looks.
const trustPoll = 20 * time.Millisecond

// Passed is called before a client gets an answer of the upstream about the resource. It
// may be of another history.
func (res *Resource) Passed() {
	if f := res.feed.Load(); f != nil {
		f.trust.passed()
	}
}

// resuming reports whether the reflector has not yet resumed after the record. The
// upstream may have gone back in time, and then the record must not be served. While
// the upstream cannot be reached, the record is served.
func resuming(status reflector.Status) bool {
	return status.Phase == reflector.Starting || status.Phase == reflector.Listing && len(status.Relists) == 0
}

// StateFor returns the state for a read with the verb. A GET never waits; other
// reads wait a few seconds for the first list, or for the record to be resumed.
func (res *Resource) StateFor(ctx context.Context, verb request.Verb) State {
	if verb == request.Get {
		return res.State()
	}
	waited := res.WaitSynced(ctx)
	s := res.State()
	if !s.Readable && waited && resuming(s.Status) { // the watch ended at once
		res.WaitSynced(ctx)
		return res.State()
	}
	return s
}

// WaitSynced waits a few seconds for the first list, or for the record to be
// resumed, and reports whether that has happened.
func (res *Resource) WaitSynced(ctx context.Context) bool {
	if isClosed(res.Timeline.Synced()) && (!res.seeded.Load() || isClosed(res.live) && !resuming(res.Status())) {
		return true
	}
	if p := res.Status().Phase; p == reflector.Retrying || p == reflector.Refused {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if !await(ctx, res.done, res.Timeline.Synced()) {
		return false
	}
	if !res.seeded.Load() {
		return true
	}
	if !await(ctx, res.done, res.live) {
		return false
	}
	// The upstream may answer the resumed watch with 410 at once. Reads are served
	// from the record only when there is a list.
	for resuming(res.Status()) {
		if !await(ctx, res.done, time.After(resumingPoll)) {
			return false
		}
	}
	return true
}

// resumingPoll is how often WaitSynced checks whether the record is resumed, if that
// takes a list.
const resumingPoll = 20 * time.Millisecond

// await reports whether c is ready before ctx and done are.
func await[T any](ctx context.Context, done <-chan struct{}, c <-chan T) bool {
	select {
	case <-c:
		return true
	case <-done:
	case <-ctx.Done():
	}
	return false
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Fields returns the fields by which objects of the resource can be selected, as of
// a number of lists.
func (res *Resource) Fields(ctx context.Context, lists int) request.FieldFunc {
	return res.Definitions.Fields(ctx, lists, res.Info.Namespaced)
}

// Defined waits until the definition of a custom resource is known as of a number of
// lists, so that it applies to the objects in the timeline. Watches end when over
// ends, as the API server ends them; a nil over never ends. ok is false if it
// is unknown whether there is a definition, or if the definition is being deleted.
func (res *Resource) Defined(ctx context.Context, lists int) (over context.Context, ok bool) {
	if res.ID.BuiltIn() {
		return nil, true
	}
	known, err := res.Definitions.Get(ctx, lists)
	return known.Over, err == nil || errors.Is(err, upstream.ErrUndefined)
}

// listed is called after a list. A changed definition of a custom resource may have
// caused the list: listed refreshes the definition, so that the watches that began
// under the old one end. With other columns they end in any case: the API server can
// print a list with the old columns after the new definition can be read.
func (res *Resource) listed(otherColumns bool) {
	if known := res.Definitions.Now(); known.Over == nil || known.Definition == nil && !otherColumns {
		return
	}
	if otherColumns {
		res.Definitions.Outdate()
	}
	res.Definitions.Refresh(Lists(res.Status()))
}

// Fresh returns a view that has everything the upstream acknowledged before the
// call, normally within about a second. Its RV is at least that of any consistent
// read that was answered before.
func (res *Resource) Fresh(ctx context.Context) (*timeline.View, error) { return res.prover.fresh(ctx) }

// FreshState returns a view, and an RV at which the upstream's state is that of the view, and
// which the upstream had not passed at the time of the call: normally within milliseconds if the
// collection is small. The RV may be above the view's.
func (res *Resource) FreshState(ctx context.Context) (*timeline.View, uint64, error) {
	return res.prover.freshState(ctx)
}

// FreshSoon is Fresh for a reader that cannot wait: it fails soon unless the
// resource is busy, and at once for a while after it failed.
func (res *Resource) FreshSoon(ctx context.Context) (*timeline.View, error) {
	return res.prover.freshSoon(ctx)
}

// Pays reports whether a proof is worth trying for a consistent list: not if the list is so
// small that asking the upstream costs no more.
func (res *Resource) Pays(s *timeline.Snapshot, sel request.Selection, limit int64) bool {
	return res.prover.pays(s, sel, limit)
}
