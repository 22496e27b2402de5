// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

var pods = kube.Resource{Version: "v1", Name: "pods"}

// A reviewer is an API server that answers access reviews.
type reviewer struct {
	answer string // "true" or "false"; "" for no answer
	asked  int
}

func (v *reviewer) RoundTrip(r *http.Request) (*http.Response, error) {
	if v.asked++; v.answer == "" {
		return nil, errors.New("connection refused")
	}
	body := `{"status":{"allowed":` + v.answer + `}}`
	return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (v *reviewer) Resources() []kube.Resource   { return []kube.Resource{pods} }
func (v *reviewer) Ended() bool                  { return false }
func (v *reviewer) Withholds(kube.Resource) bool { return false }

// TestPastDecisions: nothing is shown before the API server has decided once; then its
// last decision stays in force while it does not answer (T8).
func TestPastDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &reviewer{}
		up, err := upstream.New(&rest.Config{Host: "http://upstream", Transport: v}, upstream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := upstream.NewBackground()
		defer b.Stop()
		p := NewPast(up, v, b)
		for _, step := range []struct {
			what   string
			answer string
			after  time.Duration
			code   int32
			asked  int
		}{
			{"never decided", "", 0, http.StatusServiceUnavailable, 1},
			{"asked again at once", "true", 0, 0, 2},
			{"not asked for ten seconds", "false", 9 * time.Second, 0, 2},
			{"no answer", "", 2 * time.Second, 0, 3},
			{"denied", "false", 11 * time.Second, http.StatusForbidden, 4},
			{"no answer after a denial", "", 11 * time.Second, http.StatusForbidden, 5},
		} {
			time.Sleep(step.after)
			v.answer = step.answer
			code := int32(0)
			if refusal := p.Refusal(httptest.NewRequest("GET", "/", nil), request.Target{Verb: request.List, Resource: pods}, request.List); refusal != nil {
				code = refusal.Code
			}
			if code != step.code || v.asked != step.asked {
				t.Errorf("%s: %d after %d reviews, want %d after %d", step.what, code, v.asked, step.code, step.asked)
			}
		}
	})
}

// TestPastWhileSilent: once the API server is known to be silent, what it has decided
// holds without asking it again; what it has not decided is asked.
func TestPastWhileSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &reviewer{answer: "true"}
		up, err := upstream.New(&rest.Config{Host: "http://upstream", Transport: v}, upstream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := upstream.NewBackground()
		defer b.Stop()
		p := NewPast(up, v, b)
		nodes := kube.Resource{Version: "v1", Name: "nodes"}
		refused := func(id kube.Resource, verb request.Verb) bool {
			return p.Refusal(httptest.NewRequest("GET", "/", nil), request.Target{Verb: verb, Resource: id}, verb) != nil
		}
		if refused(pods, request.List) || v.asked != 1 {
			t.Fatalf("%d reviews", v.asked)
		}
		v.answer = ""
		up.SetSilent()
		time.Sleep(time.Minute)
		for _, verb := range []request.Verb{request.List, request.Watch, request.Get} {
			if refused(pods, verb) || v.asked != 1 {
				t.Errorf("%s: %d reviews", verb, v.asked)
			}
		}
		if !refused(nodes, request.Get) || v.asked != 2 {
			t.Errorf("nodes: %d reviews", v.asked)
		}
		v.answer = "false"
		if !refused(nodes, request.List) || up.Silent() { // it answers again
			t.Errorf("silent: %v", up.Silent())
		}
		if !refused(pods, request.Get) {
			t.Error("a decision from before the silence holds after it")
		}
	})
}

// TestUnknownCaller: the API server's answer to credentials that it does not accept is the
// answer. If they are the gateway's, the answer says so: it is not the caller's fault.
func TestUnknownCaller(t *testing.T) {
	up, err := upstream.New(&rest.Config{Host: "http://upstream", Transport: expired{}}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := upstream.NewBackground()
	defer b.Stop()
	p := NewPast(up, &reviewer{}, b)
	r := httptest.NewRequest("GET", "/", nil)
	if s := p.Unauthorized(r); s != nil {
		t.Errorf("without credentials: %v", s)
	}
	if s := p.Refusal(r, request.Target{Verb: request.List, Resource: pods}, request.List); s == nil || s.Code != http.StatusServiceUnavailable || !strings.Contains(s.Message, "does not accept the gateway's credentials") {
		t.Errorf("without credentials: %+v", s)
	}
	r.Header.Set("Authorization", "Bearer expired")
	for _, s := range []*metav1.Status{p.Unauthorized(r), p.Refusal(r, request.Target{Verb: request.List, Resource: pods}, request.List)} {
		if s == nil || s.Code != http.StatusUnauthorized || s.Reason != metav1.StatusReasonUnauthorized || s.Message != "the token has expired" {
			t.Errorf("%+v", s)
		}
	}
}

// expired is an API server that accepts no credentials.
type expired struct{}

func (expired) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"kind":"Status","status":"Failure","message":"the token has expired","reason":"Unauthorized","code":401}`
	return &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}
