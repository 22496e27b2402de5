// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options configure a [Proxy].
type Options struct {
	// Upstream reaches the API server, with credentials that the proxy adds to each
	// request without an Authorization. A gateway in shared mode passes on those of its
	// clients.
	Upstream *rest.Config
	// Transport replaces Upstream.
	Transport http.RoundTripper
	// TLS makes the proxy speak TLS, and so HTTP/2, to the gateway.
	TLS bool
	// Seed is the seed of the faults.
	Seed uint64
	// Draw replaces [Draw], to exclude faults or to choose them.
	Draw func(resource string, kind Kind, n int) Fault
	// Bookmarks is how often a watch of JSON gets a bookmark at the RV of its
	// last event, in addition to those that the API server sends each minute. The
	// default is never.
	Bookmarks time.Duration
}

// An Injection is an injected fault.
type Injection struct {
	At       time.Time
	Resource string
	Kind     Kind
	N        int // index among the requests of its kind for the resource
	Fault    Fault
}

func (i Injection) String() string {
	return fmt.Sprintf("%s %s %s #%d: %s", i.At.Format("15:04:05.000"), i.Resource, i.Kind, i.N, i.Fault)
}

// A Span is a span of time.
type Span struct{ From, To time.Time }

// A Proxy is a running fault-injecting proxy.
type Proxy struct {
	opts      Options
	base      *url.URL
	transport http.RoundTripper
	anonymous http.RoundTripper // transport without credentials
	server    *httptest.Server  // nil if the proxy is used as a handler
	healed    chan struct{}     // closed by Heal

	bookmarked atomic.Int64

	mu       sync.Mutex // guards what follows
	counts   map[string]int
	bursts   map[string]int // remaining responses of a burst
	pasts    map[string]*past
	open     map[*exchange]struct{}
	injected []Injection
	stale    []Span
	muted    string // the resource whose watches are silent
}

var errCut = errors.New("cut")

// New returns a proxy for use as a handler.
func New(opts Options) (*Proxy, error) {
	base := &url.URL{Scheme: "http", Host: "upstream"}
	anonymous := opts.Transport
	if opts.Transport == nil {
		cfg := rest.CopyConfig(opts.Upstream)
		cfg.DisableCompression = true
		var err error
		if opts.Transport, err = rest.TransportFor(cfg); err != nil {
			return nil, err
		}
		if anonymous, err = rest.TransportFor(rest.AnonymousClientConfig(cfg)); err != nil {
			return nil, err
		}
		if base, err = url.Parse(cfg.Host); err != nil {
			return nil, err
		}
	}
	if opts.Draw == nil {
		opts.Draw = func(resource string, kind Kind, n int) Fault { return Draw(opts.Seed, resource, kind, n) }
	}
	return &Proxy{
		opts: opts, base: base, transport: opts.Transport, anonymous: anonymous, healed: make(chan struct{}),
		counts: map[string]int{}, bursts: map[string]int{}, pasts: map[string]*past{}, open: map[*exchange]struct{}{},
	}, nil
}

// Start starts a proxy on loopback.
func Start(opts Options) (*Proxy, error) {
	p, err := New(opts)
	if err != nil {
		return nil, err
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = quiet
	if opts.TLS {
		p.server.EnableHTTP2 = true
		p.server.StartTLS()
	} else {
		p.server.Start()
	}
	return p, nil
}

// URL returns where the proxy serves.
func (p *Proxy) URL() string { return p.server.URL }

// WriteKubeconfig writes a kubeconfig for the proxy.
func (p *Proxy) WriteKubeconfig(path string) error {
	cluster := &clientcmdapi.Cluster{Server: p.URL(), InsecureSkipTLSVerify: p.opts.TLS}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"faults": cluster},
		Contexts:       map[string]*clientcmdapi.Context{"faults": {Cluster: "faults"}},
		CurrentContext: "faults",
	}, path)
}

// Heal ends all faults: it cuts the requests with a fault, and the proxy forwards
// everything unchanged from then on.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.healed:
		return
	default:
	}
	close(p.healed)
	clear(p.bursts)
	for i := range p.stale {
		if now := time.Now(); p.stale[i].To.After(now) {
			p.stale[i].To = now
		}
	}
	for x := range p.open {
		if x.faulted || x.silent.Load() {
			x.cancel(errCut)
		}
	}
}

// IsHealed reports whether Heal has been called.
func (p *Proxy) IsHealed() bool {
	select {
	case <-p.healed:
		return true
	default:
		return false
	}
}

// CutAll cuts every open request, like a load balancer that restarts.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.open {
		x.cancel(errCut)
	}
}

// Injected returns the faults injected so far.
func (p *Proxy) Injected() []Injection {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Injection(nil), p.injected...)
}

// Stale returns when the gateway got responses from the past.
func (p *Proxy) Stale() []Span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Span(nil), p.stale...)
}

