// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

const (
	dialTimeout      = 30 * time.Second
	defaultKeepAlive = 30 * time.Second

	// probeTimeout bounds [Server.Probe], and maxAnswerAge is how long an
	// answer counts as a sign of life, so that a busy gateway probes nothing.
	probeTimeout = 3 * time.Second
	maxAnswerAge = 10 * time.Second
)

// Options are the settings of a [Server] that a rest.Config does
// not carry. The zero value is usable.
type Options struct {
	// KeepAlive is the TCP keep-alive period of upstream connections. Zero
	// means 30 s, a negative value turns keep-alive off.
	KeepAlive time.Duration

	// AppendServerPath puts the path of the server URL in front of every
	// request path. Without it that path is ignored, as kubectl proxy does.
	AppendServerPath bool

	// UserAgent names the gateway in its own requests (see NewRequest).
	// Requests passed through keep the client's. Empty means "watchkeeper".
	UserAgent string

	// Logger takes the beginning and the end of an outage; nil discards them.
	Logger *slog.Logger
}

// A Server is the API server that the gateway stands in front of: its address, and
// transports with the gateway's credentials or a caller's own.
//
// A Server is safe for concurrent use.
type Server struct {
	// Transport serves everything but upgrades: HTTP/2 where TLS allows it,
	// with client-go's health pings. It adds no Accept-Encoding and no
	// User-Agent of its own.
	Transport http.RoundTripper

	// Upgrade speaks HTTP/1.1 only, since HTTP/2 cannot switch protocols.
	Upgrade http.RoundTripper

	// CallerTransport and CallerUpgrade are the same without the gateway's
	// credentials, for callers who bring a token: the API server prefers a client
	// certificate to a token.
	CallerTransport, CallerUpgrade http.RoundTripper

	config     *rest.Config // of Transport
	base       *url.URL
	prefix     string // escaped, without a trailing slash
	userAgent  string
	lastAnswer atomic.Int64 // Unix nanoseconds, see LastAnswer
	silent     atomic.Bool  // see Silent
	broken     atomic.Bool  // see Broken
	breaks     atomic.Int64 // how often a connection failed or broke
	monitor    *monitor
}

// New returns the server described by cfg, which it does not change.
// Client-side rate limits and timeouts in cfg are ignored: a gateway that
// queued its clients' requests would only hide the server's own flow control,
// and streams live long.
func New(cfg *rest.Config, opts Options) (*Server, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = 0
	cfg.UserAgent = ""
	cfg.DisableCompression = true
	if cfg.Dial == nil {
		keepAlive := opts.KeepAlive
		if keepAlive == 0 {
			keepAlive = defaultKeepAlive
		}
		cfg.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	}

	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("server address: %s", Cause(err))
	}
	u := &Server{config: cfg, base: base, userAgent: opts.UserAgent, monitor: newMonitor(opts.Logger)}
	if u.userAgent == "" {
		u.userAgent = "watchkeeper"
	}
	if opts.AppendServerPath {
		u.prefix = strings.TrimRight(base.EscapedPath(), "/")
	}

	main, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("transport to %s: %w", base.Host, err)
	}
	// The same configuration with ALPN narrowed to HTTP/1.1 gives a transport
	// of its own, and keeps client-go's proxies, exec plugins, and token,
	// certificate and CA rotation.
	upgradeCfg := rest.CopyConfig(cfg)
	upgradeCfg.NextProtos = []string{"http/1.1"}
	upgrade, err := rest.TransportFor(upgradeCfg)
	if err != nil {
		return nil, fmt.Errorf("transport for upgrades to %s: %w", base.Host, err)
	}
	anonymous := rest.AnonymousClientConfig(cfg)
	anonymous.Transport = cfg.Transport // e.g. of a recording
	callers, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("transport to %s: %w", base.Host, err)
	}
	anonymous.NextProtos = []string{"http/1.1"}
	callersUpgrade, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("transport for upgrades to %s: %w", base.Host, err)
	}
	u.Transport = &answerRecorder{main, u}
	u.Upgrade = &answerRecorder{upgrade, u}
	u.CallerTransport, u.CallerUpgrade = callers, callersUpgrade
	return u, nil
}

