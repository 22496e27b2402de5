// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const (
	// casesPerRound is how many requests are about the same world.
	casesPerRound = 2000
	// shortCases is how many requests make test sends.
	shortCases = 300
)

// TestRights: the gateway in shared mode allows what the API server allows.
func TestRights(t *testing.T) {
	otherwise := uint64(casesPerRound)
	if testing.Short() {
		otherwise = shortCases
	}
	cases := int(clustertest.FromEnv(t, "WATCHKEEPER_RIGHTS_CASES", otherwise))
	gw, gateway := shared(t)
	began := time.Now()
	done, seed := 0, seedOf(t)
	for n := uint64(0); done < cases; n++ {
		r := newRound(t, seed+n, 0)
		r.alike = manyAlike
		time.Sleep(pastAge)
		trials, wrong := r.run(gateway, min(casesPerRound, cases-done), true, everyone)
		r.report(wrong)
		r.summarize(trials)
		done += len(trials)
	}
	cached := answeredFrom(t, gw, "cache")
	t.Logf("%d cases in %s, of which the cache answered %d, and the history %d", done, time.Since(began).Round(time.Second), cached, answeredFrom(t, gw, "history"))
	if cached*maxPerCached < done {
		t.Errorf("the gateway answered only %d of %d requests from its cache", cached, done)
	}
}

// TestImpersonated: with --impersonate, callers with certificates have all their rights
// through the gateway.
func TestImpersonated(t *testing.T) {
	clustertest.SkipShort(t)
	const account = "impersonator"
	ctx := t.Context()
	if _, err := api.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}},
		{Verbs: []string{"impersonate"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"uids", "userextras/authentication.kubernetes.io/credential-id"}},
	}}
	if _, err := api.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}}}
	if _, err := api.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, gateway := shared(t, "--impersonate", "--impersonate-service-account", "default/"+account)
	r := newRound(t, seedOf(t), impersonatedSeed) // which waits until the API server knows the binding
	r.impersonated = true
	time.Sleep(pastAge)
	trials, wrong := r.run(gateway, 600, true, func(i *identity) bool { return i.kind == certCaller || i.kind == certImpersonator })
	r.report(wrong)
	r.summarize(trials)
}

// pastAge is longer than the ages in requests, so that the past has the world.
const pastAge = 3 * time.Second

// maxPerCached bounds the requests for each one that the cache answers with success: most are
// denied, or are for the API server.
const maxPerCached = 40

func everyone(*identity) bool { return true }

// shared starts a gateway in shared mode that has all resources in its cache.
func shared(t *testing.T, flags ...string) (*clustertest.Gateway, server) {
	t.Helper()
	dir := t.TempDir()
	certs := filepath.Join(dir, "certs")
	gw, err := cluster.Gateway(append([]string{"--shared", "--cert-dir", certs, "--data-dir", filepath.Join(dir, "data"), "--record", "*"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if code := gw.Terminate(); code != 0 {
			t.Errorf("watchkeeper ended with %d", code)
		}
		if t.Failed() {
			t.Logf("its log:\n%s", gw.Log())
		}
	})
	gateway := server{url: gw.URL}
	if gateway.ca, err = pool(os.ReadFile(filepath.Join(certs, "ca.crt"))); err != nil {
		t.Fatal(err)
	}
	if err := warm(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	return gw, gateway
}

// warm reads each resource until the gateway has it in its cache. What it cannot answer
// itself it refuses to an admin who is known by a certificate: it never impersonates the
// group system:masters.
func warm(ctx context.Context, gateway server) error {
	cert, key, err := cluster.ClientCert("rights-admin", "system:masters")
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	admin := &identity{name: "admin", kind: certCaller, cert: &pair, clients: map[string]*http.Client{}}
	defer admin.close()
	for _, of := range resources {
		if of.unwatched {
			continue
		}
		last := ""
		err := poll(ctx, of.plural+" in the cache", func() (bool, error) {
			a, err := admin.send(ctx, gateway, &request{method: http.MethodGet, path: of.path(""), query: "resourceVersion=0", accept: jsonType})
			last = a.String()
			return a.code == http.StatusOK, err
		})
		if err != nil {
			return fmt.Errorf("%w: %s", err, last)
		}
	}
	return nil
}

// answeredFrom returns how many requests a source has answered with success, by the
// gateway's metrics.
func answeredFrom(t *testing.T, gw *clustertest.Gateway, source string) int {
	t.Helper()
	resp, err := http.Get(gw.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "watchkeeper_requests_total{") && strings.Contains(line, `source="`+source+`"`) && strings.Contains(line, `code="200"`) {
			n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			sum += n
		}
	}
	return sum
}
