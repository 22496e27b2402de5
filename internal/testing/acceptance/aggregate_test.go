// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// An aggregate is the server of an aggregated API, life.example.org/v1. Its
// resources differ in what they support; all have the same objects. Like many
// such servers it supports no field selectors, no Tables and no limits.
type aggregate struct {
	*fakeapi.Server
	down atomic.Bool
}

// The resources of an aggregate.
const (
	things      = "things"      // lists, watches, streaming lists, bookmarks
	plains      = "plains"      // lists and watches
	unwatched   = "unwatched"   // lists; no watch in discovery
	refusing    = "refusing"    // lists; a watch is answered with 405
	unlisted    = "unlisted"    // a list is answered with 405
	forbidden   = "forbidden"   // everything is answered with 403
	versionless = "versionless" // lists without a resourceVersion, as metrics are
)

func newAggregate() *aggregate {
	o := fakeapi.Options{EagerBookmarks: true}
	for _, name := range []string{things, plains, unwatched, refusing, unlisted, forbidden, versionless} {
		r := fakeapi.Resource{Group: "life.example.org", Version: "v1", Name: name, Kind: "Thing"}
		if name == unwatched {
			r.Verbs = []string{"get", "list"}
		}
		o.Resources = append(o.Resources, r)
	}
	a := &aggregate{Server: fakeapi.New(o)}
	a.Control(a.control)
	return a
}

// set creates or changes an object.
func (a *aggregate) set(name string, labels map[string]string) {
	for _, r := range a.Resources() {
		a.Put(r.FullName(), map[string]any{"metadata": map[string]any{"name": name, "uid": "uid-" + name, "labels": labels}})
	}
}

// remove deletes an object.
func (a *aggregate) remove(name string) {
	for _, r := range a.Resources() {
		a.Delete(r.FullName(), name)
	}
}

// setDown makes the server answer every request with 503, or not.
func (a *aggregate) setDown(down bool) {
	a.down.Store(down)
	a.EndWatches()
}

func (a *aggregate) control(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
	for _, parameter := range []string{"limit", "fieldSelector"} {
		r.Query.Del(parameter)
	}
	r.Header.Set("Accept", "application/json")
	switch name := r.Resource.Name; {
	case a.down.Load():
		http.Error(w, "out of service", http.StatusServiceUnavailable)
	case r.Verb == "discovery" && r.URL.Path != "/apis/life.example.org/v1":
		http.NotFound(w, r.Request)
	case name == forbidden:
		fakeapi.WriteStatus(w, http.StatusForbidden, "Forbidden", "access denied")
	case name == unlisted && r.Verb == "list", (name == refusing || name == unwatched) && r.Verb == "watch":
		fakeapi.WriteStatus(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "method not allowed")
	case name == versionless && r.Verb == "list":
		withoutVersion(w, next)
	case name != things && r.Verb == "watch":
		for _, parameter := range []string{"sendInitialEvents", "resourceVersionMatch", "allowWatchBookmarks"} {
			r.Query.Del(parameter)
		}
		next(w)
	default:
		next(w)
	}
}

var listMetadata = regexp.MustCompile(`"metadata":{"resourceVersion":"[0-9]+"},"items"`)

// withoutVersion answers with a list without its resourceVersion.
func withoutVersion(w http.ResponseWriter, next func(http.ResponseWriter)) {
	list := httptest.NewRecorder()
	next(list)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(list.Code)
	_, _ = w.Write(listMetadata.ReplaceAll(list.Body.Bytes(), []byte(`"metadata":{},"items"`)))
}
