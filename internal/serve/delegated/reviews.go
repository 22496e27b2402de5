// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/util/webhook"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
)

// tokenReviews authenticates tokens as the webhook authenticator of k8s.io/apiserver does,
// but returns an error only if the API server gave no answer. The errors of that one do not
// tell a refusal from an answer that was cut off, or that is not one of an API server.
type tokenReviews struct {
	client    authenticationclient.TokenReviewInterface
	audiences authenticator.Audiences // none means those of the API server
}

// AuthenticateToken implements authenticator.Token.
func (t tokenReviews) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, access.ReviewTimeout)
	defer cancel()
	ask := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: t.audiences}}
	var answer *authenticationv1.TokenReview
	if err := webhook.WithExponentialBackoff(ctx, reviewBackoff, func() (err error) {
		answer, err = t.client.Create(ctx, ask, metav1.CreateOptions{})
		return err
	}, webhook.DefaultShouldRetry); err != nil {
		return nil, false, err
	}
	got := answer.Status
	if !got.Authenticated {
		return nil, false, nil
	}
	audiences := t.audiences
	// An API server that does not know audiences names none, and means its own.
	if len(audiences) > 0 && len(got.Audiences) > 0 {
		if audiences = audiences.Intersect(got.Audiences); len(audiences) == 0 {
			return nil, false, nil
		}
	}
	u := &user.DefaultInfo{Name: got.User.Username, UID: got.User.UID, Groups: got.User.Groups}
	for key, values := range got.User.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = values
	}
	return &authenticator.Response{User: u, Audiences: audiences}, true, nil
}
