// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/internal/cli"
)

// A fakeGateway serves fixed answers, and discovery of Pods, Nodes and Deployments.
type fakeGateway struct {
	*httptest.Server
	answers map[string]string // JSON by path, or by path and query; "older" is that of a further page
	prefix  string            // path below which it serves

	mu    sync.Mutex // guards asked
	asked []string
}

var discoveryAnswers = map[string]string{
	"/api":          `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis":         `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
	"/api/v1":       `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["list"],"shortNames":["po"]},{"name":"nodes","singularName":"node","namespaced":false,"kind":"Node","verbs":["list"],"shortNames":["no"]}]}`,
	"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["list"],"shortNames":["deploy"]}]}`,
}

func newFakeGateway(t *testing.T, answers map[string]string) *fakeGateway {
	f := &fakeGateway{answers: answers}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	t.Setenv("WATCHKEEPER_SERVER", f.URL)
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	return f
}

func (f *fakeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	rest, below := strings.CutPrefix(r.URL.Path, f.prefix)
	if !below {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"message":"the API is served below %s/: see --api-prefix"}`, f.prefix)
		return
	}
	r.URL.Path = rest
	if answer, ok := discoveryAnswers[r.URL.Path]; ok {
		fmt.Fprint(w, answer)
		return
	}
	what := strings.TrimPrefix(r.URL.RequestURI(), "/watchkeeper/v1/history")
	f.mu.Lock()
	f.asked = append(f.asked, what)
	f.mu.Unlock()
	path, query, _ := strings.Cut(what, "?")
	if strings.Contains(query, "continue=") {
		path = "older"
	}
	answer, ok := f.answers[what]
	if !ok {
		answer, ok = f.answers[path]
	}
	if path == "" && !ok {
		answer, ok = `{"recording":{"state":"on"},"resources":[]}`, true
	}
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"message":"nothing is recorded of it"}`
	}
	var code int
	if _, err := fmt.Sscanf(answer, `{"kind":"Status","code":%d`, &code); err == nil {
		w.WriteHeader(code)
	}
	fmt.Fprint(w, answer)
}

// questions returns the requests since the last call.
func (f *fakeGateway) questions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.asked = nil }()
	return f.asked
}

// serveInMemory serves a handler in a synctest bubble, whose network is http.DefaultTransport's
// for the rest of the test, and returns its URL. The time is after recordedIndex.
func serveInMemory(t *testing.T, h http.Handler) string {
	t.Helper()
	network := informertest.NewNetwork(h)
	transport := http.DefaultTransport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = network.Dial
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		transport.DialContext = dial
		network.Close()
	})
	time.Sleep(time.Until(time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)))
	return network.URL().String()
}

// run runs a command line.
func run(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code = cli.Main(ctx, append([]string{"watchkeeper"}, args...), strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

// text is JSON of a value.
func text(t *testing.T, value any) string {
	t.Helper()
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
