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
	"github.com/watchkeeper/watchkeeper/internal/kube"
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
	access    access
	defined   definitions
	standing  standing
	cancel    context.CancelFunc
	done      chan struct{} // closed when the reflector has stopped

	watches    atomic.Int64 // open ones
	unwritable unwritable
	cbor       cborOffer

	// Guarded by cache.mu.
	readers  int       // requests that hold the resource
	lastUsed time.Time // when the last reader left
}

func newResource(up *Upstream, id kube.Resource, info metav1.APIResource, log *slog.Logger, begin beginFunc, window timeline.Options) *resource {
	res := &resource{id: id, info: info, timeline: timeline.New(window), done: make(chan struct{})}
	res.encoder.Resource = id
	res.reflector = informer.NewReflector(informer.ReflectorOptions{
		Transport: agent{up},
		URL:       up.URL(id.Path(), ""),
		Kind:      info.Kind,
		Columns:   true,
		Sink:      &feed{Timeline: res.timeline, replaced: res.listed},
		Logger:    log.With("resource", id.String()),
	})
	res.access = access{up: up, id: id, begin: begin}
	res.defined = definitions{up: up, id: id, begin: begin}
	if !id.BuiltIn() {
		res.encoder.DatePath = res.defined.date
	}
	res.prover = newProver(up, id, res.timeline, res.reflector, begin)
	return res
}

// run feeds the timeline until ctx ends, or the upstream refuses the resource,
// which it returns. Open watches end with it.
func (res *resource) run(ctx context.Context, log *slog.Logger) *informer.RefusedError {
	defer close(res.done)
	defer res.timeline.Close()
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
	return v, status, v != nil && !v.Closed() && status.Phase != informer.Refused
}

// waitSynced waits for the first list, for as long as it is worth while to
// keep a request waiting.
func (res *resource) waitSynced(ctx context.Context) {
	select {
	case <-res.timeline.Synced():
		return
	default:
	}
	if p := res.reflector.Status().Phase; p == informer.Retrying || p == informer.Refused {
		return
	}
	timer := time.NewTimer(syncWait)
	defer timer.Stop()
	select {
	case <-res.timeline.Synced():
	case <-res.done:
	case <-timer.C:
	case <-ctx.Done():
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
