// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// An account is a ServiceAccount in its own namespace, with the file of its token, as
// in a Pod.
type account struct {
	ns     string
	file   string
	config *rest.Config
	trail
}

// create creates the ServiceAccount, with the right to read ConfigMaps, and replaces the
// token in the file, as a kubelet does.
func (a *account) create(ctx context.Context, admin kubernetes.Interface) error {
	_, err := admin.CoreV1().ServiceAccounts(a.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	token, err := cluster.Token(ctx, a.ns, "reader", 0)
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.file+".new", []byte(token), 0o600); err != nil {
		return err
	}
	return os.Rename(a.file+".new", a.file)
}

// grant lets the ServiceAccount read ConfigMaps in its namespace.
func (a *account) grant(ctx context.Context, admin kubernetes.Interface) error {
	_, err := admin.RbacV1().RoleBindings(a.ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "read"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.ns, Name: "reader"}},
	}, metav1.CreateOptions{})
	return err
}

// denied waits until the API server itself refuses the token of the file. Then it ends the
// client's watches, which would go on for minutes there.
func (a *account) denied(t *testing.T, code int) {
	t.Helper()
	token, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(direct.config())
	config.BearerToken = string(token)
	user, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer user.CloseIdleConnections()
	eventually(t, fmt.Sprint("the API server's ", code), func() string {
		resp, err := user.Get(config.Host + "/api/v1/namespaces/" + a.ns + "/configmaps?limit=1")
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		if resp.StatusCode != code {
			return resp.Status
		}
		return ""
	})
	a.cut()
}

// TestShared runs client-go's informers and a manager of controller-runtime with the token
// files of ServiceAccounts, at the API server and through a gateway in shared mode, whose
// self-signed certificate they trust. Their rights are revoked and granted again, and
// their ServiceAccount is deleted and created again, with another token in the file. What
// the clients notice has to be the same at both sides, but for the time: the API server
// does not end a watch, so the test does.
//
// client-go reads the file of a token again after 50 seconds, also after a 401. So what
// follows a deleted ServiceAccount takes more than a minute, and is part of the soak tests
// only, as several kills are.
func TestShared(t *testing.T) {
	clustertest.SkipShort(t)
	dir := t.TempDir()
	gw, err := cluster.Gateway("--shared", "--cert-dir", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the gateway in shared mode:\n%s", gw.Log())
		}
		if exit := gw.Terminate(); exit != 0 {
			t.Errorf("watchkeeper ended with %d on SIGTERM:\n%s", exit, gw.Log())
		}
	})
	admin, err := kubernetes.NewForConfig(direct.config())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		name      string
		watchList bool
		start     starter
		code      int
	}{
		{"informer-403", false, startInformer, http.StatusForbidden},
		{"informer-401", false, startInformer, http.StatusUnauthorized},
		{"watchlist-403", true, startInformer, http.StatusForbidden},
		{"watchlist-401", true, startInformer, http.StatusUnauthorized},
		{"manager-403", true, startSharedManager, http.StatusForbidden},
		{"manager-401", true, startSharedManager, http.StatusUnauthorized},
	} {
		t.Run(one.name, func(t *testing.T) {
			setGate(t, features.WatchListClient, one.watchList)
			accounts := map[side]*account{}
			for _, at := range sides {
				a := &account{ns: namespace(t, fmt.Sprint("shared-", one.name, "-", at))}
				a.file = filepath.Join(dir, a.ns)
				a.config = &rest.Config{Host: cluster.Config.Host, QPS: -1, BearerTokenFile: a.file}
				a.config.CAFile = filepath.Join(cluster.Dir, "pki", "ca.crt")
				if at == gateway {
					a.config.Host, a.config.CAFile = gw.URL, filepath.Join(dir, "ca.crt")
				}
				a.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return a.follow(next) })
				accounts[at] = a
			}
			scenario(t, admin, accounts, one.start, one.code)
		})
	}
}

// A lister returns the names of the ConfigMaps that a client holds. A starter starts a
// client, which runs until ctx ends.
type (
	lister  func() []string
	starter func(ctx context.Context, t *testing.T, a *account, running *sync.WaitGroup) lister
)

