// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

var widgets = informertest.Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true}

// TestManager: a manager's controller, client and index work with informers of the
// adapters, for all namespaces and for some.
func TestManager(t *testing.T) {
	for name, namespaces := range map[string]map[string]cache.Config{
		"all namespaces": nil,
		"two namespaces": {"one": {}, "two": {}},
	} {
		t.Run(name, func(t *testing.T) { testManager(t, namespaces) })
	}
}

func testManager(t *testing.T, namespaces map[string]cache.Config) {
	api := informertest.New(informertest.Options{Resources: []informertest.Resource{informertest.ConfigMaps, widgets}})
	network := informertest.NewNetwork(api)
	defer network.Close()
	api.Put("configmaps", configMap("one", "a", "red"))
	api.Put("configmaps", configMap("two", "b", "blue"))
	api.Put("widgets.example.com", `{"metadata":{"namespace":"two","name":"w"},"size":3}`)

	// The adapters' own tests have protobuf.
	server := &rest.Config{Host: network.URL().String(), Transport: network, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	server, newInformer, err := clientgo.ForManager(server, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameName := true
	mgr, err := ctrl.NewManager(server, ctrl.Options{
		Cache:      cache.Options{NewInformer: newInformer, DefaultNamespaces: namespaces},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{SkipNameValidation: &sameName},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Logger:     logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	color := func(o client.Object) []string { return []string{o.(*corev1.ConfigMap).Data["color"]} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "color", color); err != nil {
		t.Fatal(err)
	}

	reconciled := make(chan string, 100)
	reconciler := reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var got corev1.ConfigMap
		err := mgr.GetClient().Get(ctx, r.NamespacedName, &got)
		switch {
		case apierrors.IsNotFound(err):
			reconciled <- r.String() + " gone"
		case err == nil:
			reconciled <- r.String() + " " + got.Data["color"]
		default:
			t.Error(err)
		}
		return reconcile.Result{}, nil
	})
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Error("the cache has not synced")
	}
	want := func(states ...string) {
		t.Helper()
		missing := map[string]bool{}
		for _, s := range states {
			missing[s] = true
		}
		for len(missing) > 0 {
			select {
			case s := <-reconciled:
				delete(missing, s)
			case err := <-ended:
				t.Fatalf("the manager ended: %v", err)
			case <-ctx.Done():
				t.Fatalf("not reconciled: %v", missing)
			}
		}
	}
	want("one/a red", "two/b blue")
	api.Put("configmaps", configMap("one", "a", "green"))
	want("one/a green")
	var green corev1.ConfigMapList
	if err := mgr.GetClient().List(ctx, &green, client.MatchingFields{"color": "green"}); err != nil || len(green.Items) != 1 {
		t.Errorf("listed %d by the index: %v", len(green.Items), err)
	}
	api.Delete("configmaps", "one/a")
	want("one/a gone")

	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	if err := mgr.GetClient().Get(ctx, types.NamespacedName{Namespace: "two", Name: "w"}, widget); err != nil || widget.Object["size"] != int64(3) {
		t.Errorf("got the widget %v: %v", widget.Object, err)
	}

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the manager ended: %v", err)
	}
}

func configMap(namespace, name, color string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q},"data":{"color":%q}}`, namespace, name, color)
}
