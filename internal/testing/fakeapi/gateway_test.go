// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
)

// TestForGateways: requests of a gateway other than for Pods.
func TestForGateways(t *testing.T) {
	each(t, func(t *testing.T, config *rest.Config, _ kind) {
		config.ContentType = "application/json"
		c := kubernetes.NewForConfigOrDie(config)
		list, err := c.Discovery().ServerResourcesForGroupVersion("v1")
		if err != nil {
			t.Fatal(err)
		}
		if len(list.APIResources) != 1 || list.APIResources[0].Name != "pods" || list.APIResources[0].Kind != "Pod" {
			t.Errorf("discovery of %+v", list.APIResources)
		}
		review, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{}, metav1.CreateOptions{})
		if err != nil || !review.Status.Allowed {
			t.Errorf("review %+v, %v", review, err)
		}
	})
}

// TestNodes: Nodes are served as Tables, and each change changes the restart count of
// a Pod that runs on them.
func TestNodes(t *testing.T) {
	s := fakeapi.New(fakeapi.Options{Population: fakeapi.Population{Pods: 20, Nodes: 4, Churn: true}})
	server := httptest.NewServer(s)
	defer server.Close()
	get := func(path string) string {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s, %v", path, resp.Status, text, err)
		}
		return string(text)
	}
	nodes, pods := get("/api/v1/nodes?includeObject=Object"), get("/api/v1/pods?includeObject=Object")
	for i := range 4 {
		name := synthetic.NodeName(i)
		if strings.Count(nodes, `"name":"`+name+`"`) != 1 {
			t.Errorf("%s is not exactly once in %s", name, nodes)
		}
		if n := strings.Count(pods, `"nodeName":"`+name+`"`); n != 5 {
			t.Errorf("%d Pods are on %s", n, name)
		}
	}
	s.Change(100)
	if n := strings.Count(get("/api/v1/pods?includeObject=Object"), `"restartCount":0`); n > 10 {
		t.Errorf("%d of 20 Pods have not been restarted", n)
	}
}

// TestPaced: ChangeAtRate makes the requested number of changes, and returns after the
// last one.
func TestPaced(t *testing.T) {
	each(t, func(t *testing.T, config *rest.Config, k kind) {
		from := command(t, config, "/bench/events?n=1").ResourceVersion
		first, err := strconv.Atoi(from)
		if err != nil {
			t.Fatal(err)
		}
		w, err := k.watch(metav1.ListOptions{ResourceVersion: from})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		const changes = 40
		mark := command(t, config, "/bench/events?n=40&rate=2000")
		if want := strconv.Itoa(first + changes); mark.ResourceVersion != want {
			t.Errorf("the last change is %s, want %s", mark.ResourceVersion, want)
		}
		for i := range changes {
			if e := next(t, w); e.Type != watch.Modified || accessor(t, e.Object).GetResourceVersion() != strconv.Itoa(first+1+i) {
				t.Fatalf("event %d: %+v", i, e)
			}
		}
	})
}

// TestLastBookmark: before its end, a watch gets a bookmark beyond its start.
func TestLastBookmark(t *testing.T) {
	each(t, func(t *testing.T, config *rest.Config, k kind) {
		before := command(t, config, "/bench/events?n=1").ResourceVersion
		last := command(t, config, "/bench/events?n=1").ResourceVersion
		w, err := k.watch(metav1.ListOptions{ResourceVersion: before, AllowWatchBookmarks: true, TimeoutSeconds: new(int64(3))})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for _, want := range []watch.EventType{watch.Modified, watch.Bookmark} {
			if e := next(t, w); e.Type != want || accessor(t, e.Object).GetResourceVersion() != last {
				t.Errorf("%+v", e)
			}
		}
	})
}
