// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resources is the discovery document of the one group version.
func resources(nodes bool) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: "v1",
		APIResources: []metav1.APIResource{{
			Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, ShortNames: []string{"po"},
			Verbs: metav1.Verbs{"get", "list", "watch"},
		}},
	}
	if nodes {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: "nodes", SingularName: "node", Kind: "Node", ShortNames: []string{"no"}, Verbs: metav1.Verbs{"get", "list", "watch"},
		})
	}
	return list
}

// kubeSystem is the namespace whose UID tells clusters apart.
func kubeSystem() *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "6b3a1a5e-0f6e-4c53-9c58-1f4b8b8d2c11", ResourceVersion: "1"},
	}
}

// serveReview grants what is asked for.
func serveReview(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		writeStatus(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	review.Status.Allowed = true
	writeJSON(w, http.StatusCreated, review)
}

// paceEvery is how often changes are made when they come at a rate.
const paceEvery = time.Millisecond

// servePaced makes n changes at a rate for each second. When it was kept from
// its work it catches up.
func (s *Server) servePaced(w http.ResponseWriter, r *http.Request, n int, perSecond string) {
	rate, err := strconv.ParseFloat(perSecond, 64)
	if err != nil || rate <= 0 {
		http.Error(w, "rate: how many in a second?", http.StatusBadRequest)
		return
	}
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	var last Mark
	for start, done := time.Now(), 0; done < n; {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		if due := min(n, int(rate*time.Since(start).Seconds())); due > done {
			last = s.change(due - done)
			done = due
		}
	}
	writeJSON(w, http.StatusOK, last)
}
