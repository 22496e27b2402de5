// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package accessapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/accessapi"
)

// A rules is a Reviewer that allows what it has: "verb resource.version.group namespace",
// with * for all namespaces.
type rules struct {
	allows []string
	fail   error         // of the question about all namespaces
	takes  time.Duration // a review

	mu             sync.Mutex // guards what follows
	asked          []string
	running, worst int
}

func (v *rules) Allowed(r *http.Request, a authorizationv1.ResourceAttributes) (bool, string, error) {
	namespace := a.Namespace
	if namespace == "" {
		namespace = "*"
		if v.fail != nil {
			return false, "", v.fail
		}
	}
	question := fmt.Sprintf("%s %s %s", a.Verb, kube.Resource{Group: a.Group, Version: a.Version, Name: a.Resource}, namespace)
	v.mu.Lock()
	v.asked = append(v.asked, question)
	v.running++
	v.worst = max(v.worst, v.running)
	v.mu.Unlock()
	time.Sleep(v.takes)
	v.mu.Lock()
	v.running--
	v.mu.Unlock()
	return slices.Contains(v.allows, question), "", nil
}

// discovery has Pods, Nodes, Deployments, and Widgets of another version.
func discovery(_ context.Context, id kube.Resource, _ time.Time) (metav1.APIResource, error) {
	switch id.String() {
	case "pods.v1", "deployments.v1.apps", "widgets.v1beta1.example.org", "things.v1":
		return metav1.APIResource{Namespaced: true}, nil
	case "nodes.v1":
		return metav1.APIResource{}, nil
	case "silent.v1":
		return metav1.APIResource{}, errors.New("no answer")
	}
	return metav1.APIResource{}, upstream.ErrNoResource
}

func handler(v accessapi.Reviewer, namespaces ...string) *accessapi.Handler {
	return &accessapi.Handler{
		Reviewer: v, Lookup: discovery,
		Namespaces: func(context.Context) ([]string, error) { return namespaces, nil },
		Filter: func(r *http.Request) *metav1.Status {
			if strings.Contains(r.URL.Path, "rejected") {
				return status.Forbidden("rejected")
			}
			return nil
		},
	}
}

