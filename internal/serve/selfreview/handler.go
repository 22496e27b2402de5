// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package selfreview

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

const (
	maxBody = 1 << 20
	// maxYAML is the same for YAML, of which some bytes make a hundred times as many, and an
	// alias many more: 64 reviews are read at a time. Reviews have some hundred bytes.
	maxYAML = 4 << 10
	// maxRules bounds the API server's answer to a SelfSubjectRulesReview, which is kept
	// in memory until it is reduced.
	maxRules = 16 << 20
)

// A Handler answers reviews. It is immutable.
type Handler struct {
	// Reason is why writes are denied.
	Reason string
	// Forward answers a request as the API server does. nil if there is no API server, as
	// for a recording: every read is allowed.
	Forward http.HandlerFunc
}

// Serve answers a review.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, kind Kind) {
	limit := int64(maxBody)
	if isYAML(r) {
		limit = maxYAML
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		refusal := status.BadRequest("the body of the request cannot be read: " + err.Error())
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			refusal = status.New(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
				fmt.Sprintf("Request entity too large: limit is %d", limit))
		}
		status.Write(w, r, refusal)
		return
	}
	if h.Forward == nil {
		h.serveAlone(w, r, kind, body)
		return
	}
	r = r.WithContext(r.Context())
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	switch kind {
	case Access:
		// The API server refuses what cannot be decoded, in its own words.
		if review, err := decode[authorizationv1.SelfSubjectAccessReview](r, body); err == nil {
			if write, ok := isWrite(&review.Spec); ok && write {
				h.deny(w, r, review)
				return
			}
		}
		h.Forward(w, r)
	case Rules:
		h.serveRules(w, r)
	default:
		h.Forward(w, r)
	}
}

func (h *Handler) deny(w http.ResponseWriter, r *http.Request, review *authorizationv1.SelfSubjectAccessReview) {
	review.Status = authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: h.Reason}
	write(w, r, review)
}

// serveRules answers a SelfSubjectRulesReview with the reads of the API server's answer.
func (h *Handler) serveRules(w http.ResponseWriter, r *http.Request) {
	asked := r.Clone(r.Context())
	asked.Header.Set("Accept", "application/json")
	asked.Header.Set("Accept-Encoding", "identity")
	answer := &answer{header: http.Header{}}
	h.Forward(answer, asked)
	if answer.tooLarge {
		status.Write(w, r, status.Internal(fmt.Sprintf("the API server's rules are larger than %d MiB", maxRules>>20)))
		return
	}
	if answer.code != http.StatusCreated {
		maps.Copy(w.Header(), answer.header)
		w.WriteHeader(answer.code)
		w.Write(answer.body.Bytes()) //nolint:errcheck // the client is gone
		return
	}
	// The content type is that of the answer, whatever the request's body was.
	review, err := decodeAs[authorizationv1.SelfSubjectRulesReview](answer.header.Get("Content-Type"), answer.body.Bytes())
	if err != nil {
		status.Write(w, r, status.Internal("the API server's rules are not understood: "+err.Error()))
		return
	}
	reduce(&review.Status)
	for _, name := range []string{"Warning", "Audit-Id"} {
		if values := answer.header[name]; values != nil {
			w.Header()[name] = values
		}
	}
	write(w, r, review)
}

// An answer is a response in memory.
type answer struct {
	header   http.Header
	code     int
	body     bytes.Buffer
	tooLarge bool
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	if code >= 200 && a.code == 0 {
		a.code = code
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.tooLarge = a.tooLarge || a.body.Len()+len(p) > maxRules; a.tooLarge {
		return len(p), nil // an error would abort the client's connection
	}
	return a.body.Write(p)
}

// serveAlone answers for a recording, in which everybody may read everything.
func (h *Handler) serveAlone(w http.ResponseWriter, r *http.Request, kind Kind, body []byte) {
	var err error
	switch kind {
	case Access:
		var review *authorizationv1.SelfSubjectAccessReview
		if review, err = decode[authorizationv1.SelfSubjectAccessReview](r, body); err != nil {
			break
		}
		switch denied, ok := isWrite(&review.Spec); {
		case !ok:
			status.Write(w, r, status.New(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
				"spec.resourceAttributes: Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified"))
		case denied:
			h.deny(w, r, review)
		default:
			review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true}
			write(w, r, review)
		}
	case Rules:
		var review *authorizationv1.SelfSubjectRulesReview
		if review, err = decode[authorizationv1.SelfSubjectRulesReview](r, body); err != nil {
			break
		}
		all := []string{"*"}
		review.Status = authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{{Verbs: readVerbs, APIGroups: all, Resources: all}},
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: readVerbs[:1], NonResourceURLs: all}},
		}
		write(w, r, review)
	default:
		if r.URL.Path != userPath {
			status.Write(w, r, status.NotFound("this is a recording: it has nothing of "+r.URL.Path))
			return
		}
		var review *authenticationv1.SelfSubjectReview
		if review, err = decode[authenticationv1.SelfSubjectReview](r, body); err != nil {
			break
		}
		review.Status.UserInfo = authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}
		write(w, r, review)
	}
	if err != nil {
		status.Write(w, r, status.BadRequest(err.Error()))
	}
}
