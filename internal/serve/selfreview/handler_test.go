// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package selfreview

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var encodings = []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor"}

// encoded encodes an object; it has to be possible.
func encoded(t *testing.T, o runtime.Object, mediaType string) []byte {
	t.Helper()
	b, err := encode(o, mediaType, false)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func access(verb string) *authorizationv1.SelfSubjectAccessReview {
	return &authorizationv1.SelfSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "n", Verb: verb, Group: "apps", Resource: "deployments", Name: "web",
		}},
	}
}

// post serves a review; headers are pairs.
func post(h Handler, path string, body []byte, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, bytes.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.Serve(rec, r, Of(r))
	return rec
}

// echo is an API server that answers with what it received.
func echo(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			t.Errorf("%d bytes of %d: %v", len(body), r.ContentLength, err)
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusAccepted)
		w.Write(body)
	}
}

// TestAccess: a write is denied in every encoding; a read is forwarded, byte for byte.
func TestAccess(t *testing.T) {
	h := Handler{Reason: "because", Forward: echo(t)}
	for _, in := range encodings {
		for _, out := range encodings {
			rec := post(h, accessPath, encoded(t, access("delete"), in), "Content-Type", in, "Accept", out+",*/*")
			if got := rec.Header().Get("Content-Type"); rec.Code != http.StatusCreated || got != out {
				t.Errorf("%s as %s: %d %s %s", in, out, rec.Code, got, rec.Body)
				continue
			}
			got, err := decodeAs[authorizationv1.SelfSubjectAccessReview](out, rec.Body.Bytes())
			if err != nil {
				t.Errorf("%s as %s: %v", in, out, err)
				continue
			}
			want := access("delete")
			want.Status = authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "because"}
			want.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s as %s: %s", in, out, diff)
			}
		}
		body := encoded(t, access("list"), in)
		if rec := post(h, accessPath, body, "Content-Type", in); rec.Code != http.StatusAccepted || !bytes.Equal(rec.Body.Bytes(), body) {
			t.Errorf("a read in %s: %d %s", in, rec.Code, rec.Body)
		}
	}
	// Without kind and Content-Type, as the API server takes it.
	rec := post(h, accessPath, []byte(`{"spec":{"resourceAttributes":{"verb":"patch","resource":"pods"}}}`))
	if want := `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"resourceAttributes":{"verb":"patch","resource":"pods"}},"status":{"allowed":false,"denied":true,"reason":"because"}}` + "\n"; rec.Code != http.StatusCreated || rec.Body.String() != want {
		t.Errorf("%d %s, want %s", rec.Code, rec.Body, want)
	}
	if rec := post(h, accessPath, encoded(t, access("*"), encodings[0]), "Accept", "text/html"); rec.Code != http.StatusNotAcceptable {
		t.Errorf("text/html: %d %s", rec.Code, rec.Body)
	}
	if rec := post(h, accessPath, encoded(t, access("*"), encodings[0]), "User-Agent", "curl/8"); !strings.Contains(rec.Body.String(), "\n  \"spec\"") {
		t.Errorf("curl: %s", rec.Body)
	}
}

