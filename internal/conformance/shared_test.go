// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

// sharedDiffers are rules whose endpoints differ in shared mode: the gateway's 401 is in
// JSON, and it has no anonymous user.
var sharedDiffers = []string{"UnauthorizedInYAML", "EmptyToken"}

// startShared starts a gateway in shared mode, and returns it as the endpoint of a
// ServiceAccount with all rights, and the API server as the same user.
func startShared(t *testing.T) (want, got *compare.Endpoint) {
	t.Helper()
	dir := t.TempDir()
	var err error
	if gw, err = cluster.Gateway("--shared", "--cert-dir", dir); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	const ns, name = "kube-system", "conformance"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := cluster.Token(t.Context(), ns, name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	own, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	apiServer, err := cluster.ServerCA()
	if err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(own)
	pool.AppendCertsFromPEM(apiServer)
	config := &tls.Config{RootCAs: pool}
	as := func(url string) *compare.Endpoint {
		e := endpoint(url, config, config)
		e.Client.Transport, e.HTTP2.Transport = bearer{token, e.Client.Transport}, bearer{token, e.HTTP2.Transport}
		dial := e.Dial
		e.Dial = func(ctx context.Context) (net.Conn, error) {
			conn, err := dial(ctx)
			return &bearerConn{Conn: conn, token: token}, err
		}
		return e
	}
	return as(cluster.Config.Host), as(gw.URL)
}

// bearer adds a token to requests that have none.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// A bearerConn adds a token to the request that is first written, for a WebSocket.
type bearerConn struct {
	net.Conn
	token string // empty once it is written
}

// Write implements io.Writer.
func (c *bearerConn) Write(p []byte) (int, error) {
	head, rest, ok := bytes.Cut(p, []byte("\r\n"))
	if c.token == "" || !ok {
		return c.Conn.Write(p)
	}
	_, err := c.Conn.Write(fmt.Appendf(nil, "%s\r\nAuthorization: Bearer %s\r\n%s", head, c.token, rest))
	c.token = ""
	return len(p), err
}
