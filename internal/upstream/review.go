// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// A Decision is the API server's answer to an access review.
type Decision int

// The decisions. The zero value, Unknown, means that there was no answer.
const (
	Unknown Decision = iota
	Denied
	Allowed
)

// Review asks the API server with a SelfSubjectAccessReview whether a caller may do
// something now. The headers identify the caller; nil is the gateway itself.
func (u *Server) Review(ctx context.Context, attributes authorizationv1.ResourceAttributes, caller http.Header) Decision {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	body, err := json.Marshal(review)
	if err != nil {
		return Unknown
	}
	req := u.NewRequest(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "")
	req.Header.Set("Content-Type", "application/json")
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp, err := u.As(caller, req)
	if err != nil {
		return Unknown
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
		err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&review)
		switch {
		case err != nil:
			return Unknown
		case review.Status.Allowed:
			return Allowed
		}
		return Denied
	case http.StatusUnauthorized:
		return Denied
	}
	return Unknown
}
