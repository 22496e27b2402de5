// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	recording "github.com/watchkeeper/watchkeeper/internal/recorder"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A resource is one watched collection: a reflector that writes a timeline,
// and what is known of its readers.
type resource struct {
	id        kube.Resource
	info      metav1.APIResource
	timeline  *timeline.Timeline
	reflector *informer.Reflector
	encoder   wire.Encoder
	prover    *prover
	access    *access
	defined   definitions
	standing  standing
	dropped   atomic.Bool     // see cache.drop
	resume    informer.Resume // filled in from what is recorded
	cancel    context.CancelFunc
	done      chan struct{} // closed when the reflector has stopped
	seeded    atomic.Bool   // the timeline begins with what is recorded
	fed       chan struct{} // closed when there is a first list, or a watch in its place

	watches    atomic.Int64 // open ones
	unwritable unwritable
	left       leftover
	cbor       cborOffer

	// Guarded by cache.mu.
	readers  int       // requests that hold the resource
	lastUsed time.Time // when the last reader left
}

func newResource(up *Upstream, id kube.Resource, info metav1.APIResource, log *slog.Logger, begin beginFunc, window timeline.Options) *resource {
	res := &resource{id: id, info: info, timeline: timeline.New(window), done: make(chan struct{}), fed: make(chan struct{})}
	res.encoder.Resource = id
	res.reflector = informer.NewReflector(informer.ReflectorOptions{
		Transport: agent{up},
		URL:       up.URL(id.Path(), ""),
		Kind:      info.Kind,
		Columns:   true,
		Sink:      &feed{Timeline: res.timeline, replaced: res.listed, fed: func() { close(res.fed) }},
		Resume:    &res.resume,
		Logger:    log.With("resource", id.String()),
	})
	res.access = newAccess(up, id, begin)
	res.defined = definitions{up: up, id: id, asked: shared[knownDefinition]{begin: begin, timeout: definitionTimeout}}
	res.cbor.asked = shared[bool]{begin: begin, timeout: cborTimeout}
	if !id.BuiltIn() {
		res.encoder.DatePath = res.defined.date
	}
	res.prover = newProver(up, id, res.timeline, res.reflector, begin)
	return res
}

// run feeds the timeline until ctx ends, or the upstream refuses the resource,
// which it returns. Open watches end with it. What is recorded of the resource is
// gone on from.
func (res *resource) run(ctx context.Context, history *recording.Recorder, log *slog.Logger) (refused *informer.RefusedError) {
	defer close(res.done)
	lease, err := history.Take(ctx, res.id)
	if err != nil {
		res.timeline.Close()
		return nil
	}
	// What has gone, or has become another, is not to be gone on from.
	defer func() { lease.End(res.dropped.Load() || refused != nil && refused.Code == http.StatusNotFound) }()
	defer res.timeline.Close()
	if seed := lease.Seed(); seed != nil {
		res.seeded.Store(true)
		seed.Load(res.timeline)
		res.resume = seed.Resume()
		log.Info("going on from what is recorded", "resource", res.id.String(), "rv", seed.List.RV, "objects", len(seed.List.Items))
	}
	lease.Follow(res.timeline)
	refused, ok := errors.AsType[*informer.RefusedError](res.reflector.Run(ctx))
	if ok {
		log.Warn("not watched any more: the upstream refuses it", "resource", res.id.String(), "code", refused.Code, "cause", refused.Message)
	}
	return refused
}

// view returns the current view, and true if reads may be served from it: there
// has been a list, and the upstream's last word was not a refusal. The status
// is what that was judged by.
func (res *resource) view() (*timeline.View, informer.Status, bool) {
	v, status := res.timeline.View(), res.reflector.Status()
	return v, status, v != nil && !v.Closed() && status.Phase != informer.Refused && !(res.seeded.Load() && beginning(status))
}

// beginning reports whether the upstream is being asked for what came after that
// which is recorded. It may have gone back, and then that is not to be served; while
// nobody is there to ask, it is what there is.
func beginning(status informer.Status) bool {
	return status.Phase == informer.Starting || status.Phase == informer.Listing && len(status.Relists) == 0
}

// viewFor is view for a request: for as long as it is worth while to keep one
// waiting, all but a GET wait for the first list. Of what is recorded, they wait
// until that is gone on from.
func (res *resource) viewFor(ctx context.Context, verb readVerb) (*timeline.View, informer.Status, bool) {
	if verb == verbGet {
		return res.view()
	}
	waited := res.waitSynced(ctx)
	v, status, ok := res.view()
	if !ok && waited && beginning(status) { // the watch ended as it began
		res.waitSynced(ctx)
		return res.view()
	}
	return v, status, ok
}

// waitSynced reports whether there is what viewFor waits for.
func (res *resource) waitSynced(ctx context.Context) bool {
	if isClosed(res.timeline.Synced()) && (!res.seeded.Load() || isClosed(res.fed) && !beginning(res.reflector.Status())) {
		return true
	}
	if p := res.reflector.Status().Phase; p == informer.Retrying || p == informer.Refused {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, syncWait)
	defer cancel()
	if !await(ctx, res.done, res.timeline.Synced()) {
		return false
	}
	if !res.seeded.Load() {
		return true
	}
	if !await(ctx, res.done, res.fed) {
		return false
	}
	// The watch that goes on from the record may be told at once that its RV has
	// expired. What it was recorded for is served again when there is a list.
	for beginning(res.reflector.Status()) {
		if !await(ctx, res.done, time.After(beginningPoll)) {
			return false
		}
	}
	return true
}

// beginningPoll is how often it is looked whether what is recorded is gone on
// from, where a list is needed for that.
const beginningPoll = 20 * time.Millisecond

// await reports whether c has something before ctx and done have.
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

// agent sends requests of the gateway's own, under its name.
type agent struct{ up *Upstream }

func (a agent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", a.up.userAgent)
	resp, err := a.up.Transport.RoundTrip(r)
	if err != nil {
		err = redacted{err}
	}
	return resp, err
}

// redacted is an error that says its cause without credentials.
type redacted struct{ error }

func (e redacted) Error() string { return cause(e.error) }
func (e redacted) Unwrap() error { return e.error }

// A beginFunc is cache.begin.
type beginFunc func() (ctx context.Context, end func(), ok bool)
