// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/selfreview"
	"github.com/watchkeeper/watchkeeper/internal/serve/workbookapi"
	"github.com/watchkeeper/watchkeeper/internal/serve/yamlapi"
)

// mount is a part of the URL space. The longest matching prefix wins.
type mount struct {
	prefix  string
	source  string
	handler http.Handler // nil for the API
}

// mount lays out the URL space.
func (g *Gateway) mount(www, wwwPrefix string) error {
	// Links of the page lead below the prefix, unless the prefix begins with /api:
	// those are the API server's own paths.
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
		{extensionPrefix, sourceExtension, http.HandlerFunc(g.serveExtension)},
	}
	if g.stripsPrefix() { // for clients that only have the prefixed URL
		below := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g.serveExtension(w, stripPrefix(r, g.apiPrefix))
		})
		g.mounts = append(g.mounts, mount{g.apiPrefix + extensionPrefix[1:], sourceExtension, below})
	} else if g.apiPrefix != "/" {
		g.mounts = append(g.mounts, mount{request.AtPrefix, sourcePassthrough, nil})
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
	g.tracker.Enter()
	defer g.tracker.Leave()
	start := time.Now()
	rec := &responseRecorder{ResponseWriter: w, metrics: g.metrics, request: r, source: sourceFilter}
	returned := false
	defer func() {
		// A handler that wrote nothing answered 200; one that panicked, nothing.
		if returned {
			rec.count(http.StatusOK)
		} else {
			rec.count(codeAborted)
		}
		took := time.Since(start)
		rec.ended(took)
		g.log.Debug("request", "method", r.Method, "path", r.URL.Path,
			"source", rec.source, "code", rec.code, "took", took)
	}()
	if g.route(rec, r); rec.stream != nil {
		g.tracker.Serve(rec, rec.request, rec.stream)
	}
	returned = true
}

func (g *Gateway) route(rec *responseRecorder, r *http.Request) {
	if r.Method == http.MethodConnect {
		status.Write(rec, r, status.MethodNotAllowed()) // the gateway is no forward proxy
		return
	}
	if refusal := g.filter.checkOrigin(r); refusal != nil {
		status.Write(rec, r, refusal)
		return
	}
	m := g.mountFor(r.URL.Path)
	if toPage(r) && (m == nil || m.handler == nil) {
		rec.source = sourceStatic
		redirectBelow(rec, uiPrefix[1:], http.StatusFound)
		return
	}
	if m == nil || m.source != sourceStatic {
		if refusal := g.filter.checkRead(r); refusal != nil {
			status.Write(rec, r, refusal)
			return
		}
	}
	// The page's files are the same for everybody, and show the login.
	if g.shared != nil && (m == nil || m.prefix != uiPrefix) {
		defer rec.endAudit()
		if r = g.authenticate(rec, r); r == nil {
			return
		}
	}
	// The API's paths are checked without their prefix.
	if m == nil || m.handler != nil && !converts(m, r) {
		if refusal := g.filter.checkMethod(r); refusal != nil {
			status.Write(rec, r, refusal)
			return
		}
	}
	switch {
	case m == nil:
		status.Write(rec, r, g.notServed())
	case m.handler == nil:
		g.serveAPI(rec, r)
	case r.URL.Path+"/" == m.prefix:
		rec.source = m.source
		redirectBelow(rec, path.Base(m.prefix)+"/", http.StatusMovedPermanently)
	default:
		rec.source = m.source
		m.handler.ServeHTTP(rec, r)
	}
	if rec.code == http.StatusTooManyRequests {
		g.users.Pause(r.Context())
	}
}

// converts reports whether r is a POST that changes nothing, also if the gateway is
// read-only: it converts a workbook, or YAML.
func converts(m *mount, r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, m.prefix)
	path := extensionPrefix + rest
	return ok && m.source == sourceExtension && r.Method == http.MethodPost && (path == workbookapi.Path || path == yamlapi.Path)
}

