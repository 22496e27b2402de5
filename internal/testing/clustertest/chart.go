// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The chart's namespace, and the name of its ServiceAccount.
const chartName = "watchkeeper"

// rights are the kinds of the chart that say what the gateway may do, and that of its
// namespace.
var rights = map[string]schema.GroupVersionResource{
	"Namespace":          {Version: "v1", Resource: "namespaces"},
	"ServiceAccount":     {Version: "v1", Resource: "serviceaccounts"},
	"Role":               rbacv1.SchemeGroupVersion.WithResource("roles"),
	"RoleBinding":        rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
	"ClusterRole":        rbacv1.SchemeGroupVersion.WithResource("clusterroles"),
	"ClusterRoleBinding": rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
}

// ChartKubeconfig returns the path of a kubeconfig with the token of a ServiceAccount that has
// the rights of the chart's default values and of recording, and may list and watch further
// resources, as with its value extraResources, by API group.
func (c *Cluster) ChartKubeconfig(ctx context.Context, extra map[string][]string) (path string, err error) {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	objects, err := chartRights()
	if err != nil {
		return "", err
	}
	for _, o := range objects {
		if o.GetKind() == "ClusterRole" {
			err = allow(o, extra)
		}
		if err == nil {
			_, err = client.Resource(rights[o.GetKind()]).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	token, err := c.Token(ctx, chartName, chartName, tokenLife)
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthority: c.pki("ca.crt")}
	config.AuthInfos["gateway"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["gateway"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "gateway"}
	config.CurrentContext = "gateway"
	file, err := os.CreateTemp(c.work, "chart-*.kubeconfig")
	if err != nil {
		return "", err
	}
	return file.Name(), errors.Join(file.Close(), clientcmd.WriteToFile(*config, file.Name()))
}

// chartRights returns the namespace, and the objects of the chart's manifest that are about
// rights.
func chartRights() (objects []*unstructured.Unstructured, err error) {
	top, err := root()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(top, "deploy", "manifests", "watchkeeper.yaml"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": chartName},
	}})
	for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if _, ok := rights[o.GetKind()]; ok {
			objects = append(objects, o)
		}
	}
	if len(objects) < len(rights) {
		return nil, fmt.Errorf("the chart's manifest has %d objects of rights", len(objects))
	}
	return objects, nil
}

// allow adds resources to the ClusterRole that lists and watches.
func allow(role *unstructured.Unstructured, extra map[string][]string) error {
	rules, _, err := unstructured.NestedSlice(role.Object, "rules")
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(rules, func(rule any) bool {
		resources, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
		return slices.Contains(resources, "pods")
	}) {
		return nil // another role
	}
	rules = append(rules, map[string]any{ // with recording.enabled
		"apiGroups": []any{""}, "resources": []any{"namespaces"}, "resourceNames": []any{"kube-system"}, "verbs": []any{"get"},
	})
	for group, resources := range extra {
		rule := map[string]any{"apiGroups": []any{group}, "verbs": []any{"list", "watch"}}
		if err := unstructured.SetNestedStringSlice(rule, resources, "resources"); err != nil {
			return err
		}
		rules = append(rules, rule)
	}
	return unstructured.SetNestedSlice(role.Object, rules, "rules")
}
