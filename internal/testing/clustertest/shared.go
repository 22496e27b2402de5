// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// IsShared reports whether tests that run in both modes are to run in shared mode: with
// WATCHKEEPER_SHARED=1.
func IsShared(t testing.TB) bool {
	t.Helper()
	return FromEnv(t, "WATCHKEEPER_SHARED", 0) != 0
}

// A SharedGateway is a gateway in shared mode, with a self-signed certificate.
type SharedGateway struct {
	*Gateway
	// CA is the path of the certificate authority for its clients.
	CA string
	// Roots trust the gateway and the API servers.
	Roots *x509.CertPool
}

// SharedGateway starts a gateway in shared mode as Gateway does. certs is the directory of
// its certificate.
func (c *Cluster) SharedGateway(certs string, args ...string) (*SharedGateway, error) {
	gw, err := c.Gateway(append([]string{"--shared", "--cert-dir", certs}, args...)...)
	if err != nil {
		return nil, err
	}
	g := &SharedGateway{Gateway: gw, CA: filepath.Join(certs, "ca.crt"), Roots: x509.NewCertPool()}
	for _, path := range []string{g.CA, c.pki("ca.crt")} {
		ca, err := os.ReadFile(path)
		if err == nil && !g.Roots.AppendCertsFromPEM(ca) {
			err = fmt.Errorf("no certificate in %s", path)
		}
		if err != nil {
			gw.Kill()
			return nil, err
		}
	}
	return g, nil
}

// Config is client-go's configuration for the gateway, with a token.
func (g *SharedGateway) Config(token string) *rest.Config {
	return &rest.Config{Host: g.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: g.CA}, QPS: -1}
}

// The ServiceAccount of AdminToken. It exists from the first token on, so that it is in the
// snapshots of etcd that a test takes later, with the UID of the tokens.
const adminNamespace, adminName = "kube-system", "watchkeeper-test-admin"

// tokenLife is how long a token of AdminToken is valid.
const tokenLife = 2 * time.Hour

// AdminToken returns a token of a ServiceAccount that may do everything, which it creates
// if there is none.
func (c *Cluster) AdminToken(ctx context.Context) (string, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	name := metav1.ObjectMeta{Name: adminName}
	_, err = client.CoreV1().ServiceAccounts(adminNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: adminNamespace, Name: adminName}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	return c.Token(ctx, adminNamespace, adminName, tokenLife)
}

// Bearer adds a token to the requests that have no other credential.
type Bearer struct {
	Token string
	Next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b Bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.Token)
	}
	return b.Next.RoundTrip(r)
}
