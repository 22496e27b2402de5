// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strconv"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// What a gateway asks for besides Pods.
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

// Changes at a rate are as many as asked for, and are answered when the last
// has been made.
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

// A watch that is about to end has a bookmark first.
func TestLastBookmark(t *testing.T) {
	each(t, func(t *testing.T, _ *rest.Config, k kind) {
		w, err := k.watch(metav1.ListOptions{ResourceVersion: strconv.Itoa(firstRV + pods), AllowWatchBookmarks: true, TimeoutSeconds: new(int64(2))})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if e := next(t, w); e.Type != watch.Bookmark || accessor(t, e.Object).GetResourceVersion() != strconv.Itoa(firstRV+pods) {
			t.Errorf("%+v", e)
		}
	})
}
