// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// impersonatorTokenSeconds is the lifetime of the impersonator's tokens.
const impersonatorTokenSeconds = 3600

// AsServiceAccount returns a configuration for the API server of another that acts as a
// ServiceAccount, with tokens that the other one's identity requests. It sends nothing.
func AsServiceAccount(config *rest.Config, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	as := rest.AnonymousClientConfig(config)
	as.Wrap(transport.TokenSourceWrapTransport(transport.NewCachedTokenSource(&tokenRequests{client, namespace, name})))
	return as, nil
}

// tokenRequests is a source of tokens of a ServiceAccount (TokenRequest).
type tokenRequests struct {
	client          kubernetes.Interface
	namespace, name string
}

// Token implements oauth2.TokenSource.
func (s *tokenRequests) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ReviewTimeout)
	defer cancel()
	seconds := int64(impersonatorTokenSeconds)
	answer, err := s.client.CoreV1().ServiceAccounts(s.namespace).CreateToken(ctx, s.name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of the ServiceAccount %s/%s, as which callers are impersonated: %w", s.namespace, s.name, err)
	}
	return &oauth2.Token{AccessToken: answer.Status.Token, TokenType: "Bearer", Expiry: answer.Status.ExpirationTimestamp.Time}, nil
}