// ask sends a request, and returns the code and the answer, or the message of a Status.
func ask(t *testing.T, h http.Handler, query string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", accessapi.Path+"?"+query, nil))
	if w.Code == http.StatusOK {
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	var s metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Kind != "Status" || int(s.Code) != w.Code {
		t.Errorf("%s: not a Status: %d %s", query, w.Code, w.Body)
	}
	return w.Code, s.Message
}

// TestAnswers: who may read in all namespaces is asked once; for others, each namespace
// is asked about.
func TestAnswers(t *testing.T) {
	may := []string{
		"list pods.v1 *", "watch pods.v1 b", "get pods.v1 a", "get pods.v1 c", "list nodes.v1 *", "watch nodes.v1 a",
		"list deployments.v1.apps c", "list widgets.v1beta1.example.org a", "list pods.v1 rejected", "get pods.v1 rejected",
	}
	for query, want := range map[string]string{
		"resource=pods":                                        `{"resource":"pods","verb":"list","all":true,"namespaces":[],"incomplete":false}`,
		"resource=pods&verb=watch":                             `{"resource":"pods","verb":"watch","all":false,"namespaces":["b"],"incomplete":false}`,
		"resource=pods&verb=get":                               `{"resource":"pods","verb":"get","all":false,"namespaces":["a","c"],"incomplete":false}`,
		"resource=pods.v1&verb=watch":                          `{"resource":"pods","verb":"watch","all":false,"namespaces":["b"],"incomplete":false}`,
		"resource=nodes":                                       `{"resource":"nodes","verb":"list","all":true,"namespaces":[],"incomplete":false}`,
		"resource=nodes&verb=watch":                            `{"resource":"nodes","verb":"watch","all":false,"namespaces":[],"incomplete":false}`,
		"resource=deployments.apps":                            `{"resource":"deployments.apps","verb":"list","all":false,"namespaces":["c"],"incomplete":false}`,
		"resource=deployments&group=apps&verb=list":            `{"resource":"deployments.apps","verb":"list","all":false,"namespaces":["c"],"incomplete":false}`,
		"resource=deployments.v1.apps&group=apps":              `{"resource":"deployments.apps","verb":"list","all":false,"namespaces":["c"],"incomplete":false}`,
		"resource=widgets.example.org&version=v1beta1":         `{"resource":"widgets.example.org","verb":"list","all":false,"namespaces":["a"],"incomplete":false}`,
		"resource=widgets.v1beta1.example.org&version=v1beta1": `{"resource":"widgets.example.org","verb":"list","all":false,"namespaces":["a"],"incomplete":false}`,
		"resource=things":                                      `{"resource":"things","verb":"list","all":false,"namespaces":[],"incomplete":false}`,
	} {
		v := &rules{allows: may}
		if code, got := ask(t, handler(v, "a", "b", "c", "rejected"), query); code != http.StatusOK || got != want {
			t.Errorf("%s: %d %s, want %s", query, code, got, want)
		}
		if strings.Contains(want, `"all":true`) && len(v.asked) != 1 {
			t.Errorf("%s: asked %q", query, v.asked)
		}
	}
}

func TestRefusals(t *testing.T) {
	for query, want := range map[string]string{
		"":                          "400 resource is",
		"resource=pods/log":         "400 resource is",
		"resource=Pods":             "400 resource is",
		"resource=pods&verb=delete": "400 verb is",
		"resource=pods&namespace=a": `400 there is no parameter "namespace": the parameters are resource, verb, group, version`,
		"resource=pods&resource=x":  "400 resource is given 2 times",
		"resource=%zz":              "400 the query cannot be read",
		"resource=a.apps&group=x":   `400 resource has the group "apps", and group is "x"`,
		"resource=a.v1&version=v2":  `400 resource has the version "v1", and version is "v2"`,
		"resource=x&version=v1/namespaces/a/pods/b/log": "400 resource, group and version are",
		"resource=x&version=v1/pods%3Fwatch=1":          "400 resource, group and version are",
		"resource=x&version=v1%23":                      "400 resource, group and version are",
		"resource=x&group=../api&version=v1":            "400 resource, group and version are",
		"resource=x&group=..&version=..":                "400 resource, group and version are",
		"resource=x.apps/v1/deployments":                "400 resource, group and version are",
		"resource=x%3F":                                 "400 resource, group and version are",
		"resource=none":                                 "404 there is no resource none.v1",
		"resource=widgets.example.org":                  "404 there is no resource widgets.v1.example.org that can be listed and watched: give its plural, and version=",
		"resource=silent":                               "503 cannot tell whether silent have namespaces",
	} {
		if code, message := ask(t, handler(&rules{}, "a"), query); !strings.HasPrefix(fmt.Sprintf("%d %s", code, message), want) {
			t.Errorf("%s: %d %s, want %s", query, code, message, want)
		}
	}
	h := handler(&rules{})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", accessapi.Path+"?resource=pods", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET" {
		t.Errorf("POST: %d %v", w.Code, w.Header())
	}
	h.Namespaces = func(context.Context) ([]string, error) {
		return nil, &status.Error{Status: status.Unavailable("may not list namespaces", false)}
	}
	if code, message := ask(t, h, "resource=pods"); code != http.StatusServiceUnavailable || message != "may not list namespaces" {
		t.Errorf("without namespaces: %d %s", code, message)
	}
	unknown := &status.Error{Status: status.New(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the token has expired")}
	if code, message := ask(t, handler(&rules{fail: unknown}), "resource=none"); code != http.StatusUnauthorized || message != "the token has expired" {
		t.Errorf("an unknown caller: %d %s", code, message)
	}
	if code, message := ask(t, handler(&rules{fail: errors.New("no decision")}), "resource=pods"); code != http.StatusServiceUnavailable || message != "no decision" {
		t.Errorf("no decision: %d %s", code, message)
	}
}

// TestBounds: a request asks about so many namespaces, so many at a time.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 1200 {
			names = append(names, fmt.Sprintf("ns-%04d", i))
		}
		v := &rules{takes: time.Second, allows: []string{"list pods.v1 ns-0999", "list pods.v1 ns-1000", "list pods.v1 ns-0003"}}
		h := handler(v, names...)
		began := time.Now()
		_, body := ask(t, h, "resource=pods")
		var got api.Access
		if err := json.Unmarshal([]byte(body), &got); err != nil || !slices.Equal(got.Namespaces, []string{"ns-0003", "ns-0999"}) || !got.Incomplete || got.All {
			t.Errorf("%s %v", body, err)
		}
		if len(v.asked) != 1001 || v.worst != 16 || time.Since(began) != (1+63)*time.Second {
			t.Errorf("%d reviews, %d at a time, in %s", len(v.asked), v.worst, time.Since(began))
		}
		v.asked, h.MaxNamespaces = nil, 4
		if _, body := ask(t, h, "resource=pods"); len(v.asked) != 5 || !strings.Contains(body, `"namespaces":["ns-0003"],"incomplete":true`) {
			t.Errorf("%d reviews: %s", len(v.asked), body)
		}
	})
}

// TestCallerLeaves: nothing more is asked for a caller that has gone.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 1000 {
			names = append(names, fmt.Sprint(i))
		}
		v := &rules{takes: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		w := httptest.NewRecorder()
		handler(v, names...).ServeHTTP(w, httptest.NewRequest("GET", accessapi.Path+"?resource=pods", nil).WithContext(ctx))
		if len(v.asked) > 1+3*16 || w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d reviews, %d", len(v.asked), w.Code)
		}
	})
}

// TestBound: a user with too many requests gets the refusal, before anything is asked, and
// each request ends what it has begun.
func TestBound(t *testing.T) {
	v := &rules{allows: []string{"list pods.v1 a"}}
	h := handler(v, "a", "b")
	open := 0
	h.Begin = func(context.Context) (func(), error) {
		if open++; open > 1 {
			return nil, &status.Error{Status: status.TooMany("too many", 1)}
		}
		return func() { open-- }, nil
	}
	for _, query := range []string{"resource=pods", "resource=none", "resource=pods"} {
		if code, _ := ask(t, h, query); code == http.StatusTooManyRequests || open != 0 {
			t.Errorf("%s: %d, %d open", query, code, open)
		}
	}
	open, v.asked = 1, nil
	if code, message := ask(t, h, "resource=pods"); code != http.StatusTooManyRequests || message != "too many" || v.asked != nil {
		t.Errorf("beyond the bound: %d %q, asked %q", code, message, v.asked)
	}
}
