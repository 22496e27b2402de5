// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"errors"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"
)

// tokenAge is after which time a token of a kubeconfig is read again, as client-go does with that of
// a Pod. After an answer 401 it is read at once.
const tokenAge = time.Minute

// A kubeconfigToken is the token of a user in a kubeconfig, which may change while a server runs.
type kubeconfigToken struct {
	load func() (*clientcmdapi.Config, error)
	user string
}

// Token implements oauth2.TokenSource. After an error, client-go uses the token that it has.
func (k kubeconfigToken) Token() (*oauth2.Token, error) {
	config, err := k.load()
	if err != nil {
		return nil, err
	}
	user := config.AuthInfos[k.user]
	if user == nil || user.Token == "" {
		return nil, errors.New("the kubeconfig has no token any more")
	}
	return &oauth2.Token{AccessToken: user.Token, Expiry: time.Now().Add(tokenAge)}, nil
}

// followToken makes a client use the newest token of a kubeconfig, if it has one in place and not in a
// file of its own, which client-go follows itself.
func followToken(c *rest.Config, access clientcmd.ConfigAccess, raw *clientcmdapi.Config, user string) {
	rules, ok := access.(*clientcmd.ClientConfigLoadingRules)
	if in := raw.AuthInfos[user]; !ok || in == nil || in.Token == "" || in.TokenFile != "" || c.BearerToken != in.Token {
		return
	}
	c.BearerToken = ""
	c.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedTokenSource(kubeconfigToken{rules.Load, user})))
}
