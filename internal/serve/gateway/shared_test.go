// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// A reviewingAPI is an API server that answers reviews: a token is the name of its user,
// but for "wrong", and everybody may do everything, but for the gateway, which may list and
// watch.
type reviewingAPI struct {
	http.Handler
	mu    sync.Mutex // guards what follows
	asked []string   // GETs, but for those of the gateway
}

func (a *reviewingAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.UserAgent() != "watchkeeper" {
		a.mu.Lock()
		a.asked = append(a.asked, r.URL.Path)
		a.mu.Unlock()
	}
	if r.Method != http.MethodPost {
		a.Handler.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	o, _, _ := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	switch review := o.(type) {
	case *authenticationv1.TokenReview:
		review.Kind, review.APIVersion = "TokenReview", "authentication.k8s.io/v1"
		review.Status.User.Username, review.Status.Authenticated = review.Spec.Token, review.Spec.Token != "wrong"
	case *authorizationv1.SubjectAccessReview:
		review.Kind, review.APIVersion = "SubjectAccessReview", "authorization.k8s.io/v1"
		review.Status.Allowed = true
	case *authorizationv1.SelfSubjectAccessReview: // of the gateway
		attributes := review.Spec.ResourceAttributes
		review.Status.Allowed = attributes == nil || attributes.Verb == "list" || attributes.Verb == "watch"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(o)
}

// passed returns the GETs that were passed through since the last call.
func (a *reviewingAPI) passed() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

func newSharedRig(t *testing.T, opts rigOptions) (*rig, *reviewingAPI) {
	t.Helper()
	a := &reviewingAPI{Handler: fakeapi.New(fakeapi.Options{Resources: []fakeapi.Resource{fakeapi.Pods}})}
	opts.gateway.Shared = &access.SharedOptions{}
	return newRig(t, a, opts), a
}

// TestUnauthorizedConnection: after a 401 a client connects again, perhaps with a
// certificate; a browser, which has other requests on the connection, does not.
func TestUnauthorizedConnection(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		r, _ := newSharedRig(t, rigOptions{h2c: h2})
		// ask reports whether the connection was new.
		ask := func(headers ...string) (isNew bool) {
			t.Helper()
			req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				GotConn: func(info httptrace.GotConnInfo) { isNew = !info.Reused },
			}), http.MethodGet, r.server.URL+"/version", nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(headers); i += 2 {
				req.Header.Set(headers[i], headers[i+1])
			}
			res, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if readAll(t, res); res.StatusCode != http.StatusUnauthorized {
				t.Fatal(res.Status)
			}
			return isNew
		}
		ask("Sec-Fetch-Site", "same-origin")
		for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}} {
			if headers = append(headers, "Sec-Fetch-Site", "same-origin"); ask(headers...) {
				t.Errorf("HTTP/2 %t: a browser has to connect again", h2)
			}
		}
		for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}} {
			ask(headers...)
			// Over HTTP/2 the end of the connection may come after the answer.
			for deadline := time.Now().Add(time.Minute); !ask(headers...); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("HTTP/2 %t: the connection without credentials stays", h2)
				}
			}
		}
	}
}

// TestSharedConversions: a caller who is known may convert a workbook or YAML, whatever its
// rights.
func TestSharedConversions(t *testing.T) {
	r, _ := newSharedRig(t, rigOptions{})
	for token, want := range map[string]int{"": 401, "wrong": 401, "jane": 200} {
		for path, sent := range map[string]string{"/watchkeeper/v1/workbook": "application/json", "/watchkeeper/v1/yaml": "application/yaml"} {
			headers := []string{"Content-Type", sent}
			if token != "" {
				headers = append(headers, "Authorization", "Bearer "+token)
			}
			res := r.do(http.MethodPost, path, strings.NewReader(`{"tabs":[{"name":"a"}]}`), headers...)
			if body := readAll(t, res); res.StatusCode != want {
				t.Errorf("%s of %q: %s %.200s", path, token, res.Status, body)
			}
		}
	}
}