// Watches returns how many watches of a resource are open, without those of proofs.
func (p *Proxy) Watches(resource string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.open {
		if x.resource == resource && (x.kind == Watch || x.kind == WatchList || x.kind == ClientWatch) {
			n++
		}
	}
	return n
}

// Close ends the proxy and all its requests.
func (p *Proxy) Close() {
	p.Heal()
	p.CutAll()
	if p.server != nil {
		p.server.CloseClientConnections()
		p.server.Close()
	}
}

// protobufStream is the content type of a watch of client-go's clients in protobuf. Of the
// gateway's own, only that of the cluster's CAs is one.
const protobufStream = "application/vnd.kubernetes.protobuf;stream=watch"

// readsClusterCAs reports whether a request follows the ConfigMap that has the cluster's CAs
// of client certificates.
func readsClusterCAs(r *http.Request) bool {
	return r.URL.Path == "/api/v1/namespaces/kube-system/configmaps" &&
		r.URL.Query().Get("fieldSelector") == "metadata.name=extension-apiserver-authentication"
}

// classify returns the resource and the kind of a request. own is set for the
// gateway's own requests.
func classify(r *http.Request) (resource string, kind Kind, own bool) {
	own = strings.HasPrefix(r.UserAgent(), "watchkeeper")
	q := r.URL.Query()
	resource = collection(r.URL.Path)
	switch watch := q.Get("watch") != ""; {
	case r.Method != http.MethodGet || resource == "" || readsClusterCAs(r):
		return "", Other, own
	case watch && !own:
		kind = ClientWatch
	case !own:
		kind = ClientList
	case watch && q.Get("sendInitialEvents") == "true":
		kind = WatchList
	case watch && q.Get("timeoutSeconds") == "3":
		kind = ProofWatch
	case watch:
		kind = Watch
	case q.Get("limit") == "1":
		kind = Probe
	default:
		kind = List
	}
	return resource, kind, own
}

// collection returns the plural name in the path of a collection or an object, ""
// for another path.
func collection(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return ""
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return parts[0]
}

// take counts a request and returns it with its exchange.
func (p *Proxy) take(r *http.Request) (*http.Request, *exchange) {
	resource, kind, own := classify(r)
	x := &exchange{p: p, resource: resource, kind: kind, own: own, began: time.Now()}
	ctx, cancel := context.WithCancelCause(r.Context())
	x.cancel = cancel
	p.mu.Lock()
	defer p.mu.Unlock()
	name := resource + "|" + string(kind)
	x.n = p.counts[name]
	p.counts[name]++
	if x.past = p.pasts[resource]; x.past == nil {
		x.past = &past{}
		p.pasts[resource] = x.past
	}
	p.open[x] = struct{}{}
	x.silent.Store(resource != "" && resource == p.muted && x.watches())
	burst := fmt.Sprint(resource, own)
	select {
	case <-p.healed:
		x.fault.Name = None
	default:
		x.fault = p.opts.Draw(resource, kind, x.n)
		switch {
		case p.bursts[burst] > 0:
			p.bursts[burst]--
			x.fault.Name = Burst
			x.fault.Count = p.bursts[burst]
		case own && x.past.staleAt(time.Now()):
			x.fault.Name = Regress
		case x.fault.Name == Burst:
			p.bursts[burst] = x.fault.Count
		case x.fault.Name == Regress:
			if !x.past.goBack(x.fault) {
				x.fault.Name = CutBetween // there is no past yet
			} else {
				p.stale = append(p.stale, Span{time.Now(), x.past.until})
			}
		}
	}
	return r.WithContext(ctx), x
}

func (p *Proxy) done(x *exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, x)
	x.cancel(nil)
}

// ServeHTTP forwards a request, or injects its fault.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, x := p.take(r)
	defer p.done(x)
	x.w, x.r, x.flush = w, r, http.NewResponseController(w).Flush
	if x.instead() {
		return
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = p.base.Scheme, p.base.Host, "", ""
	out.Header.Del("Connection")
	if x.watches() { // faults are injected into lines
		out.Header.Del("Accept-Encoding")
	}
	transport := p.transport
	if out.Header.Get("Authorization") != "" {
		transport = p.anonymous
	}
	resp, err := transport.RoundTrip(out)
	if err != nil {
		x.abort() // the API server is down: behave like a TCP load balancer
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	w.Header().Del("Content-Length")
	switch {
	case resp.StatusCode/100 != 2, // 201 is a review
		x.kind == Other && x.fault.Name == None,
		resp.Header.Get("Content-Type") == protobufStream: // it has no lines
		w.WriteHeader(resp.StatusCode)
		x.copy(resp.Body)
	case x.watches():
		w.WriteHeader(resp.StatusCode)
		x.stream(x.marked(resp.Body))
	default:
		x.body(resp)
	}
}

// Dump writes the injected faults to a file.
func (p *Proxy) Dump(path string) error {
	var b strings.Builder
	for _, i := range p.Injected() {
		fmt.Fprintln(&b, i)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
