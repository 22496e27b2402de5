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
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
	recording "github.com/watchkeeper/watchkeeper/internal/recorder"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// Options configure a [Gateway]. Only Upstream is required.
type Options struct {
	// Upstream is the API server to stand in front of.
	Upstream *Upstream

	// APIPrefix is the path below which the API is served; it is taken off
	// before a request goes on. As for kubectl proxy, a prefix that begins
	// with /api stays on. Empty means "/".
	APIPrefix string

	// Filter says which requests are served at all.
	Filter FilterOptions

	// WWW is a directory to serve below WWWPrefix; empty means none.
	// An empty WWWPrefix means "/static/".
	WWW       string
	WWWPrefix string

	// IdleTimeout is how long a resource without readers stays watched.
	// Zero means 30 minutes.
	IdleTimeout time.Duration

	// WindowBytes and WindowAge bound the events that are kept of each resource:
	// by what they take (T10), and by how long ago they came. Zero means 64 MiB,
	// and no bound by age.
	WindowBytes int64
	WindowAge   time.Duration

	// History records what the gateway watches, and gives back what was recorded
	// before; nil records nothing. Whoever made it runs it, for longer than the
	// gateway.
	History *recording.Recorder

	// Recording is served in place of a cluster, and does not change; Upstream
	// stands for its API server. It excludes History. nil for a cluster.
	Recording *history.Store

	// Logger takes the gateway's log; nil discards it.
	Logger *slog.Logger

	// Registerer takes the gateway's metrics; nil leaves them unregistered.
	Registerer prometheus.Registerer
}

const (
	defaultWWWPrefix   = "/static/"
	defaultIdleTimeout = 30 * time.Minute
)

// ResourceStatus is the state of one watched resource.
type ResourceStatus struct {
	Resource    string    // plural.group
	State       string    // what its reflector is doing, in a word
	RV          uint64    // the newest resourceVersion known
	LastContact time.Time // when the upstream last sent something
	LastError   string    // empty while all is well
	Objects     int
	Watches     int
}

// reader serves LIST, GET and WATCH from the timelines.
type reader interface {
	// serve answers r if it can do so exactly; else it has written nothing
	// and returns false.
	serve(w *recorder, r *http.Request) (served bool)
	// serveAt answers r as of a moment of the past.
	serveAt(w *recorder, r *http.Request, when kube.Moment)
	// run works until ctx ends and returns when all it started has ended.
	run(ctx context.Context) error
	// drain ends open streams within ctx.
	drain(ctx context.Context)
	resources() []ResourceStatus
}

// Gateway is the HTTP handler in front of an API server. It is safe for
// concurrent use.
type Gateway struct {
	up          *Upstream
	log         *slog.Logger
	filter      *filter
	metrics     *requestMetrics
	passthrough http.Handler
	reader      reader
	past        *past // of a cluster; nil for none
	extensions  *extensions
	mounts      []mount
	apiPrefix   string
	requests    requestTracker
}

// mount is a part of the URL space. The longest matching prefix wins.
type mount struct {
	prefix  string
	source  string
	handler http.Handler // nil for the API
}

