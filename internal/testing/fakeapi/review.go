// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// Access reviews. The server answers SelfSubjectAccessReviews of resources by
// Options.Allow, and allows everything else.

func (s *Server) serveReview(w http.ResponseWriter, r *Request) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		informertest.WriteStatus(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	review.Kind, review.APIVersion = "SelfSubjectAccessReview", "authorization.k8s.io/v1"
	attributes := review.Spec.ResourceAttributes
	review.Status.Allowed = s.opts.Allow == nil || attributes == nil || s.opts.Allow(r, *attributes)
	informertest.WriteJSON(w, http.StatusCreated, review)
}
