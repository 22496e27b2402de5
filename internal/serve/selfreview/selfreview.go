// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package selfreview answers the reviews with which a client asks what it may do itself,
// where only reads are possible: in the past, in a recording, and behind a read-only
// gateway. These are SelfSubjectAccessReview, SelfSubjectRulesReview and
// SelfSubjectReview. They are POSTs, and change nothing.
//
// Whether a read is allowed is the API server's decision of now. A write is denied here,
// so that a client such as k9s offers none. The answers are advice to the client: nothing
// is permitted or prevented by them.
//
// [Of] recognises the requests, and a [Handler] answers them. Handlers hold no state and
// may be used concurrently. The tests need no API server.
package selfreview

import (
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

// A Kind is a kind of review.
type Kind uint8

// The kinds of reviews.
const (
	None   Kind = iota // the request is no such review
	Access             // SelfSubjectAccessReview: may I do this?
	Rules              // SelfSubjectRulesReview: what may I do in this namespace?
	User               // SelfSubjectReview: who am I?
)

const (
	accessPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	rulesPath  = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	userPath   = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// kinds has the paths of the reviews. An API server may still serve the older versions of
// authentication.k8s.io; those of authorization.k8s.io were removed in Kubernetes 1.22.
var kinds = map[string]Kind{
	accessPath: Access,
	rulesPath:  Rules,
	userPath:   User,
	"/apis/authentication.k8s.io/v1beta1/selfsubjectreviews":  User,
	"/apis/authentication.k8s.io/v1alpha1/selfsubjectreviews": User,
}

// Of returns the kind of review that a request is, None for other requests. The path has
// to be spelled as clients do, so that the API server cannot read it as another one.
func Of(r *http.Request) Kind {
	if r.Method != http.MethodPost || request.IsUpgrade(r) {
		return None
	}
	return kinds[request.RawPath(r)]
}

// readVerbs are the verbs of reads. Verbs are case-sensitive, in RBAC too.
var readVerbs = []string{string(request.Get), string(request.List), string(request.Watch)}

// isWrite reports whether a review is about anything but a read. ok is false if it does
// not say what it is about: the API server refuses it.
func isWrite(spec *authorizationv1.SelfSubjectAccessReviewSpec) (write, ok bool) {
	switch a, n := spec.ResourceAttributes, spec.NonResourceAttributes; {
	case a != nil && n == nil:
		return !slices.Contains(readVerbs, a.Verb) || connects(a.Resource+"/"+a.Subresource), true
	case n != nil && a == nil:
		return n.Verb != string(request.Get), true
	}
	return false, false
}

// connects reports whether a resource, as RBAC names it, is a subresource that opens
// connections, and so allows more than a read whatever the verb.
func connects(resource string) bool {
	_, sub, _ := strings.Cut(resource, "/")
	sub, _, _ = strings.Cut(sub, "/")
	return request.Connects(sub)
}

// reduce leaves in a review what can be done by reading.
func reduce(s *authorizationv1.SubjectRulesReviewStatus) {
	resources := s.ResourceRules[:0]
	for _, rule := range s.ResourceRules {
		rule.Verbs = readsOf(rule.Verbs, readVerbs)
		rule.Resources = slices.DeleteFunc(rule.Resources, connects)
		if len(rule.Verbs) > 0 && len(rule.Resources) > 0 {
			resources = append(resources, rule)
		}
	}
	s.ResourceRules = resources
	others := s.NonResourceRules[:0]
	for _, rule := range s.NonResourceRules {
		if rule.Verbs = readsOf(rule.Verbs, readVerbs[:1]); len(rule.Verbs) > 0 {
			others = append(others, rule)
		}
	}
	s.NonResourceRules = others
}

// readsOf returns which reads are among the verbs of a rule.
func readsOf(verbs, reads []string) (kept []string) {
	for _, verb := range reads {
		if slices.Contains(verbs, verb) || slices.Contains(verbs, "*") {
			kept = append(kept, verb)
		}
	}
	return kept
}
