// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// mayExtend reports whether a user may have what q asks of an extension: who may do the
// same now may have it as a projection, and needs the right to the path of the past or of
// the history in addition.
func mayExtend(ctx context.Context, api kubernetes.Interface, user *authenticationv1.UserInfo, q *request) (bool, error) {
	if user == nil {
		return false, nil
	}
	allowed, err := review(ctx, api, user, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: q.verb, Group: q.group, Resource: q.resource, Subresource: q.sub, Namespace: q.namespace, Name: q.name,
	}})
	path := map[form]string{past: "/at", history: historyPath}[q.form]
	if !allowed || err != nil || path == "" {
		return allowed, err
	}
	return review(ctx, api, user, authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: path}})
}

// mayWhere returns in which namespaces of q a user may have what it asks; "" is in all.
func mayWhere(ctx context.Context, api kubernetes.Interface, user *authenticationv1.UserInfo, q *request) ([]string, error) {
	where := []string{}
	for _, namespace := range append([]string{""}, q.namespaces...) {
		one := *q
		one.namespace = namespace
		switch may, err := mayExtend(ctx, api, user, &one); {
		case err != nil:
			return nil, err
		case may && namespace == "":
			return []string{""}, nil
		case may:
			where = append(where, namespace)
		}
	}
	slices.Sort(where)
	return where, nil
}

func review(ctx context.Context, api kubernetes.Interface, user *authenticationv1.UserInfo, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	spec.User, spec.UID, spec.Groups = user.Username, user.UID, user.Groups
	spec.Extra = map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(value)
	}
	answer, err := api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
