// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// namespaces is the number of namespaces of the users, who are spread evenly. In all
	// but the last, each user has a RoleBinding; in the last, their group has a
	// ClusterRoleBinding.
	namespaces = 10
	// minUsers is the smallest number of users with which each scenario has one.
	minUsers = 200
	// perFew is how many watches each of few users has, in the place of as many users.
	perFew = 100
	// role is the ClusterRole of all users.
	role = "bench-reader"
	// objects is the number of ConfigMaps in each namespace, besides the one that the
	// cluster makes.
	objects = 9
	// tokenLife is longer than a run: expiry has checks of its own.
	tokenLife = 4 * 3600
	// maxInFlight bounds the concurrent writes.
	maxInFlight = 8
)

// A person is a ServiceAccount with a token.
type person struct{ namespace, name, token string }

// username is the API server's name of the user.
func (p *person) username() string { return "system:serviceaccount:" + p.namespace + ":" + p.name }

func (p *person) header() map[string]string {
	return map[string]string{"Authorization": "Bearer " + p.token}
}

// path is that of the ConfigMaps that the user may read.
func (p *person) path() string { return "/api/v1/namespaces/" + p.namespace + "/configmaps" }

func namespaceName(i int) string { return fmt.Sprintf("shared-%d", i) }

// group is the one with a ClusterRoleBinding, and members its users.
func group() string { return "system:serviceaccounts:" + namespaceName(namespaces-1) }

func (r *harness) members() []*person {
	return r.people[len(r.people)/namespaces*(namespaces-1):]
}

// each calls do for 0 to n-1, some at the same time.
func (r *harness) each(n int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(r.ctx)
	g.SetLimit(maxInFlight)
	for i := range n {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return do(ctx, i)
		})
	}
	return g.Wait()
}

// populate creates the users, what they may do, and what they read.
func (r *harness) populate() ([]*person, error) {
	r.Say("creating users…")
	_, err := r.admin.RbacV1().ClusterRoles().Create(r.ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	for i := range namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}}
		if _, err := r.admin.CoreV1().Namespaces().Create(r.ctx, ns, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		for j := range objects {
			if _, err := r.admin.CoreV1().ConfigMaps(ns.Name).Create(r.ctx, configMap(ns.Name, j, "0"), metav1.CreateOptions{}); err != nil {
				return nil, err
			}
		}
	}
	if err := r.bindGroup(); err != nil {
		return nil, err
	}
	people := make([]*person, r.sizes.users/namespaces*namespaces)
	err = r.each(len(people), func(ctx context.Context, i int) error {
		p := &person{namespace: namespaceName(i * namespaces / len(people)), name: fmt.Sprintf("user-%d", i)}
		member := p.namespace == namespaceName(namespaces-1)
		if i > 0 && !member && !r.audits {
			return nil
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name}}
		if _, err := r.admin.CoreV1().ServiceAccounts(p.namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
			return err
		}
		life := int64(tokenLife)
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life}}
		answer, err := r.admin.CoreV1().ServiceAccounts(p.namespace).CreateToken(ctx, p.name, request, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		p.token = answer.Status.Token
		people[i] = p
		if member {
			return nil
		}
		_, err = r.admin.RbacV1().RoleBindings(p.namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.namespace, Name: p.name}},
		}, metav1.CreateOptions{})
		return err
	})
	return people, err
}

// bindGroup lets the group read the ConfigMaps of all namespaces.
func (r *harness) bindGroup() error {
	_, err := r.admin.RbacV1().ClusterRoleBindings().Create(r.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group()}},
	}, metav1.CreateOptions{})
	return err
}

// payload is the size of a ConfigMap's data. Its event is 4.2 KB of JSON.
const payload = 3650

var filler = strings.Repeat("service.timeout=500ms; ", payload/23)

func configMap(namespace string, i int, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("config-%d", i), Labels: map[string]string{"app": "shared"}},
		Data:       map[string]string{"value": value, "settings": filler},
	}
}

// update changes a ConfigMap at the API server.
func (r *harness) update(namespace string, i int) error {
	r.serial++
	_, err := r.admin.CoreV1().ConfigMaps(namespace).Update(r.ctx, configMap(namespace, i, fmt.Sprint(r.serial)), metav1.UpdateOptions{})
	return err
}
