// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// keeper is the name of the gateway's ServiceAccount and its role.
const keeper = "bench-watchkeeper"

// kubeconfig is that of the gateway's ServiceAccount.
func (r *harness) kubeconfig() string { return filepath.Join(r.work, "kubeconfig") }

// employ creates the gateway's ServiceAccount, with the rights of docs/shared-mode.md. The
// API server verifies a client certificate, such as the admin's, for each review, which
// takes longer than a token that it knows.
func (r *harness) employ() error {
	const namespace = "kube-system"
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: keeper}}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	account := &corev1.ServiceAccount{ObjectMeta: meta(keeper)}
	if _, err := r.admin.CoreV1().ServiceAccounts(namespace).Create(r.ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	reads := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
	}
	_, err := r.admin.RbacV1().ClusterRoles().Create(r.ctx, &rbacv1.ClusterRole{ObjectMeta: meta(keeper), Rules: []rbacv1.PolicyRule{
		reads("", "configmaps", "namespaces", "pods", "serviceaccounts"), reads(rbacv1.GroupName, "*"),
		reads("apiextensions.k8s.io", "customresourcedefinitions"),
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for name, role := range map[string]string{keeper: keeper, keeper + "-reviews": "system:auth-delegator"} {
		_, err := r.admin.RbacV1().ClusterRoleBindings().Create(r.ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta(name), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	_, err = r.admin.RbacV1().RoleBindings(namespace).Create(r.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta(keeper), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	life := int64(tokenLife)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life}}
	answer, err := r.admin.CoreV1().ServiceAccounts(namespace).CreateToken(r.ctx, keeper, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(r.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: answer.Status.Token}
	}
	return clientcmd.WriteToFile(*config, r.kubeconfig())
}
