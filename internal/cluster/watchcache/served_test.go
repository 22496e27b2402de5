// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	namespacedWidgets = `{"resources":[{"name":"widgets","kind":"Widget","namespaced":true,"verbs":["list","watch"]}]}`
	clusterWidgets    = `{"resources":[{"name":"widgets","kind":"Widget","verbs":["list","watch"]}]}`
	unwatchedWidgets  = `{"resources":[{"name":"widgets","kind":"Widget","namespaced":true,"verbs":["list"]}]}`
)

// TestServed: discovery is read again after every list, and every ten seconds.
func TestServed(t *testing.T) {
	type step struct {
		what   string
		after  time.Duration
		code   int
		body   string
		lists  int
		served bool
		asked  int
	}
	for name, steps := range map[string][]step{
		"the same": {
			{"first", 0, 200, namespacedWidgets, 1, true, 1},
			{"at once", 0, 500, "", 1, true, 1},
			{"after a list", time.Second, 200, namespacedWidgets, 2, true, 2},
			{"after a while", 11 * time.Second, 200, namespacedWidgets, 2, true, 3},
		},
		"unreachable": {
			{"first", 0, 0, "", 1, false, 1},
			{"later", 11 * time.Second, 200, namespacedWidgets, 1, true, 2},
			{"unreachable", 11 * time.Second, 0, "", 1, true, 3},
			{"within ten seconds", 0, 0, "", 1, true, 3},
			{"unreachable after a list", 0, 0, "", 2, false, 4},
		},
		"unavailable": {
			{"first", 0, 200, namespacedWidgets, 1, true, 1},
			{"then", 11 * time.Second, 503, "", 1, false, 2},
			{"within ten seconds", 0, 200, namespacedWidgets, 1, false, 2},
			{"again", 11 * time.Second, 200, namespacedWidgets, 1, true, 3},
		},
		"another scope": {{"at once", 0, 200, clusterWidgets, 1, false, 1}},
		"not watched":   {{"at once", 0, 200, unwatchedWidgets, 1, false, 1}},
		"gone":          {{"at once", 0, 404, "", 1, false, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &definer{}
				res := server.resource(t)
				res.Info = metav1.APIResource{Namespaced: true, Kind: "Widget"}
				var last step
				for _, last = range steps {
					time.Sleep(last.after)
					server.code, server.body = last.code, last.body
					if got := res.Served(t.Context(), last.lists); got != last.served || len(server.asked) != last.asked {
						t.Errorf("%s: %v after %d requests, want %v after %d", last.what, got, len(server.asked), last.served, last.asked)
					}
				}
				if want := name == "another scope" || name == "not watched" || name == "gone"; (res.watch.reader == nil) != want || (res.cache.Watched(res.ID) == nil) != want {
					t.Errorf("dropped: %v, want %v", !want, want)
				}
			})
		})
	}
}

// TestBuiltInServed: built-in resources need no discovery.
func TestBuiltInServed(t *testing.T) {
	server := &definer{}
	res := server.resource(t)
	res.ID = kube.Resource{Version: "v1", Name: "pods"}
	if !res.Served(t.Context(), 1) || len(server.asked) > 0 {
		t.Errorf("requested %v", server.asked)
	}
}
