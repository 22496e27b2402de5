// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestReplicasShareCertificate: replicas that start at the same time serve one certificate,
// which they keep in an empty Secret. A client needs no more than the ConfigMap, which has
// a kubeconfig and, from the replicas, their CA. Their identity may do no more with Secrets
// and ConfigMaps than the documentation says.
func TestReplicasShareCertificate(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	const name, san, replicas = "watchkeeper", "watchkeeper.example.svc", 3
	ctx := t.Context()
	ns := namespace(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	meta := metav1.ObjectMeta{Name: name}
	create := metav1.CreateOptions{}
	_, err := api.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: meta}, create)
	must(err)
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "SERVER", certificate-authority: ca.crt, tls-server-name: ` + san + `}}], users: [{name: u, user: {tokenFile: token}}]}`
	_, err = api.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"kubeconfig": kubeconfig}}, create)
	must(err)
	_, err = api.CoreV1().ServiceAccounts(ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, create)
	must(err)
	_, err = api.RbacV1().Roles(ns).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}, Verbs: []string{"patch"}},
	}}, create)
	must(err)
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}
	_, err = api.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{account},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, create)
	must(err)
	_, err = api.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ns}, Subjects: []rbacv1.Subject{account},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}}, create)
	must(err)
	identity := filepath.Join(t.TempDir(), "kubeconfig")
	token, err := cluster.Token(ctx, ns, name, time.Hour)
	must(err)
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: cluster.Config.Host, CertificateAuthority: filepath.Join(cluster.Dir, "pki", "ca.crt")}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	must(clientcmd.WriteToFile(*c, identity))

	flags := []string{"--kubeconfig", identity, "--shared", "--cert-secret", ns + "/" + name, "--ca-configmap", ns + "/" + name, "--tls-san", san}
	// The API server learns of a RoleBinding after a moment.
	config, err := clientcmd.BuildConfigFromFlags("", identity)
	must(err)
	itself, err := kubernetes.NewForConfig(config)
	must(err)
	eventually(t, "the rights of the replicas", func() bool {
		_, err := itself.CoreV1().Secrets(ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil
	})
	gateways := make([]*clustertest.Gateway, replicas)
	var starting sync.WaitGroup
	for i := range gateways {
		starting.Go(func() {
			g, err := cluster.Gateway(flags...)
			if err != nil {
				t.Error(err)
				return
			}
			gateways[i] = g
		})
	}
	starting.Wait()
	made := 0
	for _, g := range gateways {
		if g == nil {
			continue
		}
		made += strings.Count(g.Log(), "made a self-signed TLS certificate")
		defer func() {
			if t.Failed() {
				t.Logf("log of %s:\n%s", g.URL, g.Log())
			}
			g.Terminate()
		}()
	}
	if t.Failed() {
		return
	}
	secret, err := api.CoreV1().Secrets(ns).Get(ctx, name, metav1.GetOptions{})
	must(err)
	if made == 0 || len(secret.Data) != 4 {
		t.Errorf("%d certificates made; the Secret has %d data", made, len(secret.Data))
	}

	mounted := t.TempDir() // as a Pod mounts the ConfigMap, and its own token
	eventually(t, "the CA in the ConfigMap", func() bool {
		configMap, err := api.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
		must(err)
		for key, value := range configMap.Data {
			must(os.WriteFile(filepath.Join(mounted, key), []byte(value), 0o600))
		}
		return configMap.Data["kubeconfig"] == kubeconfig && configMap.Data["ca.crt"] == string(secret.Data["ca.crt"])
	})
	admin, err := cluster.AdminToken(ctx)
	must(err)
	must(os.WriteFile(filepath.Join(mounted, "token"), []byte(admin), 0o600))
	for _, g := range gateways {
		u, err := url.Parse(g.URL)
		must(err)
		conn, err := tls.Dial("tcp", u.Host, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // verified below
		must(err)
		leaf, err := cert.EncodeCertificates(conn.ConnectionState().PeerCertificates[0])
		must(err)
		if !bytes.Contains(secret.Data["tls.crt"], leaf) {
			t.Errorf("%s has another certificate than that of the Secret", g.URL)
		}
		conn.Close()
		must(os.WriteFile(filepath.Join(mounted, "kubeconfig"), []byte(strings.Replace(kubeconfig, "SERVER", g.URL, 1)), 0o600))
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(mounted, "kubeconfig"))
		must(err)
		client, err := kubernetes.NewForConfig(config)
		must(err)
		if got, err := client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}); err != nil || got.Name != ns {
			t.Errorf("%s with the mounted kubeconfig: %v", g.URL, err)
		}
		if log := g.Log(); strings.Contains(log, "PRIVATE KEY") || strings.Contains(log, "the CA is not published") {
			t.Error(log)
		}
	}

	// A Secret of somebody else is not replaced, and the gateway says so.
	secret.Data = map[string][]byte{"tls.crt": secret.Data["tls.crt"], "tls.key": secret.Data["tls.key"]}
	_, err = api.CoreV1().Secrets(ns).Update(ctx, secret, metav1.UpdateOptions{})
	must(err)
	if g, err := cluster.Gateway(flags...); err == nil || !strings.Contains(err.Error(), "its data are not from the gateway") {
		t.Errorf("with a Secret of somebody else: %v", err)
		if err == nil {
			g.Terminate()
		}
	}
}
