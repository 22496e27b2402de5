// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package accessapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/accessapi"
)

// An apiserver answers access reviews: the caller with the token "a" may read in the
// namespace a; the gateway, which has none, everywhere. It takes a second.
type apiserver struct {
	silent bool

	mu    sync.Mutex
	asked int
}

func (s *apiserver) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	time.Sleep(time.Second)
	if s.silent {
		return nil, errors.New("connection refused")
	}
	answer := func(code int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, err
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "expired" {
		return answer(http.StatusUnauthorized, `{"kind":"Status","message":"the token has expired","code":401}`)
	}
	return answer(http.StatusCreated, fmt.Sprintf(`{"status":{"allowed":%t}}`, token == "" || token == review.Spec.ResourceAttributes.Namespace))
}

func newSelfReviews(t *testing.T, s *apiserver) *accessapi.SelfReviews {
	t.Helper()
	up, err := upstream.New(&rest.Config{Host: "http://upstream", Transport: s}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := upstream.NewBackground()
	t.Cleanup(b.Stop)
	return accessapi.NewSelfReviews(up, b)
}

func as(t *testing.T, token string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil).WithContext(t.Context())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func TestSelfReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &apiserver{}
		v := newSelfReviews(t, s)
		for _, step := range []struct {
			what, token, namespace string
			after                  time.Duration
			silent                 bool
			want                   string
			asked                  int
		}{
			{"the gateway", "", "b", 0, false, "true", 1},
			{"another namespace", "", "c", 0, false, "true", 2},
			{"a caller", "a", "a", 0, false, "true", 3},
			{"a caller without the right", "a", "b", 0, false, "false", 4},
			{"a decision of the last seconds", "a", "b", 8 * time.Second, true, "false", 4},
			{"an older one, without an answer", "a", "b", 3 * time.Second, true, "cannot check who may list pods: the API server gave no decision", 5},
			{"an older one", "a", "b", 0, false, "false", 6},
			{"credentials that are not accepted", "expired", "a", 0, false, "401 the token has expired", 7},
			{"which is not kept", "expired", "a", 0, false, "401 the token has expired", 8},
		} {
			time.Sleep(step.after)
			s.silent = step.silent
			allowed, _, err := v.Allowed(as(t, step.token), authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "pods", Namespace: step.namespace})
			got := fmt.Sprint(allowed)
			if refused, ok := errors.AsType[*status.Error](err); ok {
				got = fmt.Sprintf("%d %s", refused.Code, refused.Message)
			} else if err != nil {
				got = err.Error()
			}
			if got != step.want || s.asked != step.asked {
				t.Errorf("%s: %s after %d reviews, want %s after %d", step.what, got, s.asked, step.want, step.asked)
			}
		}
	})
}

// TestSelfReviewsShared: concurrent equal questions of one caller are one review.
func TestSelfReviewsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &apiserver{}
		v := newSelfReviews(t, s)
		var wg sync.WaitGroup
		for i := range 30 {
			for _, token := range []string{"a", "b"} {
				wg.Go(func() {
					a := authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "pods", Namespace: "a"}
					if allowed, _, err := v.Allowed(as(t, token), a); err != nil || allowed != (token == "a") {
						t.Errorf("%d %s: %t %v", i, token, allowed, err)
					}
				})
			}
		}
		wg.Wait()
		if s.asked != 2 {
			t.Errorf("%d reviews", s.asked)
		}
	})
}
