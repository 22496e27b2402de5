// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package typed_test

import (
	"context"
	"log"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/kubeconfig"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
)

// A program with types of kubebuilder's passes its own scheme and type.
func ExampleNewFromScheme() {
	run := func(ctx context.Context, config *rest.Config) error {
		src, err := kubeconfig.FromConfig(config)
		if err != nil {
			return err
		}
		api, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return err
		}
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(api))
		widgets, err := typed.NewFromScheme[*appsv1.Deployment](src, scheme.Scheme, mapper, informer.Options{})
		if err != nil {
			return err // the API server does not have the resource, or does not answer
		}
		return widgets.Run(ctx)
	}
	if err := run(context.Background(), &rest.Config{Host: "https://127.0.0.1:6443"}); err != nil {
		log.Fatal(err)
	}
}