// TestSharedGet: a GET is served from the cache to whom may get the object; the gateway itself
// needs no right to get.
func TestSharedGet(t *testing.T) {
	r, a := newSharedRig(t, rigOptions{})
	const pod = "/api/v1/namespaces/default/pods/a"
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		res := r.get(pod+"?resourceVersion=0", "Authorization", "Bearer jane")
		body := readAll(t, res)
		if len(a.passed()) == 0 {
			if res.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s", res.Status, body)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not from the cache: %s %s", res.Status, body)
		}
	}
}

// TestLongReads: what would be kept as long as a watch is open has a bound.
func TestLongReads(t *testing.T) {
	r, a := newSharedRig(t, rigOptions{})
	jane := []string{"Authorization", "Bearer jane"}
	const pods = "/api/v1/pods"
	get := func(query string) (int, string) {
		t.Helper()
		res := r.get(query, jane...)
		return res.StatusCode, readAll(t, res)
	}
	long := "resourceVersion=0&labelSelector=" + strings.Repeat("a!=b,", 2000) + "a!=b"
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		get(pods + "?resourceVersion=0&labelSelector=a!=b")
		if len(a.passed()) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is served from the cache")
		}
	}
	if code, body := get(pods + "?" + long); code != http.StatusOK || !slices.Contains(a.passed(), pods) {
		t.Errorf("a long selector is not passed through: %d %.300s", code, body)
	}
	for _, path := range []string{
		pods + "?fields=metadata.name&" + long, "/at/1m" + pods + "?" + long,
		"/watchkeeper/v1/multiwatch?watch=" + pods + "%3Fwatch=1%26" + strings.ReplaceAll(long, "&", "%26"),
	} {
		code, body := get(path)
		if code != http.StatusBadRequest && !strings.Contains(body, `"code":400`) || !strings.Contains(body, "bytes") || slices.Contains(a.passed(), pods) {
			t.Errorf("%.60s: %d %.300s", path, code, body)
		}
	}
}

// TestStreamsOfMultiwatch: the watches of a multiwatch count as streams of their user before
// the answer begins, and all of them, whatever becomes of each.
func TestStreamsOfMultiwatch(t *testing.T) {
	r, _ := newSharedRig(t, rigOptions{gateway: gateway.Options{Limits: fairness.Limits{Streams: 5, Selectors: 2}}})
	open := func(user string, want int, message string, watches ...string) *http.Response {
		t.Helper()
		res := r.get("/watchkeeper/v1/multiwatch?"+url.Values{"watch": watches}.Encode(), "Authorization", "Bearer "+user)
		if res.StatusCode != want {
			t.Errorf("%s, %q: %s", user, watches, res.Status)
		}
		if want != http.StatusOK {
			if body := readAll(t, res); !strings.Contains(body, message) {
				t.Errorf("%q: %s", watches, body)
			}
		}
		return res
	}
	three := slices.Repeat([]string{"/api/v1/pods?watch=1"}, 3)
	first := open("jane", http.StatusOK, "", three...)
	defer first.Body.Close()
	open("jane", http.StatusTooManyRequests, "--max-streams-per-user", three...)
	second := open("jane", http.StatusOK, "", three[:2]...) // nothing is left of the refused one
	second.Body.Close()
	open("john", http.StatusTooManyRequests, "--max-selectors-per-user",
		"/api/v1/pods?watch=1&labelSelector=a", "/at/1m/api/v1/pods?watch=1&labelSelector=b", "/at/1m/api/v1/pods?watch=1&labelSelector=c")
	open("john", http.StatusOK, "", three...).Body.Close()
}

// TestRefusalsWait: a client that asks again at once gets its answers 429 one after the other.
func TestRefusalsWait(t *testing.T) {
	r, _ := newSharedRig(t, rigOptions{gateway: gateway.Options{Limits: fairness.Limits{Streams: 1}}})
	begin := time.Now()
	const refused, pause = 10, 20 * time.Millisecond
	for range refused {
		two := url.Values{"watch": slices.Repeat([]string{"/api/v1/pods?watch=1"}, 2)}
		res := r.get("/watchkeeper/v1/multiwatch?"+two.Encode(), "Authorization", "Bearer jane")
		readAll(t, res)
		if res.StatusCode != http.StatusTooManyRequests {
			t.Error(res.Status)
		}
	}
	if took := time.Since(begin); took < (refused-1)*pause {
		t.Errorf("%d answers within %v", refused, took)
	}
}
