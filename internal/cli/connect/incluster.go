// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/util"
	"k8s.io/kubectl/pkg/util/podutils"
)

const (
	// ServiceVariable is the environment variable with the Service of the gateway in the
	// cluster, as NAMESPACE/NAME.
	ServiceVariable = "WATCHKEEPER_SERVICE"
	// serviceNamespace is where a gateway is looked for. Whoever may write there gets the
	// credentials of those who use it, so other namespaces have to be named.
	serviceNamespace = "watchkeeper"
	// serviceLabels are those of the Service in the chart.
	serviceLabels = "app.kubernetes.io/name=watchkeeper,app.kubernetes.io/component=gateway"
)

// UseService makes the gateway in the cluster of the context the one in use, and returns its
// URL, which leads through a port-forward until ctx ends; "" if there is none. The gateway is
// the Service that [ServiceVariable] names, or that of the chart in the namespace watchkeeper.
// The CA of its certificate is in the ConfigMap of the same name.
func (f *Flags) UseService(ctx context.Context) (server string, err error) {
	if !f.configured() {
		return "", nil
	}
	config, err := f.ToRESTConfig()
	if err != nil {
		return "", nil // kubectl reports it
	}
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return "", err
	}
	service, err := findService(ctx, client)
	if service == nil || err != nil {
		return "", err
	}
	server, verify, err := openService(ctx, config, client, service)
	if err != nil {
		return "", fmt.Errorf("the gateway %s/%s in the cluster: %w: use --server for another one", service.Namespace, service.Name, err)
	}
	f.Use(server)
	f.verify = &verify
	return server, nil
}

// findService returns the Service of the gateway; nil if there is none, or if it is not known.
func findService(ctx context.Context, client corev1client.CoreV1Interface) (*corev1.Service, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if named := os.Getenv(ServiceVariable); named != "" {
		namespace, name, ok := strings.Cut(named, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%s %q is not NAMESPACE/NAME of a Service", ServiceVariable, named)
		}
		service, err := client.Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ServiceVariable, err)
		}
		return service, nil
	}
	options := metav1.ListOptions{LabelSelector: serviceLabels}
	found, err := client.Services(serviceNamespace).List(ctx, options)
	if err == nil && len(found.Items) == 1 {
		return &found.Items[0], nil
	}
	if err == nil && len(found.Items) == 0 {
		found, err = client.Services(metav1.NamespaceAll).List(ctx, options)
	}
	if err != nil || len(found.Items) == 0 {
		return nil, nil //nolint:nilerr // who may not look finds none
	}
	var names []string
	for _, s := range found.Items {
		names = append(names, s.Namespace+"/"+s.Name)
	}
	return nil, fmt.Errorf("no gateway on this machine; in the cluster there is the Service %s: if you trust those who may write in its namespace with your credentials, set %s=%s",
		strings.Join(names, ", and "), ServiceVariable, names[0])
}

// openService leads a port of this machine to a Pod of the gateway, and returns the URL, and
// how its certificate is verified.
func openService(ctx context.Context, config *rest.Config, client corev1client.CoreV1Interface, service *corev1.Service) (server string, verify rest.TLSClientConfig, err error) {
	looking, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if verify, err = verification(looking, client, service); err != nil {
		return "", verify, err
	}
	f := &forwarding{config: config, client: client, namespace: service.Namespace, find: func(ctx context.Context) (pod string, port int32, err error) {
		return endpoint(ctx, client, service)
	}}
	address, err := f.start(ctx)
	return "https://" + address, verify, err
}

// verification returns how the certificate of a gateway is verified: by the CA and the name
// that the chart's ConfigMap has, otherwise by the CAs of the system and the Service's name.
func verification(ctx context.Context, client corev1client.CoreV1Interface, service *corev1.Service) (verify rest.TLSClientConfig, err error) {
	verify.ServerName = service.Name + "." + service.Namespace + ".svc"
	published, err := client.ConfigMaps(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return verify, nil
	}
	if err != nil {
		return verify, fmt.Errorf("the CA of its certificate: %w", err)
	}
	verify.CAData = []byte(published.Data["ca.crt"])
	if raw, err := clientcmd.Load([]byte(published.Data["kubeconfig"])); err == nil {
		for _, cluster := range raw.Clusters {
			if u, err := url.Parse(cluster.Server); err == nil && u.Hostname() != "" {
				verify.ServerName = u.Hostname()
			}
			if cluster.TLSServerName != "" {
				verify.ServerName = cluster.TLSServerName
			}
			if cluster.CertificateAuthority != "" && len(verify.CAData) == 0 {
				return verify, fmt.Errorf("the ConfigMap %s has no ca.crt yet: its Pods add it when they serve", service.Name)
			}
		}
	}
	return verify, nil
}

// endpoint returns a Pod of a Service that is ready, and the port of its container.
func endpoint(ctx context.Context, client corev1client.CoreV1Interface, service *corev1.Service) (pod string, port int32, err error) {
	if len(service.Spec.Selector) == 0 || len(service.Spec.Ports) == 0 {
		return "", 0, errors.New("the Service has no selector, or no port")
	}
	selector := metav1.FormatLabelSelector(metav1.SetAsLabelSelector(service.Spec.Selector))
	pods, err := client.Pods(service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return "", 0, err
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil || !podutils.IsPodReady(&p) {
			continue
		}
		port, err := util.LookupContainerPortNumberByServicePort(*service, p, service.Spec.Ports[0].Port)
		return p.Name, port, err
	}
	return "", 0, fmt.Errorf("none of its %d Pods is ready", len(pods.Items))
}
