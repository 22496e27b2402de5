// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ensureNamespace makes the namespace and waits for its service account,
// without which no Pod is admitted.
func ensureNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "localcluster"}}}
	for {
		_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		_, err = client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil || !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// deleteNamespaces deletes and waits. Pods go first and without grace, since
// the namespace controller takes its time over thousands of them.
func deleteNamespaces(ctx context.Context, client kubernetes.Interface, names []string, out io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	began, now := time.Now(), int64(0)
	fmt.Fprintf(out, "deleting %s…\n", strings.Join(names, ", "))
	for _, name := range names {
		err := client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		if err == nil {
			err = client.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			fmt.Fprintf(out, "deleting namespace %s: %v; try: localcluster kubectl delete namespace %s\n", name, err, name)
		}
	}
	for _, name := range names {
		for {
			_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				break
			}
			select {
			case <-ctx.Done():
				fmt.Fprintf(out, "namespace %s is still being deleted\n", name)
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	fmt.Fprintf(out, "deleted after %s\n", elapsed(began))
}
