// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer"
)

// TestKubeconfig: the informer connects to the server of the kubeconfig over TLS
// and sends its token.
func TestKubeconfig(t *testing.T) {
	var path, token atomic.Value
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path.Store(r.URL.Path)
		token.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}))
	server.StartTLS()
	defer server.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: x, context: {cluster: c, user: u}}, {name: none, context: {cluster: gone, user: u}}]
current-context: x
`, server.URL+"/prefix", ca)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	for name, source := range map[string]func() (*informer.Source, error){
		"default": Default,
		"file":    func() (*informer.Source, error) { return FromFile(file, "x") },
	} {
		path.Store("")
		src, err := source()
		if err != nil {
			t.Fatal(err)
		}
		pods := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.Raw(), informer.Options{})
		err = pods.Run(t.Context())
		if refused, ok := errors.AsType[*informer.RefusedError](err); !ok || refused.Code != 403 {
			t.Errorf("%s: %v", name, err)
		}
		if path.Load() != "/prefix/api/v1/pods" || token.Load() != "Bearer secret" {
			t.Errorf("%s: requested %v with %v", name, path.Load(), token.Load())
		}
	}
	if _, err := FromFile(file, "none"); err == nil {
		t.Error("no error for a context without a cluster")
	}
	if _, err := FromFile(filepath.Join(t.TempDir(), "gone"), ""); err == nil {
		t.Error("no error for a missing file")
	}
}

// TestReceiveBuffer: the limit is set on the transport below all wrappers that
// authenticate.
func TestReceiveBuffer(t *testing.T) {
	got, err := newTransport(&rest.Config{Host: "https://127.0.0.1:1", BearerToken: "secret", UserAgent: "me"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rt := got.RoundTripper
	for w, ok := rt.(utilnet.RoundTripperWrapper); ok; w, ok = rt.(utilnet.RoundTripperWrapper) {
		rt = w.WrappedRoundTripper()
	}
	if plain, ok := rt.(*http.Transport); !ok || plain.HTTP2 == nil || plain.HTTP2.MaxReceiveBufferPerStream != 2<<20 {
		t.Errorf("%#v", rt)
	}
	if plain := http.DefaultTransport.(*http.Transport); plain.HTTP2 != nil {
		t.Error("http.DefaultTransport was modified")
	}
}

// TestFresh: a fresh transport does not use connections of the first one.
func TestFresh(t *testing.T) {
	addresses := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { addresses[r.RemoteAddr] = true }))
	defer server.Close()
	first, err := newTransport(&rest.Config{Host: server.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := first.Fresh()
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range []http.RoundTripper{first, first, fresh} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if len(addresses) != 2 {
		t.Errorf("%d connections", len(addresses))
	}
}

// TestUserOfHost: a user in the URL authenticates as with client-go, also on fresh
// connections, and does not appear in errors.
func TestUserOfHost(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	config := &rest.Config{Host: strings.Replace(server.URL, "http://", "http://user:p%40w@", 1), BearerToken: "token"}
	client, err := rest.UnversionedRESTClientFor(withCodec(config))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Get().AbsPath("/api").Do(t.Context()).Error(); err == nil {
		t.Error("client-go is not refused")
	}
	src, err := FromConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	err = informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.Raw(), informer.Options{}).Run(t.Context())
	if err == nil || strings.Contains(err.Error(), "user") {
		t.Error(err)
	}
	first, err := newTransport(config, url.UserPassword("user", "p@w"))
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := first.Fresh()
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	resp, err := fresh.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:p@w"))
	if len(got) < 3 || slices.ContainsFunc(got, func(header string) bool { return header != want }) {
		t.Errorf("%q", got)
	}
}

// withCodec returns a configuration with what a REST client needs.
func withCodec(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

// TestClose: Close of a source closes its connection.
func TestClose(t *testing.T) {
	closed := make(chan bool)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	server.Start()
	defer server.Close()
	src, err := FromConfig(&rest.Config{Host: server.URL, BearerToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	if err := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.Raw(), informer.Options{}).Run(t.Context()); err == nil {
		t.Error("not refused")
	}
	src.Close()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection remains open")
	}
}

func TestNilConfig(t *testing.T) {
	if _, err := FromConfig(nil); err == nil || err.Error() != "kubeconfig: config is nil" {
		t.Error(err)
	}
}

func TestNotInCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := InCluster(); !errors.Is(err, rest.ErrNotInCluster) {
		t.Error(err)
	}
}
