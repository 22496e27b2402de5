// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/serve/server"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// running is a server under test.
type running struct {
	url, admin string
	log        *logtest.Log
	cancel     context.CancelFunc
	done       chan error
}

// start runs a server before handler, and ends it with the test.
func start(t *testing.T, handler http.Handler, opts server.Options) *running {
	t.Helper()
	upstream := httptest.NewServer(handler)
	t.Cleanup(upstream.Close)
	opts.RESTConfig = &rest.Config{Host: upstream.URL}
	if opts.Address == "" {
		opts.Address = "127.0.0.1"
	}
	s := &running{log: &logtest.Log{}, done: make(chan error, 1)}
	opts.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	listening := make(chan struct{})
	opts.OnListening = func(mainURL, adminURL string) {
		s.url, s.admin = mainURL, adminURL
		close(listening)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() { s.done <- server.Run(ctx, opts) }()
	select {
	case <-listening:
	case err := <-s.done:
		t.Fatal("did not start: ", err)
	}
	t.Cleanup(func() { s.stop(t) })
	return s
}

// stop ends the server and reports how long it took.
func (s *running) stop(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	s.cancel()
	err, first := <-s.done
	if first {
		close(s.done)
	}
	if err != nil {
		t.Error("Run:", err)
	}
	return time.Since(begin)
}

// fetch gets a URL and returns protocol, code and body.
func fetch(t *testing.T, transport *http.Transport, url string, headers ...string) (string, int, string) {
	t.Helper()
	if transport == nil {
		transport = &http.Transport{}
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Proto, res.StatusCode, string(body)
}

var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RequestURI) })

func TestProtocolsOnPlainListener(t *testing.T) {
	s := start(t, echo, server.Options{})
	if !strings.HasPrefix(s.url, "http://127.0.0.1:") || strings.HasSuffix(s.url, ":0") || s.admin != "" {
		t.Errorf("listening on %q, admin %q", s.url, s.admin)
	}
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	for want, transport := range map[string]*http.Transport{
		"HTTP/1.1": nil,
		"HTTP/2.0": {Protocols: &h2c},
	} {
		if proto, code, body := fetch(t, transport, s.url+"/api"); proto != want || code != 200 || body != "/api" {
			t.Errorf("%s: %s %d %q", want, proto, code, body)
		}
	}
}

func TestManyStreamsOnOneConnection(t *testing.T) {
	const streams = 600
	var arrived atomic.Int32
	here := make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api" { // the gateway's own: it gives up requests to a server that does not answer it
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"major":"1","gitVersion":"v1.35.0"}`)
			return
		}
		if arrived.Add(1) == streams {
			close(here)
		}
		select {
		case <-here:
		case <-r.Context().Done():
		}
	}), server.Options{})
	conns := 0
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: &protocols,
		HTTP2:     &http.HTTP2Config{StrictMaxConcurrentRequests: true},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conns++
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}
	get := func(path string) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if path == "/api" && res.StatusCode != 200 {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
	get("/ui/") // a burst without a connection would open several
	var all sync.WaitGroup
	for range streams {
		all.Go(func() { get("/api") })
	}
	all.Wait()
	transport.CloseIdleConnections()
	if conns != 1 {
		t.Errorf("%d connections", conns)
	}
}

// TestWrongUpstream: a server that is no API server does not make the gateway ready, and the
// check and the log say what it answers.
func TestWrongUpstream(t *testing.T) {
	for answer, code := range map[string]int{"Client sent an HTTP request to an HTTPS server.": 400, "404 page not found": 404, "<html>": 200} {
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			io.WriteString(w, answer+"\nmore")
		}), server.Options{AdminListen: "127.0.0.1:0"})
		fetch(t, nil, s.url+"/api/v1/pods")
		if _, got, body := fetch(t, nil, s.admin+"/readyz"); got != 503 || !strings.Contains(body, "does not answer as a Kubernetes API server") || !strings.Contains(body, answer) || strings.Contains(body, "more") {
			t.Errorf("%s: %d %s", answer, got, body)
		}
		if _, _, body := fetch(t, nil, s.admin+"/metrics"); !strings.Contains(body, "watchkeeper_upstream_up 0") {
			t.Errorf("%s: the metrics say that it is up", answer)
		}
	}
}

func TestAdmin(t *testing.T) {
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"major":"1","gitVersion":"v1.35.0"}`)
			return
		}
		echo(w, r)
	}), server.Options{AdminListen: "127.0.0.1:0"})
	fetch(t, nil, s.url+"/api/v1/pods")
	for _, tc := range []struct {
		path, host string
		code       int
		want       string
	}{
		{"/livez", "", 200, "ok"},
		{"/readyz", "", 200, "ok"},
		{"/readyz?verbose", "", 200, "[+]ping ok\n[+]gateway ok\nreadyz check passed\n"},
		{"/metrics", "", 200, `watchkeeper_requests_total{code="200",source="passthrough",verb="list"} 1`},
		{"/metrics", "", 200, "go_goroutines "},
		{"/metrics", "", 200, `watchkeeper_build_info{goversion="go`},
		{"/metrics", "", 200, "process_start_time_seconds "},
		{"/debug/pprof/", "", 200, "goroutine"},
		{"/debug/pprof/goroutine?debug=1", "", 200, "goroutine profile"},
		{"/debug/pprof/cmdline", "", 404, ""},
		{"/livez", "localhost", 200, "ok"},
		{"/livez", "[::1]:80", 200, "ok"},
		{"/livez", "evil.example", 403, "is not this machine"},
	} {
		_, code, body := fetch(t, nil, s.admin+tc.path, "Host", tc.host)
		if code != tc.code || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d %.200q, want %d %q", tc.path, code, body, tc.code, tc.want)
		}
	}
	// The main listener keeps the API server's own.
	if _, _, body := fetch(t, nil, s.url+"/readyz?verbose"); body != "/readyz?verbose" {
		t.Errorf("main /readyz: %q", body)
	}
}

