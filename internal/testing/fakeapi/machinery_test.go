// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// list asks a server without a network.
func list(s *informertest.Server, query url.Values) (code int, names []string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/pods?"+query.Encode(), nil))
	var body struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	_ = json.Unmarshal(w.Body.Bytes(), &body) // no items in an error
	for _, o := range body.Items {
		names = append(names, o.Metadata.Name)
	}
	return w.Code, names
}

// TestSelectors compares label selectors with those of API machinery.
func TestSelectors(t *testing.T) {
	s := informertest.New(informertest.Options{})
	objects := map[string]labels.Set{
		"a": nil, "b": {"x": "1"}, "c": {"x": "2", "example.com/y": ""}, "d": {"x": "", "tier": "red"}, "e": {"in": "in", "x": "1"},
	}
	for name, of := range objects {
		s.Put("pods", map[string]any{"metadata": map[string]any{"name": name, "namespace": "ns", "labels": of}})
	}
	for _, text := range []string{
		"x", "!x", "x=1", "x==1", "x!=1", "x=", "x!=", "x in (1)", "x in (1,2)", "x notin (1, 2)", "x in (,1)", "x in ()", "tier",
		"x=1,in=in", "x,!tier", " x = 1 , ! tier ", "in", "in in (in)", "notin", "example.com/y", "example.com/y=", "x=1,", ",", "x in 1", "x in (1", "=1", "!", "x=1=2",
	} {
		want, err := labels.Parse(text)
		code, got := list(s, url.Values{"labelSelector": {text}})
		if err != nil || code != http.StatusOK {
			if err == nil || code != http.StatusBadRequest {
				t.Errorf("%q: %d; API machinery: %v", text, code, err)
			}
			continue
		}
		for name, of := range objects {
			if want.Matches(of) != slices.Contains(got, name) {
				t.Errorf("%q selects %v", text, got)
			}
		}
	}
}

// TestListOptions compares the refused combinations of parameters with those of API
// machinery.
func TestListOptions(t *testing.T) {
	old := informertest.New(informertest.Options{NoWatchList: true})
	newer := informertest.New(informertest.Options{})
	newer.Put("pods", `{"metadata":{"name":"a","namespace":"ns"}}`)
	n := 0
	combine(map[string][]string{
		"watch": {"", "1"}, "resourceVersion": {"", "0", "1"}, "resourceVersionMatch": {"", "Exact", "NotOlderThan", "Nearly"},
		"continue": {"", "x"}, "sendInitialEvents": {"", "true", "false", "0"}, "limit": {"", "1"},
	}, url.Values{}, func(query url.Values) {
		for s, watchList := range map[*informertest.Server]bool{old: false, newer: true} {
			opts := &internalversion.ListOptions{}
			if err := scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, opts); err != nil {
				t.Fatal(err)
			}
			wrong := validation.ValidateListOptions(opts, watchList)
			if opts.Watch && len(wrong) == 0 {
				continue // it would not end
			}
			n++
			if code, _ := list(s, query); (code == http.StatusUnprocessableEntity) != (len(wrong) > 0) {
				t.Errorf("%s: %d; API machinery: %v", query.Encode(), code, wrong)
			}
		}
	})
	if n < 300 {
		t.Errorf("%d combinations", n)
	}
}

// combine calls f with every combination of values; "" is no parameter.
func combine(values map[string][]string, so url.Values, f func(url.Values)) {
	for name, all := range values {
		rest := map[string][]string{}
		for other := range values {
			if other != name {
				rest[other] = values[other]
			}
		}
		for _, value := range all {
			next := url.Values{}
			for k, v := range so {
				next[k] = v
			}
			if value != "" {
				next.Set(name, value)
			}
			combine(rest, next, f)
		}
		return
	}
	f(so)
}

// TestStatuses: the errors of package informertest are those of metav1.
func TestStatuses(t *testing.T) {
	s := informertest.New(informertest.Options{})
	for path, code := range map[string]int{
		"/api/v1/pods?resourceVersion=999":                          http.StatusGatewayTimeout,
		"/api/v1/namespaces/ns/pods/none":                           http.StatusNotFound,
		"/api/v1/pods?limit=x":                                      http.StatusBadRequest,
		"/api/v1/pods?resourceVersionMatch=Exact":                   http.StatusUnprocessableEntity,
		"/api/v1/pods?resourceVersion=1&resourceVersionMatch=Exact": http.StatusGone,
		"/nowhere": http.StatusNotFound,
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		d := json.NewDecoder(strings.NewReader(w.Body.String()))
		d.DisallowUnknownFields()
		var status metav1.Status
		if err := d.Decode(&status); err != nil || w.Code != code || int(status.Code) != code || status.Kind != "Status" || status.Reason == "" {
			t.Errorf("%s: %d %s (%v)", path, w.Code, w.Body, err)
		}
	}
}
