// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/request"
	"github.com/watchkeeper/watchkeeper/internal/status"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
	"github.com/watchkeeper/watchkeeper/internal/watchcache"
)

// forwardingHeaders are dropped by ReverseProxy, which cannot know whether they can be
// trusted. The gateway restores them: the API server decides that.
var forwardingHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// passthrough hands requests to the upstream byte for byte (T7). It changes the answers
// only as [passthrough.confine] says.
type passthrough struct {
	proxy     *httputil.ReverseProxy
	up        *upstream.Server
	cache     *watchcache.Cache
	documents *upstream.Documents
	log       *slog.Logger
	pages     bool        // proxied pages are not confined
	remembers func() bool // there is a record of the past
}

func newPassthrough(h *reads, allowProxiedPages bool) http.Handler {
	up, log := h.up, h.log
	p := &passthrough{up: up, cache: h.cache, documents: h.documents, log: log, pages: allowProxiedPages}
	p.remembers = func() bool { return h.past.Store() != nil }
	p.proxy = &httputil.ReverseProxy{
		Transport: roundTripperFunc(func(r *http.Request) (*http.Response, error) {
			main, upgrade := up.Transport, up.Upgrade
			if request.BringsToken(r.Header) {
				main, upgrade = up.CallerTransport, up.CallerUpgrade
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
			for name, v := range in.Header {
				if request.IsIdentity(name) {
					out.Header[name] = v
				}
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
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return p
}

func (p *passthrough) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if wrong := unsendable(r); wrong != "" {
		status.Write(w, r, status.New(http.StatusBadRequest, metav1.StatusReasonBadRequest, wrong))
		return
	}
	x := exchange{client: r.Context(), last: p.lastDocument(r)}
	if t, ok := request.ParsePath(r.URL.Path); ok {
		x.resource = t.Resource
	}
	if x.last != nil && p.up.Silent() {
		p.writeDocument(w, x.last)
		return
	}
	ctx := context.WithValue(r.Context(), exchangeKey{}, &x)
	if x.last != nil {
		var giveUp context.CancelCauseFunc
		ctx, giveUp = context.WithCancelCause(ctx)
		defer giveUp(nil)
		x.patience = time.AfterFunc(discoveryPatience, func() {
			p.up.SetSilent()
			giveUp(errSilent)
		})
		defer x.patience.Stop()
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.connected.Store(true) },
	})
	r = r.WithContext(ctx)
	if r.Body != nil && r.ContentLength != 0 {
		r.Body = &clientBody{ReadCloser: r.Body, failed: &x.bodyFailed}
	}
	p.proxy.ServeHTTP(&passthroughWriter{ResponseWriter: w, ctx: ctx}, r)
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
func (p *passthrough) fail(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	p.confine(w.Header())
	switch {
	case x.last != nil && x.client.Err() == nil:
		p.writeDocument(w, x.last)
	case errors.Is(context.Cause(ctx), upstream.ErrShutdown):
		status.Write(w, r, status.Unavailable(upstream.ErrShutdown.Error(), !x.connected.Load() || isSafe(r.Method)))
	case ctx.Err() != nil, x.bodyFailed.Load():
		// The client went away: there is no one to answer, and no error to log.
		panic(http.ErrAbortHandler)
	case !x.connected.Load():
		// The monitor of the upstream logs the outage.
		p.log.Debug("upstream unreachable", "method", r.Method, "path", r.URL.Path, "err", upstream.Cause(err))
		message := "the API server does not answer: " + upstream.Cause(err)
		if p.remembers() && isSafe(r.Method) {
			message += ": for its past, use for example 'watchkeeper at now -- get pods'"
		}
		// Without Retry-After: client-go would ask ten times, once a second, before it
		// tells its user. What should go on after a restart of the API server, such as an
		// informer, asks again by itself, as it does without the gateway.
		status.Write(w, r, status.Unavailable(message, false))
	default:
		p.log.Warn("upstream gave no answer", "method", r.Method, "path", r.URL.Path, "err", upstream.Cause(err))
		message := "the connection to the upstream broke before it answered: " + upstream.Cause(err)
		if !isSafe(r.Method) {
			message += " (the request may have been carried out)"
		}
		status.Write(w, r, status.Unavailable(message, isSafe(r.Method)))
	}
}

// finish prepares a response, and logs one that breaks off; ReverseProxy then aborts
// the client's connection, so that the client does not take it for complete.
func (p *passthrough) finish(res *http.Response) error {
	x, _ := res.Request.Context().Value(exchangeKey{}).(*exchange)
	if x.last != nil {
		if !x.patience.Stop() {
			return errSilent // fail answers
		}
		if res.StatusCode >= http.StatusInternalServerError && !isGroupVersion(res.Request.URL.Path) {
			p.up.SetSilent()
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
		if watched := p.cache.Watched(x.resource); watched != nil {
			watched.Passed()
		}
	}
	watch := res.ContentLength < 0 && request.IsWatch(r)
	res.Body = &upstreamBody{ReadCloser: res.Body, ctx: r.Context(), watch: watch, broken: func(err error) {
		if r.Context().Err() == nil {
			p.log.Warn("upstream broke off a response", "method", r.Method, "path", r.URL.Path, "err", upstream.Cause(err))
		}
	}}
	return nil
}

// isSafe reports whether a method may be repeated: it changes nothing.
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// exchange records for finish and fail what a request is about, and how far it got.
type exchange struct {
	resource   kube.Resource // that the request is about, if any
	connected  atomic.Bool   // there was a connection to the upstream
	bodyFailed atomic.Bool   // the client's body could not be read
	client     context.Context
	// last is the answer if the upstream gives none before patience fires; nil for none.
	last     *upstream.Document
	patience *time.Timer
}

type exchangeKey struct{}

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

// passthroughWriter keeps net/http from adding headers to a response, and from losing
// bytes that a client sent early on a connection that switches protocols.
type passthroughWriter struct {
	http.ResponseWriter
	ctx context.Context
}

// Unwrap serves http.ResponseController.
func (w *passthroughWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *passthroughWriter) WriteHeader(code int) {
	switch code {
	case http.StatusContinue:
		return // net/http sent it when the body was first read
	case http.StatusEarlyHints:
		return // a browser follows them before it knows that the page is in a sandbox
	}
	if h := w.Header(); code >= 200 && h["Content-Type"] == nil {
		h["Content-Type"] = nil // present but empty: net/http guesses no type
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *passthroughWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, brw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	// Once hijacked, the end of the request is only noticed by the copying goroutines,
	// and a peer that neither reads nor writes would block them.
	context.AfterFunc(w.ctx, func() { conn.Close() })
	if n := brw.Reader.Buffered(); n > 0 {
		early, _ := brw.Reader.Peek(n)
		conn = &earlyConn{Conn: conn, early: early}
	}
	return conn, brw, nil
}

// earlyConn first returns the bytes that were read before the connection was hijacked.
type earlyConn struct {
	net.Conn
	early []byte
}

func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite forwards a half-close; TCP and TLS connections both support it.
func (c *earlyConn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return c.Conn.Close()
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// discoveryPatience is how long a request for discovery waits for the API server if the
// gateway has its last answer.
const discoveryPatience = 2 * time.Second

// errSilent: the API server gave no answer to a request for discovery, or a server error.
var errSilent = errors.New("no answer")

// lastDocument returns the API server's last answer to a request for discovery, nil if
// there is none. That answer was to the gateway's identity, so a caller with credentials
// of its own does not get it (T8).
func (p *passthrough) lastDocument(r *http.Request) *upstream.Document {
	if p.documents == nil || r.Method != http.MethodGet || request.IsUpgrade(r) || request.Identity(r.Header) != nil {
		return nil
	}
	return p.documents.Find(strings.TrimSuffix(r.URL.Path, "/"), strings.Join(r.Header["Accept"], ","))
}

// isGroupVersion reports whether a path of discovery is that of a group version. An
// aggregated API server may be out of service while the API server answers.
func isGroupVersion(path string) bool {
	return strings.Contains(strings.TrimSuffix(path, "/"), "/apis/")
}

// writeDocument answers with the API server's last answer.
func (p *passthrough) writeDocument(w http.ResponseWriter, d *upstream.Document) {
	h := w.Header()
	h.Set("Content-Type", d.Type)
	h.Set("Content-Length", strconv.Itoa(len(d.Body)))
	h.Set("Cache-Control", "no-cache, private")
	p.confine(h)
	_, _ = w.Write(d.Body) // an error means that the client is gone
}
