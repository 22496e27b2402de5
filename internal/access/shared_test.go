// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/upstream"
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
	s, err := NewShared(up, SharedOptions{}, b, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	jane := &user.DefaultInfo{Name: "jane"}
	v := s.Decide(t.Context(), &Caller{User: jane, userKey: "jane"},
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
}

// TestImpersonable: nobody is impersonated who would be another user after the way of the
// headers, nor a member of system:masters.
func TestImpersonable(t *testing.T) {
	for _, tt := range []struct {
		user user.DefaultInfo
		want bool
	}{
		{user.DefaultInfo{Name: "a", UID: "1", Groups: []string{"devs", "system:authenticated"}, Extra: map[string][]string{"k": {"v w"}}}, true},
		{user.DefaultInfo{Name: "jürgen"}, true},
		{user.DefaultInfo{Name: "a", Groups: []string{"devs", "system:masters"}}, false},
		{user.DefaultInfo{Name: "a", Groups: []string{"system:masters "}}, false},
		{user.DefaultInfo{Name: "a", Groups: []string{"\tsystem:masters"}}, false},
		{user.DefaultInfo{Name: "admin "}, false},
		{user.DefaultInfo{Name: "admin\r\nImpersonate-Group: system:masters"}, false},
		{user.DefaultInfo{Name: "a\x00"}, false},
		{user.DefaultInfo{Name: "a", UID: " 1"}, false},
		{user.DefaultInfo{Name: "a", Extra: map[string][]string{"k": {"v", "w "}}}, false},
		{user.DefaultInfo{Name: "a", Extra: map[string][]string{"k ": {"v"}}}, false},
	} {
		if got := Impersonable(&tt.user); (got == "") != tt.want {
			t.Errorf("%+v: %q", tt.user, got)
		}
	}
}
