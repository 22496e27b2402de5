// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
	"github.com/watchkeeper/watchkeeper/internal/serve/delegated"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/multiwatch"
	"github.com/watchkeeper/watchkeeper/internal/serve/passthrough"
	"github.com/watchkeeper/watchkeeper/internal/serve/rbacwatch"
	"github.com/watchkeeper/watchkeeper/internal/serve/workbookapi"
	"github.com/watchkeeper/watchkeeper/internal/serve/yamlapi"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// Options configure a [Gateway]. Only Upstream is required.
type Options struct {
	// Upstream is the API server to stand in front of.
	Upstream *upstream.Server

	// APIPrefix is the path below which the API is served; it is removed from the
	// path of a request. As with kubectl proxy, a prefix that begins with /api is
	// kept. Empty means "/".
	APIPrefix string

	// AllowProxiedPages passes HTML of the API server through without a sandbox: a page
	// of a Pod, Service or Node below /proxy then has the rights of the gateway's own.
	AllowProxiedPages bool

	// Filter says which requests are served.
	Filter FilterOptions

	// WWW is a directory to serve below WWWPrefix; empty means none.
	// An empty WWWPrefix means "/static/".
	WWW       string
	WWWPrefix string

	// IdleTimeout is how long a resource without readers stays watched.
	// Zero means 30 minutes.
	IdleTimeout time.Duration

	// WindowBytes and WindowAge bound the window of each resource by the memory of its
	// events (T10) and by their age. Zero means 64 MiB, and no bound by age.
	WindowBytes int64
	WindowAge   time.Duration

	// History records the watched resources and serves the recorded past; nil records
	// nothing. The caller runs it, for longer than the gateway.
	History *recorder.Recorder

	// Recording is served in place of a cluster and never changes; Upstream is then
	// its API server. It excludes History. nil for a cluster.
	Recording *history.Store
	// RecordingScope is what the Recording is limited to; nil if that is nothing.
	RecordingScope *recording.Scope
	// RecordingSlack is that of the Recording's header.
	RecordingSlack time.Duration

	// Shared configures shared mode, in which each request has its own caller. nil is local
	// mode: clients without credentials act with the gateway's.
	Shared *access.SharedOptions
	// Audit records the requests of shared mode; nil records nothing. The caller runs it,
	// for longer than the gateway.
	Audit *audit.Auditor
	// Limits bound what each user may take in shared mode.
	Limits fairness.Limits

	// Logger takes the gateway's log; nil discards it.
	Logger *slog.Logger

	// Registerer takes the gateway's metrics; nil leaves them unregistered.
	Registerer prometheus.Registerer
}

const (
	defaultWWWPrefix = "/static/"
	// encodingBytes bounds the cache of objects in encodings other than the API server's
	// JSON.
	encodingBytes = 64 << 20
)

// ResourceStatus is the state of one watched resource.
type ResourceStatus struct {
	Resource    string    // plural.group
	State       string    // the phase of its reflector
	RV          uint64    // the head
	LastContact time.Time // when the upstream last sent something, a refusal included
	LastKnown   time.Time // when the view was last known to be current
	LastError   string    // empty without an error
	Objects     int
	Watches     int
}

// Gateway is the HTTP handler in front of an API server. It is safe for
// concurrent use.
type Gateway struct {
	up          *upstream.Server
	log         *slog.Logger
	filter      *filter
	metrics     *requestMetrics
	passthrough http.Handler
	reads       *reads
	shared      *access.Shared // nil in local mode
	audit       *audit.Auditor // nil for none
	users       *fairness.Users
	extensions  *extensions
	mounts      []mount
	apiPrefix   string
	tracker     *httpstream.Tracker
	unproven    *fairness.Queue // of the watches of passUnproven, by user
	reviews     *fairness.Queue // of the bodies of answerReview, by user
}

