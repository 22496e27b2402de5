// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

var things = Resource{Group: "example.org", Version: "v1", Name: "things", Kind: "Thing", Namespaced: true, Status: true}

// do sends a request, and returns the code and what matters of the object: its
// generation, spec and status.
func do(t *testing.T, s *Server, method, path, body string) string {
	t.Helper()
	r := httptest.NewRequest(method, "/apis/example.org/v1/namespaces/ns/things"+path, strings.NewReader(body))
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var o struct {
		Metadata     struct{ Generation int }
		Spec, Status json.RawMessage
	}
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return fmt.Sprintln(w.Code, o.Metadata.Generation, string(o.Spec), string(o.Status))
}

// TestStatus: the status is written apart from the rest, and the generation is that of
// the rest.
func TestStatus(t *testing.T) {
	s := New(Options{Resources: []Resource{things, Pods}})
	for i, step := range []struct{ method, path, body, want string }{
		{"POST", "", `{"metadata":{"name":"a"},"spec":1,"status":"no"}`, "201 1 1 "},
		{"PUT", "/a/status", `{"metadata":{"name":"a"},"spec":2,"status":"yes"}`, `200 1 1 "yes"`},
		{"PUT", "/a", `{"metadata":{"name":"a"},"spec":1,"status":"no"}`, `200 1 1 "yes"`},
		{"PUT", "/a", `{"metadata":{"name":"a","labels":{"b":"c"}},"spec":1}`, `200 1 1 "yes"`},
		{"PUT", "/a", `{"metadata":{"name":"a"},"spec":3}`, `200 2 3 "yes"`},
		{"PATCH", "/a/status", `{"spec":4,"status":{"n":1}}`, `200 2 3 {"n":1}`},
		{"PATCH", "/a", `{"spec":12345678901234567890}`, `200 3 12345678901234567890 {"n":1}`},
		{"GET", "/a/status", "", `200 3 12345678901234567890 {"n":1}`},
		{"PUT", "/b/status", `{"metadata":{"name":"b"}}`, `404 0  "Failure"`},
		{"PUT", "/a/scale", `{"metadata":{"name":"a"}}`, `404 0  "Failure"`},
	} {
		if got := do(t, s, step.method, step.path, step.body); got != step.want+"\n" {
			t.Errorf("%d. %s %s: %s, want %s", i, step.method, step.path, got, step.want)
		}
	}
	s.Put("pods", `{"metadata":{"name":"a","namespace":"ns"}}`)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/api/v1/namespaces/ns/pods/a/status", strings.NewReader(`{"metadata":{"name":"a"}}`)))
	if w.Code != http.StatusNotFound {
		t.Errorf("a resource without Status: %d %s", w.Code, w.Body)
	}
}

// TestFinalizers: an object with finalizers is deleted with the last of them, and its
// generation shows that it is being deleted.
func TestFinalizers(t *testing.T) {
	s := New(Options{Resources: []Resource{things}})
	for i, step := range []struct{ method, body, want string }{
		{"POST", `{"metadata":{"name":"a","finalizers":["x","y"]},"spec":1}`, "201 1 1 "},
		{"DELETE", "", "200 2 1 "},
		{"DELETE", "", "200 2 1 "},
		{"PATCH", `{"metadata":{"finalizers":["y"]}}`, "200 2 1 "},
		{"PATCH", `{"metadata":{"finalizers":null}}`, "200 2 1 "},
		{"GET", "", `404 0  "Failure"`},
	} {
		path := "/a"
		if step.method == http.MethodPost {
			path = ""
		}
		if got := do(t, s, step.method, path, step.body); got != step.want+"\n" {
			t.Errorf("%d. %s: %s, want %s", i, step.method, got, step.want)
		}
	}
}

// TestPatchKinds: a patch that the server cannot apply is refused, and so is an object
// that is not JSON.
func TestPatchKinds(t *testing.T) {
	s := New(Options{Resources: []Resource{things}})
	s.Put("things.example.org", `{"metadata":{"name":"a","namespace":"ns"}}`)
	for _, kind := range []string{"", "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"} {
		r := httptest.NewRequest(http.MethodPatch, "/apis/example.org/v1/namespaces/ns/things/a", strings.NewReader("{}"))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %d %s", kind, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodPut, "/apis/example.org/v1/namespaces/ns/things/a", strings.NewReader("k8s\x00"))
	r.Header.Set("Content-Type", "application/vnd.kubernetes.protobuf")
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("protobuf: %d %s", w.Code, w.Body)
	}
}

// TestPreconditions: a deletion with another uid or resourceVersion than the object has
// is refused, also of an object with finalizers.
func TestPreconditions(t *testing.T) {
	s := New(Options{Resources: []Resource{things}})
	s.Put("things.example.org", `{"metadata":{"name":"a","namespace":"ns","uid":"u"}}`)
	rv := s.Put("things.example.org", `{"metadata":{"name":"b","namespace":"ns","uid":"u","finalizers":["x"]}}`)
	for i, step := range []struct {
		path, options, kind string
		code                int
		message             string
	}{
		{"/a", `{"preconditions":{"uid":"v"}}`, contentJSON, 409, `Operation cannot be fulfilled on Thing.example.org "a": ` +
			`the UID in the precondition (v) does not match the UID in record (u). The object might have been deleted and then recreated`},
		{"/b", `{"preconditions":{"uid":"u","resourceVersion":"7"}}`, contentJSON, 409, fmt.Sprintf(`Operation cannot be fulfilled on Thing.example.org "b": `+
			`the ResourceVersion in the precondition (7) does not match the ResourceVersion in record (%d). The object might have been modified`, rv)},
		{"/a", `{"dryRun":["All"]}`, contentJSON, 400, "this test server has no dry run"},
		{"/a?dryRun=All", "", "", 400, "this test server has no dry run"},
		{"/a", "k8s\x00", "application/vnd.kubernetes.protobuf", 415, "the body of the request was in an unknown format - accepted media types include: application/json"},
		{"", "", "", 405, "this test server has no deletecollection"},
		{"/c", `{"preconditions":{"uid":"v"}}`, contentJSON, 404, `things.example.org "c" not found`},
		{"/b", fmt.Sprintf(`{"preconditions":{"uid":"u","resourceVersion":"%d"}}`, rv), contentJSON, 200, ""},
		{"/a", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},"propagationPolicy":"Background"}`, contentJSON, 200, ""},
	} {
		r := httptest.NewRequest(http.MethodDelete, "/apis/example.org/v1/namespaces/ns/things"+step.path, strings.NewReader(step.options))
		r.Header.Set("Content-Type", step.kind)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var status Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
			t.Fatal(err)
		}
		if w.Code != step.code || status.Message != step.message {
			t.Errorf("%d. %d %s, want %d %s", i, w.Code, w.Body, step.code, step.message)
		}
	}
	if all := s.All("things.example.org"); len(all) != 1 || !strings.Contains(all["ns/b"], "deletionTimestamp") {
		t.Errorf("%v", all)
	}
}

// TestNamespaces: the subresources of a namespace are not objects in it.
func TestNamespaces(t *testing.T) {
	namespaces := Namespaces
	namespaces.Status = true
	s := New(Options{Resources: []Resource{namespaces, Events, Leases}})
	s.Put("namespaces", `{"metadata":{"name":"a"}}`)
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPatch, "/api/v1/namespaces/a/status", strings.NewReader(`{"status":{"phase":"Active"}}`))
	r.Header.Set("Content-Type", "application/merge-patch+json")
	if s.ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(s.Get("namespaces", "a"), `"phase":"Active"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