// Host returns the host and port of the server.
func (u *Server) Host() string { return u.base.Host }

// IgnoredPath returns the path of the server URL when it is not used because
// AppendServerPath is off, and "" otherwise.
func (u *Server) IgnoredPath() string {
	if p := strings.TrimRight(u.base.Path, "/"); u.prefix == "" && p != "" {
		return p
	}
	return ""
}

// URL returns the upstream URL of an escaped path and a raw query. Both reach
// the server byte for byte.
func (u *Server) URL(path, rawQuery string) *url.URL {
	full := u.prefix + path
	out := &url.URL{Scheme: u.base.Scheme, Host: u.base.Host, RawQuery: rawQuery}
	if decoded, err := url.PathUnescape(full); err == nil {
		out.Path, out.RawPath = decoded, full
	}
	// net/url would escape bytes it does not expect in a path, such as "|",
	// and decode %2F on the way. An opaque URL is sent unchanged, except that one
	// beginning with "//" would be parsed as an authority.
	if out.EscapedPath() != full && !strings.HasPrefix(full, "//") {
		out.Opaque = full
	}
	return out
}

// NewRequest returns a request of the gateway's own for JSON, to be sent through
// u.Transport.
func (u *Server) NewRequest(ctx context.Context, method, path, rawQuery string) *http.Request {
	r := &http.Request{
		Method: method,
		URL:    u.URL(path, rawQuery),
		Header: http.Header{"User-Agent": {u.userAgent}, "Accept": {"application/json"}},
	}
	return r.WithContext(ctx)
}

// UserAgent returns the name of the gateway in its own requests.
func (u *Server) UserAgent() string { return u.userAgent }

// Agent returns a transport for requests of the gateway's own, under its name. Its
// errors contain no credentials.
func (u *Server) Agent() http.RoundTripper { return &agent{u, u.Transport} }

// Client returns the configuration and the HTTP client for a typed client of client-go
// that acts as the gateway, over the connection of [Server.Transport] and without limits
// of its own.
func (u *Server) Client() (*rest.Config, *http.Client) {
	base := url.URL{Scheme: u.base.Scheme, Host: u.base.Host, Path: u.prefix}
	return &rest.Config{Host: base.String(), QPS: -1, UserAgent: u.userAgent}, &http.Client{Transport: u.Agent()}
}

// agent sends requests of the gateway's own, under its name.
type agent struct {
	up   *Server
	base http.RoundTripper
}

var _ reflector.Freshener = (*agent)(nil)

// Fresh implements reflector.Freshener. client-go does not share a transport that has a
// dialer.
func (a *agent) Fresh() (http.RoundTripper, error) {
	base, err := rest.TransportFor(a.up.config)
	if err != nil {
		return nil, err
	}
	return &agent{a.up, &answerRecorder{base, a.up}}, nil
}

// CloseIdleConnections closes the connections that are not in use.
func (a *agent) CloseIdleConnections() {
	if a.base != a.up.Transport {
		utilnet.CloseIdleConnectionsFor(a.base)
	}
}

func (a *agent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", a.up.userAgent)
	resp, err := a.base.RoundTrip(r)
	if err != nil {
		err = Redacted(err)
	}
	return resp, err
}

// As sends a request of the gateway's own with the identity of a caller. The headers
// identify the caller; nil is the gateway itself.
func (u *Server) As(caller http.Header, r *http.Request) (*http.Response, error) {
	maps.Copy(r.Header, caller)
	transport := u.Transport
	if request.BringsToken(caller) {
		transport = u.CallerTransport
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		err = Redacted(err)
	}
	return resp, err
}

