// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A revocation is one way to lose rights or credentials.
type revocation struct {
	name   string
	users  userKind
	role   string // kind of the role to which the group's RoleBinding refers
	whom   string // kind of the binding's subjects
	loses  int    // how many of the users are concerned
	code   int    // what they get then
	revoke func(*testing.T, *group)
}

type userKind int

const (
	withToken userKind = iota // a ServiceAccount
	boundToPod
	ofIssuer // with a token that expires
	withCertificate
)

// tokenLifetime is that of the issuer's tokens. The streams are open by then.
const tokenLifetime = 25 * time.Second

var revocations = []revocation{
	{"RoleBinding deleted", withToken, "Role", "ServiceAccount", 10, 403, func(t *testing.T, g *group) {
		must(t, api.RbacV1().RoleBindings(g.ns).Delete(t.Context(), "read", metav1.DeleteOptions{}))
	}},
	{"subjects removed from RoleBinding", withToken, "Role", "ServiceAccount", 5, 403, func(t *testing.T, g *group) {
		b, err := api.RbacV1().RoleBindings(g.ns).Get(t.Context(), "read", metav1.GetOptions{})
		must(t, err)
		b.Subjects = b.Subjects[5:]
		_, err = api.RbacV1().RoleBindings(g.ns).Update(t.Context(), b, metav1.UpdateOptions{})
		must(t, err)
	}},
	{"Role deleted", withToken, "Role", "Group", 10, 403, func(t *testing.T, g *group) {
		must(t, api.RbacV1().Roles(g.ns).Delete(t.Context(), "read", metav1.DeleteOptions{}))
	}},
	{"rules of Role changed", withToken, "Role", "ServiceAccount", 10, 403, func(t *testing.T, g *group) {
		r, err := api.RbacV1().Roles(g.ns).Get(t.Context(), "read", metav1.GetOptions{})
		must(t, err)
		r.Rules[0].Resources = []string{"pods"}
		_, err = api.RbacV1().Roles(g.ns).Update(t.Context(), r, metav1.UpdateOptions{})
		must(t, err)
	}},
	{"ClusterRole deleted", withToken, "ClusterRole", "ServiceAccount", 10, 403, func(t *testing.T, g *group) {
		must(t, api.RbacV1().ClusterRoles().Delete(t.Context(), g.ns, metav1.DeleteOptions{}))
	}},
	{"RoleBinding of certificates deleted", withCertificate, "Role", "User", 10, 403, func(t *testing.T, g *group) {
		must(t, api.RbacV1().RoleBindings(g.ns).Delete(t.Context(), "read", metav1.DeleteOptions{}))
	}},
	{"ServiceAccount deleted", withToken, "Role", "ServiceAccount", 10, 401, func(t *testing.T, g *group) {
		inParallel(len(g.users), func(i int) {
			if err := api.CoreV1().ServiceAccounts(g.ns).Delete(t.Context(), fmt.Sprint("u", i), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}},
	{"Pod of token deleted", boundToPod, "Role", "ServiceAccount", 10, 401, func(t *testing.T, g *group) {
		now := int64(0)
		inParallel(len(g.users), func(i int) {
			if err := api.CoreV1().Pods(g.ns).Delete(t.Context(), fmt.Sprint("u", i), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				t.Error(err)
			}
		})
	}},
	{"token expired", ofIssuer, "Role", "User", 10, 401, nil},
	{"nothing", withToken, "Role", "ServiceAccount", 0, 0, nil},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// streamsConcerned returns the number of the group's streams whose rights end.
func (g *group) streamsConcerned() (n int) {
	for i, streams := range g.streams {
		for _, s := range streams {
			if g.lost(i) && (s.kind != elsewhere || g.code == http.StatusUnauthorized) {
				n++
			}
		}
	}
	return n
}

func countStreams(groups []*group, of func(*stream) bool) (n int) {
	for _, g := range groups {
		for _, streams := range g.streams {
			for _, s := range streams {
				if of == nil || of(s) {
					n++
				}
			}
		}
	}
	return n
}

func namespacesOf(groups []*group) []string {
	all := []string{everybody}
	for _, g := range groups {
		all = append(all, g.ns)
	}
	return all
}

// setUpGroups makes the namespaces, users and rights of all groups.
func setUpGroups(t *testing.T) []*group {
	t.Helper()
	var groups []*group
	for i, r := range revocations {
		groups = append(groups, &group{revocation: r, ns: fmt.Sprint("rev-", i)})
	}
	for _, ns := range namespacesOf(groups) {
		_, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		must(t, err)
		must(t, change(t.Context(), ns, 0))
	}
	grant(t, everybody, "Role", []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}})
	inParallel(len(groups), func(i int) {
		g := groups[i]
		var subjects []rbacv1.Subject
		for j := range usersOfGroup {
			name, subject, err := g.makeUser(t, j)
			if err != nil {
				t.Error(err)
				return
			}
			subjects = append(subjects, subject)
			g.users = append(g.users, name)
		}
		if g.whom == "Group" {
			subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:" + g.ns}}
		}
		grant(t, g.ns, g.role, subjects)
	})
	if t.Failed() {
		t.FailNow()
	}
	return groups
}

// makeUser makes a user and returns its name and token, and the user as a subject.
func (g *group) makeUser(t *testing.T, i int) (*sharedUser, rbacv1.Subject, error) {
	ctx, name := t.Context(), fmt.Sprint("u", i)
	switch g.revocation.users {
	case ofIssuer:
		u := &sharedUser{name: clustertest.IssuerUserPrefix + g.ns + "-" + name}
		return u, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: u.name}, nil
	case withCertificate:
		u := &sharedUser{name: g.ns + "-" + name}
		return u, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: u.name}, nil
	}
	u := &sharedUser{name: "system:serviceaccount:" + g.ns + ":" + name}
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: g.ns, Name: name}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := api.CoreV1().ServiceAccounts(g.ns).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return nil, subject, err
	}
	request := &authenticationv1.TokenRequest{}
	if g.revocation.users == boundToPod {
		pod, err := api.CoreV1().Pods(g.ns).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			ServiceAccountName: name, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}, metav1.CreateOptions{})
		if err != nil {
			return nil, subject, err
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: name, UID: pod.UID}
	}
	answer, err := api.CoreV1().ServiceAccounts(g.ns).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, subject, err
	}
	u.token = answer.Status.Token
	return u, subject, nil
}

