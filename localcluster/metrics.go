// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// metricsWindow is the window of metrics-server's samples at its default resolution.
const metricsWindow = 15 * time.Second

func metricsCommand(dir *string) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "metrics --usage FILE",
		Short: "Serve metrics.k8s.io until Ctrl-C, with the CPU and memory that a file says",
		Long: `Serve metrics.k8s.io until Ctrl-C, with the CPU and memory that a file says.

kubectl top and HorizontalPodAutoscalers read it, as they read metrics-server. Each line
of the file, which is read at each request, is

  NAMESPACE POD-PREFIX CPU MEMORY

such as "shop checkout- 250m 180Mi". The first line that fits a Pod counts. "1500m/n" is
shared by the running Pods of the line. A Pod without a line uses 1m and 16Mi.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return clusterAt(*dir).serveMetrics(command.Context(), file, command.OutOrStdout())
		},
	}
	command.Flags().StringVar(&file, "usage", "", "file with the usage of the Pods")
	_ = command.MarkFlagRequired("usage")
	return command
}

// serveMetrics serves the API on loopback and registers it with the API server, until ctx
// ends. Only the API server may connect: a client needs the front proxy's certificate.
func (c cluster) serveMetrics(ctx context.Context, file string, out io.Writer) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if _, err := readUsage(file); err != nil {
		return err
	}
	config, err := c.tlsConfig("front-proxy-ca", "server")
	if err != nil {
		return err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.NextProtos = []string{"h2", "http/1.1"}
	listener, err := net.Listen("tcp", loopback(0))
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, TLSConfig: config, Handler: metricsHandler(client, file)}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	defer func() {
		server.Close()
		<-served
	}()
	unregister, err := c.registerMetrics(ctx, listener.Addr().(*net.TCPAddr).Port)
	if err != nil {
		return err
	}
	defer unregister()
	fmt.Fprintln(out, "serving metrics.k8s.io")
	<-ctx.Done()
	return nil
}

// registerMetrics creates the APIService. Its Service is a name for loopback, because
// endpoints may not be loopback addresses. Without the APIService's end, the deletion of
// every namespace would wait for an API that nobody serves.
func (c cluster) registerMetrics(ctx context.Context, port int) (unregister func(), err error) {
	client, err := c.dynamicClient()
	if err != nil {
		return nil, err
	}
	services := client.Resource(corev1.SchemeGroupVersion.WithResource("services")).Namespace(metav1.NamespaceSystem)
	apis := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	options := metav1.ApplyOptions{FieldManager: "localcluster", Force: true}
	_, err = services.Apply(ctx, "metrics-server", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "metrics-server", "namespace": metav1.NamespaceSystem},
		"spec": map[string]any{
			"type": "ExternalName", "externalName": "localhost",
			"ports": []any{map[string]any{"port": int64(port)}},
		},
	}}, options)
	if err != nil {
		return nil, err
	}
	const name = "v1beta1.metrics.k8s.io"
	_, err = apis.Apply(ctx, name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": metricsv1beta1.GroupName, "version": "v1beta1",
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			// The certificate is not for the Service's name; it is loopback.
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"name": "metrics-server", "namespace": metav1.NamespaceSystem, "port": int64(port)},
		},
	}}, options)
	if err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		// Errors are ignored: the cluster may have ended before.
		_ = apis.Delete(ctx, name, metav1.DeleteOptions{})
		_ = services.Delete(ctx, "metrics-server", metav1.DeleteOptions{})
	}, nil
}

func metricsHandler(client kubernetes.Interface, file string) http.Handler {
	mux := http.NewServeMux()
	const base = "/apis/metrics.k8s.io/v1beta1"
	version := metav1.GroupVersionForDiscovery{GroupVersion: metricsv1beta1.SchemeGroupVersion.String(), Version: "v1beta1"}
	answer := func(w http.ResponseWriter, value any, err error) {
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			var status apierrors.APIStatus
			if !errors.As(err, &status) {
				status = apierrors.NewInternalError(err)
			}
			s := status.Status()
			s.APIVersion, s.Kind = "v1", "Status"
			w.WriteHeader(int(s.Code))
			value = s
		}
		_ = json.NewEncoder(w).Encode(value) // the client may be gone
	}
	mux.HandleFunc("GET /apis/metrics.k8s.io", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIGroup{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: metricsv1beta1.GroupName,
			Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		}, nil)
	})
	mux.HandleFunc("GET "+base, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version.GroupVersion,
			APIResources: []metav1.APIResource{
				{Name: "nodes", SingularName: "node", Kind: "NodeMetrics", Verbs: metav1.Verbs{"get", "list"}},
				{Name: "pods", SingularName: "pod", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}},
			},
		}, nil)
	})
	pods := func(w http.ResponseWriter, r *http.Request) {
		list, err := podMetrics(r.Context(), client, file, r.PathValue("namespace"), r.FormValue("labelSelector"))
		answer(w, list, err)
	}
	mux.HandleFunc("GET "+base+"/pods", pods)
	mux.HandleFunc("GET "+base+"/namespaces/{namespace}/pods", pods)
	mux.HandleFunc("GET "+base+"/namespaces/{namespace}/pods/{name}", func(w http.ResponseWriter, r *http.Request) {
		list, err := podMetrics(r.Context(), client, file, r.PathValue("namespace"), "")
		answer(w, named(list, r.PathValue("name")), missing(list, r.PathValue("name"), err))
	})
	mux.HandleFunc("GET "+base+"/nodes", func(w http.ResponseWriter, r *http.Request) {
		list, err := nodeMetrics(r.Context(), client, file)
		answer(w, list, err)
	})
	return mux
}

// named returns the metrics of the Pod with the name, missing an error without them.
func named(list *metricsv1beta1.PodMetricsList, name string) *metricsv1beta1.PodMetrics {
	if list != nil {
		for i := range list.Items {
			if list.Items[i].Name == name {
				return &list.Items[i]
			}
		}
	}
	return nil
}

func missing(list *metricsv1beta1.PodMetricsList, name string, err error) error {
	if err == nil && named(list, name) == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: metricsv1beta1.GroupName, Resource: "pods"}, name)
	}
	return err
}
