// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/serve/passthrough"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

const (
	answers = iota
	refuses // 403
	fails   // 503
	limits  // 429
	hangs
	unreachable
)

// A failingAPI serves discovery, in one of the states above.
type failingAPI struct {
	state    atomic.Int32
	resource atomic.Value // the name of the resource in apps/v1
	passed   atomic.Int32 // requests of clients
}

func (f *failingAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.UserAgent() != "watchkeeper" {
		f.passed.Add(1)
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch f.state.Load() {
	case refuses:
		http.Error(w, "no", http.StatusForbidden)
		return
	case fails:
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	case limits:
		http.Error(w, "no", http.StatusTooManyRequests)
		return
	case hangs:
		<-r.Context().Done()
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "g=apidiscovery.k8s.io;v=v2;") && strings.Count(path, "/") == 1 {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		tag := `"` + f.resource.Load().(string) + `"`
		if w.Header().Set("ETag", tag); r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"APIGroupDiscoveryList","items":["`+path+f.resource.Load().(string)+`"]}`)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch path {
	case "/version":
		_, _ = io.WriteString(w, `{"major":"1"}`)
	case "/api":
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		_, _ = io.WriteString(w, `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`)
	case "/api/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1"}`)
	case "/apis/apps/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"`+f.resource.Load().(string)+`"}]}`)
	default:
		http.NotFound(w, r)
	}
}

// A discoveryRig is a gateway that records, in front of a failingAPI.
type discoveryRig struct {
	*failingAPI
	t *testing.T
	g *Gateway
	*http.Client
}

func inDiscoveryBubble(t *testing.T, test func(t *testing.T, rig *discoveryRig)) {
	synctest.Test(t, func(t *testing.T) {
		f := &failingAPI{}
		f.resource.Store("deployments")
		server := fakeapi.NewNetwork(f)
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if f.state.Load() == unreachable {
				return nil, errors.New("connection refused")
			}
			return server.Dial(ctx, network, address)
		}
		up, err := upstream.New(&rest.Config{Host: "http://apiserver", Dial: dial}, upstream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := recorder.New(recorder.Options{Dir: "data", FS: vfs.NewMem(), Upstream: up})
		if err != nil {
			t.Fatal(err)
		}
		g, err := New(Options{Upstream: up, History: rec})
		if err != nil {
			t.Fatal(err)
		}
		end := runs(t, g)
		network := fakeapi.NewNetwork(g)
		defer func() {
			network.Close()
			end()
			up.Close()
			server.Close()
		}()
		synctest.Wait() // the documents are read
		test(t, &discoveryRig{f, t, g, network.Client()})
	})
}

const (
	kubectlAccept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
	betaAccept    = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// ask returns the code, the media type and the body of an answer.
func (rig *discoveryRig) ask(path, accept string, headers ...string) (int, string) {
	rig.t.Helper()
	req, err := http.NewRequestWithContext(rig.t.Context(), http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		rig.t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	req.Header.Set("User-Agent", "client")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := rig.Do(req)
	if err != nil {
		rig.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		rig.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type") + " " + string(body)
}

var discoveryQuestions = []struct{ path, accept string }{
	{"/version", ""}, {"/api", ""}, {"/api", kubectlAccept}, {"/apis", kubectlAccept}, {"/apis/", kubectlAccept}, {"/apis", "*/*"},
	{"/api/v1", "application/json"}, {"/apis/apps/v1", "application/json"},
}

// TestDiscoveryDuringOutage: while the API server does not answer, discovery is the API
// server's last answer, live and below /at, and each answer comes without waiting once
// the gateway knows. Afterwards it is the API server's again.
func TestDiscoveryDuringOutage(t *testing.T) {
	for name, state := range map[string]int32{"fails": fails, "limits": limits, "hangs": hangs, "unreachable": unreachable} {
		t.Run(name, func(t *testing.T) {
			inDiscoveryBubble(t, func(t *testing.T, rig *discoveryRig) {
				want := map[int]string{}
				for i, q := range discoveryQuestions {
					code, body := rig.ask(q.path, q.accept)
					if want[i] = body; code != http.StatusOK {
						t.Fatalf("%v: %d %s", q, code, body)
					}
				}
				rig.state.Store(state)
				rig.CloseIdleConnections()
				rig.g.up.Close() // the connections of before
				before, began := rig.passed.Load(), time.Now()
				for i, q := range discoveryQuestions {
					for _, prefix := range []string{"", "/at/10m", "/at/now"} {
						if code, body := rig.ask(prefix+q.path, q.accept); code != http.StatusOK || body != want[i] {
							t.Errorf("%s%v: %d %s, want %s", prefix, q, code, body, want[i])
						}
					}
				}
				if state == hangs && (rig.passed.Load() != before+1 || time.Since(began) != passthrough.DiscoveryPatience) {
					t.Errorf("%d requests waited for the API server, for %v", rig.passed.Load()-before, time.Since(began))
				}
				refusal := http.StatusServiceUnavailable
				if state == limits {
					refusal = http.StatusTooManyRequests
				}
				if state != hangs { // these wait for the API server
					if code, _ := rig.ask("/openapi/v3", ""); code != refusal {
						t.Errorf("a document that is not kept: %d", code)
					}
					if code, _ := rig.ask("/apis", betaAccept); code != refusal {
						t.Errorf("a form that is not kept: %d", code)
					}
				}

				time.Sleep(time.Minute) // it stays as it is
				if code, body := rig.ask("/at/1s/apis", kubectlAccept); code != http.StatusOK || body != want[3] {
					t.Errorf("a minute later: %d %s", code, body)
				}
				rig.resource.Store("daemonsets")
				rig.state.Store(answers)
				time.Sleep(probeOfTests) // longer than the pause between two probes
				if code, body := rig.ask("/apis", kubectlAccept); code != http.StatusOK || !strings.Contains(body, "daemonsets") {
					t.Errorf("afterwards: %d %s", code, body)
				}
				rig.state.Store(state)
				rig.g.up.Close()
				for _, q := range append(discoveryQuestions[:1:1], discoveryQuestions[6:]...) {
					if code, body := rig.ask("/at/1s"+q.path, q.accept); code != http.StatusOK || strings.Contains(body, "deployments") {
						t.Errorf("the second outage: %v: %d %s", q, code, body)
					}
				}
			})
		})
	}
}

const probeOfTests = 20 * time.Second

// TestDiscoveryDuringOutageIsNotForOthers: the API server's answers to the gateway are
// not for callers with credentials of their own, and not kept once it refuses them (T8).
func TestDiscoveryDuringOutageIsNotForOthers(t *testing.T) {
	inDiscoveryBubble(t, func(t *testing.T, rig *discoveryRig) {
		rig.state.Store(fails)
		for _, header := range []string{"Authorization", "Impersonate-User", "X-Remote-User"} {
			for _, path := range []string{"/apis", "/at/10m/apis", "/version"} {
				if code, body := rig.ask(path, kubectlAccept, header, "Bearer x"); code != http.StatusServiceUnavailable {
					t.Errorf("%s with %s: %d %s", path, header, code, body)
				}
			}
		}
		rig.state.Store(refuses)
		time.Sleep(probeOfTests)
		if code, body := rig.ask("/at/10m/apis", kubectlAccept); code != http.StatusForbidden {
			t.Errorf("refused: %d %s", code, body)
		}
		rig.state.Store(fails)
		if code, body := rig.ask("/at/10m/apis", kubectlAccept); code != http.StatusServiceUnavailable {
			t.Errorf("refused before the outage: %d %s", code, body)
		}
	})
}
