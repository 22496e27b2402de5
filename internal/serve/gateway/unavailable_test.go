// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// closedPort returns an address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestUpstreamUnreachable(t *testing.T) {
	addr := closedPort(t)
	r := newRigFor(t, &rest.Config{Host: "https://" + addr, BearerToken: "very-secret-token"}, rigOptions{})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		res := r.do(method, "/api/v1/nodes/n/proxy/", nil)
		s := statusOf(t, res)
		// With Retry-After, kubectl would ask for ten seconds before it fails.
		if s.Code != 503 || s.Reason != metav1.StatusReasonServiceUnavailable ||
			s.Details != nil || res.Header.Get("Retry-After") != "" {
			t.Errorf("%s: %+v %v", method, s, res.Header)
		}
		if !strings.HasPrefix(s.Message, "the API server does not answer: dial tcp") || !strings.Contains(s.Message, "connection refused") || !strings.Contains(s.Message, addr) {
			t.Errorf("%s: the message does not name the cause: %s", method, s.Message)
		}
	}
	if err := r.ready(); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Ready: %v", err)
	}
	if strings.Contains(r.log.String(), "secret") {
		t.Errorf("logged a credential:\n%s", r.log)
	}
}

func TestCredentialPluginErrorsKeepSecrets(t *testing.T) {
	r := newRigFor(t, &rest.Config{Host: "http://127.0.0.1:1", WrapTransport: func(http.RoundTripper) http.RoundTripper {
		return failing{errors.New("proxyconnect http://jane:hunter2@proxy:3128:\n  Bearer abcdefghijkl was refused")}
	}}, rigOptions{})
	s := statusOf(t, r.get("/api"))
	if strings.Contains(s.Message, "hunter2") || strings.Contains(s.Message, "abcdefghijkl") || strings.Contains(s.Message, "\n") {
		t.Errorf("message %q", s.Message)
	}
	if !strings.Contains(s.Message, "proxy:3128") {
		t.Errorf("the message lost the cause: %q", s.Message)
	}
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func (f failing) CloseIdleConnections() {}

// A request that the API server may have processed gets no Retry-After, after which
// client-go would repeat it.
func TestConnectionLostBeforeTheAnswer(t *testing.T) {
	for _, tlsUpstream := range []bool{false, true} {
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/ok" {
				panic(http.ErrAbortHandler)
			}
		}), rigOptions{tlsUpstream: tlsUpstream})
		r.get("/ok") // leaves a connection to reuse
		for _, tc := range []struct {
			method string
			retry  string
		}{{http.MethodGet, "1"}, {http.MethodPost, ""}} {
			res := r.do(tc.method, "/api", strings.NewReader("{}"))
			s := statusOf(t, res)
			if s.Code != 503 || res.Header.Get("Retry-After") != tc.retry || !strings.Contains(s.Message, "broke before it answered") {
				t.Errorf("tls=%v %s: Retry-After %q, %+v", tlsUpstream, tc.method, res.Header.Get("Retry-After"), s)
			}
		}
	}
}

// ready returns the result of a probe that was not too slow: a probe has three seconds.
func (r *rig) ready() (err error) {
	for range 5 {
		if err = r.gateway.Ready(r.t.Context()); err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			break
		}
	}
	return err
}

func TestReady(t *testing.T) {
	for _, tc := range []struct {
		code int
		body string
		want string
	}{
		{200, `{"major":"1","gitVersion":"v1.35.0"}`, ""},
		{403, `{"kind":"Status","code":403}`, ""},
		{401, "", "does not accept the gateway's credentials"},
		{500, "", "answers 500"},
		{400, "Client sent an HTTP request to an HTTPS server.\n", `400 Bad Request "Client sent an HTTP request to an HTTPS server."`},
		{404, "404 page not found", "does not answer as a Kubernetes API server"},
	} {
		agent := make(chan string, 1)
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case agent <- r.UserAgent():
			default: // an earlier probe was sent
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(tc.code)
			io.WriteString(w, tc.body)
		}), rigOptions{upstream: upstream.Options{UserAgent: "watchkeeper/test"}})
		err := r.ready()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d: %v, want %q", tc.code, err, tc.want)
		}
		if got := <-agent; got != "watchkeeper/test" {
			t.Errorf("sent credentials %q", got)
		}
		// An answer is cached for a while.
		if tc.want == "" {
			over, cancel := context.WithCancel(t.Context())
			cancel() // a probe fails
			if err := r.gateway.Ready(over); err != nil {
				t.Errorf("probed again: %v", err)
			}
		}
	}
}

// TestUnaccepted: a 401 to the gateway's own credentials is not passed on, as if the caller's
// were not accepted; one to the caller's is, and so is one of a Pod.
func TestUnaccepted(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), rigOptions{})
	for _, path := range []string{"/api", "/api/v1/nodes/a", "/api/v1/pods?watch=1"} {
		if s := statusOf(t, r.get(path)); s.Code != http.StatusServiceUnavailable || !strings.Contains(s.Message, "does not accept the gateway's credentials") {
			t.Errorf("%s: %+v", path, s)
		}
	}
	if res := r.get("/api/v1/nodes/a", "Authorization", "Bearer expired"); res.StatusCode != http.StatusUnauthorized {
		t.Error("with a token:", res.Status)
	}
	if res := r.get("/api/v1/namespaces/a/pods/b/proxy/"); res.StatusCode != http.StatusUnauthorized {
		t.Error("of a Pod:", res.Status)
	}
}

// Each half of a body is sent after the other side has read the half before it; this
// would deadlock if the gateway buffered bodies.
func TestLargeBodiesAreNotBuffered(t *testing.T) {
	const half = 3 << 20 // two are more than the window of a stream in HTTP/2, 4 MiB
	eachTransport(t, func(t *testing.T, opts rigOptions) {
		seen := make(chan struct{})
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api" { // the gateway's own question, which would take what is sent to seen
				http.NotFound(w, r)
				return
			}
			if r.Method == http.MethodGet {
				w.Header().Set("Content-Length", fmt.Sprint(2*half))
				io.Copy(w, body(1, half))
				http.NewResponseController(w).Flush()
				<-seen
				io.Copy(w, body(2, half))
				return
			}
			sum := sha256.New()
			io.CopyN(sum, r.Body, half)
			seen <- struct{}{}
			io.Copy(sum, r.Body)
			fmt.Fprintf(w, "%x", sum.Sum(nil))
		}), opts)
		want := sha256.New()
		io.Copy(want, io.MultiReader(body(1, half), body(2, half)))

		up := io.MultiReader(body(1, half), waitReader{seen}, body(2, half))
		if got := readAll(t, r.do(http.MethodPut, "/api", up)); got != fmt.Sprintf("%x", want.Sum(nil)) {
			t.Errorf("upstream got a different body: %s", got)
		}

		res, sum := r.get("/api"), sha256.New()
		if _, err := io.CopyN(sum, res.Body, half); err != nil {
			t.Fatal(err)
		}
		seen <- struct{}{}
		if n, err := io.Copy(sum, res.Body); n != half || err != nil {
			t.Fatal(n, err)
		}
		if string(sum.Sum(nil)) != string(want.Sum(nil)) {
			t.Error("client got a different body")
		}
	})
}

// body returns n bytes that differ by seed.
func body(seed byte, n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{seed}), n)
}

// waitReader is empty; its EOF waits for a value on ch.
type waitReader struct{ ch <-chan struct{} }

func (w waitReader) Read([]byte) (int, error) {
	<-w.ch
	return 0, io.EOF
}
