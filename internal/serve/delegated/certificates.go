// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
)

// certificates implement [access.Certificates] with the CAs of a ConfigMap of the cluster.
type certificates struct {
	authenticator.Request
	clientCA, proxyCA *dynamiccertificates.ConfigMapCAController
	proxyHeaders      *headerrequest.RequestHeaderAuthRequestController
}

func newCertificates(client kubernetes.Interface) (*certificates, error) {
	c := &certificates{}
	var err error
	follow := func(purpose, key string) *dynamiccertificates.ConfigMapCAController {
		c, invalid := dynamiccertificates.NewDynamicCAFromConfigMapController(purpose, access.CANamespace, access.CAConfigMap, key, client)
		err = errors.Join(err, invalid)
		return c
	}
	c.clientCA = follow("client-ca", "client-ca-file")
	c.proxyCA = follow("front-proxy-ca", "requestheader-client-ca-file")
	if err != nil {
		return nil, err
	}
	c.proxyHeaders = headerrequest.NewRequestHeaderAuthRequestController(access.CAConfigMap, access.CANamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	headers := c.proxyHeaders
	c.Request, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		ClientCertificateCAContentProvider: c.clientCA,
		RequestHeaderConfig: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider:   c.proxyCA,
			UsernameHeaders:     headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
			UIDHeaders:          headerrequest.StringSliceProviderFunc(headers.UIDHeaders),
			GroupHeaders:        headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
			ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes),
			AllowedClientNames:  headerrequest.StringSliceProviderFunc(headers.AllowedClientNames),
		},
	}.New()
	return c, err
}

// Run implements [access.Certificates].
func (c *certificates) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context, int){c.clientCA.Run, c.proxyCA.Run, c.proxyHeaders.Run} {
		running.Go(func() { run(ctx, 1) })
	}
	running.Wait()
}

// Ready implements [access.Certificates].
func (c *certificates) Ready() bool {
	return len(c.clientCA.CurrentCABundleContent()) > 0 && len(c.proxyHeaders.UsernameHeaders()) > 0
}

// CAs implements [access.Certificates].
func (c *certificates) CAs() []byte {
	return slices.Concat(c.clientCA.CurrentCABundleContent(), []byte("\n"), c.proxyCA.CurrentCABundleContent())
}

// IsProxyHeader implements [access.Certificates].
func (c *certificates) IsProxyHeader(name string) bool {
	equal := func(s string) bool { return strings.EqualFold(s, name) }
	begins := func(prefix string) bool {
		return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
	}
	return slices.ContainsFunc(c.proxyHeaders.UsernameHeaders(), equal) || slices.ContainsFunc(c.proxyHeaders.UIDHeaders(), equal) ||
		slices.ContainsFunc(c.proxyHeaders.GroupHeaders(), equal) || slices.ContainsFunc(c.proxyHeaders.ExtraHeaderPrefixes(), begins)
}
