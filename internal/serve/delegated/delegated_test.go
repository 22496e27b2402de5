// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// A reviewServer is an API server that allows everything, in JSON.
type reviewServer struct {
	asked *http.Request
	body  []byte
}

func (s *reviewServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = r
	s.body, _ = io.ReadAll(r.Body)
	answer := `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}`
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(answer)), Request: r,
	}, nil
}

// TestReviewsInProtobuf: reviews are asked in protobuf, and an answer in JSON is
// understood.
func TestReviewsInProtobuf(t *testing.T) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	server := &reviewServer{}
	up, err := upstream.New(&rest.Config{Host: "http://upstream", Transport: server}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := upstream.NewBackground()
	defer b.Stop()
	reg := prometheus.NewRegistry()
	s, err := New(up, access.SharedOptions{}, b, reg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	jane := &user.DefaultInfo{Name: "jane"}
	v := s.Decide(t.Context(), &access.Caller{User: jane},
		&authorizer.AttributesRecord{User: jane, Verb: "list", APIVersion: "v1", Resource: "pods", ResourceRequest: true})
	if !v.Allowed() {
		t.Fatalf("%+v", v)
	}
	if got := server.asked.Header.Get("Content-Type"); got != protobuf || !bytes.HasPrefix(server.body, []byte("k8s\x00")) {
		t.Errorf("content type %q, body %q", got, server.body)
	}
	if got := server.asked.Header.Get("Accept"); !strings.HasPrefix(got, protobuf) {
		t.Errorf("accept %q", got)
	}
	if got := counted(t, reg); got["subjectaccessreviews 201"] != 1 || got["tokenreviews 201"] != 0 || len(got) != 2 {
		t.Errorf("measured: %v", got)
	}
}

// counted returns how many reviews were measured, by review and code.
func counted(t *testing.T, reg *prometheus.Registry) map[string]uint64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	got := map[string]uint64{}
	for _, m := range families[0].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		got[labels["review"]+" "+labels["code"]] = m.GetHistogram().GetSampleCount()
	}
	return got
}

// TestFailedReviews: reviews that the API server refuses, and that it does not answer, are
// measured as such; what is no review is not.
func TestFailedReviews(t *testing.T) {
	reg := prometheus.NewRegistry()
	answers := func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/tokenreviews" {
			return nil, io.ErrUnexpectedEOF
		}
		return &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody}, nil
	}
	timed, err := newTimedTransport(transport(answers), reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []string{"POST /tokenreviews", "POST /subjectaccessreviews", "GET /configmaps"} {
		method, path, _ := strings.Cut(ask, " ")
		resp, err := timed.RoundTrip(httptest.NewRequest(method, path, nil))
		if err == nil {
			resp.Body.Close()
		}
	}
	if got := counted(t, reg); got["tokenreviews <error>"] != 1 || got["subjectaccessreviews 429"] != 1 || len(got) != 4 {
		t.Errorf("measured: %v", got)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRefusal: a refusal is the one that an API server makes with k8s.io/apiserver.
func TestRefusal(t *testing.T) {
	jane := &user.DefaultInfo{Name: "jane <&>"}
	for _, a := range []authorizer.AttributesRecord{
		{Verb: "get", Path: "/a<b>"},
		{Verb: "list", Resource: "pods", ResourceRequest: true},
		{Verb: "list", APIGroup: "apps", Resource: "deployments", Namespace: "shop", ResourceRequest: true},
		{Verb: "patch", APIGroup: "apps", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "web", ResourceRequest: true},
		{Verb: "get", Resource: "nodes", Name: "a&b", ResourceRequest: true},
	} {
		a.User = jane
		for _, reason := range []string{"", "RBAC: <not> found"} {
			got := access.Verdict{Decision: upstream.Denied, Reason: reason}.Refusal(a)
			if want := responsewriters.ForbiddenStatusError(a, reason).ErrStatus; !reflect.DeepEqual(*got, want) {
				t.Errorf("%+v, want %+v", *got, want)
			}
		}
	}
}
