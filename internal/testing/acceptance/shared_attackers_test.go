// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// The attackers of shared mode. Requests are written byte by byte, since HTTP clients
// correct what an attacker would send.

// attack is what the tests of attacks share: a gateway in shared mode, and users.
type attack struct {
	*clustertest.Gateway
	mine, other string // namespaces: alice and erin may read in the first one only
	tokens      map[string]string
	certs       map[string]*tls.Certificate
}

// secretText is in what only the admin may read.
const secretText = "attack-secret-b"

func newAttack(ctx context.Context) (*attack, error) {
	a := &attack{mine: "attack-mine", other: "attack-other", tokens: map[string]string{}, certs: map[string]*tls.Certificate{}}
	core, rbac := api.CoreV1(), api.RbacV1()
	var failed error
	must := func(_ any, err error) {
		if err != nil && failed == nil {
			failed = err
		}
	}
	for _, ns := range []string{a.mine, a.other} {
		must(core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}))
	}
	must(core.ConfigMaps(a.mine).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm-a"}}, metav1.CreateOptions{}))
	must(core.ConfigMaps(a.other).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: secretText + "-cm"}}, metav1.CreateOptions{}))
	must(core.Secrets(a.other).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretText + "-secret"}}, metav1.CreateOptions{}))
	read := []string{"get", "list", "watch"}
	must(rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "attack-reader"}, Rules: []rbacv1.PolicyRule{
		{Verbs: read, APIGroups: []string{""}, Resources: []string{"configmaps", "pods"}},
	}}, metav1.CreateOptions{}))
	must(rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "attack-past"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/at", "/watchkeeper/v1/history"}},
	}}, metav1.CreateOptions{}))
	must(rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "attack-impersonator"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{"", "authentication.k8s.io"}, Resources: []string{"*"}},
	}}, metav1.CreateOptions{}))
	bindAll := func(name, role string, s rbacv1.Subject) {
		must(rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{s}}, metav1.CreateOptions{}))
	}
	for _, name := range []string{"alice", "bob", "revoked"} {
		token, err := a.account(ctx, name)
		must(nil, err)
		a.tokens[name] = token
	}
	must(nil, a.bind(ctx, "alice", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.mine, Name: "alice"}))
	must(nil, a.bind(ctx, "erin", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "erin"}))
	bindAll("attack-past-erin", "attack-past", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "erin"})
	bindAll("attack-past-revoked", "attack-past", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.mine, Name: "revoked"})
	bindAll("attack-admin", "cluster-admin", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "attack-admin"})
	must(core.ServiceAccounts(a.mine).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "impersonator"}}, metav1.CreateOptions{}))
	bindAll("attack-impersonator", "attack-impersonator", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.mine, Name: "impersonator"})
	pair := func(name string, cert, key []byte, err error) {
		must(nil, err)
		parsed, err := tls.X509KeyPair(cert, key)
		must(nil, err)
		a.certs[name] = &parsed
	}
	for name, user := range map[string][]string{
		"erin":          {"erin"},
		"masters":       {"mallory", "system:masters"},
		"masters space": {"mallory", "system:masters "},
		"admin space":   {"attack-admin "},
	} {
		cert, key, err := cluster.ClientCert(user[0], user[1:]...)
		pair(name, cert, key, err)
	}
	cert, key, err := cluster.FrontProxyCert()
	pair("front proxy", cert, key, err)
	cert, key, err = clustertest.ForeignCert("attack-admin")
	pair("foreign", cert, key, err)
	if failed != nil {
		return nil, failed
	}
	a.Gateway, err = cluster.Gateway("--shared", "--cert-dir", filepath.Join(cluster.Dir, "attack-certs"), "--data-dir", filepath.Join(cluster.Dir, "attack-data"),
		"--record", "core,configmaps", "--impersonate", "--impersonate-service-account", a.mine+"/impersonator", "-v", "10")
	return a, err
}

// account makes a ServiceAccount, and returns a token of it.
func (a *attack) account(ctx context.Context, name string) (string, error) {
	accounts := api.CoreV1().ServiceAccounts(a.mine)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	return cluster.Token(ctx, a.mine, name, 0)
}

// bind lets a subject read ConfigMaps and Pods of a's first namespace.
func (a *attack) bind(ctx context.Context, name string, s rbacv1.Subject) error {
	_, err := api.RbacV1().RoleBindings(a.mine).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "attack-reader"}, Subjects: []rbacv1.Subject{s}}, metav1.CreateOptions{})
	return err
}

// fill replaces <name> by a user's token, and <name64> by it as in a WebSocket's
// subprotocol.
func (a *attack) fill(text string) string {
	for name, token := range a.tokens {
		text = strings.NewReplacer("<"+name+">", token, "<"+name+"64>", base64.RawURLEncoding.EncodeToString([]byte(token))).Replace(text)
	}
	return strings.NewReplacer("<mine>", a.mine, "<other>", a.other).Replace(text)
}

// connect opens a connection to a server with a user's certificate, if the user has one.
func (a *attack) connect(t *testing.T, server, cert string) *tls.Conn {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}} //nolint:gosec // of this test
	if cert != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.certs[cert], nil }
	}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(server, "https://"), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// send sends a request, whose further header lines are as given, and returns the answer.
// The body of an upgraded connection or a watch is its first kilobytes.
func (a *attack) send(t *testing.T, server, cert, request string, lines []string, body string) (int, string) {
	t.Helper()
	conn := a.connect(t, server, cert)
	host := strings.TrimPrefix(server, "https://")
	text := request + " HTTP/1.1\r\nHost: " + host + "\r\n"
	for _, line := range lines {
		text += strings.ReplaceAll(line, "<host>", host) + "\r\n"
	}
	if body != "" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	if _, err := io.WriteString(conn, a.fill(text)+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s %q: %v", request, lines, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second)) // for what has no end
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	return response.StatusCode, string(answer)
}

// upgrade are the lines of a WebSocket.
var upgrade = []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Origin: https://<host>"}

// nobody is who is refused, or anonymous.
const nobody = "nobody"

// whoami asks who the API server takes the sender of some header lines for.
func (a *attack) whoami(t *testing.T, server, cert string, lines ...string) string {
	t.Helper()
	code, body := a.send(t, server, cert, "POST /apis/authentication.k8s.io/v1/selfsubjectreviews", lines, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`)
	var review authenticationv1.SelfSubjectReview
	switch {
	case code == http.StatusCreated && json.Unmarshal([]byte(body), &review) == nil:
		return review.Status.UserInfo.Username
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return nobody
	}
	return fmt.Sprintf("%d %s", code, body)
}
