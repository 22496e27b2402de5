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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
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
// something now. The headers identify the caller; nil is the gateway itself. If the API
// server does not accept the credentials, the decision comes with the answer to the caller.
func (u *Server) Review(ctx context.Context, attributes authorizationv1.ResourceAttributes, caller http.Header) (Decision, *metav1.Status) {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	body, err := json.Marshal(review)
	if err != nil {
		return Unknown, nil
	}
	req := u.NewRequest(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "")
	req.Header.Set("Content-Type", "application/json")
	// The API server closes the connection of a caller whose credentials it does not accept.
	// With GetBody, other reviews on the connection are sent again.
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(body))
	resp, err := u.As(caller, req)
	if err != nil {
		return Unknown, nil
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
		err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&review)
		switch {
		case err != nil:
			return Unknown, nil
		case review.Status.Allowed:
			return Allowed, nil
		}
		return Denied, nil
	case http.StatusUnauthorized:
		if !request.BringsToken(caller) {
			return Denied, u.Unaccepted()
		}
		var s metav1.Status
		if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&s) != nil || s.Message == "" {
			s.Message = http.StatusText(http.StatusUnauthorized)
		}
		return Denied, status.New(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, s.Message)
	}
	return Unknown, nil
}