func TestNotReadyWithoutUpstream(t *testing.T) {
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }), server.Options{AdminListen: "127.0.0.1:0"})
	_, code, body := fetch(t, nil, s.admin+"/readyz")
	if code != 503 || !strings.Contains(body, "[+]ping ok\n[-]gateway failed: upstream 127.0.0.1:") || !strings.HasSuffix(body, "readyz check failed\n") {
		t.Errorf("%d %q", code, body)
	}
	if _, code, _ := fetch(t, nil, s.admin+"/livez"); code != 200 {
		t.Errorf("livez: %d", code)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	// A socket without a server is replaced.
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()

	s := start(t, echo, server.Options{UnixSocket: path})
	if s.url != "unix://"+path {
		t.Errorf("url %q", s.url)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	dial := func() *http.Transport {
		return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}
	}
	if _, code, body := fetch(t, dial(), "http://localhost/api"); code != 200 || body != "/api" {
		t.Errorf("%d %q", code, body)
	}
	if _, code, _ := fetch(t, dial(), "http://evil.example/api"); code != 403 {
		t.Errorf("other host: %d", code)
	}
	s.stop(t)
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 0 {
		t.Errorf("files remain: %v", entries)
	}
}

func TestInvalidOptions(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	served, err := net.Listen("unix", filepath.Join(dir, "served"))
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()

	for _, tc := range []struct {
		name string
		opts server.Options
		flag string // of a ListenError
		is   error
		want string
	}{
		{"busy port", server.Options{Port: port}, "port", syscall.EADDRINUSE, fmt.Sprintf("listen on 127.0.0.1:%d: ", port)},
		{"busy admin port", server.Options{AdminListen: busy.Addr().String()}, "admin-listen", syscall.EADDRINUSE, "listen on "},
		{"bad admin address", server.Options{AdminListen: "8002"}, "admin-listen", nil, "missing port"},
		{"socket is a file", server.Options{UnixSocket: file}, "unix-socket", nil, "not a socket"},
		{"socket is served", server.Options{UnixSocket: filepath.Join(dir, "served")}, "unix-socket", syscall.EADDRINUSE, ""},
		{"socket in no directory", server.Options{UnixSocket: filepath.Join(dir, "no", "s")}, "unix-socket", fs.ErrNotExist, ""},
		{"no www", server.Options{Gateway: gateway.Options{WWW: filepath.Join(dir, "no")}}, "", fs.ErrNotExist, "--www: "},
		{"certificate alone", server.Options{Cert: server.CertOptions{File: file}}, "", nil, "--tls-private-key-file"},
		{"no certificate in it", server.Options{Cert: server.CertOptions{File: file, KeyFile: file}}, "", nil, "--tls-cert-file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.opts.RESTConfig = &rest.Config{Host: "http://127.0.0.1:1"}
			tc.opts.Address = "127.0.0.1"
			err := server.Run(t.Context(), tc.opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v", err)
			}
			if le, ok := errors.AsType[*server.ListenError](err); ok != (tc.flag != "") || ok && le.Flag != tc.flag {
				t.Errorf("got %#v", err)
			}
		})
	}
	if _, err := os.Stat(file); err != nil {
		t.Error("the file is gone: ", err)
	}
}

