// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestNoAnswerIsNoRefusal: a token is refused only if the API server says so. An answer
// that is cut off, or that is not one of an API server, leaves it undecided.
func TestNoAnswerIsNoRefusal(t *testing.T) {
	const answer = `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{%s}}`
	accepted := fmt.Sprintf(answer, `"authenticated":true,"user":{"username":"jane","groups":["devs"],"extra":{"k":["v"]}},"audiences":["api"]`)
	reply := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprint(w, body)
		}
	}
	const asJSON = "application/json"
	jane := &user.DefaultInfo{Name: "jane", Groups: []string{"devs"}, Extra: map[string][]string{"k": {"v"}}}
	for _, tt := range []struct {
		name      string
		audiences []string
		handler   http.HandlerFunc
		want      string // "" for accepted
	}{
		{"accepted", nil, reply(asJSON, accepted), ""},
		{"accepted for an audience", []string{"other", "api"}, reply(asJSON, accepted), ""},
		{"for another audience", []string{"other"}, reply(asJSON, accepted), "refused"},
		{"refused", nil, reply(asJSON, fmt.Sprintf(answer, `"error":"invalid bearer token"`)), "refused"},
		{"refused without an error", nil, reply(asJSON, fmt.Sprintf(answer, "")), "refused"},
		{"cut off", nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			reply(asJSON, accepted)(w, r)
		}, "unknown"},
		{"half an object", nil, reply(asJSON, accepted[:40]), "unknown"},
		{"empty", nil, reply(asJSON, ""), "unknown"},
		{"a page of a load balancer", nil, reply("text/html", "<html>502 Bad Gateway</html>"), "unknown"},
		{"an error", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "unknown"},
		{"a cut connection", nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			reviews := tokenReviews{client.AuthenticationV1().TokenReviews(), tt.audiences}
			resp, ok, err := reviews.AuthenticateToken(t.Context(), "token")
			got := ""
			switch {
			case err != nil:
				got = "unknown"
			case !ok:
				got = "refused"
			}
			if got != tt.want {
				t.Fatalf("%q, want %q: %v", got, tt.want, err)
			}
			if got == "" && !reflect.DeepEqual(resp.User, user.Info(jane)) {
				t.Errorf("%+v", resp.User)
			}
		})
	}
}
