// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func init() { log.SetLogger(logr.Discard()) }

// exported are the resources that kube-state-metrics lists and watches by default.
var exported = resources(`admissionregistration.k8s.io/v1 mutatingwebhookconfigurations validatingwebhookconfigurations
apps/v1 daemonsets deployments replicasets statefulsets
autoscaling/v2 horizontalpodautoscalers
batch/v1 cronjobs jobs
certificates.k8s.io/v1 certificatesigningrequests
coordination.k8s.io/v1 leases
discovery.k8s.io/v1 endpointslices
networking.k8s.io/v1 ingresses networkpolicies
policy/v1 poddisruptionbudgets
storage.k8s.io/v1 storageclasses volumeattachments
v1 configmaps endpoints limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods replicationcontrollers resourcequotas secrets services`)

// resources reads lines of a group and version, and its resources.
func resources(text string) (all []schema.GroupVersionResource) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		gv, err := schema.ParseGroupVersion(words[0])
		if err != nil {
			panic(err)
		}
		for _, resource := range words[1:] {
			all = append(all, gv.WithResource(resource))
		}
	}
	return all
}

// known returns the sorted names of the objects that are in a namespace, or in none.
func known(objects []runtime.Object, namespace string) (names []string, err error) {
	for _, o := range objects {
		m, err := meta.Accessor(o)
		if err != nil {
			return nil, err
		}
		if m.GetNamespace() == namespace || m.GetNamespace() == "" {
			names = append(names, m.GetName())
		}
	}
	slices.Sort(names)
	return names, nil
}

// followed checks that a client with this configuration is served as controllers need it:
// informers of client-go for all that kube-state-metrics exports, and a cache of
// controller-runtime, come to have what the API server has in a namespace, and in none.
func followed(t *testing.T, config *rest.Config, namespace string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	own := rest.CopyConfig(cluster.Config)
	config.WarningHandler, own.WarningHandler = rest.NoWarnings{}, rest.NoWarnings{} // of Endpoints
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := dynamic.NewForConfig(own)
	if err != nil {
		t.Fatal(err)
	}
	controllers, err := cache.New(config, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ended errgroup.Group
	ended.Go(func() error { return controllers.Start(ctx) })
	factory := informers.NewSharedInformerFactory(clientset, 0)
	defer func() {
		cancel()
		factory.Shutdown()
		if err := ended.Wait(); err != nil {
			t.Error(err)
		}
	}()
	for _, resource := range exported {
		informer, err := factory.ForResource(resource)
		if err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
		kind := &unstructured.UnstructuredList{}
		eventually(t, resource.Resource, func(ctx context.Context) error {
			list, err := direct.Resource(resource).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			kind.SetGroupVersionKind(list.GroupVersionKind())
			objects, err := meta.ExtractList(list)
			if err != nil {
				return err
			}
			want, err := known(objects, namespace)
			if err != nil {
				return err
			}
			objects, err = informer.Lister().List(labels.Everything())
			if err != nil {
				return err
			}
			got, err := known(objects, namespace)
			if err != nil || !informer.Informer().HasSynced() || !slices.Equal(got, want) {
				return fmt.Errorf("client-go has %q, synced %t, want %q (%v)", got, informer.Informer().HasSynced(), want, err)
			}
			if err := controllers.List(ctx, kind); err != nil {
				return err
			}
			if objects, err = meta.ExtractList(kind); err != nil {
				return err
			}
			if got, err = known(objects, namespace); err != nil || !slices.Equal(got, want) {
				return fmt.Errorf("controller-runtime has %q, want %q (%v)", got, want, err)
			}
			return nil
		})
	}
}