func (g *Gateway) notServed() *metav1.Status {
	return status.NotFound(fmt.Sprintf("the API is served below %s: see --api-prefix", g.apiPrefix))
}

// redirectBelow redirects to a path relative to that of the request, so that it is
// right below any path at which a proxy serves the gateway.
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

func (g *Gateway) serveAPI(rec *responseRecorder, r *http.Request) {
	if g.stripsPrefix() {
		r = stripPrefix(r, g.apiPrefix)
		rec.request = r
	}
	g.answer(rec, r)
}

// serveInner serves a request for the API that is a part of another request.
// It returns why a watch ended whose right was revoked, nil for others.
func (g *Gateway) serveInner(w http.ResponseWriter, r *http.Request) *metav1.Status {
	r = r.WithContext(context.WithValue(r.Context(), innerKey{}, true))
	rec := &responseRecorder{ResponseWriter: w, metrics: g.metrics, request: r, source: sourceFilter}
	rec.closeStream = func() {} // the multiwatch has opened its stream, and closes it
	if caller := access.CallerOf(r.Context()); caller != nil {
		defer rec.endAudit()
		if r = g.beginAudit(rec, g.audit.IdentifyPart(rec, r), caller); r == nil {
			return nil
		}
	}
	if g.answer(rec, r); rec.stream != nil {
		g.tracker.Serve(rec, rec.request, rec.stream)
	}
	if rec.permit == nil {
		return nil
	}
	return rec.permit.Refusal()
}

// openInner opens the stream of a watch that is a part of another request.
func (g *Gateway) openInner(r *http.Request) (closeIt func(), err error) {
	if request.IsAt(r.URL.Path) {
		if _, inner, _ := request.CutAt(r, time.Now()); inner != nil {
			r = inner
		}
	}
	return g.users.Stream(r.Context(), selectorOf(r))
}

// answer serves a request for the API, below the prefix.
func (g *Gateway) answer(rec *responseRecorder, r *http.Request) {
	if request.IsAt(r.URL.Path) {
		g.answerAt(rec, r)
		return
	}
	if refusal := g.checkAPI(r); refusal != nil {
		status.Write(rec, r, refusal)
		return
	}
	if kind := selfreview.Of(r); kind != selfreview.None {
		switch {
		case g.reads.recording:
			rec.source = sourceHistory
			g.answerReview(rec, r, kind, "this is a recording: it cannot be changed")
			return
		case g.filter.readOnly:
			g.answerReview(rec, r, kind, "the gateway is read-only")
			return
		}
	}
	if caller := access.CallerOf(r.Context()); caller != nil {
		g.answerCaller(rec, r, caller)
		return
	}
	g.answerRead(rec, r, r, g.reads.serve)
}

// answerRead serves a read from the cache, or passes it through. asked is the request
// with the caller's credentials, and serve how it is served from the cache.
func (g *Gateway) answerRead(rec *responseRecorder, r, asked *http.Request, serve func(*responseRecorder, *http.Request) *decline) {
	rec.source = sourceCache
	cut, release, _ := g.tracker.Bind(r.Context(), false)
	declined := serve(rec, r.WithContext(cut))
	release()
	r = asked
	switch {
	case declined == nil:
	case declined.passes != nil:
		defer declined.passes()
		g.passOn(rec, r)
	case declined.short:
		g.passShort(rec, r, shortWatch)
	case declined.unproven:
		g.passUnproven(rec, r)
	default:
		g.passThrough(rec, r)
	}
}

// newUnproven returns the bound of [Gateway.passUnproven]. With users, none gets all of it.
func newUnproven(users bool) *fairness.Queue {
	if users {
		return fairness.NewQueue(fairness.QueueOptions{Slots: maxUnproven, PerKey: maxUnprovenPerUser})
	}
	return fairness.NewQueue(fairness.QueueOptions{Slots: maxUnproven})
}