// TestNotServed: if the API server cannot be asked at the start, /readyz reports a name in
// --record that no resource has, while the others are recorded.
func TestNotServed(t *testing.T) {
	selection, err := recorder.Select([]string{"po", "podz"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	api := fakeapi.New(fakeapi.Options{})
	var asked atomic.Bool
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api" && !asked.Swap(true) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		api.ServeHTTP(w, r)
	}), server.Options{AdminListen: "127.0.0.1:0", Record: server.RecordOptions{Dir: t.TempDir(), Select: selection}})
	const note = "[-]history not recorded: --record: \"podz\" matches no resource of the API server: did you mean pods?\n"
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, code, short := fetch(t, nil, s.admin+"/readyz")
		_, _, long := fetch(t, nil, s.admin+"/readyz?verbose")
		_, _, metrics := fetch(t, nil, s.admin+"/metrics")
		if code == 200 && short == "ok\n"+note && strings.Contains(long, note) && strings.Contains(long, "[+]history recording: ") &&
			strings.Contains(long, " resources=1 ") && strings.Contains(metrics, "watchkeeper_history_up 0\n") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d %q %q", code, short, long)
		}
	}
}

func TestWarnings(t *testing.T) {
	s := start(t, echo, server.Options{Address: "0.0.0.0", Gateway: gateway.Options{AllowProxiedPages: true, Filter: gateway.FilterOptions{Disabled: true}}})
	s.stop(t)
	for _, want := range []string{"every client that reaches this address", "--accept-hosts", "request filter is disabled", "proxied pages are allowed"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("no warning %q in:\n%s", want, s.log)
		}
	}
	// Not echo: of an upstream that is no API server, the server warns too.
	quiet := start(t, fakeapi.New(fakeapi.Options{}), server.Options{})
	quiet.stop(t)
	if strings.Contains(quiet.log.String(), "WARN") {
		t.Errorf("warned for nothing:\n%s", quiet.log)
	}
}

// On shutdown, a followed log ends at once, a request that ends in time is not
// cut, and an idle connection causes no delay.
func TestDrain(t *testing.T) {
	release := make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"gitVersion":"v1.36.0"}`)
			return
		}
		io.WriteString(w, "begin\n")
		http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
		io.WriteString(w, "end\n")
	}), server.Options{AdminListen: "127.0.0.1:0", ShutdownGrace: time.Minute})
	spare, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer spare.Close()
	follow, short := open(t, s.url+"/log?follow=true"), open(t, s.url+"/api")

	stopped := make(chan time.Duration, 1)
	go func() { stopped <- s.stop(t) }()
	if rest, err := io.ReadAll(follow); err == nil {
		t.Errorf("the log has a clean end: %q", rest)
	}
	if _, code, body := fetch(t, nil, s.admin+"/readyz"); code != 503 || !strings.Contains(body, "shutting down") {
		t.Errorf("readyz while draining: %d %q", code, body)
	}
	// Another goroutine closes the listener.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			break
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Error("accepts connections while draining")
			break
		}
	}
	close(release)
	if rest, err := io.ReadAll(short); err != nil || string(rest) != "end\n" {
		t.Errorf("the short request: %q, %v", rest, err)
	}
	<-stopped
	if strings.Contains(s.log.String(), "WARN") {
		t.Errorf("log:\n%s", s.log)
	}
}

func TestDrainEndsWithTheGracePeriod(t *testing.T) {
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begin\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}), server.Options{ShutdownGrace: 200 * time.Millisecond})
	body := open(t, s.url+"/api")
	if took := s.stop(t); took < 200*time.Millisecond {
		t.Errorf("took %v", took)
	}
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the request was cut and has a clean end")
	}
	if !strings.Contains(s.log.String(), "grace period over") {
		t.Errorf("log:\n%s", s.log)
	}
}

// open starts a request whose answer begins with a line, and reads the line.
func open(t *testing.T, url string) io.Reader {
	t.Helper()
	transport := &http.Transport{}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		res.Body.Close()
		transport.CloseIdleConnections()
	})
	in := bufio.NewReader(res.Body)
	if line, err := in.ReadString('\n'); err != nil || line != "begin\n" {
		t.Fatal(line, err)
	}
	return in
}