// grant lets subjects read ConfigMaps in a namespace.
func grant(t *testing.T, ns, role string, subjects []rbacv1.Subject) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}}
	name, err := "read", error(nil)
	if role == "Role" {
		_, err = api.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	} else {
		name = ns
		_, err = api.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = api.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "read"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role, Name: name},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Error(err)
	}
}

func deleteGroups(groups []*group) {
	for _, ns := range namespacesOf(groups) {
		_ = api.CoreV1().Namespaces().Delete(context.Background(), ns, metav1.DeleteOptions{}) // the cluster is deleted afterwards anyway
	}
}

// change creates or changes an object in a namespace.
func change(ctx context.Context, ns string, n int) error {
	o := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "tick", Labels: map[string]string{"n": fmt.Sprint(n)}},
		Data:       map[string]string{"n": fmt.Sprint(n), "text": strings.Repeat("x", 200)},
	}
	var err error
	if n == 0 {
		_, err = api.CoreV1().ConfigMaps(ns).Create(ctx, o, metav1.CreateOptions{})
	} else {
		_, err = api.CoreV1().ConfigMaps(ns).Update(ctx, o, metav1.UpdateOptions{})
	}
	return err
}

// changing changes an object in every namespace all the time, so that streams end between
// events, until stop is called.
func changing(t *testing.T, groups []*group) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			for _, ns := range namespacesOf(groups) {
				if err := change(ctx, ns, n); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
	})
	return sync.OnceFunc(func() { cancel(); done.Wait() })
}

// openStreams opens all streams of all users.
func openStreams(ctx context.Context, t *testing.T, gw *clustertest.SharedGateway, groups []*group) {
	t.Helper()
	// The first request makes the gateway watch ConfigMaps.
	some := groups[len(groups)-1].users[0]
	some = newSharedUser(t, gw, some.name, some.token)
	eventually(t, "a list from the cache", func() bool {
		a, err := some.get(ctx, gw.URL+configMapsIn(everybody)+"?resourceVersion=0")
		return err == nil && a.code == http.StatusOK
	})
	for _, g := range groups {
		for i, u := range g.users {
			if g.revocation.users == ofIssuer {
				var err error
				u.token, err = issuer.Token(strings.TrimPrefix(u.name, clustertest.IssuerUserPrefix), tokenLifetime)
				must(t, err)
			}
			g.users[i] = newSharedUser(t, gw, u.name, u.token)
		}
	}
	inParallel(len(groups)*usersOfGroup, func(n int) {
		g, i := groups[n/usersOfGroup], n%usersOfGroup
		var streams []*stream
		for j, f := range forms {
			if u := g.users[i]; j == len(forms)-1 && i == 0 && u.token != "" {
				f.name, f.kind = "WebSocket", socket
			}
			s, err := g.users[i].open(ctx, t, gw.URL, g.ns, f)
			if err != nil {
				t.Error(err)
				return
			}
			streams = append(streams, s)
		}
		g.add(i, streams)
	})
	if t.Failed() {
		t.FailNow()
	}
}

var groupsMu sync.Mutex // guards the streams of groups while they are opened

func (g *group) add(user int, streams []*stream) {
	groupsMu.Lock()
	defer groupsMu.Unlock()
	if g.streams == nil {
		g.streams = make([][]*stream, usersOfGroup)
	}
	g.streams[user] = slices.Clip(streams)
}

// fromCache checks that the gateway has passed no watch through: it could not end it.
func fromCache(t *testing.T, gw *clustertest.SharedGateway) {
	t.Helper()
	_, text := get(t, http.DefaultClient, gw.Admin+"/metrics")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "watchkeeper_requests") && strings.Contains(line, `verb="watch"`) && !strings.Contains(line, `source="cache"`) {
			t.Errorf("a watch is not from the cache: %s", line)
		}
	}
}
