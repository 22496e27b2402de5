// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// rig is a gateway on a loopback socket in front of a fake API server.
type rig struct {
	t       *testing.T
	gateway *gateway.Gateway
	server  *httptest.Server
	client  *http.Client
	log     *logtest.Log
	stop    func() // ends Run
}

// rigOptions change what newRig builds.
type rigOptions struct {
	tlsUpstream bool // HTTP/2 over TLS, as an API server is
	h2c         bool // the client speaks HTTP/2 to the gateway
	upstream    upstream.Options
	config      func(*rest.Config)
	gateway     gateway.Options
}

func newRig(t *testing.T, handler http.Handler, opts rigOptions) *rig {
	t.Helper()
	up := httptest.NewUnstartedServer(handler)
	up.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	config := &rest.Config{}
	if opts.tlsUpstream {
		up.EnableHTTP2 = true
		up.StartTLS()
		config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw})
	} else {
		up.Start()
	}
	t.Cleanup(up.Close)
	config.Host = up.URL
	if opts.config != nil {
		opts.config(config)
	}
	return newRigFor(t, config, opts)
}

// newRigFor builds a rig for an upstream's configuration.
func newRigFor(t *testing.T, config *rest.Config, opts rigOptions) *rig {
	t.Helper()
	r := &rig{t: t, log: &logtest.Log{}}
	upstream, err := upstream.New(config, opts.upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(upstream.Close)
	opts.gateway.Upstream = upstream
	opts.gateway.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if r.gateway, err = gateway.New(opts.gateway); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.gateway.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error("Run:", err)
		}
	})

	r.server = httptest.NewUnstartedServer(r.gateway)
	r.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	transport := &http.Transport{DisableCompression: true}
	if opts.h2c {
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		r.server.Config.Protocols = &protocols
		transport.Protocols = &protocols
	}
	r.server.Start()
	r.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		r.server.CloseClientConnections()
		r.stop()
		r.server.Close()
	})
	return r
}

func (r *rig) addr() string { return strings.TrimPrefix(r.server.URL, "http://") }

// do sends a request to the gateway; headers are pairs.
func (r *rig) do(method, path string, body io.Reader, headers ...string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (r *rig) get(path string, headers ...string) *http.Response {
	r.t.Helper()
	return r.do(http.MethodGet, path, nil, headers...)
}

// dial opens a raw connection to the gateway.
func (r *rig) dial() net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

// complaints returns the log lines above level INFO.
func (r *rig) complaints() string {
	var out strings.Builder
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func readAll(t *testing.T, res *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// statusOf decodes an answer that is to be a Status.
func statusOf(t *testing.T, res *http.Response) metav1.Status {
	t.Helper()
	body := readAll(t, res)
	var s metav1.Status
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatalf("%s: not a Status: %q", res.Status, body)
	}
	if s.Kind != "Status" || s.APIVersion != "v1" || s.Status != metav1.StatusFailure || int(s.Code) != res.StatusCode {
		t.Errorf("%s: odd Status: %s", res.Status, body)
	}
	return s
}