// LastAnswer returns when the upstream last answered the gateway, as Probe counts
// answers, or sent a part of an answer, such as a bookmark; zero if it never did.
func (u *Server) LastAnswer() time.Time {
	if ns := u.lastAnswer.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// Probe returns nil if the upstream answered within the last ten seconds, and no
// connection broke since, or if it answers now. An answer that refuses the gateway's
// credentials, reports a server error, or is none of a Kubernetes API server, does not
// count.
func (u *Server) Probe(ctx context.Context) error { return u.probeAfter(ctx, maxAnswerAge) }

func (u *Server) probeAfter(ctx context.Context, silence time.Duration) error {
	if !u.broken.Load() && time.Since(time.Unix(0, u.lastAnswer.Load())) < silence {
		return nil
	}
	return u.probe(ctx)
}

// probe is Probe without regard to former answers.
func (u *Server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	res, err := u.Transport.RoundTrip(u.NewRequest(ctx, http.MethodGet, versionPath, ""))
	if err != nil {
		return fmt.Errorf("upstream %s: %s", u.base.Host, Cause(err))
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized {
		return unaccepted(u.base.Host)
	}
	if res.StatusCode >= 500 {
		return fmt.Errorf("upstream %s answers %s", u.base.Host, res.Status)
	}
	return u.recognize(res)
}

// Unaccepted is the answer to a caller, where the API server has answered 401 to the gateway's
// own credentials: those of the caller are not at fault.
func (u *Server) Unaccepted() *metav1.Status {
	return status.Unavailable(unaccepted(u.base.Host).Error(), false)
}

// Silent reports whether the API server is known not to answer: it has not answered the
// gateway since [Server.SetSilent]. Then nothing need wait for it that can do without.
func (u *Server) Silent() bool { return u.silent.Load() }

// SetSilent notes that a request of the gateway got no answer in time, or a server
// error. The caller has to ask again soon.
func (u *Server) SetSilent() { u.silent.Store(true) }

// Close closes idle connections. Requests under way are not affected.
func (u *Server) Close() {
	for _, rt := range []http.RoundTripper{u.Transport, u.Upgrade, u.CallerTransport, u.CallerUpgrade} {
		utilnet.CloseIdleConnectionsFor(rt)
	}
}

// answerRecorder notes the time of the upstream's last answer that shows that it serves
// the gateway.
type answerRecorder struct {
	base http.RoundTripper
	up   *Server
}

var _ utilnet.RoundTripperWrapper = (*answerRecorder)(nil)

func (a *answerRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := a.base.RoundTrip(r)
	if err != nil && r.Context().Err() == nil {
		a.up.setBroken()
	}
	if err != nil || res.StatusCode >= 500 {
		return res, err
	}
	a.up.silent.Store(false)
	if res.StatusCode >= http.StatusBadRequest || !isAPIAnswer(res) || r.URL.Path == a.up.prefix+versionPath {
		return res, nil // Probe judges that of a version
	}
	a.up.heard()
	if res.StatusCode != http.StatusSwitchingProtocols && res.ContentLength != 0 { // the body is not the connection
		res.Body = &heardBody{res.Body, r.Context(), a.up}
	}
	return res, nil
}

// WrappedRoundTripper lets apimachinery find the transport underneath.
func (a *answerRecorder) WrappedRoundTripper() http.RoundTripper { return a.base }

var (
	userinfoPattern = regexp.MustCompile(`://[^/\s]*@`)
	bearerPattern   = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
)

// redact removes possible credentials from a message.
func redact(s string) string {
	s = userinfoPattern.ReplaceAllString(s, "://")
	return bearerPattern.ReplaceAllString(s, "$1 [redacted]")
}

// Cause describes a transport error for a client, in one line and without
// credentials.
func Cause(err error) string {
	return strings.Join(strings.Fields(redact(err.Error())), " ")
}

// Redacted returns an error whose text is [Cause] of err.
func Redacted(err error) error { return redacted{err} }

type redacted struct{ error }

func (e redacted) Error() string { return Cause(e.error) }
func (e redacted) Unwrap() error { return e.error }
