// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
)

// selected parses a request and resolves its selectors.
func selected(t *testing.T, url string, namespaced bool) (Selection, bool) {
	t.Helper()
	rd, err := Parse(httptest.NewRequest(http.MethodGet, url, nil))
	if err != nil {
		t.Fatalf("%s is not a read", url)
	}
	return rd.Select(namespaced, BuiltInFields(rd.Resource))
}

func TestSelectors(t *testing.T) {
	parse := func(url string, namespaced bool) Selection {
		t.Helper()
		rd, ok := selected(t, url, namespaced)
		if !ok {
			t.Fatalf("%s is not selected here", url)
		}
		return rd
	}
	if rd := parse("/api/v1/pods?fieldSelector=metadata.name%3Dx,metadata.namespace%3Dd", true); rd.Key != "d/x" || rd.Namespace != "d" || !rd.Narrowed {
		t.Errorf("scope of %+v", rd)
	}
	if rd := parse("/api/v1/persistentvolumes?fieldSelector=metadata.name%3Dx,metadata.namespace%3Dd", false); rd.Key != "x" || rd.Namespace != "" || rd.Narrowed {
		t.Errorf("scope of %+v", rd)
	}
	if rd := parse("/api/v1/namespaces/d/pods?fieldSelector=metadata.namespace%3De", true); rd.Match(pasttest.Pod("d", "x", 1)) || rd.Match(pasttest.Pod("e", "x", 1)) {
		t.Error("another namespace in the selector than in the path selects something")
	}
	rd := parse("/api/v1/namespaces/d/pods?labelSelector=color%20in%20(red,blue),!old&fieldSelector=status.phase!%3DFailed", true)
	for _, test := range []struct {
		o    *scan.Object
		want bool
	}{
		{pasttest.Pod("d", "x", 1, "color", "red"), true},
		{pasttest.Pod("d", "x", 1, "color", "green"), false},
		{pasttest.Pod("e", "x", 1, "color", "red"), false},
		{pasttest.Pod("d", "x", 1, "color", "red", "old", ""), false},
	} {
		if rd.Match(test.o) != test.want {
			t.Errorf("%s: %v", test.o.JSON, !test.want)
		}
	}
}

// TestSelectorsPassThrough lists selectors that only the API server can answer.
func TestSelectorsPassThrough(t *testing.T) {
	for _, url := range []string{
		"/api/v1/pods?fieldSelector=spec.containers%3Dx",
		"/api/v1/watch/namespaces/d/pods/x?fieldSelector=metadata.name%3Dy",
		"/api/v1/nodes?fieldSelector=metadata.namespace%3Dx",
		"/apis/example.com/v1/widgets?fieldSelector=metadata.name%3Dx",
	} {
		if rd, ok := selected(t, url, true); ok {
			t.Errorf("%s: %+v", url, rd)
		}
	}
}
