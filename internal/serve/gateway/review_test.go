// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
)

const (
	accessPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	rulesPath  = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	userPath   = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// may returns the body of a review of a verb on Pods.
func may(verb string) io.Reader {
	return strings.NewReader(`{"spec":{"resourceAttributes":{"verb":"` + verb + `","resource":"pods"}}}`)
}

// reviewer is an API server that allows everything.
var reviewer = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body) // checked below
	var review map[string]any
	if err := json.Unmarshal(body, &review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch r.URL.Path {
	case accessPath:
		review["status"] = map[string]any{"allowed": true, "reason": "RBAC for " + r.Header.Get("Authorization")}
	case rulesPath:
		review["status"] = map[string]any{"resourceRules": []map[string]any{{"verbs": []string{"*"}, "resources": []string{"*"}}}, "nonResourceRules": []any{}}
	case userPath:
		review["status"] = map[string]any{"userInfo": map[string]any{"username": "jane"}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review) // the test fails without it
})

// TestReviews: reviews are answered where only reads are possible; elsewhere they are the
// API server's.
func TestReviews(t *testing.T) {
	for _, test := range []struct {
		name, prefix string
		options      gateway.Options
		reason       string // why a write is denied; "" if it is not
	}{
		{"the past", "/at/10m", gateway.Options{}, "the past is read-only"},
		{"the past at an RV", "/at/rv:12", gateway.Options{}, "the past is read-only"},
		{"the past, below a prefix", "/k/at/10m", gateway.Options{APIPrefix: "/k/"}, "the past is read-only"},
		{"the past, read-only", "/at/10m", gateway.Options{Filter: gateway.FilterOptions{ReadOnly: true}}, "the past is read-only"},
		{"read-only", "", gateway.Options{Filter: gateway.FilterOptions{ReadOnly: true}}, "the gateway is read-only"},
		{"read-only, below a prefix", "/k", gateway.Options{APIPrefix: "/k/", Filter: gateway.FilterOptions{ReadOnly: true}}, "the gateway is read-only"},
		{"read-only, without the filter", "", gateway.Options{Filter: gateway.FilterOptions{ReadOnly: true, Disabled: true}}, "the gateway is read-only"},
		{"the present", "", gateway.Options{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			test.options.Registerer = reg
			r := newRig(t, reviewer, rigOptions{gateway: test.options})
			post := func(path string, body io.Reader) string {
				res := r.do(http.MethodPost, test.prefix+path, body, "Authorization", "Bearer x", "Content-Type", "application/json")
				if res.StatusCode != http.StatusCreated {
					t.Errorf("%s: %s", path, res.Status)
				}
				return readAll(t, res)
			}
			for _, verb := range []string{"get", "list", "watch"} {
				if got := post(accessPath, may(verb)); !strings.Contains(got, `"allowed":true,"reason":"RBAC for Bearer x"`) {
					t.Errorf("%s: %s", verb, got)
				}
			}
			for _, verb := range []string{"delete", "*"} {
				want := `"status":{"allowed":false,"denied":true,"reason":"` + test.reason + `"}`
				if test.reason == "" {
					want = `"allowed":true`
				}
				if got := post(accessPath, may(verb)); !strings.Contains(got, want) || !strings.Contains(got, `"verb":"`+verb+`"`) {
					t.Errorf("%s: %s, want %s", verb, got, want)
				}
			}
			want := `"verbs":["get","list","watch"]`
			if test.reason == "" {
				want = `"verbs":["*"]`
			}
			if got := post(rulesPath, strings.NewReader(`{"spec":{"namespace":"n"}}`)); !strings.Contains(got, want) || !strings.Contains(got, `"namespace":"n"`) {
				t.Errorf("rules: %s, want %s", got, want)
			}
			if got := post(userPath, strings.NewReader("{}")); !strings.Contains(got, `"username":"jane"`) {
				t.Errorf("user: %s", got)
			}
			if res := r.do(http.MethodPost, test.prefix+accessPath, strings.NewReader("{")); res.StatusCode != http.StatusBadRequest || !strings.Contains(readAll(t, res), "unexpected end") {
				t.Errorf("malformed: %s", res.Status)
			}
			counts := `watchkeeper_requests_total{code="201",source="passthrough",verb="create"} 7
watchkeeper_requests_total{code="400",source="passthrough",verb="create"} 1
`
			if test.reason != "" {
				source := "filter"
				if strings.Contains(test.prefix, "/at/") {
					source = "history"
				}
				counts = `watchkeeper_requests_total{code="201",source="` + source + `",verb="create"} 2` + "\n" + strings.Replace(counts, "7", "5", 1)
			}
			err := testutil.GatherAndCompare(reg, strings.NewReader(`# HELP watchkeeper_requests_total Requests by verb, by the part of the gateway that answered, and by status code.
# TYPE watchkeeper_requests_total counter
`+counts), "watchkeeper_requests_total")
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReviewsWithoutAPIServer: writes are denied even if the API server does not answer.
func TestReviewsWithoutAPIServer(t *testing.T) {
	r := newRigFor(t, &rest.Config{Host: "http://" + closedPort(t)}, rigOptions{})
	for path, body := range map[string]io.Reader{accessPath: may("list"), rulesPath: strings.NewReader("{}"), userPath: strings.NewReader("{}")} {
		res := r.do(http.MethodPost, "/at/10m"+path, body)
		if s := statusOf(t, res); s.Code != 503 || !strings.Contains(s.Message, "the API server does not answer") {
			t.Errorf("%s: %+v", path, s)
		}
	}
	if res := r.do(http.MethodPost, "/at/10m"+accessPath, may("delete")); res.StatusCode != http.StatusCreated || !strings.Contains(readAll(t, res), "the past is read-only") {
		t.Error(res.Status)
	}
}

// TestReviewWithoutBody: a client that does not send the body that it announced does not
// delay the end of the gateway.
func TestReviewWithoutBody(t *testing.T) {
	r := newRig(t, reviewer, rigOptions{})
	conn := r.dial()
	fmt.Fprintf(conn, "POST /at/10m%s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n", accessPath)
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 100 ") { // the body is being read
		t.Fatalf("%q, %v", line, err)
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("the gateway does not end")
	}
}

// TestRecordingReviews: client-go's typed client, as k9s has it, may read a recording and
// not change it, in the encodings that it speaks.
func TestRecordingReviews(t *testing.T) {
	r := newRecordingRig(t, "")
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/cbor"} {
		for prefix, reason := range map[string]string{"/at/1m": "the past is read-only", "": "this is a recording: it cannot be changed"} {
			client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: r.server.URL + prefix, ContentConfig: rest.ContentConfig{
				ContentType: contentType, AcceptContentTypes: contentType + ",application/json",
			}}, r.client)
			if err != nil {
				t.Fatal(err)
			}
			for verb, allowed := range map[string]bool{"list": true, "watch": true, "patch": false, "delete": false} {
				got, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "pods"}},
				}, metav1.CreateOptions{})
				if err != nil || got.Status.Allowed != allowed || got.Status.Denied == allowed || (got.Status.Reason == reason) == allowed || got.Spec.ResourceAttributes.Verb != verb {
					t.Errorf("%s at %q in %s: %+v, %v", verb, prefix, contentType, got, err)
				}
			}
			rules, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{}, metav1.CreateOptions{})
			if err != nil || len(rules.Status.ResourceRules) != 1 || len(rules.Status.ResourceRules[0].Verbs) != 3 {
				t.Errorf("rules at %q in %s: %+v, %v", prefix, contentType, rules, err)
			}
			user, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil || user.Status.UserInfo.Username != "system:anonymous" {
				t.Errorf("user at %q in %s: %+v, %v", prefix, contentType, user, err)
			}
		}
	}
}