// TestMalformed: what is no review is refused by the API server.
func TestMalformed(t *testing.T) {
	h := Handler{Reason: "because", Forward: echo(t)}
	alone := Handler{Reason: "because"}
	pod := string(encoded(t, &corev1.Pod{}, "application/json"))
	for _, path := range []string{accessPath, rulesPath, userPath} {
		for _, test := range []struct{ contentType, body string }{
			{"", ""}, {"", "{"}, {"", pod}, {"application/json", "k8s\x00\xff"}, {"application/vnd.kubernetes.protobuf", "{}"},
			{"text/plain", "{}"}, {";", "{}"}, {"application/vnd.kubernetes.protobuf", "k8s\x00\xff\xff\xff"}, {"application/cbor", "\xd9\xd9\xf7\xbf"},
			{"", strings.Repeat("[", maxBody)},
		} {
			if rec := post(h, path, []byte(test.body), "Content-Type", test.contentType); rec.Code != http.StatusAccepted || rec.Body.String() != test.body {
				t.Errorf("%s %q: %d %.100s", path, test.body, rec.Code, rec.Body)
			}
			if rec := post(alone, path, []byte(test.body), "Content-Type", test.contentType); rec.Code != http.StatusBadRequest {
				t.Errorf("%s %.100q of a recording: %d %.100s", path, test.body, rec.Code, rec.Body)
			}
		}
		if rec := post(h, path, make([]byte, maxBody+1)); rec.Code != http.StatusRequestEntityTooLarge || !strings.Contains(rec.Body.String(), "limit is 1048576") {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
		// YAML makes much of little.
		bomb := []byte("x: [" + strings.Repeat("{},", maxYAML/3) + "{}]")
		if rec := post(h, path, bomb, "Content-Type", "application/yaml; charset=utf-8"); rec.Code != http.StatusRequestEntityTooLarge || !strings.Contains(rec.Body.String(), "limit is 4096") {
			t.Errorf("%s in YAML: %d %s", path, rec.Code, rec.Body)
		}
		r := httptest.NewRequest(http.MethodPost, path, io.MultiReader(strings.NewReader("{"), iotest.ErrReader(errors.New("reset"))))
		rec := httptest.NewRecorder()
		if h.Serve(rec, r, Of(r)); rec.Code != http.StatusBadRequest {
			t.Errorf("%s, a broken body: %d %s", path, rec.Code, rec.Body)
		}
	}
	// A valid object that asks nothing.
	if rec := post(h, accessPath, []byte("{}")); rec.Code != http.StatusAccepted {
		t.Errorf("no attributes: %d %s", rec.Code, rec.Body)
	}
	if rec := post(alone, accessPath, []byte("{}")); rec.Code != http.StatusUnprocessableEntity {
		t.Errorf("no attributes, of a recording: %d %s", rec.Code, rec.Body)
	}
}

// TestRules: the API server's rules are reduced, in any encoding; its errors are not
// changed.
func TestRules(t *testing.T) {
	review := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "n"},
		Status: authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{{Verbs: []string{"*"}, Resources: []string{"pods"}, APIGroups: []string{""}}, {Verbs: []string{"create"}, Resources: []string{"pods"}}},
			NonResourceRules: []authorizationv1.NonResourceRule{},
		},
	}
	code, answer := http.StatusCreated, encoded(t, review, "application/json")
	h := Handler{Forward: func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "application/json" || r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("asked with %v", r.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Audit-Id", "17")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(code)
		w.Write(answer[:len(answer)/2])
		w.Write(answer[len(answer)/2:])
	}}
	for _, out := range encodings {
		rec := post(h, rulesPath, []byte(`{"spec":{"namespace":"n"}}`), "Accept", out, "Accept-Encoding", "gzip", "Authorization", "Bearer x")
		got, err := decodeAs[authorizationv1.SelfSubjectRulesReview](rec.Header().Get("Content-Type"), rec.Body.Bytes())
		if err != nil || rec.Code != http.StatusCreated || rec.Header().Get("Content-Type") != out || rec.Header().Get("Audit-Id") != "17" {
			t.Errorf("%s: %v, %d %v", out, err, rec.Code, rec.Header())
			continue
		}
		if r := got.Status.ResourceRules; got.Spec.Namespace != "n" || len(r) != 1 || !cmp.Equal(r[0].Verbs, readVerbs) {
			t.Errorf("%s: %+v", out, got)
		}
	}
	ask := func() *httptest.ResponseRecorder {
		return post(h, rulesPath, []byte("{}"), "Authorization", "Bearer x")
	}
	code, answer = http.StatusForbidden, []byte(`{"kind":"Status","message":"no"}`)
	if rec := ask(); rec.Code != code || rec.Body.String() != string(answer) || rec.Header().Get("Audit-Id") != "17" {
		t.Errorf("an error: %d %s", rec.Code, rec.Body)
	}
	code, answer = http.StatusCreated, []byte("nonsense")
	if rec := ask(); rec.Code != http.StatusInternalServerError {
		t.Errorf("nonsense: %d %s", rec.Code, rec.Body)
	}
	answer = make([]byte, maxRules+1)
	if rec := ask(); rec.Code != http.StatusInternalServerError || !strings.Contains(rec.Body.String(), "larger than 16 MiB") {
		t.Errorf("a large answer: %d %s", rec.Code, rec.Body)
	}
}

// TestRecording: without an API server, reads are allowed.
func TestRecording(t *testing.T) {
	h := Handler{Reason: "because"}
	const protobuf = "application/vnd.kubernetes.protobuf"
	for verb, allowed := range map[string]bool{"get": true, "list": true, "watch": true, "delete": false, "*": false} {
		rec := post(h, accessPath, encoded(t, access(verb), protobuf), "Content-Type", protobuf, "Accept", protobuf)
		got, err := decodeAs[authorizationv1.SelfSubjectAccessReview](protobuf, rec.Body.Bytes())
		if err != nil || rec.Code != http.StatusCreated || got.Status.Allowed != allowed || got.Status.Denied == allowed || got.Spec.ResourceAttributes.Name != "web" {
			t.Errorf("%s: %v, %d %+v", verb, err, rec.Code, got)
		}
	}
	rec := post(h, rulesPath, []byte("{}"))
	rules, err := decodeAs[authorizationv1.SelfSubjectRulesReview]("application/json", rec.Body.Bytes())
	if err != nil || rec.Code != http.StatusCreated || len(rules.Status.ResourceRules) != 1 || !cmp.Equal(rules.Status.ResourceRules[0].Verbs, readVerbs) {
		t.Errorf("%v, %d %+v", err, rec.Code, rules)
	}
	rec = post(h, userPath, []byte("{}"))
	user, err := decodeAs[authenticationv1.SelfSubjectReview]("application/json", rec.Body.Bytes())
	if err != nil || rec.Code != http.StatusCreated || user.Status.UserInfo.Username != "system:anonymous" {
		t.Errorf("%v, %d %+v", err, rec.Code, user)
	}
	if rec := post(h, strings.Replace(userPath, "v1", "v1beta1", 1), []byte("{}")); rec.Code != http.StatusNotFound {
		t.Errorf("v1beta1: %d %s", rec.Code, rec.Body)
	}
}