// New returns a gateway. It starts nothing: see [Gateway.Run].
func New(opts Options) (*Gateway, error) {
	if opts.Upstream == nil {
		return nil, errors.New("gateway: no upstream")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.IdleTimeout == 0 {
		opts.IdleTimeout = defaultIdleTimeout
	}
	g := &Gateway{
		up:          opts.Upstream,
		log:         opts.Logger,
		passthrough: newPassthrough(opts.Upstream, opts.Logger),
		apiPrefix:   dirPath(cmp.Or(opts.APIPrefix, "/")),
	}
	g.requests.init()
	var err error
	if g.filter, err = newFilter(opts.Filter); err != nil {
		return nil, err
	}
	if g.metrics, err = newRequestMetrics(opts.Registerer); err != nil {
		return nil, fmt.Errorf("gateway metrics: %w", err)
	}
	c := newCache(opts.Upstream, opts.IdleTimeout, opts.Logger)
	c.history, c.still = opts.History, opts.Recording != nil
	var recorded archive = opts.History
	if c.still {
		recorded = stillArchive{opts.Recording}
	}
	if c.still || opts.History != nil {
		c.past = newPast(c, recorded)
	}
	if !c.still {
		g.past = c.past
	}
	c.window = timeline.Options{WindowBytes: opts.WindowBytes, WindowAge: opts.WindowAge}
	if opts.Registerer != nil {
		if err := opts.Registerer.Register(c.metrics); err != nil {
			return nil, fmt.Errorf("gateway metrics: %w", err)
		}
	}
	g.reader = c
	g.extensions = &extensions{
		multiwatch: &multiwatch{answer: g.serveInner, contact: c.contact, log: g.log},
		history:    &historyAPI{source: recorded, up: opts.Upstream, disclosure: &c.disclosure, filter: g.filter, exports: c.exports},
	}
	if err := g.mount(opts.WWW, dirPath(cmp.Or(opts.WWWPrefix, defaultWWWPrefix))); err != nil {
		return nil, err
	}
	return g, nil
}

// mount lays out the URL space.
func (g *Gateway) mount(www, wwwPrefix string) error {
	// Links of the page lead below the prefix, except that one beginning with
	// /api stands for the API server's own paths.
	linkPrefix := g.apiPrefix
	if !g.stripsPrefix() {
		linkPrefix = "/"
	}
	ui, err := newUI(linkPrefix)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	g.mounts = []mount{
		{g.apiPrefix, sourcePassthrough, nil},
		{uiPrefix, sourceStatic, ui},
		{extensionPrefix, sourceExtension, g.extensions},
	}
	if g.stripsPrefix() { // for a client that knows one URL
		below := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g.extensions.ServeHTTP(w, stripPrefix(r, g.apiPrefix))
		})
		g.mounts = append(g.mounts, mount{g.apiPrefix + extensionPrefix[1:], sourceExtension, below})
	} else if g.apiPrefix != "/" {
		g.mounts = append(g.mounts, mount{atPrefix, sourcePassthrough, nil})
	}
	if www != "" {
		files, err := newStatic(www, wwwPrefix)
		if err != nil {
			return err
		}
		g.mounts = append(g.mounts, mount{wwwPrefix, sourceStatic, files})
	}
	slices.SortFunc(g.mounts, func(a, b mount) int { return len(b.prefix) - len(a.prefix) })
	for i, m := range g.mounts[1:] {
		if m.prefix == g.mounts[i].prefix {
			return fmt.Errorf("two things would be served at %s: change --api-prefix or --www-prefix", m.prefix)
		}
	}
	return nil
}

// ServeHTTP answers one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.requests.enter()
	defer g.requests.leave()
	start := time.Now()
	rec := &recorder{ResponseWriter: w, metrics: g.metrics, requests: &g.requests, request: r, source: sourceFilter}
	returned := false
	defer func() {
		// A handler that wrote nothing meant 200; one that panicked, nothing.
		if returned {
			rec.count(http.StatusOK)
		} else {
			rec.count(codeAborted)
		}
		g.log.Debug("request", "method", r.Method, "path", r.URL.Path,
			"source", rec.source, "code", rec.code, "took", time.Since(start))
	}()
	if g.route(rec, r); rec.stream != nil {
		rec.stream.serve(rec)
	}
	returned = true
}

func (g *Gateway) route(rec *recorder, r *http.Request) {
	if r.Method == http.MethodConnect {
		writeStatus(rec, r, methodNotAllowed()) // we are no forward proxy
		return
	}
	if refusal := g.filter.checkOrigin(r); refusal != nil {
		writeStatus(rec, r, refusal)
		return
	}
	m := g.mountFor(r.URL.Path)
	switch {
	case toPage(r) && (m == nil || m.handler == nil):
		rec.source = sourceStatic
		redirectBelow(rec, uiPrefix[1:], http.StatusFound)
	case m == nil:
		writeStatus(rec, r, g.notServed())
	case m.handler == nil:
		g.serveAPI(rec, r)
	case r.URL.Path+"/" == m.prefix:
		rec.source = m.source
		redirectBelow(rec, path.Base(m.prefix)+"/", http.StatusMovedPermanently)
	default:
		rec.source = m.source
		m.handler.ServeHTTP(rec, r)
	}
}

func (g *Gateway) notServed() *metav1.Status {
	return notFound(fmt.Sprintf("the API is served below %s: see --api-prefix", g.apiPrefix))
}

// redirectBelow leads to a path relative to that of the request, so that it is
// right below whatever path a proxy serves us.
func redirectBelow(w http.ResponseWriter, to string, code int) {
	w.Header().Set("Location", to)
	w.WriteHeader(code)
}

// mountFor returns the mount of a path, nil if there is none. A directory
// without its slash belongs to the mount as well.
func (g *Gateway) mountFor(path string) *mount {
	for i := range g.mounts {
		if strings.HasPrefix(path+"/", g.mounts[i].prefix) {
			return &g.mounts[i]
		}
	}
	return nil
}

// toPage reports whether r is a browser that opened the root.
func toPage(r *http.Request) bool {
	return r.URL.Path == "/" && r.Method == http.MethodGet && prefersHTML(r)
}

