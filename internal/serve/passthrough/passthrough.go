// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package passthrough hands requests to the API server that the gateway does not answer
// itself.
package passthrough

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
)

// forwardingHeaders are dropped by ReverseProxy, which cannot know whether they can be
// trusted. The gateway restores them: the API server decides that.
var forwardingHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// Options configure a [Handler].
type Options struct {
	Upstream *upstream.Server
	Cache    *watchcache.Cache
	// Documents are the API server's last answers to requests for discovery.
	Documents *upstream.Documents
	// Shared is the access control of shared mode; nil in local mode.
	Shared *access.Shared
	// AllowPages passes HTML of the API server through without a sandbox.
	AllowPages bool
	// Remembers reports whether a resource is recorded, and may be shown.
	Remembers func(kube.Resource) bool
	Logger    *slog.Logger
}

// A Handler hands requests to the upstream byte for byte (T7). It changes the answers
// only as [Handler.confine] says.
type Handler struct {
	Options
	proxy *httputil.ReverseProxy
}

// New returns a handler.
func New(opts Options) *Handler {
	p := &Handler{Options: opts}
	up := opts.Upstream
	p.proxy = &httputil.ReverseProxy{
		Transport: roundTripperFunc(func(r *http.Request) (*http.Response, error) {
			main, upgrade, err := p.transports(r)
			if err != nil {
				return nil, err
			}
			if r.Header.Get("Upgrade") != "" {
				return upgrade.RoundTrip(r)
			}
			return main.RoundTrip(r)
		}),
		FlushInterval: -1,
		Rewrite: func(pr *httputil.ProxyRequest) {
			in, out := pr.In, pr.Out
			out.URL = up.URL(request.RawPath(in), in.URL.RawQuery)
			out.URL.ForceQuery = in.URL.ForceQuery
			out.Host = "" // the upstream's, from the URL
			for _, name := range forwardingHeaders {
				if v := in.Header[name]; v != nil {
					out.Header[name] = v
				}
			}
			// Connection may name any header for removal; the caller's identity must
			// not be removed (T8).
			p.identify(in, out.Header)
			if id := audit.ID(in.Context()); id != "" {
				out.Header[audit.Header] = []string{id}
			}
			// The server fills in.Trailer once the body has been read, and the transport
			// then sends its content: both need the same map.
			out.Trailer = in.Trailer
			// An offer of HTTP/2 applies to the client's connection to the gateway.
			if !request.IsUpgrade(in) {
				out.Header.Del("Connection")
				out.Header.Del("Upgrade")
			}
		},
		ModifyResponse: p.finish,
		ErrorHandler:   p.fail,
		ErrorLog:       slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug),
	}
	return p
}

func (p *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if wrong := unsendable(r); wrong != "" {
		status.Write(w, r, status.New(http.StatusBadRequest, metav1.StatusReasonBadRequest, wrong))
		return
	}
	if p.answerTokenless(w, r) {
		return
	}
	x := exchange{client: r.Context(), last: p.lastDocument(r), own: !request.BringsToken(r.Header) && !request.Connects(request.Subresource(path.Clean(r.URL.Path))), onlyReads: onlyReads(r)}
	if t, ok := request.ParsePath(r.URL.Path); ok {
		x.resource = t.Resource
	}
	if x.last != nil && p.Upstream.Silent() {
		p.writeDocument(w, x.last)
		return
	}
	ctx, giveUp := context.WithCancelCause(context.WithValue(r.Context(), exchangeKey{}, &x))
	defer giveUp(nil)
	waits, answered := context.WithCancel(ctx)
	defer answered()
	x.answered = answered
	go p.limit(waits, &x, giveUp)
	if x.last != nil {
		x.patience = time.AfterFunc(DiscoveryPatience, func() {
			p.Upstream.SetSilent()
			giveUp(errSilent)
		})
		defer x.patience.Stop()
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.connected.Store(true) },
	})
	r = r.WithContext(ctx)
	if r.Body != nil && r.ContentLength != 0 {
		body := &clientBody{ReadCloser: r.Body, failed: &x.bodyFailed}
		if r.Body = body; r.ContentLength > 0 && r.ContentLength <= maxKept && r.Header.Get("Expect") == "" {
			keepBody(r)
		}
	}
	p.proxy.ServeHTTP(&responseWriter{ResponseWriter: w, ctx: ctx}, r)
}

// unsendable returns an error for a request that net/http's server accepts and its
// client refuses to send, "" for others. Such a request is the caller's error, not the
// upstream's.
func unsendable(r *http.Request) string {
	for name := range r.Trailer {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Sprintf("%q is not a valid name of a trailer", name)
		}
	}
	upgrade := r.Header.Get("Upgrade")
	if request.IsUpgrade(r) && strings.ContainsFunc(upgrade, func(c rune) bool { return c < ' ' || c > '~' }) {
		return fmt.Sprintf("%q is not a valid protocol name", upgrade)
	}
	return ""
}

