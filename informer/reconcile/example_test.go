// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/informer/reconcile"
)

// A controller that checks whether each Deployment has a ConfigMap. A real one would
// create it; the example in examples/widget does.
func Example() {
	api := informertest.New(informertest.Options{Resources: []informertest.Resource{informertest.Deployments, informertest.ConfigMaps}})
	network := informertest.NewNetwork(api)
	defer network.Close()
	api.Put("deployments.apps", `{"metadata":{"name":"web","namespace":"default"}}`)

	src := informer.NewSource(network.URL(), network) // or of package kubeconfig
	deployments := informer.New(src, informer.Resource{Group: "apps", Version: "v1", Name: "deployments"}, informer.Raw(), informer.Options{})
	configMaps := informer.New(src, informer.Resource{Version: "v1", Name: "configmaps"}, informer.Raw(), informer.Options{})
	byOwner := informer.AddIndex(configMaps, func(m informer.Ref[json.RawMessage]) ([]informer.Key, error) {
		owner, _ := m.Controller()
		return []informer.Key{{Namespace: m.Key().Namespace, Name: owner.Name}}, nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	check := func(_ context.Context, key informer.Key) (reconcile.Result, error) {
		if _, exists := deployments.Get(key); !exists {
			return reconcile.Result{}, nil
		}
		for m := range byOwner.Get(key) {
			fmt.Println(key, "has", m.Name)
			cancel()
			return reconcile.Result{}, nil
		}
		fmt.Println(key, "has no ConfigMap")
		api.Put("configmaps", `{"metadata":{"name":"settings","namespace":"default","ownerReferences":[
			{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"1","controller":true}]}}`)
		return reconcile.Result{After: time.Hour}, nil // or at the next event
	}
	c := reconcile.New("check", check, reconcile.Options{},
		reconcile.For(deployments, reconcile.GenerationChanged),
		reconcile.Owns(configMaps, reconcile.Kind{Group: "apps", Kind: "Deployment"}))
	group := reconcile.Group{Controllers: []*reconcile.Controller{c}}
	if err := group.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// default/web has no ConfigMap
	// default/web has settings
}
