// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// objectNames are the names of the objects that a world makes of each resource. Rules and
// requests also name z, which does not exist.
var objectNames = []string{"a", "b", "c"}

// A world is what the requests of a round are about. All names that are not below its
// namespaces begin with its prefix, so that worlds in one cluster do not affect each other.
type world struct {
	rand   *rand.Rand
	prefix string
	api    kubernetes.Interface

	namespaces []string
	accounts   []account
	users      []string
	groups     []string
	roles      map[string][]string // names of Roles by namespace
	clusters   []string            // names of ClusterRoles
}

// An account names a ServiceAccount.
type account struct{ namespace, name string }

// user returns the name of a ServiceAccount as a user.
func (a account) user() string { return "system:serviceaccount:" + a.namespace + ":" + a.name }

// newWorld draws a world and makes it in the cluster.
func newWorld(ctx context.Context, seed uint64, api kubernetes.Interface) (*world, error) {
	w := &world{rand: rand.New(rand.NewPCG(seed, 0)), prefix: fmt.Sprintf("w%x-", seed), api: api, roles: map[string][]string{}}
	for i := range 4 {
		w.namespaces = append(w.namespaces, fmt.Sprintf("%sns-%d", w.prefix, i))
	}
	for i := range 12 {
		w.accounts = append(w.accounts, account{oneOf(w.rand, w.namespaces...), fmt.Sprintf("sa-%d", i)})
	}
	for i := range 8 {
		w.users = append(w.users, fmt.Sprintf("%suser-%d", w.prefix, i))
	}
	for i := range 4 {
		w.groups = append(w.groups, fmt.Sprintf("%sgroup-%d", w.prefix, i))
	}
	if err := w.makeObjects(ctx); err != nil {
		return nil, err
	}
	if err := w.makeRoles(ctx); err != nil {
		return nil, err
	}
	if err := w.makeBindings(ctx); err != nil {
		return nil, err
	}
	return w, w.awaitRights(ctx)
}

// makeObjects makes the namespaces, the ServiceAccounts and the objects.
func (w *world) makeObjects(ctx context.Context) error {
	var all jobs
	for _, namespace := range w.namespaces {
		all.add(func() error {
			_, err := w.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"app": "a"}}}, metav1.CreateOptions{})
			return err
		})
	}
	if err := all.wait(); err != nil {
		return err
	}
	for _, namespace := range w.namespaces {
		all.add(func() error {
			// Pods need it, and controllers must not change which objects there are later.
			return poll(ctx, "the default objects of "+namespace, func() (bool, error) {
				_, err := w.api.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
				if err == nil {
					_, err = w.api.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
				}
				if apierrors.IsNotFound(err) {
					return false, nil
				}
				return err == nil, err
			})
		})
	}
	if err := all.wait(); err != nil {
		return err
	}
	for _, a := range w.accounts {
		all.add(func() error {
			_, err := w.api.CoreV1().ServiceAccounts(a.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: a.name}}, metav1.CreateOptions{})
			return err
		})
	}
	seen := map[string]bool{}
	for _, r := range resources {
		if !r.made || seen[r.plural] {
			continue
		}
		seen[r.plural] = true
		namespaces := w.namespaces
		if r.cluster {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			for i, name := range objectNames {
				if r.cluster {
					name = w.prefix + name
				}
				object := r.object(namespace, name, map[string]string{"app": objectNames[i%2]})
				all.add(func() error {
					return w.api.CoreV1().RESTClient().Post().AbsPath(r.path(namespace)).SetHeader("Content-Type", "application/json").Body(object).Do(ctx).Error()
				})
			}
		}
	}
	return all.wait()
}

// awaitRights waits until the API server's authorizer knows all Roles and bindings. It
// watches the four resources separately, and each in order: it is enough that it knows the
// last object of each.
func (w *world) awaitRights(ctx context.Context) error {
	for _, name := range w.clusters {
		err := poll(ctx, "the aggregation of "+name, func() (bool, error) {
			role, err := w.api.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
			return err == nil && (role.AggregationRule == nil || len(role.Rules) > 0), err
		})
		if err != nil {
			return err
		}
	}
	probe := w.prefix + "probe"
	namespace := w.namespaces[0]
	rule := func(name string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{widgetGroup}, Resources: []string{name}}}
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: probe}}
	meta := metav1.ObjectMeta{Name: probe}
	rbac := w.api.RbacV1()
	var all jobs
	all.add(func() error {
		_, err := rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rule("namespaced")}, metav1.CreateOptions{})
		return err
	})
	all.add(func() error {
		_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rule("everywhere")}, metav1.CreateOptions{})
		return err
	})
	if err := all.wait(); err != nil {
		return err
	}
	all.add(func() error {
		_, err := rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: probe}}, metav1.CreateOptions{})
		return err
	})
	all.add(func() error {
		_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: probe}}, metav1.CreateOptions{})
		return err
	})
	if err := all.wait(); err != nil {
		return err
	}
	return poll(ctx, "the rights of the probe", func() (bool, error) {
		for _, name := range []string{"namespaced", "everywhere"} {
			review, err := w.api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               probe,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Group: widgetGroup, Resource: name, Namespace: namespace},
			}}, metav1.CreateOptions{})
			if err != nil || !review.Status.Allowed {
				return false, err
			}
		}
		return true, nil
	})
}

// poll calls done until it is.
func poll(ctx context.Context, what string, done func() (bool, error)) error {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("timeout waiting for %s", what)
		}
	}
}

// maxJobs is how many requests run at once.
const maxJobs = 16

// jobs run in parallel.
type jobs struct{ all []func() error }

func (j *jobs) add(job func() error) { j.all = append(j.all, job) }

// wait runs the jobs, and returns the first error.
func (j *jobs) wait() error {
	queue := make(chan func() error)
	var mu sync.Mutex // guards first
	var first error
	var wg sync.WaitGroup
	for range maxJobs {
		wg.Go(func() {
			for job := range queue {
				if err := job(); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, job := range j.all {
		queue <- job
	}
	close(queue)
	wg.Wait()
	j.all = nil
	return first
}

// oidcUser is how the API server names a user of the issuer.
func oidcUser(name string) string { return clustertest.IssuerUserPrefix + name }
