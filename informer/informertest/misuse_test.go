// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMisuse: a mistake of a test panics at the call, and changes nothing.
func TestMisuse(t *testing.T) {
	s := New(Options{Resources: []Resource{things, Nodes}})
	other := New(Options{})
	for name, test := range map[string]struct {
		call func()
		want string
	}{
		"no namespace":  {func() { s.Put("things.example.org", `{"metadata":{"name":"a"}}`) }, "an object of things.example.org needs a namespace: a"},
		"labels":        {func() { s.Put("nodes", `{"metadata":{"name":"a","labels":"q"}}`) }, `the labels of an object are a map of strings, not "q"`},
		"a label":       {func() { s.Put("nodes", `{"metadata":{"name":"a","labels":{"q":1}}}`) }, `the labels of an object are a map of strings, not {"q":1}`},
		"annotations":   {func() { s.Put("nodes", `{"metadata":{"name":"a","annotations":["q"]}}`) }, `the annotations of an object are a map of strings, not ["q"]`},
		"nil hook":      {func() { s.Control(nil) }, "Control needs a hook"},
		"other backup":  {func() { s.Restore(other.Backup(), 0) }, "Restore needs a Backup of the same server"},
		"nil backup":    {func() { s.Restore(nil, 0) }, "Restore needs a Backup of the same server"},
		"empty backup":  {func() { s.Restore(&Backup{}, 0) }, "Restore needs a Backup of the same server"},
		"other's equal": {func() { other.Restore(New(Options{}).Backup(), 0) }, "Restore needs a Backup of the same server"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != "informertest: "+test.want {
					t.Errorf("%s: panic with %s", name, got)
				}
			}()
			test.call()
		}()
	}
	if rv := s.RV(); rv != 100 || len(s.All("nodes")) > 0 {
		t.Errorf("at %d: %v", rv, s.All("nodes"))
	}
	s.Put("nodes", `{"metadata":{"name":"a","labels":null,"annotations":{}}}`)
	s.Restore(s.Backup(), 0)
}

// TestInvalidWrites: the same objects are refused over HTTP.
func TestInvalidWrites(t *testing.T) {
	s := New(Options{Resources: []Resource{things}})
	s.Put("things.example.org", `{"metadata":{"name":"b","namespace":"ns"}}`)
	for i, step := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodPost, "things", `{"metadata":{"name":"a","namespace":"ns"}}`, http.StatusMethodNotAllowed},
		{http.MethodPost, "namespaces/ns/things", `{"metadata":{"name":"a","labels":"q"}}`, http.StatusBadRequest},
		{http.MethodPut, "namespaces/ns/things/b", `{"metadata":{"name":"b","annotations":{"q":1}}}`, http.StatusBadRequest},
		{http.MethodPatch, "namespaces/ns/things/b", `{"metadata":{"labels":"q"}}`, http.StatusBadRequest},
	} {
		r := httptest.NewRequest(step.method, "/apis/example.org/v1/"+step.path, strings.NewReader(step.body))
		if step.method == http.MethodPatch {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != step.want {
			t.Errorf("%d. %d %s", i, w.Code, w.Body)
		}
	}
	if len(s.All("things.example.org")) != 1 {
		t.Error(s.All("things.example.org"))
	}
}
