// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// config returns the administrator's configuration, without client-side rate limits.
func (c cluster) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("no usable cluster in %s (%w); start it with: localcluster up --dir %s", c.dir, err, c.dir)
	}
	config.QPS = -1
	config.UserAgent = "localcluster"
	return config, nil
}

// client returns the administrator's client.
func (c cluster) client() (kubernetes.Interface, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	// Protobuf takes much less CPU than JSON in client and server.
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return kubernetes.NewForConfig(config)
}

// dynamicClient is client for resources without a Go type here.
func (c cluster) dynamicClient() (dynamic.Interface, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

const nodePrefix = "node-"

// makeNodes creates or deletes Node objects until there are n. kwok simulates their
// kubelets.
func (c cluster) makeNodes(ctx context.Context, n int) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	nodes := client.CoreV1().Nodes()
	for i := range n {
		if _, err := nodes.Create(ctx, node(i), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %d: %w", i, err)
		}
	}
	existing, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: managedByUs})
	if err != nil {
		return err
	}
	for _, node := range existing.Items {
		i, err := strconv.Atoi(strings.TrimPrefix(node.Name, nodePrefix))
		if err != nil || i < n {
			continue
		}
		if err := nodes.Delete(ctx, node.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// managedByUs selects the objects that localcluster created.
const managedByUs = "app.kubernetes.io/managed-by=localcluster"

// node resembles a mid-size cloud machine, except that it takes 10,000 Pods.
func node(i int) *corev1.Node {
	name := nodePrefix + strconv.Itoa(i)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("128Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("500Gi"),
		corev1.ResourcePods:             resource.MustParse("10k"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"app.kubernetes.io/managed-by":     "localcluster",
				"kubernetes.io/arch":               "amd64",
				"kubernetes.io/hostname":           name,
				"kubernetes.io/os":                 "linux",
				"node.kubernetes.io/instance-type": "simulated.8xlarge",
				"topology.kubernetes.io/region":    "local",
				"topology.kubernetes.io/zone":      "local-" + string(rune('a'+i%3)),
			},
		},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				// The API server reaches the kubelet here: kwok's server.
				{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
				{Type: corev1.NodeHostName, Address: name},
			},
			Capacity:    resources,
			Allocatable: resources,
		},
	}
}

// awaitUsable waits until Pods can be created and scheduled: all nodes are Ready and
// the default service account exists.
func (c cluster) awaitUsable(ctx context.Context, nodes int) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	for {
		ready, err := readyNodes(ctx, client)
		if err == nil && ready >= nodes {
			_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
			if err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// releaseNodes deletes the nodes' leases. A kwok process that was killed holds them for
// another 40 seconds, and until then a new one does not change the nodes' Pods.
func (c cluster) releaseNodes(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err = client.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("releasing the nodes for a new kwok: %w; start kube-apiserver first", err)
	}
	return nil
}

func readyNodes(ctx context.Context, client kubernetes.Interface) (int, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: managedByUs})
	if err != nil {
		return 0, err
	}
	ready := 0
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready, nil
}

// ensureNamespace creates the namespace and waits for its default service account,
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

// deleteNamespaces deletes namespaces and waits until they are gone. It deletes their
// Pods itself and without grace, since the namespace controller takes long for
// thousands of Pods.
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