// scenario runs a client at both sides, takes what it needs and gives it back, and compares
// what the clients have noticed. Clients are started one after the other, because of
// client-go's gate, and then run at the same time.
func scenario(t *testing.T, admin kubernetes.Interface, accounts map[side]*account, start starter, code int) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	held := map[side]lister{}
	for _, at := range sides {
		a := accounts[at]
		if err := errors.Join(a.create(ctx, admin), a.grant(ctx, admin)); err != nil {
			t.Fatal(err)
		}
		held[at] = start(ctx, t, a, &running)
		a.holds(t, admin, "listed", held[at])
	}
	t.Parallel()
	trails := map[side]*[3][]string{direct: {}, gateway: {}}
	t.Run("sides", func(t *testing.T) {
		for _, at := range sides {
			t.Run(string(at), func(t *testing.T) {
				t.Parallel()
				*trails[at] = accounts[at].revoked(t, at, admin, held[at], code)
			})
		}
	})
	for i, what := range []string{"started", "revoked", "granted again"} {
		want, got := trails[direct][i], trails[gateway][i]
		t.Logf("%-13s %s", what, strings.Join(got, ", "))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-direct +gateway)\n%s", what, d)
		}
	}
}

// revoked takes an account's right or its ServiceAccount, according to the status code
// that follows, gives it back, and returns what its client has noticed: before, after, and
// in the end.
func (a *account) revoked(t *testing.T, at side, admin kubernetes.Interface, held lister, code int) (trails [3][]string) {
	t.Helper()
	ctx := t.Context()
	a.holds(t, admin, "watched", held) // a watch without an event would not be resumed
	trails[0] = a.steps(true)

	a.reset()
	var err error
	if code == http.StatusForbidden {
		err = admin.RbacV1().RoleBindings(a.ns).Delete(ctx, "read", metav1.DeleteOptions{})
	} else {
		err = admin.CoreV1().ServiceAccounts(a.ns).Delete(ctx, "reader", metav1.DeleteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if at == direct {
		a.denied(t, code)
	}
	step := fmt.Sprint("list ", code)
	eventually(t, step, func() string {
		if steps := a.steps(false); !slices.Contains(steps, step) {
			return fmt.Sprint("noticed ", steps)
		}
		return ""
	})
	trails[1] = a.steps(false)

	if code == http.StatusUnauthorized && kills(t) <= 1 {
		return trails
	}
	a.reset()
	if code == http.StatusForbidden {
		err = a.grant(ctx, admin)
	} else {
		err = a.create(ctx, admin)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.holds(t, admin, "again", held)
	a.holds(t, admin, "watched-again", held)
	trails[2] = a.steps(true)
	return trails
}

// holds creates an object, and waits until the client holds it.
func (a *account) holds(t *testing.T, admin kubernetes.Interface, name string, held lister) {
	t.Helper()
	_, err := admin.CoreV1().ConfigMaps(a.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, name, func() string {
		if names := held(); !slices.Contains(names, name) {
			return fmt.Sprint("the client holds ", names, " and noticed ", a.steps(false))
		}
		return ""
	})
}

// startInformer starts an informer of client-go.
func startInformer(ctx context.Context, t *testing.T, a *account, running *sync.WaitGroup) lister {
	t.Helper()
	client, err := kubernetes.NewForConfig(a.config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(a.ns))
	configMaps := factory.Core().V1().ConfigMaps()
	informer := configMaps.Informer()
	running.Go(func() { informer.RunWithContext(ctx) })
	return func() (names []string) {
		all, _ := configMaps.Lister().List(labels.Everything()) // of the store, without an error
		for _, o := range all {
			names = append(names, o.Name)
		}
		return names
	}
}

// startSharedManager starts a manager of controller-runtime with a controller.
func startSharedManager(ctx context.Context, t *testing.T, a *account, running *sync.WaitGroup) lister {
	t.Helper()
	mgr, err := ctrl.NewManager(a.config, ctrl.Options{
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{a.ns: {}}},
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := &seen{}
	skip := true // the name is of its metrics, of which there are none
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Named(a.ns).
		WithOptions(controllerOptions{SkipNameValidation: &skip}).
		Complete(reconcileFunc(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			var o corev1.ConfigMap
			if err := mgr.GetClient().Get(ctx, r.NamespacedName, &o); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			seen.add(o.Name)
			return ctrl.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	return seen.names
}
