// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// makeRoles makes Roles in the namespaces, and ClusterRoles: ordinary ones, aggregated
// ones, and some with the rights to read the past and to impersonate.
func (w *world) makeRoles(ctx context.Context) error {
	var all jobs
	for _, namespace := range w.namespaces {
		for i := range 4 {
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("role-%d", i), Namespace: namespace}, Rules: w.rules(3)}
			w.roles[namespace] = append(w.roles[namespace], role.Name)
			all.add(func() error {
				_, err := w.api.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{})
				return err
			})
		}
	}
	cluster := func(name string, labels map[string]string, aggregated string, rules []rbacv1.PolicyRule) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.prefix + name, Labels: labels}, Rules: rules}
		if aggregated != "" {
			role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{w.prefix + "to": aggregated}}}}
		}
		w.clusters = append(w.clusters, role.Name)
		all.add(func() error {
			_, err := w.api.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
			return err
		})
	}
	for i := range 8 {
		labels := map[string]string{}
		if i%2 == 0 {
			labels[w.prefix+"to"] = oneOf(w.rand, "x", "y")
		}
		if i < 2 { // each aggregate has at least one part
			labels[w.prefix+"to"] = []string{"x", "y"}[i]
		}
		rules := w.rules(3)
		if i%2 == 1 {
			rules = append(rules, w.pathRule())
		}
		cluster(fmt.Sprintf("role-%d", i), labels, "", rules)
	}
	cluster("all-x", nil, "x", nil)
	cluster("all-y", nil, "y", nil)
	for i := range 2 {
		cluster(fmt.Sprintf("impersonator-%d", i), nil, "", w.impersonation())
	}
	return all.wait()
}

// rules draws up to so many rules.
func (w *world) rules(count int) []rbacv1.PolicyRule {
	r := w.rand
	rules := make([]rbacv1.PolicyRule, 1+r.IntN(count))
	for i := range rules {
		var rule rbacv1.PolicyRule
		switch {
		case chance(r, 10):
			rule.Verbs = []string{"*"}
		case chance(r, 35):
			rule.Verbs = []string{"get", "list", "watch"}
		case chance(r, 35):
			rule.Verbs = []string{"create", "update", "patch", "delete", "deletecollection"}
		default:
			rule.Verbs = some(r, 5, []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})
		}
		for _, of := range some(r, 6, resources) {
			rule.APIGroups = append(rule.APIGroups, of.group)
			rule.Resources = append(rule.Resources, of.plural)
			if len(of.subs) > 0 && chance(r, 50) {
				rule.Resources = append(rule.Resources, of.plural+"/"+oneOf(r, of.subs...))
			}
		}
		if chance(r, 5) {
			rule.APIGroups = []string{"*"}
		}
		if chance(r, 5) {
			rule.Resources = []string{oneOf(r, "*", "*/status", "*/*")}
		}
		if chance(r, 35) {
			rule.ResourceNames = some(r, 2, append(slices.Clone(objectNames), "z", "node-0", w.prefix+"a", w.namespaces[0]))
		}
		rules[i] = rule
	}
	return rules
}

// pathRule draws a rule for paths, which often allows the past.
func (w *world) pathRule() rbacv1.PolicyRule {
	paths := some(w.rand, 2, []string{"/at/*", "/metrics", "/livez", "/logs", "/watchkeeper/*", "*", "/a*"})
	for _, path := range []string{"/at", historyPath} {
		if chance(w.rand, 70) {
			paths = append(paths, path)
		}
	}
	return rbacv1.PolicyRule{Verbs: []string{oneOf(w.rand, "get", "get", "*", "post")}, NonResourceURLs: paths}
}

// impersonation draws rights to impersonate. Some are constrained (KEP-5284).
func (w *world) impersonation() []rbacv1.PolicyRule {
	r := w.rand
	names := slices.Concat(w.users[:4], w.groups[:2])
	var accounts []string
	for _, a := range w.accounts[:6] {
		accounts = append(accounts, a.name)
	}
	rules := []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users", "groups"}, ResourceNames: names},
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: accounts},
	}
	if chance(r, 50) {
		rules[0].ResourceNames = nil
	}
	if chance(r, 50) {
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"impersonate"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"userextras/scopes", "uids"}})
	}
	if chance(r, 50) {
		rules = append(rules,
			rbacv1.PolicyRule{Verbs: []string{"impersonate:user-info"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"users", "groups"}},
			rbacv1.PolicyRule{Verbs: []string{"impersonate-on:user-info:list", "impersonate-on:user-info:get"}, APIGroups: []string{""}, Resources: []string{"pods", "configmaps"}})
	}
	return rules
}

// makeBindings binds the Roles to subjects.
func (w *world) makeBindings(ctx context.Context) error {
	r := w.rand
	var all jobs
	for i := range 80 {
		namespace := oneOf(r, w.namespaces...)
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: oneOf(r, w.roles[namespace]...)}
		if chance(r, 40) {
			ref.Kind, ref.Name = "ClusterRole", oneOf(r, w.clusters...)
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("binding-%d", i)}, Subjects: w.subjects(4), RoleRef: ref}
		all.add(func() error {
			_, err := w.api.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
			return err
		})
	}
	for i := range 36 {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.clusters[i%len(w.clusters)]}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%sbinding-%d", w.prefix, i)}, Subjects: w.subjects(3), RoleRef: ref}
		all.add(func() error {
			_, err := w.api.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
			return err
		})
	}
	return all.wait()
}

// subjects draws up to so many subjects. Some users are named like a ServiceAccount.
func (w *world) subjects(count int) []rbacv1.Subject {
	r := w.rand
	subjects := make([]rbacv1.Subject, 1+r.IntN(count))
	for i := range subjects {
		a := oneOf(r, w.accounts...)
		subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind}
		switch n := r.IntN(100); {
		case n < 20:
			subject.Name = oneOf(r, w.users...)
		case n < 40:
			subject.Name = oidcUser(oneOf(r, w.users...))
		case n < 65:
			subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: a.name}
		case n < 70:
			subject.Name = a.user()
		default:
			subject.Kind = rbacv1.GroupKind
			subject.Name = oneOf(r, append(slices.Clone(w.groups), "system:serviceaccounts:"+a.namespace)...)
		}
		subjects[i] = subject
	}
	return subjects
}