// New returns a gateway. It starts nothing: see [Gateway.Run].
func New(opts Options) (*Gateway, error) {
	if opts.Upstream == nil {
		return nil, errors.New("gateway: no upstream")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	h, lag := newReads(opts)
	g := &Gateway{
		up:        opts.Upstream,
		log:       opts.Logger,
		reads:     h,
		apiPrefix: dirPath(cmp.Or(opts.APIPrefix, "/")),
		tracker:   h.tracker,
		unproven:  newUnproven(opts.Shared != nil),
		reviews:   newReviews(opts.Shared != nil),
	}
	var err error
	if opts.Shared != nil {
		if g.shared, err = delegated.New(opts.Upstream, *opts.Shared, h.background, opts.Registerer, g.log); err != nil {
			return nil, err
		}
		h.shared, g.audit = g.shared, opts.Audit
		if h.access != nil {
			h.access.Shared, h.access.Server = g.shared, h.checkServer
		}
		if g.users = h.users; h.past != nil {
			h.past.Lists.PerUser(g.users, "lists of the past in flight")
		}
		if opts.Registerer != nil {
			if err := opts.Registerer.Register(g.users); err != nil {
				return nil, fmt.Errorf("gateway metrics: %w", err)
			}
		}
	}
	g.passthrough = passthrough.New(passthrough.Options{
		Upstream: h.up, Cache: h.cache, Documents: h.documents, Shared: g.shared, AllowPages: opts.AllowProxiedPages,
		Remembers: func(id kube.Resource) bool { return h.past.Records(id) }, Logger: g.log,
	})
	if g.filter, err = newFilter(opts.Filter); err != nil {
		return nil, err
	}
	if g.metrics, err = newRequestMetrics(opts.Registerer); err != nil {
		return nil, fmt.Errorf("gateway metrics: %w", err)
	}
	history := historyapi.New(historyapi.Handler{
		Past: h.past, Access: h.access, Upstream: opts.Upstream, Documents: h.documents, Recording: recordingState(opts), Filter: g.checkPath,
		Users: g.users, Live: h.present,
	})
	if opts.Registerer != nil {
		for _, c := range []prometheus.Collector{
			&cacheMetrics{reads: h, lag: lag, limiters: history.Limiters}, &upstreamMetrics{h.up},
		} {
			if err := opts.Registerer.Register(c); err != nil {
				return nil, fmt.Errorf("gateway metrics: %w", err)
			}
		}
	}
	g.extensions = &extensions{
		multiwatch: &multiwatch.Handler{Answer: g.serveInner, Open: g.openInner, Upstream: h.upstreamState, Logger: g.log},
		history:    history,
		access:     g.newAccessAPI(),
		workbook:   &workbookapi.Handler{Queue: h.workbooks},
		yaml:       yamlapi.New(g.users),
	}
	if err := g.mount(opts.WWW, dirPath(cmp.Or(opts.WWWPrefix, defaultWWWPrefix))); err != nil {
		return nil, err
	}
	return g, nil
}

// newReads returns the handler of reads, and the histogram of the dispatch lag of
// watches.
func newReads(opts Options) (*reads, prometheus.Histogram) {
	lag := newLag()
	h := &reads{
		up:         opts.Upstream,
		background: upstream.NewBackground(),
		tracker:    httpstream.NewTracker(opts.Logger, lag),
		log:        opts.Logger,
		recording:  opts.Recording != nil,
		encodings:  wire.NewCache(encodingBytes),
	}
	if opts.Shared != nil {
		h.users = fairness.NewUsers(opts.Limits, opts.Logger)
	}
	h.workbooks = workbookapi.NewQueue(h.users)
	h.discovery = upstream.NewDiscovery(h.up, h.background)
	h.documents = upstream.NewDocuments(h.up)
	h.cache = watchcache.New(watchcache.Options{
		Upstream: h.up, Background: h.background, Discovery: h.discovery, Logger: opts.Logger,
		IdleTimeout: opts.IdleTimeout, Await: opts.History.Ready,
		Window: timeline.Options{WindowBytes: opts.WindowBytes, WindowAge: opts.WindowAge, Now: opts.History.Now},
	})
	switch {
	case opts.Recording != nil:
		h.past = past.New(past.Recording{History: opts.Recording, Slack: opts.RecordingSlack}, h.background, opts.Logger)
		if s := opts.RecordingScope; s != nil {
			h.past.Only = s.Namespace
		}
	case opts.History != nil:
		h.past = past.New(opts.History, h.background, opts.Logger)
		h.past.CatchUp, h.past.Lacks = h.catchUp, h.documents.Lacks
	}
	if h.past != nil {
		h.access = access.NewPast(h.up, h.past, h.background)
	}
	return h, lag
}

// catchUp waits until the timeline of a resource has everything that the upstream has.
func (h *reads) catchUp(ctx context.Context, id kube.Resource) error {
	if c := h.up.Contact(); c.Err != nil && !c.NotReady() {
		return errors.New(c.String())
	}
	res := h.cache.Acquire(ctx, id)
	if res == nil {
		return errDeclined
	}
	defer res.Release()
	if !res.WaitSynced(ctx) {
		return errDeclined
	}
	_, err := res.Fresh(ctx)
	return err
}

// present returns the state of a resource now, from the cache; nil if it cannot be served, or
// is not known to be the present: it is not recorded, perhaps because the API server refuses it.
func (h *reads) present(ctx context.Context, id kube.Resource) *timeline.Snapshot {
	res := h.cache.Acquire(ctx, id)
	if res == nil {
		return nil
	}
	defer res.Release()
	state := res.StateFor(ctx, request.List)
	if phase := state.Status.Phase; phase == reflector.Retrying || phase == reflector.Refused {
		return nil
	}
	if !state.Readable || !res.Access.Allows(ctx, request.List) || !res.Served(ctx, state.Lists()) {
		return nil
	}
	return &state.View.Snapshot
}

// recordingState returns a function that reports the state of recording, for the
// history API.
func recordingState(opts Options) func() historyapi.RecordingState {
	return func() historyapi.RecordingState {
		if opts.Recording != nil {
			return historyapi.RecordingState{State: api.RecordingEnded, Scope: opts.RecordingScope}
		}
		switch s, ok := opts.History.Status(); {
		case !ok:
			return historyapi.RecordingState{State: api.RecordingOff, Reason: "watchkeeper serve has no --data-dir"}
		case !s.Recording:
			return historyapi.RecordingState{State: api.RecordingFailed, Reason: s.Problem}
		}
		return historyapi.RecordingState{State: api.RecordingOn}
	}
}

// WaitReady waits a short time, at the start of shared mode, until client certificates can
// be verified.
func (g *Gateway) WaitReady(ctx context.Context) {
	if g.shared != nil {
		g.shared.WaitReady(ctx)
	}
}

// ClientCAs returns the CAs of the client certificates that are accepted in shared mode,
// in PEM; empty in local mode, or while they are not known.
func (g *Gateway) ClientCAs() []byte {
	if g.shared == nil {
		return nil
	}
	return g.shared.ClientCAs()
}

// Cache returns the owner of the upstream watches, for the recorder.
func (g *Gateway) Cache() *watchcache.Cache { return g.reads.cache }

// Run runs the gateway until ctx ends, and returns when its goroutines and all requests
// have ended. Call [Gateway.Drain] first to let requests end cleanly.
func (g *Gateway) Run(ctx context.Context) error {
	var learning sync.WaitGroup
	if !g.reads.recording {
		learning.Go(func() { g.up.Monitor(ctx) })
	}
	if g.shared != nil {
		hints := &rbacwatch.Watcher{
			Cache: g.reads.cache, Hint: g.shared.Permits.Hint, PodTokens: g.shared.Permits.HasPodTokens, Logger: g.log,
		}
		learning.Go(func() { g.shared.Run(ctx) })
		learning.Go(func() { hints.Run(ctx) })
	}
	// Callers who cannot be passed through read discovery here.
	if g.reads.access != nil || g.shared != nil && g.shared.Impersonator == nil {
		learning.Go(func() { g.reads.documents.Run(ctx) })
	}
	if g.reads.access != nil && !g.reads.recording {
		learning.Go(func() { g.reads.access.Run(ctx) })
	}
	g.reads.cache.Run(ctx)
	g.reads.background.Stop()
	learning.Wait()
	g.tracker.Cut()
	<-g.tracker.Idle()
	return nil
}

// Drain ends open streams, lets other requests finish, and returns when none is
// left; when ctx ends, it cuts off what remains. New streams are refused.
func (g *Gateway) Drain(ctx context.Context) {
	g.reads.cache.Close()
	g.reads.background.Close()
	// A hundred watches a second, within four fifths of the remaining time.
	spread := time.Duration(g.reads.cache.OpenWatches()) * 10 * time.Millisecond
	if deadline, ok := ctx.Deadline(); ok {
		spread = min(spread, time.Until(deadline)*4/5)
	}
	g.tracker.Drain(spread)
	select {
	case <-g.tracker.Idle():
	case <-ctx.Done():
		g.tracker.Cut()
	}
}

// Resources returns the state of every watched resource, sorted by name.
func (g *Gateway) Resources() []ResourceStatus {
	var all []ResourceStatus
	for _, res := range g.reads.cache.All() {
		s := res.Status()
		rs := ResourceStatus{
			Resource: res.ID.String(), State: string(s.Phase), LastContact: s.LastContact, LastKnown: s.LastKnown,
			Watches: int(res.OpenWatches()), Objects: res.Timeline.Stats().Objects,
		}
		if s.LastError != nil {
			rs.LastError = upstream.Cause(s.LastError)
		}
		if v := res.Timeline.View(); v != nil {
			rs.RV = v.RV
		}
		all = append(all, rs)
	}
	slices.SortFunc(all, func(a, b ResourceStatus) int { return strings.Compare(a.Resource, b.Resource) })
	return all
}

// Ready returns nil when requests can be served: the gateway is not draining, and the
// API server answered within the last seconds or answers now, and is ready.
func (g *Gateway) Ready(ctx context.Context) error {
	if g.tracker.Draining() {
		return upstream.ErrShutdown
	}
	return g.up.ContactUntil(ctx, time.Now()).Err
}