func (g *Gateway) serveAPI(rec *recorder, r *http.Request) {
	if g.stripsPrefix() {
		r = stripPrefix(r, g.apiPrefix)
		rec.request = r
	}
	g.answer(rec, r)
}

// serveInner serves a request for the API that is a part of another request.
func (g *Gateway) serveInner(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w, metrics: g.metrics, requests: &g.requests, request: r, source: sourceFilter}
	if g.answer(rec, r); rec.stream != nil {
		rec.stream.serve(rec)
	}
}

// answer serves a request for the API, below the prefix.
func (g *Gateway) answer(rec *recorder, r *http.Request) {
	if isAt(r.URL.Path) {
		g.answerAt(rec, r)
		return
	}
	if refusal := g.filter.checkAPI(r); refusal != nil {
		writeStatus(rec, r, refusal)
		return
	}
	rec.source = sourceCache
	cut, release, _ := g.requests.bind(r.Context(), false)
	served := g.reader.serve(rec, r.WithContext(cut))
	release()
	if !served {
		g.passThrough(rec, r)
	}
}

// passThrough hands a request to the API server.
func (g *Gateway) passThrough(rec *recorder, r *http.Request) {
	rec.source = sourcePassthrough
	ctx, cancel, ok := g.requests.bind(r.Context(), isLongRunning(r))
	defer cancel()
	if !ok {
		writeStatus(rec, r, unavailable(errDraining.Error(), true))
		return
	}
	g.passthrough.ServeHTTP(rec, r.WithContext(ctx))
}

// Run works until ctx ends, and returns when everything it started and every
// request has ended. Call [Gateway.Drain] first to let them end well.
func (g *Gateway) Run(ctx context.Context) error {
	var learning sync.WaitGroup
	if g.past != nil {
		learning.Go(func() { g.past.learn(ctx) })
	}
	err := g.reader.run(ctx)
	learning.Wait()
	g.requests.cut()
	<-g.requests.idle()
	return err
}

// Drain ends open streams, lets other requests finish, and returns when none
// is left; when ctx ends, it cuts off what remains. New streams are refused.
func (g *Gateway) Drain(ctx context.Context) {
	g.requests.drain()
	g.reader.drain(ctx)
	select {
	case <-g.requests.idle():
	case <-ctx.Done():
		g.requests.cut()
	}
}

// Resources returns the state of every watched resource, sorted by name.
func (g *Gateway) Resources() []ResourceStatus {
	all := g.reader.resources()
	slices.SortFunc(all, func(a, b ResourceStatus) int { return strings.Compare(a.Resource, b.Resource) })
	return all
}

// Ready returns nil when requests can be served: the gateway is not draining
// and the upstream answered within the last seconds or answers now.
func (g *Gateway) Ready(ctx context.Context) error {
	if g.requests.draining() {
		return errDraining
	}
	return g.up.Probe(ctx)
}

// stripsPrefix reports whether the API prefix is ours alone. kubectl proxy
// reads --api-prefix=/api/ as "serve only what is below /api/".
func (g *Gateway) stripsPrefix() bool {
	return g.apiPrefix != "/" && !strings.HasPrefix(g.apiPrefix, "/api")
}

// stripPrefix returns r with prefix, which ends in a slash, taken off its path.
func stripPrefix(r *http.Request, prefix string) *http.Request {
	cut := func(path string) (string, bool) {
		if path+"/" == prefix {
			return "/", true
		}
		rest, ok := strings.CutPrefix(path, prefix)
		return "/" + rest, ok
	}
	out := r.WithContext(r.Context())
	u := *r.URL
	out.URL = &u
	u.Path, _ = cut(r.URL.Path)
	if raw, ok := cut(rawPath(r)); ok {
		out.RequestURI = raw
	} else {
		// The client escaped something in the prefix itself.
		out.RequestURI = (&url.URL{Path: u.Path}).EscapedPath()
	}
	u.RawPath = out.RequestURI
	return out
}

// isLongRunning reports whether a request is one that ends only when somebody
// ends it.
func isLongRunning(r *http.Request) bool {
	return isUpgrade(r) || truthy(r, "follow") || isWatch(r)
}

// isWatch reports whether a request is a watch.
func isWatch(r *http.Request) bool {
	path := r.URL.Path
	if isAt(path) {
		_, path, _ = strings.Cut(strings.TrimPrefix(path, atPrefix), "/")
	}
	t, ok := parsePath(path)
	return ok && (t.watchPath || truthy(r, "watch"))
}

// dirPath returns p with a slash at both ends.
func dirPath(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if !strings.HasSuffix(p, "/") {
		p += "/"
	}
	return p
}