// passUnproven passes through a watch for which there is no proof of freshness, unless
// there are many.
func (g *Gateway) passUnproven(rec *responseRecorder, r *http.Request) {
	slot, err := g.users.Slot(r.Context(), g.unproven, fmt.Sprintf(
		"the API server does not confirm in time what is newest, and has %d watches that wait for that: try again", g.unproven.InUse()), unprovenRetry)
	if err != nil {
		status.Fail(rec, r, err, string(request.Watch))
		return
	}
	seconds := int64(unprovenWatch)
	if r.URL.Query().Has("sendInitialEvents") {
		seconds = unprovenList
	}
	// The upstream's watch ends then, even if a client that reads nothing keeps this one.
	defer slot.Release()
	defer time.AfterFunc(time.Duration(seconds)*time.Second, slot.Release).Stop()
	g.passShort(rec, r, seconds)
}

// passShort passes through a watch that ends after at most so many seconds, and says so.
func (g *Gateway) passShort(rec *responseRecorder, r *http.Request, seconds int64) {
	if short := shorten(r, seconds); short != r {
		rec.Header().Set(kube.TimeoutHeader, fmt.Sprint(seconds))
		r = short
	}
	g.passThrough(rec, r)
}

// checkAPI returns why a request for the API, below the prefix, is not served; nil if it
// is. Every route on which a path of the API is read asks here: also a watch of a
// multiwatch, a path of the past, and the history of a resource.
func (g *Gateway) checkAPI(r *http.Request) *metav1.Status {
	if !g.stripsPrefix() {
		// A path has to be below the prefix both as sent and cleaned, as for the filter.
		for _, p := range []string{r.URL.Path, path.Clean(r.URL.Path)} {
			if !strings.HasPrefix(p+"/", g.apiPrefix) {
				return g.notServed()
			}
		}
	}
	return g.filter.checkAPI(r)
}

// passThrough answers a request as the API server does.
func (g *Gateway) passThrough(rec *responseRecorder, r *http.Request) {
	switch {
	case g.users == nil:
	case request.IsLongRunning(r):
		if refusal := g.openStream(rec, r); refusal != nil {
			status.Write(rec, r, refusal)
			return
		}
		defer rec.release()
	case request.IsSafe(r.Method) && !request.Connects(request.Subresource(path.Clean(r.URL.Path))):
		target, ok := request.ParsePath(r.URL.Path)
		end, err := g.users.Pass(r.Context(), ok && target.Verb == request.List)
		if refused, ok := errors.AsType[*status.Error](err); ok {
			status.Write(rec, r, refused.Status)
			return
		}
		if err == nil { // otherwise the client is gone
			defer end()
		}
	}
	g.passOn(rec, r)
}

// passOn is passThrough after the bounds of the user.
func (g *Gateway) passOn(rec *responseRecorder, r *http.Request) {
	rec.source = sourcePassthrough
	if g.forward(rec, r); rec.code == http.StatusTooManyRequests {
		g.users.RefusedUpstream(r.Context())
	}
}

// forward forwards a request to the API server.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	ctx, cancel, ok := g.tracker.Bind(r.Context(), request.IsLongRunning(r))
	defer cancel()
	if !ok {
		status.Write(w, r, status.Unavailable(upstream.ErrShutdown.Error(), true))
		return
	}
	g.passthrough.ServeHTTP(w, r.WithContext(ctx))
}

// stripsPrefix reports whether the API prefix is removed from paths. As in kubectl proxy,
// --api-prefix=/api/ is not: it means "serve only paths below /api/".
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
	if raw, ok := cut(request.RawPath(r)); ok {
		out.RequestURI = raw
	} else {
		// The client escaped something in the prefix itself.
		out.RequestURI = (&url.URL{Path: u.Path}).EscapedPath()
	}
	u.RawPath = out.RequestURI
	return out
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