// fail answers a request that got no response from the upstream.
func (p *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	p.confine(w.Header())
	silent := errors.Is(context.Cause(ctx), errSilent)
	if contact := p.Upstream.Contact(); silent && contact.Err != nil {
		err = contact.Err
	}
	switch {
	case x.last != nil && x.client.Err() == nil:
		p.writeDocument(w, x.last)
	case errors.Is(err, errUnaccepted):
		status.Write(w, r, p.Upstream.Unaccepted())
	case errors.Is(context.Cause(ctx), upstream.ErrShutdown):
		status.Write(w, r, status.Unavailable(upstream.ErrShutdown.Error(), !x.connected.Load() || request.IsSafe(r.Method)))
	case ctx.Err() != nil && !silent, x.bodyFailed.Load():
		// The client went away: there is no one to answer, and no error to log.
		panic(http.ErrAbortHandler)
	case !x.connected.Load(), silent && x.onlyReads:
		// The monitor of the upstream logs the outage.
		p.Logger.Debug("upstream unreachable", "method", r.Method, "path", r.URL.Path, "err", upstream.Cause(err))
		message := "the API server does not answer: " + upstream.Cause(err)
		if request.IsSafe(r.Method) {
			message += p.recordedRead(r)
		}
		// Without Retry-After: client-go would ask ten times, once a second, before it
		// tells its user. What should go on after a restart of the API server, such as an
		// informer, asks again by itself, as it does without the gateway.
		status.Write(w, r, status.Unavailable(message, false))
	default:
		p.Logger.Warn("upstream gave no answer", "method", r.Method, "path", r.URL.Path, "err", upstream.Cause(err))
		message := "the connection to the upstream broke before it answered: " + upstream.Cause(err)
		if !request.IsSafe(r.Method) {
			message += " (the request may have been carried out)"
		}
		status.Write(w, r, status.Unavailable(message, request.IsSafe(r.Method)))
	}
}

// recordedRead says how to read what is recorded of a resource that a request is for; "" if that is
// nothing.
func (p *Handler) recordedRead(r *http.Request) string {
	target, ok := request.ParsePath(r.URL.Path)
	if !ok || !p.Remembers(target.Resource) {
		return ""
	}
	line := "watchkeeper at now -- get " + target.Resource.GroupResource()
	if target.Name != "" {
		line += " " + target.Name
	}
	switch {
	case target.Namespace != "":
		line += " -n " + target.Namespace
	case target.Name == "":
		line += " -A"
	}
	return ". What is recorded can be read: '" + line + "'"
}

// errUnaccepted: the API server does not accept the gateway's own credentials.
var errUnaccepted = errors.New("401")

// finish prepares a response, and logs one that breaks off; ReverseProxy then aborts
// the client's connection, so that the client does not take it for complete.
func (p *Handler) finish(res *http.Response) error {
	if audit.ID(res.Request.Context()) != "" {
		res.Header.Del(audit.Header) // the answer has the same
	}
	x, _ := res.Request.Context().Value(exchangeKey{}).(*exchange)
	x.answered()
	if res.StatusCode == http.StatusUnauthorized && x.own {
		return errUnaccepted // fail answers
	}
	if x.last != nil {
		if !x.patience.Stop() {
			return errSilent // fail answers
		}
		if res.StatusCode >= http.StatusInternalServerError && !isGroupVersion(res.Request.URL.Path) {
			p.Upstream.SetSilent()
			return errSilent
		}
		if res.StatusCode == http.StatusTooManyRequests { // which says nothing about the document
			return errSilent
		}
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		return nil // the body is the connection
	}
	p.confine(res.Header)
	// HTTP/2 sends a length and trailers, HTTP/1.1 one or the other.
	if len(res.Trailer) > 0 && res.Request.ProtoMajor == 1 {
		res.Header.Del("Content-Length")
	}
	r := res.Request
	if x.resource.Name != "" && res.StatusCode/100 == 2 {
		if watched := p.Cache.Watched(x.resource); watched != nil {
			watched.Passed()
		}
	}
	watch := res.ContentLength < 0 && request.IsWatch(r)
	res.Body = &upstreamBody{ReadCloser: res.Body, ctx: r.Context(), watch: watch, broken: func(err error) {
		if r.Context().Err() == nil {
			p.Logger.Warn("upstream broke off a response", "method", r.Method, "path", r.URL.Path, "err", upstream.Cause(err))
		}
	}}
	return nil
}

// exchange records for finish and fail what a request is about, and how far it got.
type exchange struct {
	resource   kube.Resource // that the request is about, if any
	connected  atomic.Bool   // there was a connection to the upstream
	bodyFailed atomic.Bool   // the client's body could not be read
	onlyReads  bool
	answered   func() // is called when the upstream has answered
	client     context.Context
	// own is set if a 401 is about the gateway's own credentials, and not from what is behind a proxy.
	own bool
	// last is the answer if the upstream gives none before patience fires; nil for none.
	last     *upstream.Document
	patience *time.Timer
}

type exchangeKey struct{}

// maxKept bounds the size of a body that is kept until the upstream has answered.
const maxKept = 64 << 10

// keepBody reads the body of a request, so that it can be sent again. The API server
// closes a connection on which it has refused credentials, and other callers' requests on
// it that it has not begun to serve have to be sent on another.
func keepBody(r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), r.Body)) // which fails again
		return
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	r.Body, _ = r.GetBody()
}

type clientBody struct {
	io.ReadCloser
	failed *atomic.Bool
}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.failed.Store(true)
	}
	return n, err
}

type upstreamBody struct {
	io.ReadCloser
	ctx    context.Context
	watch  bool
	broken func(error)
}

func (b *upstreamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		if b.watch && errors.Is(context.Cause(b.ctx), upstream.ErrShutdown) {
			return n, io.EOF // as the API server ends a watch
		}
		b.broken(err)
	}
	return n, err
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
