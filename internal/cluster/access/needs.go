// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// A need is a right that the gateway's own identity needs for shared mode.
type need struct {
	attributes authorizationv1.ResourceAttributes
	without    string // what does not work without it, and how to grant it
}

var needs = []need{
	{
		authorizationv1.ResourceAttributes{Verb: "create", Group: authenticationv1.GroupName, Version: "v1", Resource: "tokenreviews"},
		"no token is accepted: bind the gateway to the ClusterRole system:auth-delegator",
	},
	{
		authorizationv1.ResourceAttributes{Verb: "create", Group: authorizationv1.GroupName, Version: "v1", Resource: "subjectaccessreviews"},
		"nothing is served from the cache: bind the gateway to the ClusterRole system:auth-delegator",
	},
	{
		authorizationv1.ResourceAttributes{Verb: "watch", Version: "v1", Resource: "configmaps", Namespace: CANamespace, Name: CAConfigMap},
		"no client certificate is accepted: bind the gateway to the Role extension-apiserver-authentication-reader in the namespace kube-system",
	},
	{
		authorizationv1.ResourceAttributes{Verb: "watch", Group: rbacv1.GroupName, Version: "v1", Resource: "rolebindings"},
		"a right that is taken away ends open watches within 75 seconds instead of at once: let the gateway list and watch roles, rolebindings, clusterroles, clusterrolebindings and serviceaccounts",
	},
	{
		authorizationv1.ResourceAttributes{Verb: "get", Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		"custom resources are not served from the cache: let the gateway get customresourcedefinitions",
	},
}

// checkNeeds logs which of its rights the gateway does not have, once the API server has
// said so.
func (s *Shared) checkNeeds(ctx context.Context) {
	for _, n := range needs {
		for ctx.Err() == nil {
			asked, cancel := context.WithTimeout(ctx, reviewTimeout)
			d, _ := s.up.Review(asked, n.attributes, nil)
			cancel()
			if d == upstream.Denied {
				s.log.Warn("the gateway may not "+n.attributes.Verb+" "+n.attributes.Resource, "without it", n.without)
			}
			if d != upstream.Unknown {
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(learnInterval):
			}
		}
	}
}
