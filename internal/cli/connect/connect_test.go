// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"k8s.io/apimachinery/pkg/api/meta"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// A fakeServer is an API server, or a gateway, of a cluster.
type fakeServer struct {
	*httptest.Server
	uid     string
	gateway bool

	mu      sync.Mutex // guards the fields below
	asked   []string
	headers []http.Header
}

func newServer(t *testing.T, uid string, gateway, secure bool) *fakeServer {
	t.Helper()
	s := &fakeServer{uid: uid, gateway: gateway}
	s.Server = httptest.NewUnstartedServer(s)
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path)
	s.headers = append(s.headers, r.Header)
	s.mu.Unlock()
	switch {
	case r.URL.Path == clusterPath && s.uid != "":
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, s.uid)
	case r.URL.Path == gatewayPath && s.gateway:
		fmt.Fprint(w, `{"openapi":"3.0.3"}`)
	default:
		http.Error(w, "forbidden", http.StatusForbidden)
	}
}

// takeAsked returns the paths that were asked since the last call.
func (s *fakeServer) takeAsked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// newFlags returns flags that were given as arguments, with a kubeconfig whose context is a
// server, and another server as the gateway of this machine.
func newFlags(t *testing.T, context, local string, args ...string) *Flags {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("KUBECACHEDIR", dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "config"))
	if context != "" {
		config := "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: '" + context + "', insecure-skip-tls-verify: true}}], " +
			"contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}], users: [{name: u, user: {token: hidden}}]}"
		if strings.HasPrefix(context, "http:") {
			config = strings.Replace(config, ", insecure-skip-tls-verify: true", "", 1)
		}
		if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := NewFlags()
	f.local = local
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddTo(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestUseLocal: the gateway of this machine is used exactly if it serves the context's cluster.
func TestUseLocal(t *testing.T) {
	gateway := newServer(t, "one", true, false)
	same, other, refusing := newServer(t, "one", false, true), newServer(t, "two", false, true), newServer(t, "", false, true)
	proxy := newServer(t, "one", false, false) // as kubectl proxy
	for _, c := range []struct {
		what, context, local string
		args                 []string
		want                 bool
	}{
		{what: "the same cluster", context: same.URL, local: gateway.URL, want: true},
		{what: "no kubeconfig", local: gateway.URL, want: true},
		{what: "another cluster", context: other.URL, local: gateway.URL},
		{what: "a context whose cluster is not known", context: refusing.URL, local: gateway.URL},
		{what: "no gateway", context: same.URL, local: proxy.URL},
		{what: "nothing there", context: same.URL, local: "http://127.0.0.1:1"},
		{what: "another user", context: same.URL, local: gateway.URL, args: []string{"--as", "jane"}},
		{what: "another token", context: same.URL, local: gateway.URL, args: []string{"--token", "x"}},
		{what: "a server", context: same.URL, local: gateway.URL, args: []string{"--server", other.URL}},
		{what: "a context that does not exist", context: same.URL, local: gateway.URL, args: []string{"--context", "x"}},
	} {
		f := newFlags(t, c.context, c.local, c.args...)
		got := f.UseLocal(t.Context())
		if got != "" != c.want {
			t.Errorf("%s: %q", c.what, got)
		}
		if !c.want {
			continue
		}
		config, err := f.ToRESTConfig()
		if err != nil || config.Host != gateway.URL || config.BearerToken != "" {
			t.Errorf("%s: %v, %v", c.what, config, err)
		}
		if !strings.HasSuffix(*f.CacheDir, "/watchkeeper/one") {
			t.Errorf("%s: the cache is in %s", c.what, *f.CacheDir)
		}
	}
	f := newFlags(t, same.URL, gateway.URL)
	t.Setenv(Variable, NoGateway)
	if got := f.UseLocal(t.Context()); got != "" {
		t.Errorf("%s=%s: %q", Variable, NoGateway, got)
	}
	if got, err := newFlags(t, refusing.URL, gateway.URL).Gateway(t.Context()); err == nil || !strings.Contains(err.Error(), Variable) || strings.Contains(err.Error(), gateway.URL) {
		t.Errorf("a command that needs a gateway, with %s=%s: %q, %v", Variable, NoGateway, got, err)
	}
}

// TestNoMapping: what is no resource is said in kubectl's words.
func TestNoMapping(t *testing.T) {
	if _, err := Mapping(meta.NewDefaultRESTMapper(nil), "podz"); err == nil || err.Error() != `the server doesn't have a resource type "podz"` {
		t.Errorf("%v", err)
	}
}

// TestClusterIsRemembered: the API server is asked for its cluster once in a while, and what
// it has answered counts while it does not answer.
func TestClusterIsRemembered(t *testing.T) {
	gateway, server := newServer(t, "one", true, false), newServer(t, "one", false, true)
	f := newFlags(t, server.URL, gateway.URL)
	dir := *f.CacheDir
	use := func() string {
		*f.CacheDir = dir
		f.Use("")
		return f.UseLocal(t.Context())
	}
	if use() == "" || len(server.takeAsked()) != 1 {
		t.Error("the cluster was not asked for")
	}
	if use() == "" || len(server.takeAsked()) != 0 {
		t.Error("the cluster was asked for again")
	}
	files, err := filepath.Glob(filepath.Join(dir, "watchkeeper", "clusters", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	old := time.Now().Add(-2 * maxKnown)
	if err := os.Chtimes(files[0], old, old); err != nil {
		t.Fatal(err)
	}
	if use() == "" || len(server.takeAsked()) != 1 {
		t.Error("an old answer was used")
	}
	if err := os.Chtimes(files[0], old, old); err != nil {
		t.Fatal(err)
	}
	server.uid = "" // 403
	if use() != "" {
		t.Error("an old answer was used against a refusal")
	}
	server.Close()
	if use() == "" {
		t.Error("the answer was forgotten while the API server does not answer")
	}
}

// TestGateway: which gateway a command that needs one asks, and with which credentials.
func TestGateway(t *testing.T) {
	local, shared, server := newServer(t, "one", true, false), newServer(t, "one", true, true), newServer(t, "one", false, true)
	const nothing = "http://127.0.0.1:1"
	for _, c := range []struct {
		what, context, local, variable string
		args                           []string
		want, token                    string
	}{
		{what: "one on this machine", context: server.URL, local: local.URL, want: local.URL},
		{what: "without a kubeconfig", local: local.URL, want: local.URL},
		{what: "the context's", context: shared.URL, local: nothing, want: shared.URL, token: "Bearer hidden"},
		{what: "none", context: server.URL, local: nothing, want: nothing},
		{what: "none, without a kubeconfig", local: nothing, want: nothing},
		{what: "the flag", context: server.URL, local: local.URL, args: []string{"--server", shared.URL + "/"}, want: shared.URL, token: "Bearer hidden"},
		{what: "the variable", context: server.URL, local: nothing, variable: local.URL, want: local.URL},
		{what: "another token", context: shared.URL, local: nothing, args: []string{"--token", "other"}, want: shared.URL, token: "Bearer other"},
		{what: "no credentials in clear text", context: shared.URL, local: nothing, args: []string{"--server", local.URL, "--token", "other"}, want: local.URL},
	} {
		f := newFlags(t, c.context, c.local, c.args...)
		t.Setenv(Variable, c.variable)
		got, err := f.Gateway(t.Context())
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.what, got, err)
			continue
		}
		if got == nothing {
			continue
		}
		client, err := f.HTTPClient()
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if _, err := fetch(t.Context(), client, got+gatewayPath); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		asked := map[string]*fakeServer{local.URL: local, shared.URL: shared}[got]
		if token := asked.headers[len(asked.headers)-1].Get("Authorization"); token != c.token {
			t.Errorf("%s: the credentials are %q", c.what, token)
		}
	}
}

// TestUseContext: the server of the context is used only if it is a gateway, and stays in use.
func TestUseContext(t *testing.T) {
	shared, server := newServer(t, "one", true, true), newServer(t, "one", false, true)
	if got := newFlags(t, server.URL, "").UseContext(t.Context()); got != "" {
		t.Errorf("an API server: %q", got)
	}
	if got := newFlags(t, "", "").UseContext(t.Context()); got != "" {
		t.Errorf("no kubeconfig: %q", got)
	}
	f := newFlags(t, shared.URL, server.URL)
	if got := f.UseContext(t.Context()); got != shared.URL {
		t.Errorf("a gateway: %q", got)
	}
	if got, err := f.Gateway(t.Context()); got != shared.URL || err != nil {
		t.Errorf("after that: %q, %v", got, err)
	}
}

// TestArguments: kubectl gets the flags that were given.
func TestArguments(t *testing.T) {
	f := newFlags(t, "", "", "--token", "x", "-n", "shop", "--as-group", "a", "--as-group=b,c", "--server", "https://example.com", "--insecure-skip-tls-verify")
	want := "--as-group=a --as-group=b,c --insecure-skip-tls-verify=true --token=x"
	if got := strings.Join(f.Arguments(), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
